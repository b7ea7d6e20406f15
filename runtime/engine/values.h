// Between the public API's values and types and the inside's.
#pragma once

#include <string>

#include "jit/wasm/types.h"
#include "runtime/engine/hindsight.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {

ValueKind to_public(wasm::ValType type);
wasm::ValType from_public(ValueKind kind);
FunctionType to_public(const wasm::FuncType& type);
wasm::FuncType from_public(const FunctionType& type);
std::string to_string(ValueKind kind);
// "i32", "null funcref"
std::string describe(const Value& value);
// Whether the value may stand where the type, a canonical one (jit/abi/type_registry.h), is wanted. Where references to
// functions and exceptions come from outside, only the store's own functions and null may.
bool fits(const Value& value, wasm::ValType type, const Store& store);
// Small kinds are zero-extended; the low half of a v128.
uint64_t slot_of(const Value& value);
// Values in slots (jit/abi/trampolines.h), one after the other: `slots` moves past the value.
void write_slots(const Value& value, uint64_t*& slots);
Value read_slots(wasm::ValType type, const uint64_t*& slots);

}  // namespace hindsight::rt
