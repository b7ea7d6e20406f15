// Keeps a write beyond the process's limit of file sizes (RLIMIT_FSIZE) from ending the process. The write fails with EFBIG, and the
// SIGXFSZ that the kernel sends along, which nobody handles, is taken off. For code of a library, whose host decides what signals do; cheap
// where there is no limit.
//
// The signal is blocked for this thread while the guard lives. The kernel sends it to the thread that writes, so that no other
// takes it. One that was pending before stays.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <ctime>

namespace hindsight {

class FileSizeGuard {
 public:
  FileSizeGuard() {
    const int error = errno;
    rlimit limit{};
    active_ = ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
    if (active_) block();
    errno = error;
  }
  ~FileSizeGuard() {
    if (!active_) return;
    const int error = errno;
    const timespec now{};
    while (::sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);  // a set of ours: cannot fail
    errno = error;
  }
  FileSizeGuard(const FileSizeGuard&) = delete;
  FileSizeGuard& operator=(const FileSizeGuard&) = delete;

 private:
  void block() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    // Then it is blocked already, and there is nothing to change.
    active_ = sigismember(&pending, SIGXFSZ) != 1;
    if (active_) ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }

  bool active_ = false;
  sigset_t signal_{}, before_{};
};

}  // namespace hindsight
