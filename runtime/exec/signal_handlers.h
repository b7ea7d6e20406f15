// The process's signal handlers: SIGSEGV and SIGBUS for faults in linear memory, and one real-time signal
// (the kick) for interruption and quiescence scans. Installed once, kept for the life of the process; what
// they do not recognize goes to the handler that was there before.
#pragma once

#include <sys/types.h>

namespace hindsight::rt {

void install_signal_handlers();
int kick_signal();            // valid after install_signal_handlers()
bool kick_thread(pid_t tid);  // false: could not be sent
// Where a redirected thread goes on: on its own stack, outside the handler. Reads GuestThread::fault.
[[noreturn]] void trap_after_signal();

}  // namespace hindsight::rt
