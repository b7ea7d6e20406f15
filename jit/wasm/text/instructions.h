// The instructions by name: the text format's view of the opcode table (opcodes.h), with what the decoder refuses beside it
// (gc_opcodes.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "jit/wasm/opcodes.h"
#include "jit/wasm/text/encoder.h"
#include "jit/wasm/text/gc_opcodes.h"

namespace hindsight::wasm::text {

struct Instruction {
  std::string_view name;
  uint16_t code = 0;  // as in opcodes.h
  ImmKind immediates = ImmKind::kNone;
  GcImmediates gc = GcImmediates::kNone;

  bool is(Opcode opcode) const { return code == static_cast<uint16_t>(opcode); }
};

// Null if no instruction is called so. `select` is found as Opcode::kSelect. O(1).
const Instruction* find_instruction(std::string_view name);

void encode_opcode(uint16_t code, Encoder& out);

}  // namespace hindsight::wasm::text
