#include "jit/optimizing/vectors/short_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace {

// From here on LLVM makes vectors and lets a scalar loop do the rest (TinyTripCountVectorThreshold in LoopVectorize.cpp).
constexpr unsigned kLeastIterations = 16;

}  // namespace

llvm::PreservedAnalyses ShortLoopsPass::run(llvm::Function& function,
                                            llvm::FunctionAnalysisManager& analyses) {
  if (function.isDeclaration()) return llvm::PreservedAnalyses::all();
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost() || evolution.getSmallConstantTripCount(loop) != 0) continue;
    const unsigned most = evolution.getSmallConstantMaxTripCount(loop);
    if (most == 0 || most >= kLeastIterations) continue;
    if (llvm::findOptionMDForLoop(loop, "llvm.loop.vectorize.enable") != nullptr) continue;
    loop->setLoopID(scalar_loop_identity(function.getContext(), loop->getLoopID()));
  }
  return llvm::PreservedAnalyses::all();
}

}  // namespace hindsight::jit::optimizing
