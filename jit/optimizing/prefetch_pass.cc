#include "jit/optimizing/prefetch_pass.h"

namespace hindsight::jit::optimizing {
PrefetchPlan::PrefetchPlan(IrModule& ir_module) : ir(ir_module) {}
llvm::PreservedAnalyses PrefetchPass::run(llvm::Function&, llvm::FunctionAnalysisManager&) {
  return llvm::PreservedAnalyses::all();
}
}  // namespace hindsight::jit::optimizing
