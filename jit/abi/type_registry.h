// Canonical signature ids: equal function types of all modules in the process have the same id, so that
// call_indirect compares one integer. Ids are never reused; the registry only grows. Thread-safe (mutex).
//
// A type may refer to others: references to functions of one type. Within a module such a ValType has an
// index into the module's types. What crosses modules, which is every type that this header returns, has the
// id there, so that ValTypes compare as equal, and as subtypes, between modules too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "jit/wasm/module.h"
#include "jit/wasm/types.h"

namespace hindsight::jit {

// Of a type that refers to none, or to types by their ids.
uint32_t canonical_type_id(const wasm::FuncType& type);
// Of all types of a module, in its order. Linear. kResource when the process has had more types than a
// ValType can name (wasm::kMaxTypeIndex).
Result<std::vector<uint32_t>> canonical_type_ids(const wasm::Module& module);
// A type of the module whose ids these are, as others see it.
wasm::ValType canonical_type(wasm::ValType type, std::span<const uint32_t> ids);
// Whether its id can be known without the module.
bool refers_to_types(const wasm::FuncType& type);
// The type of an id that these functions returned. The reference stays valid for the life of the process.
const wasm::FuncType& type_of_canonical_id(uint32_t id);

}  // namespace hindsight::jit
