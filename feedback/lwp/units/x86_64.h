// Where the kernel keeps the registers of x86-64, in a signal's frame and in its samples, and what a handler sees of the code
// that was interrupted.
#pragma once

#include <asm/perf_regs.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "feedback/lwp/format/sample.h"

namespace hindsight::lwp::x86_64 {

// Async-signal-safe, as is the next one.
inline uint64_t pc_of(const ucontext_t& context) {
  return static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
}

// In encoding order.
inline void copy_registers(const ucontext_t& context, uint64_t (&to)[kRegisterCount]) {
  constexpr std::array<int, kRegisterCount> kOrder = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                                      REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                      REG_R12, REG_R13, REG_R14, REG_R15};
  for (unsigned i = 0; i < kRegisterCount; ++i)
    to[i] = static_cast<uint64_t>(context.uc_mcontext.gregs[kOrder[i]]);
}

// In samples the kernel writes registers in rising order of their number in asm/perf_regs.h; machine encoding numbers
// differ.
inline constexpr std::array<Register, kRegisterCount> kPerfOrder = {
    Register::kRax, Register::kRbx, Register::kRcx, Register::kRdx, Register::kRsi, Register::kRdi,
    Register::kRbp, Register::kRsp, Register::kR8,  Register::kR9,  Register::kR10, Register::kR11,
    Register::kR12, Register::kR13, Register::kR14, Register::kR15,
};
static_assert(PERF_REG_X86_AX == 0 && PERF_REG_X86_BX == 1 && PERF_REG_X86_CX == 2 && PERF_REG_X86_DX == 3 &&
              PERF_REG_X86_SI == 4 && PERF_REG_X86_DI == 5 && PERF_REG_X86_BP == 6 && PERF_REG_X86_SP == 7 &&
              PERF_REG_X86_R8 == 16 && PERF_REG_X86_R15 == 23);

constexpr uint64_t perf_mask(unsigned first, unsigned last) {
  return ((uint64_t{1} << (last - first + 1)) - 1) << first;
}
inline constexpr uint64_t kPerfRegisters =
    perf_mask(PERF_REG_X86_AX, PERF_REG_X86_SP) | perf_mask(PERF_REG_X86_R8, PERF_REG_X86_R15);

// The indices of a gather or scatter that a sample stands behind. They are lanes of a vector register, of which samples have none
// but for this.
//
// The handler cannot decode code, which has to be done from a known boundary. It looks whether the bytes in front of the
// pc can be a gather or scatter: there are six ways to encode a gather that ends there, and three for a scatter. If so, it copies one
// lane out of the register that this would take its indices from. It does not matter if that is none: who decodes the code knows,
// and then asks for no lane or for another register's.
//
// The index register is neither the destination nor the mask, so it is as it was when the gather or scatter has ended.

inline constexpr size_t kMostGatherBytes = 11;

// Which register's lanes the gather or scatter that ends at `end` takes, without a value; bits 0: these bytes are none. Reads the
// kMostGatherBytes in front of `end`.
inline VectorIndex gather_before(const uint8_t* end) {
  // Prefix, opcode, ModRM, SIB and displacement. `opcode_at`: the length of the prefix.
  const auto is_gather = [end](size_t opcode_at, size_t displacement) {
    const uint8_t* const opcode = end - (3 + displacement);
    const uint8_t mod = opcode[1] >> 6, base = opcode[2] & 7;
    const size_t has = mod == 1 ? 1 : mod == 2 || (mod == 0 && base == 5) ? 4 : 0;
    const bool scatters = (opcode[0] & 0xfc) == 0xa0;
    if (!scatters && (opcode[0] & 0xfc) != 0x90) return false;
    if (mod == 3 || (opcode[1] & 7) != 4 || has != displacement) return false;
    const uint8_t* const prefix = opcode - opcode_at;
    return opcode_at == 3 ? !scatters && prefix[0] == 0xc4 && (prefix[1] & 0x1f) == 2 && (prefix[2] & 3) == 1
                          : prefix[0] == 0x62 && (prefix[1] & 0x0f) == 2 && (prefix[2] & 7) == 5;
  };
  constexpr size_t kVex = 3, kEvex = 4;
  for (const size_t prefix : {kVex, kEvex}) {
    for (const size_t displacement : {0, 1, 4}) {
      if (!is_gather(prefix, displacement)) continue;
      const uint8_t* const opcode = end - (3 + displacement);
      unsigned vector = (opcode[2] >> 3) & 7;
      if (!(opcode[1 - static_cast<int>(prefix)] & 0x40)) vector += 8;
      if (prefix == kEvex && !(opcode[-1] & 0x08)) vector += 16;
      return {.value = 0,
              .vector = static_cast<uint8_t>(vector),
              .bits = static_cast<uint8_t>(opcode[0] & 1 ? 64 : 32)};
    }
  }
  return {};
}

// Async-signal-safe: `context` is what a handler was given, whose pc lies in code. One of the lanes of the register's
// low 128 bits, by `pick`. The registers above the first sixteen are not looked at: where the kernel keeps them is the
// processor's choice.
inline VectorIndex gather_index(const ucontext_t& context, unsigned pick) {
  const auto pc = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto* const saved = context.uc_mcontext.fpregs;
  // The page before this one may not be there to be read.
  constexpr uint64_t kPageBytes = 4096;
  if (saved == nullptr || pc % kPageBytes < kMostGatherBytes) return {};
  VectorIndex index = gather_before(reinterpret_cast<const uint8_t*>(pc));
  if (index.bits == 0 || index.vector >= 16) return {};
  const auto& lanes = saved->_xmm[index.vector].element;
  if (index.bits == 32)
    index.value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(lanes[pick % 4])});
  else
    index.value = lanes[pick % 2 * 2] | uint64_t{lanes[pick % 2 * 2 + 1]} << 32;
  return index;
}

}  // namespace hindsight::lwp::x86_64
