// Makes loops fit for the host's vectors that WebAssembly made unfit. For each counted innermost loop of one
// block that goes through memory in even steps:
//
//     before:  ... count, bounds of the index of every group of accesses ...
//              if (long enough && no index wraps && what must not overlap does not) goto wide else goto loop
//     loop:    as it was, not to be vectorized
//     wide:    a copy that counts in 64 bits and addresses memory by `start + step * counter + constant`;
//              unrolling that was done before the loop became WebAssembly is undone
//
// LLVM's own vectorizer asks, too, whether 32-bit indices wrap. But it asks for one access at a time, and so
// does not see that two accesses are neighbours. Nor does it find the trip count of `while ((n -= 2) != 0)`,
// which is what loops that were unrolled by two look like. See affine_access.h and reroll.h.
//
// Only loops that a vectorizer can do something with are copied. They have no calls, no floating-point sums
// (whose order is the program's), and no values carried along but sums and the like.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

struct WidenPass : llvm::PassInfoMixin<WidenPass> {
  explicit WidenPass(const IrModule& module) : ir(module) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  const IrModule& ir;
};

}  // namespace hindsight::jit::optimizing
