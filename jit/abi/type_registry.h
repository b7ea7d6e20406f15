// Canonical signature ids: structurally equal function types of all modules in the process have the same id,
// so that call_indirect compares one integer. Ids are never reused; the registry only grows. Thread-safe
// (mutex).
#pragma once

#include <cstdint>

#include "jit/wasm/types.h"

namespace hindsight::jit {

uint32_t canonical_type_id(const wasm::FuncType& type);
// The type of an id that canonical_type_id returned. The reference stays valid for the life of the process.
const wasm::FuncType& type_of_canonical_id(uint32_t id);

}  // namespace hindsight::jit
