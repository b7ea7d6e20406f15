// Tells how a comparison that this tier emitted will go. It reads the machine code in front of which a thread stands,
// and the thread's registers. So code which counts branches needs no second copy of each comparison for the rare case
// that the branch is recorded.
//
// The forms are those that FunctionCompiler makes of a Condition and Emitter encodes. First comes one of these:
// - cmp or test of registers, frame slots and immediates, with 32 and 64 bits.
// - ucomiss or ucomisd of registers, frame slots and constants after the code.
// - ptest of two registers.
//
// Then comes jcc, or jp and jcc together where unordered operands matter.
#pragma once

#include <array>
#include <cstdint>

namespace hindsight::jit::baseline {

// General registers by their numbers in the encoding. Only those have to be there that are compared, and rbp.
using RegisterFile = std::array<uint64_t, 16>;

// The lower 128 bits of xmm0 to xmm15.
struct VectorHalves {
  uint64_t half[16][2];
};

struct Outcome {
  bool jumps = false;
  const uint8_t* target = nullptr;  // where execution goes on, whether it jumps or not
};

// Precondition: `code` is the first byte of such a comparison, followed by its jumps.
Outcome outcome_at(const uint8_t* code, const RegisterFile& registers, const VectorHalves& vectors);

// Where the jmp at `code` leads.
const uint8_t* jump_target(const uint8_t* code);

}  // namespace hindsight::jit::baseline
