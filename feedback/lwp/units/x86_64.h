// Where the kernel keeps the general registers of x86-64, in a signal's frame and in its samples.
#pragma once

#include <asm/perf_regs.h>
#include <ucontext.h>

#include <array>
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

}  // namespace hindsight::lwp::x86_64
