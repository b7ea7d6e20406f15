// Keeps a write to a closed pipe from ending the whole process: the guest gets kPipe instead. SIGPIPE is
// blocked for this thread while the guard lives, and one that the writes raised is taken off before it is
// unblocked. One that was pending before stays. Elsewhere the disposition is the embedder's business.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace hindsight::wasi {

class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    if (!was_pending_) ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~SigpipeGuard() {
    if (was_pending_) return;  // then it was blocked already and we changed nothing
    if (raised_) {
      const timespec now{};
      while (::sigtimedwait(&sigpipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

  // A write said EPIPE.
  void note_broken_pipe() { raised_ = true; }

 private:
  sigset_t sigpipe_;
  sigset_t before_;
  bool was_pending_ = false;
  bool raised_ = false;
};

}  // namespace hindsight::wasi
