#include "jit/optimizing/versions/loop_groups.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_versions.h"

namespace hindsight::jit::optimizing {

LoopPlace place_of(const IrModule& ir, const llvm::Instruction& instruction, WasmOffset at,
                   const llvm::LoopInfo& loops, const llvm::Loop& loop) {
  LoopPlace place{.loop = at, .around = wasm_loops_around(ir.wasm, ir.position_of(instruction)), .loads = {}};
  const size_t levels_up = loops.getLoopDepth(instruction.getParent()) - loop.getLoopDepth();
  if (!place.around.empty()) place.loop = place.around[std::min(levels_up, place.around.size() - 1)];
  return place;
}

std::string_view why_not_twice(const llvm::Loop& loop, const llvm::DominatorTree& dominators) {
  if (const std::string_view why = why_not_in_versions(loop, dominators); !why.empty()) return why;
  return instructions_of(loop) > kMostInstructionsTwice ? "its loop is too large to have it twice" : "";
}

llvm::Loop& with_short_loops(llvm::Loop& loop, const llvm::DominatorTree& dominators,
                             const std::function<double(const llvm::Loop&)>& turns_of) {
  llvm::Loop* taken = &loop;
  for (llvm::Loop* around = taken->getParentLoop(); around != nullptr; around = around->getParentLoop()) {
    const double often = turns_of(*taken);
    if (often == 0 || often >= kShortLoopTurns || !why_not_twice(*around, dominators).empty()) break;
    taken = around;
  }
  return *taken;
}

void simplify_loops(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  auto& assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
  for (llvm::Loop* loop : loops) {
    llvm::simplifyLoop(loop, &dominators, &loops, nullptr, &assumptions, nullptr, /*PreserveLCSSA=*/false);
    llvm::formLCSSARecursively(*loop, dominators, &loops, nullptr);
  }
}

}  // namespace hindsight::jit::optimizing
