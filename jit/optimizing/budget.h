// Budget: what one compile may take before it is given up.
//
// Limits by size (pass_limits.h) decide what a function gets, and so do not depend on the machine. This is what is left for what they
// did not foresee: CPU time of the compiling thread, in proportion to the function, and memory. It is asked between passes, and only
// ever ends the whole compile, so that a function's code, if there is any, is always the same.
//
// Memory. A compile is not begun where less is free (base/free_memory.h) than a function of its size may take. It is ended between passes
// where little is left by then, and what it had is freed. This is what is done about memory that the kernel promises to everybody and takes
// away by ending a process.
//
// Where an allocation fails nevertheless, as under RLIMIT_AS, that compile ends and the process goes on. LLVM, which is built without
// exceptions, is left by a jump (guard_llvm.h), and what the compile had is lost to the process.
//
// Three things are not promised. Others of the process, which allocate at the same time, may find no memory. The kernel may end the process
// where it has promised more than it has, and others take it between two looks. There is no way out of an allocation that fails while LLVM
// initializes itself, in the first compile of a process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "jit/optimizing/optimizer.h"

namespace hindsight::jit::optimizing {

// CPU seconds of the calling thread.
double thread_seconds();

class Budget {
 public:
  // Begins now, on the thread that compiles; `request` outlives it.
  explicit Budget(const OptimizeRequest& request);

  // Whether there is memory to begin with. Error kResource.
  Status check_begin();
  // Whether to stop: nobody waits for the code any more, or it takes too long, or too much. Cheap: clocks are read every few
  // milliseconds, what is free a few times a second.
  bool is_over();
  // The error that says which; only where it is over.
  Status check();
  // Why it was over; nothing: it was not.
  std::optional<NoCode> why() const { return why_; }

  double seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  double now() const;
  // How long not to look again. Given meters cost nothing and are looked at each time: how often they are asked does not depend on
  // how fast the machine is.
  Clock::duration between(Clock::duration looks) const;
  uint64_t free() const;
  const OptimizeRequest& request_;
  const double begin_, seconds_;
  Clock::time_point next_look_, next_look_at_memory_;
  uint64_t free_ = 0;  // as last seen
  std::optional<NoCode> why_;
};

}  // namespace hindsight::jit::optimizing
