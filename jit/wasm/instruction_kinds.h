// What kind of instruction stands at an offset of a module.
#pragma once

#include "base/ids.h"
#include "jit/wasm/module.h"
#include "jit/wasm/opcodes.h"

namespace hindsight::wasm {

// Only writes memory: a plain store, of vectors and of their lanes too. False for an offset outside of the module.
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

// A `loop`. False for an offset outside of the module.
inline bool is_loop(const Module& module, WasmOffset at) {
  return at.value < module.bytes.size() && static_cast<Opcode>(module.bytes[at.value]) == Opcode::kLoop;
}

}  // namespace hindsight::wasm
