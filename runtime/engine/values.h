// Between the public API's values and types and the inside's.
#pragma once

#include "jit/wasm/types.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

ValueKind to_public(wasm::ValType type);
wasm::ValType from_public(ValueKind kind);
FunctionType to_public(const wasm::FuncType& type);
wasm::FuncType from_public(const FunctionType& type);
const char* to_string(ValueKind kind);
// Small kinds are zero-extended.
uint64_t slot_of(const Value& value);
Value value_of(wasm::ValType type, uint64_t slot);

}  // namespace hindsight::rt
