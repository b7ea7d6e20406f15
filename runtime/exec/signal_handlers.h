// The process's signal handlers. SIGSEGV and SIGBUS are for faults in linear memory, SIGURG (the kick) for interruption
// and quiescence scans. To interrupt a thread that does not get the kick, one of the other two is sent to it. They are
// installed once and kept for the life of the process. What they do not recognize goes to the handler that was there
// before.
#pragma once

#include <sys/types.h>

namespace hindsight::rt {

struct GuestThread;

void install_signal_handlers();
int kick_signal();
// Sends the kick. False: could not be sent.
bool kick_thread(GuestThread& thread);
// Why the kick may not come to a thread, and what comes in its place.
struct Reach {
  // The thread blocks the kick, as far as /proc tells. So it does as long as a handler of the kick runs.
  bool blocked = false;
  bool replaced = false;  // a handler that is not ours has the kick
  // A signal of faults that the thread lets through, to our handler; 0: there is none, or nobody knows.
  int other = 0;
  bool other_waits = false;  // one of that kind waits for the thread: the kernel would drop a second one
};
Reach reach_of(pid_t tid);
// Sends Reach::other in the kick's place. Only what was seen to be handled by us. False: could not be sent.
bool kick_otherwise(GuestThread& thread, int signal);
// Lets through on the calling thread what guests need: the kick, and the signals of faults in guest memory. Whether one
// of them was blocked.
bool unblock_signals_here();
// Where a redirected thread goes on: on its own stack, outside the handler. Reads GuestThread::fault.
[[noreturn]] void trap_after_signal();

}  // namespace hindsight::rt
