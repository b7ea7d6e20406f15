#include "jit/optimizing/pass_order.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/ConstraintElimination.h>
#include <llvm/Transforms/Scalar/CorrelatedValuePropagation.h>
#include <llvm/Transforms/Scalar/DivRemPairs.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/InstSimplifyPass.h>
#include <llvm/Transforms/Scalar/JumpThreading.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>
#include <llvm/Transforms/Scalar/LoopInstSimplify.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopSimplifyCFG.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/Reassociate.h>
#include <llvm/Transforms/Scalar/SCCP.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimpleLoopUnswitch.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Scalar/TailRecursionElimination.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>
#include <llvm/Transforms/Vectorize/VectorCombine.h>

#include <vector>

#include "jit/optimizing/vectors/early_exit_pass.h"
#include "jit/optimizing/vectors/short_loops.h"
#include "jit/optimizing/vectors/uncounted_loops.h"
#include "jit/optimizing/vectors/wall.h"

namespace hindsight::jit::optimizing {
namespace {

// LLVM's GVNPass makes a load earlier where one of the ways to it has the value already. This one does not do so before a
// store, as if each store might not return.
struct NumberValuesPass : llvm::PassInfoMixin<NumberValuesPass> {
  static llvm::StringRef name() { return "NumberValuesPass"; }
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    std::vector<llvm::WeakVH> walls;  // blocks that nothing reaches take theirs with them
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      if (llvm::isa<llvm::StoreInst>(instruction)) walls.emplace_back(add_wall(*instruction.getNextNode()));
    }
    if (!walls.empty()) analyses.invalidate(function, preserved_by_walls());
    llvm::PreservedAnalyses preserved = llvm::GVNPass().run(function, analyses);
    for (const llvm::WeakVH& call : walls)
      if (call) llvm::cast<llvm::CallInst>(call)->eraseFromParent();
    if (!walls.empty()) preserved.intersect(preserved_by_walls());
    return preserved;
  }

 private:
  static llvm::PreservedAnalyses preserved_by_walls() {
    llvm::PreservedAnalyses preserved;
    preserved.preserveSet<llvm::CFGAnalyses>();
    return preserved;
  }
};

// Stores of a loop stay in it, each in its turn, and loads too.
llvm::LICMPass hoist_invariants(bool speculates) {
  llvm::LICMOptions options;
  options.MssaNoAccForPromotionCap = 0;
  options.AllowSpeculation = speculates;
  return llvm::LICMPass(options);
}

llvm::SimplifyCFGPass simplify_flow() {
  return llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().convertSwitchRangeToICmp(true));
}

}  // namespace

// Left out, of LLVM's: passes over the module, which has one function (IPSCCP, attributes of functions, the inliner: what is inlined was
// generated in place). BDCE, LoopDeletion, SROA, AggressiveInstCombine. The second of two CorrelatedValuePropagation, two of five
// InstCombine and one of six SimplifyCFG. Passes that remove stores, or move them, past accesses that may trap: DSE, MemCpyOpt,
// MergedLoadStoreMotion.
//
// InstCombine is needed before branches are threaded: without it workload tokenizer took 14 % longer (two conditions became one
// that is computed). It is needed before loops are unrolled, which goes by their sizes, and at the end: changes look for shapes.
llvm::FunctionPassManager simplifying_passes(const IrModule& ir, llvm::OptimizationLevel level) {
  const CompileOptions& options = ir.request.options;
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(simplify_flow());
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::JumpThreadingPass());
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  passes.addPass(simplify_flow());
  passes.addPass(llvm::TailCallElimPass());
  passes.addPass(llvm::ReassociatePass());
  // Two comparisons with the memory's length, one of which the other implies.
  if (options.bounds == BoundsChecks::kExplicit) passes.addPass(llvm::ConstraintEliminationPass());
  {
    llvm::LoopPassManager loops;
    loops.addPass(llvm::LoopInstSimplifyPass());
    loops.addPass(llvm::LoopSimplifyCFGPass());
    loops.addPass(hoist_invariants(false));
    loops.addPass(llvm::LoopRotatePass());
    loops.addPass(hoist_invariants(true));
    loops.addPass(llvm::SimpleLoopUnswitchPass(/*NonTrivial=*/level == llvm::OptimizationLevel::O3));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  }
  passes.addPass(simplify_flow());
  passes.addPass(llvm::InstCombinePass());
  {
    llvm::LoopPassManager loops;
    // No loop that may trap becomes a fill or a copy.
    if (options.bounds == BoundsChecks::kExplicit) loops.addPass(llvm::LoopIdiomRecognizePass());
    loops.addPass(llvm::IndVarSimplifyPass());
    if (ir.request.tuning.vectorize) loops.addPass(KeepEarlyExitsPass(ir));
    loops.addPass(llvm::LoopFullUnrollPass(static_cast<int>(level.getSpeedupLevel())));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops)));
  }
  passes.addPass(llvm::SCCPPass());
  passes.addPass(NumberValuesPass());
  passes.addPass(llvm::JumpThreadingPass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(hoist_invariants(true), /*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass(
      llvm::SimplifyCFGOptions().convertSwitchRangeToICmp(true).hoistCommonInsts(true).sinkCommonInsts(
          true)));
  passes.addPass(llvm::InstCombinePass());
  return passes;
}

// Left out: LoopLoadElimination, LoopDistribute, AlignmentFromAssumptions, LoopSink, Float2Int, which found nothing to do. The second of
// three InstCombine. What makes several back edges of one (needCanonicalLoops(false) of SimplifyCFG): of a merge, LLVM then makes a nested
// loop for each side, in which to choose a side is to leave a loop, and no select can be made of it.
llvm::FunctionPassManager lowering_passes(const CompileOptions& options, const Tuning& tuning,
                                          llvm::OptimizationLevel level) {
  llvm::FunctionPassManager passes;
  {
    llvm::LoopPassManager loops;
    loops.addPass(llvm::LoopRotatePass());
    loops.addPass(llvm::LoopDeletionPass());  // of what changes made of loops, and nothing needs
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops)));
  }
  passes.addPass(UncountedLoopsPass());
  if (tuning.vectorize) passes.addPass(ShortLoopsPass());
  passes.addPass(
      llvm::LoopVectorizePass(llvm::LoopVectorizeOptions(/*InterleaveOnlyWhenForced=*/!tuning.vectorize,
                                                         /*VectorizeOnlyWhenForced=*/!tuning.vectorize)));
  if (tuning.vectorize) passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions()
                                           .forwardSwitchCondToPhi(true)
                                           .convertSwitchRangeToICmp(true)
                                           .convertSwitchToLookupTable(true)
                                           .hoistCommonInsts(true)
                                           .sinkCommonInsts(true)));
  // Stores in a straight line stay several: one that crosses the end of memory would make none of them.
  if (tuning.vectorize && options.bounds == BoundsChecks::kExplicit)
    passes.addPass(llvm::SLPVectorizerPass());
  passes.addPass(llvm::VectorCombinePass());
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(static_cast<int>(level.getSpeedupLevel()))));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));  // changes leave values in memory
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(hoist_invariants(true), /*UseMemorySSA=*/true));
  passes.addPass(llvm::InstSimplifyPass());
  passes.addPass(llvm::DivRemPairsPass());
  passes.addPass(llvm::TailCallElimPass());
  passes.addPass(llvm::SimplifyCFGPass(
      llvm::SimplifyCFGOptions().convertSwitchRangeToICmp(true).speculateUnpredictables(true)));
  return passes;
}

}  // namespace hindsight::jit::optimizing
