// The wall between LLVM and the process it works in: LLVM may neither print nor exit.
//
// LLVM reports what it did not expect (an operand it cannot select, running out of registers for inline assembly) by report_fatal_error.
// That ends the process unless a handler leaves by a jump. The handler installed here jumps back to the innermost guarded_by_llvm_wall() of
// its thread.
//
// Where memory ends, LLVM calls another handler. Or the C++ library's operator new calls the handler that this installs for the process; in
// other threads that does what was done before. Both handlers jump as well, the second only out of LLVM's own work (LlvmWork), where no
// lock of ours is held.
//
// What LLVM had allocated since then is leaked: its destructors cannot be trusted after a half-finished pass.
#pragma once

#include <csetjmp>
#include <functional>
#include <string>

#include "base/result.h"

namespace hindsight::jit::optimizing {

// Initializes LLVM for the host's processor and installs the handler. Idempotent, thread-safe.
Status initialize_llvm();

// Runs `work` inside the wall. A fatal error of LLVM becomes Error kInternal with LLVM's words, an allocation that failed kResource. `work`
// must keep everything that has to survive such an error outside of its own frames.
// `no_memory`: set where it was that.
Status guarded_by_llvm_wall(const std::function<Status()>& work, bool& no_memory);

// While it lives, on the thread and inside the wall of who made it: LLVM is at work, and no lock is held.
class LlvmWork {
 public:
  LlvmWork();
  ~LlvmWork();
  LlvmWork(const LlvmWork&) = delete;
  LlvmWork& operator=(const LlvmWork&) = delete;

 private:
  const bool before_;
};

// A way out of LLVM's code generation between two of its passes, whose managers can be told to leave passes out, but not to stop.
//
// Left is what is on the stack between run() and leave(): frames of pass managers, which own nothing. The managers themselves
// belong to the caller of run(), whose destructors then free everything that the passes made.
class WayOut {
 public:
  WayOut() = default;
  WayOut(const WayOut&) = delete;
  WayOut& operator=(const WayOut&) = delete;
  // False: `work` came to leave().
  bool run(const std::function<void()>& work);
  // On the thread and within the run(); not from within a pass of LLVM's.
  [[noreturn]] void leave();

 private:
  std::jmp_buf back_;
};

}  // namespace hindsight::jit::optimizing
