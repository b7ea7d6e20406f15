// What never changes of the context is read where it is needed.
//
// Problem: a function reads the base of its memory, its tables, the ids of types and the addresses of what the runtime provides at its
// beginning, before it looks at what is left of the stack. Where nothing is left it calls the runtime, and all that was read is kept over
// that call, in registers that the function must then save and restore each time. What only a trap's way out needs is kept over all other
// calls too, on the stack.
//
// Idea: code that hardly ever runs reads for itself. The rest reads after the look at the stack. What is needed over the calls in
// between is kept as before. To read it again after each was tried: workload expression_tree took 13 % longer (Zen 4), since after a call
// that went where none expected it, all waits for what is read first.
//
// After all passes that join equal loads, and after early returns were split off: they go before the look at the stack.
#pragma once

#include <llvm/IR/Function.h>

namespace hindsight::jit::optimizing {

void read_context_where_needed(llvm::Function& function);

}  // namespace hindsight::jit::optimizing
