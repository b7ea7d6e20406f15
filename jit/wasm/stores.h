// Which instructions only write memory: plain stores, of vectors and of their lanes too.
#pragma once

#include "base/ids.h"
#include "jit/wasm/module.h"

namespace hindsight::wasm {

// Of the instruction at an offset of the module; false for an offset outside of it.
inline bool is_store(const Module& module, WasmOffset at) {
  constexpr uint8_t kFirst = 0x36, kLast = 0x3e, kVectors = 0xfd;
  constexpr uint8_t kVectorStore = 0x0b, kFirstLane = 0x58, kLastLane = 0x5b;
  if (at.value >= module.bytes.size()) return false;
  const uint8_t opcode = module.bytes[at.value];
  if (opcode >= kFirst && opcode <= kLast) return true;
  if (opcode != kVectors || at.value + 1 >= module.bytes.size()) return false;
  const uint8_t second = module.bytes[at.value + 1];
  return second == kVectorStore || (second >= kFirstLane && second <= kLastLane);
}

}  // namespace hindsight::wasm
