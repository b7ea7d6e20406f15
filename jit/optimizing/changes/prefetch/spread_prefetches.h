// Makes prefetches of the calls that stand for them (prefetch_call.h), when the vectorizer is done.
//
// A lane is computed by itself where that takes scalars alone: of a vector of indices that was loaded to be looked at by
// its lanes, each is loaded from its own place. So nothing is put into vectors to be taken out of them again.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/changes/change_set.h"

namespace hindsight::jit::optimizing {

struct SpreadPrefetchesPass : llvm::PassInfoMixin<SpreadPrefetchesPass> {
  explicit SpreadPrefetchesPass(IrModule& module) : ir(&module) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
  // Whatever is left out of a compile: nobody defines what the calls call.
  static bool isRequired() { return true; }

  IrModule* ir;
};

void add_spread_prefetches(llvm::FunctionPassManager& passes, ChangeSet& changes);

}  // namespace hindsight::jit::optimizing
