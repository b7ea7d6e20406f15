// The wall between LLVM and the process it works in: LLVM may neither print nor exit.
//
// LLVM reports what it did not expect (an operand it cannot select, running out of registers for inline
// assembly) by report_fatal_error, which ends the process unless a handler leaves by a jump. The handler
// installed here jumps back to the innermost guarded_by_llvm_wall() of its thread. What LLVM had allocated
// since then is leaked: its destructors cannot be trusted after a half-finished pass.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace hindsight::jit::optimizing {

// Initializes LLVM for the host's processor and installs the handler. Idempotent, thread-safe.
Status initialize_llvm();

// Runs `work` behind the wall. A fatal error of LLVM becomes Error kInternal with LLVM's words. `work` must
// keep everything that has to survive such an error outside of its own frames.
Status guarded_by_llvm_wall(const std::function<Status()>& work);

}  // namespace hindsight::jit::optimizing
