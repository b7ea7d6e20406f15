// Splits a function whose first decisions may end it. Where a look at its arguments alone tells that it
// returns, that way gets no frame and no check of the stack. Most calls of a recursion are its ends.
//
//     f:  check the stack                      f:       if (test) return value
//         if (test) return value                        jump to f.rest
//         ...                                  f.rest:  check the stack
//                                                       ...
//
// LLVM can do as much without a second function ("shrink wrapping"). But it cannot where its register
// allocator has put an argument into a register that is to be saved before it is used.
#pragma once

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// On optimized IR; leaves functions of another shape as they are.
void split_early_return(IrModule& ir, llvm::Function& function);

}  // namespace hindsight::jit::optimizing
