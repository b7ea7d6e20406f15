// OwnerProcess: which process made something that a fork() only appears to copy: threads, the kernel's clocks
// of other threads, mappings that children do not get, locks that a vanished thread holds.
//
// What is promised after fork(), in the child, about an engine of the parent:
//   - exec and _exit: always.
//   - Letting go of it and of everything made by it, also through exit(): never waits and never touches what
//     the parent still uses. Nothing is freed, written or reported; the memory goes with the process.
//   - Running guest code that ran before the fork, on the thread that forked: it runs on. Nobody watches: its
//     records fill the ring and are missed, nothing is compiled in the background, no timeout ends it.
//   - Anything else (loading, first calls, a new engine of tier auto) may wait for ever for a lock or a
//   thread
//     that the parent has. The parent notices nothing.
#pragma once

#include <unistd.h>

#include <utility>

namespace hindsight::rt {

class OwnerProcess {
 public:
  // A system call of some 50 ns: not for what a guest does often.
  bool here() const { return ::getpid() == pid_; }

 private:
  const pid_t pid_ = ::getpid();
};

// Keeps `owner` from destroying what it owns, for ever.
template <typename Owner>
void leak(Owner owner) {
  new Owner(std::move(owner));
}

}  // namespace hindsight::rt
