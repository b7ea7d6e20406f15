// What the out-of-process emulation does to one stopped thread of another process, by ptrace. Every function
// needs the thread to be stopped under the calling thread's trace. Where a call fails the thread is gone
// (killed meanwhile), which its exit will tell: so failures are "false" and nothing more.
//
// Internal to this room.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

#include "feedback/lwp/emulation/emulator.h"

namespace hindsight::lwp::traced {

// The thread's registers; empty also for a code segment that is neither of the two that Linux has.
std::optional<Registers> read_registers(pid_t tid);
// General registers, instruction pointer and flags; `width` and segment bases stay what they are.
bool write_registers(pid_t tid, const Registers& registers);

std::optional<siginfo_t> read_signal(pid_t tid);

// Replaces the signal that the thread stopped for by the SIGSEGV which `fault` is. The caller lets the thread
// go on with the signal number returned: SIGSEGV, or SIGKILL where the thread ignores SIGSEGV, which no fault
// can be.
int turn_into_fault(pid_t tid, const Fault& fault);

struct SystemCallOutcome {
  std::optional<int64_t> result;  // the kernel's, negative errors included
  std::optional<int> death;       // the thread died instead: its wait status, which nobody will see again
};
// Lets the thread execute one system call, in the width of its code, and leaves it as it was. It must have
// stopped in user code or at the end of a system call. Signals that arrive meanwhile come again afterwards.
SystemCallOutcome run_system_call(pid_t tid, uint64_t number, std::array<uint64_t, 3> arguments);

// Thread group, from the kernel's records; 0 if the thread is gone.
pid_t group_of(pid_t tid);
// Parent of the thread's process; 0 if gone.
pid_t parent_of(pid_t tid);
// Whether two threads have one address space. Where the kernel does not say (kcmp): `if_unknown`.
bool share_memory(pid_t a, pid_t b, bool if_unknown);

}  // namespace hindsight::lwp::traced
