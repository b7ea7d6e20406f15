// Keeps loops of few iterations from becoming vectors that are mostly masked. Programs that were unrolled before they became
// WebAssembly are full of such loops: each unrolled loop has one after it, for the up to seven iterations that are left.
//
// Where LLVM's vectorizer knows that a loop has fewer than 16 iterations but not how many, it makes all of them one or two
// vectors, with a mask for those that are not there. A masked gather of three places takes longer than three loads. What the mask
// and the gather are made of is computed before the loop, in every iteration of the loop around it, also where nothing is left.
#pragma once

#include <llvm/IR/PassManager.h>

namespace hindsight::jit::optimizing {

struct ShortLoopsPass : llvm::PassInfoMixin<ShortLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace hindsight::jit::optimizing
