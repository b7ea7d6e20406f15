// Leaves loops that count in strips alone as they would be without strips. A loop may end where its counter comes to zero by steps
// that perhaps pass it: LLVM finds no count then, neither vectorizes the loop nor unrolls it, and rows of a few iterations are better off
// so. In strips it counts. What WidenPass has made fit for vectors, as it does without strips, is marked no more; the rest stays plain.
#pragma once

#include <llvm/IR/PassManager.h>

namespace hindsight::jit::optimizing {

struct UncountedLoopsPass : llvm::PassInfoMixin<UncountedLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace hindsight::jit::optimizing
