// Executes decoded LWP instructions against a register file, a memory and the LWP state of a thread. This is
// the part that the in-process and the out-of-process emulation share (sigill_emulation.h,
// trace_emulation.h).
//
//   std::optional<Instruction> instruction = fetch_lwp(memory, registers.ip, registers.width);
//   if (!instruction) ...                                    // somebody else's #UD
//   Outcome<void> done = execute(*instruction, registers, memory, lwp);
//   if (!done) ...                                           // raise done.error(); no register has changed
//
// Everything here is async-signal-safe (as the Memory is) and allocates nothing.
#pragma once

#include <signal.h>

#include <array>
#include <cstdint>
#include <optional>

#include "feedback/lwp/emulation/fault.h"
#include "feedback/lwp/emulation/memory.h"
#include "feedback/lwp/emulation/software_lwp.h"
#include "feedback/lwp/emulation/xop_decoder.h"
#include "feedback/lwp/format/capabilities.h"
#include "feedback/pmu/x86_64.h"

namespace hindsight::lwp {

inline constexpr uint64_t kCarryFlag = 1;  // of Registers::flags

// What the instructions see and change of a thread.
struct Registers {
  CodeWidth width = CodeWidth::k64;
  std::array<uint64_t, 16> general{};  // encoding order; 32-bit code uses the low halves of the first eight
  uint64_t ip = 0;                     // linear, the instruction's own until it is executed
  uint64_t flags = 0;
  uint64_t fs_base = 0, gs_base = 0;  // used only where the instruction names the segment
};

// Reads the bytes at `ip`, as far as they can be read, and decodes them. Empty: no LWP instruction is there.
std::optional<Instruction> fetch_lwp(Memory& memory, uint64_t ip, CodeWidth width);

// The linear address of an operand of the instruction at registers.ip.
uint64_t effective_address(const MemoryOperand& operand, const Registers& registers,
                           uint8_t instruction_length);

// Executes the instruction that stands at registers.ip and steps over it. As processors do it:
//   - A result of 32 bits clears the upper half of its register.
//   - LWPINS changes CF and no other flag.
//   - While LWP is off, LWPINS and LWPVAL do not read their operand in memory, so they do not fault.
//   - A fault leaves registers and LWP state as they were. #PF names the first byte that cannot be read; a
//     non-canonical address of an operand is #GP.
Outcome<void> execute(const Instruction& instruction, Registers& registers, Memory& memory, SoftwareLwp& lwp);

// What an emulated processor offers: value samples and programmed events, continuous mode, time stamps and
// the filter by instruction address. It offers nothing that happens between its instructions. It offers no
// threshold interrupt, for which no system has ever defined a delivery.
Capabilities emulated_capabilities();

// What CPUID answers for `leaf` on that processor, given the answer of the real one.
pmu::CpuidRegisters with_emulated_lwp(uint32_t leaf, pmu::CpuidRegisters real);

// What the kernel says of a SIGSEGV for a fault that is one. Async-signal-safe.
siginfo_t segmentation_fault(const Fault& fault);

}  // namespace hindsight::lwp
