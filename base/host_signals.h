// Keeps the host's signals from threads of our own. A signal that is sent to the process goes to any thread that lets it
// through. A host that blocks one in its threads, to wait for it in sigwait or to read it from a descriptor, knows nothing
// of ours. One of these would run the host's handler, or end the process where there is none.
//
// A thread has the mask of whoever made it, from its first instruction on.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace hindsight {

// All but those of faults. A fault while its signal is blocked ends the process without a word to anyone.
inline sigset_t host_signals() noexcept {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&signals, fault);
  return signals;
}

// While it exists the calling thread lets none of them through, and threads that it makes never do.
class HostSignalsBlocked {
 public:
  HostSignalsBlocked() noexcept {
    const sigset_t signals = host_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);  // a set of ours: cannot fail
  }
  ~HostSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HostSignalsBlocked(const HostSignalsBlocked&) = delete;
  HostSignalsBlocked& operator=(const HostSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace hindsight
