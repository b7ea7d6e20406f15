// LWP for this process: the instructions work in its own native code, on a processor without them. A handler
// of SIGILL executes what the processor refuses. Each thread has LWP state of its own, off when the thread
// starts. A child of fork() begins with a copy of its parent's, as it does with the memory that it names.
//
// An instruction costs a signal delivery and a few system calls, some microseconds. CPUID keeps saying what
// the processor says: whoever asks it must be told otherwise (emulated_capabilities() says what there is).
//
// A fault of an instruction (a control block that cannot be, memory that is not there) is SIGSEGV at that
// instruction. Its si_addr and si_code are those that the kernel would give. As the kernel does, it ends a
// process that blocks or ignores that signal. SIGILL of anything else goes to the handler that was there.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "feedback/lwp/emulation/instruction_counts.h"

namespace hindsight::lwp {

enum class IfSigillIsHandled : uint8_t {
  kChain,   // take over, and hand on whatever is no LWP instruction
  kRefuse,  // the host keeps its handler, and LWP instructions stay undefined
};

// Installs the handler for the process; from any thread, nothing happens if it is there already, or where the
// processor executes the instructions itself. kUsage, with nothing changed, if SIGILL has a handler and
// `if_handled` says so; kResource if this process may not install one. A thread that blocks SIGILL cannot be
// served: the kernel ends the process at its first LWP instruction, as at any undefined one.
Status install_lwp_emulation(IfSigillIsHandled if_handled);

// Puts back the handler that was there. kUsage if somebody installed another one on top of ours, which then
// stays. No thread may be waiting for a SIGILL meanwhile. Threads whose LWP is on keep their state.
Status uninstall_lwp_emulation();

// Whether our handler serves the process now. Any thread.
bool lwp_emulation_installed();

// What all threads of this process executed since its start. Any thread.
InstructionCounts emulated_instructions();

}  // namespace hindsight::lwp
