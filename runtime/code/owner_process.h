// OwnerProcess: which process made something that a fork() only appears to copy. Such things are threads, the kernel's
// clocks of other threads, mappings that children do not get, and locks that a vanished thread holds.
//
// What is promised after fork(), in the child, about an engine of the parent:
//   - exec and _exit: always.
//   - Letting go of it and of everything made by it, also through exit(): never waits and never touches what
//     the parent still uses. Nothing is freed, written or reported; the memory goes with the process.
//   - Running guest code, on the thread that forked, also out of a host function of a guest that goes on in both
//     processes: each runs its own code, whatever the other compiles, lets go of or loads from then on (see
//     jit/code/code_arena.h: a chunk of code that both have is copied before either writes there; a fork itself copies
//     nothing). Nobody watches: its records fill the ring and are missed, nothing is compiled in the background. Time
//     limits hold, by a thread of the child's own.
//   - First calls, loading and instantiating, all in baseline code: the locks that these take are in nobody's hands at
//     a fork, which waits for them (base/fork_gate.h: for the time in which one function is compiled in one pass, or one
//     more linked).
//   - Anything else (a new engine of tier auto, WASI programs with threads, interrupt(), waiting in a shared memory) may
//     wait for ever for a lock or a thread that the parent has. The parent notices nothing.
// For children that are made without the handlers of pthread_atfork (vfork, posix_spawn, _Fork, a clone of the host's
// own) only the first is promised.
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
