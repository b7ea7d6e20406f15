#include "jit/optimizing/vectors/uncounted_loops.h"

#include <llvm/Analysis/LoopInfo.h>

#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {

llvm::PreservedAnalyses UncountedLoopsPass::run(llvm::Function& function,
                                                llvm::FunctionAnalysisManager& analyses) {
  if (function.isDeclaration()) return llvm::PreservedAnalyses::all();
  for (llvm::Loop* loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
    if (is_uncounted(*loop)) loop->setLoopID(plain_loop_identity(function.getContext(), loop->getLoopID()));
  return llvm::PreservedAnalyses::all();
}

}  // namespace hindsight::jit::optimizing
