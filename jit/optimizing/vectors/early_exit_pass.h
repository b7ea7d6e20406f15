// Makes vectors of loops over bytes that end early: memcmp, strcmp, std::find, and all else that looks for the first byte where
// something holds. LLVM's vectorizer takes no loop whose end depends on what it loads.
//
//     before: two iterations, as they were
//     loop:   an iteration, as it was
//     ahead:  while (no stream is about to leave its page) {
//               load the next 16 bytes of each stream; which is the first iteration in which the loop would end?
//               go on behind those before it
//               if (there is one, or no 16 iterations are left) break
//             }
//             goto loop
//
// What is passed over are iterations that do not end the loop, and that do nothing but count. So the loop itself still does whatever there is
// to do at its end. What its phis carry is moved ahead: numbers that count by their steps, and what was loaded in the
// iteration before is loaded again.
//
// Bytes behind the end are loaded in vain. They trap only where the first one would: of a page all bytes are there, or none is.
// Where the loop would end between two loads of one iteration, the first is looked at before the second is made.
//
// Of bytes alone: libraries' strings have them, and what stores a byte before its neighbours are loaded together waits
// for the store, in the host's memcmp as well. Arrays of wider elements lose as much by it as they gain.
//
// To look at whole vectors up to a page's end is what C libraries do in strlen, and LLVM's LoopIdiomVectorize for loops of one shape.
#pragma once

#include <llvm/IR/PassManager.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// Before loops of few iterations are unrolled for good: those that EarlyExitPass takes stay loops.
struct KeepEarlyExitsPass : llvm::PassInfoMixin<KeepEarlyExitsPass> {
  explicit KeepEarlyExitsPass(const IrModule& module) : ir(module) {}
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& known, llvm::LPMUpdater& updater);

  const IrModule& ir;
};

struct EarlyExitPass : llvm::PassInfoMixin<EarlyExitPass> {
  explicit EarlyExitPass(const IrModule& module) : ir(module) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  const IrModule& ir;
};

}  // namespace hindsight::jit::optimizing
