#include "jit/optimizing/versions/loop_groups.h"

#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_versions.h"

namespace hindsight::jit::optimizing {

LoopPlace place_of(const wasm::Module& module, const llvm::DILocation* position, WasmOffset at,
                   size_t levels_up) {
  LoopPlace place{.loop = at, .around = wasm_loops_around(module, position), .loads = {}};
  if (!place.around.empty()) place.loop = place.around[std::min(levels_up, place.around.size() - 1)];
  return place;
}

bool can_be_had_twice(const llvm::Loop& loop, const llvm::DominatorTree& dominators) {
  return instructions_of(loop) <= kMostInstructionsTwice && why_not_in_versions(loop, dominators).empty();
}

llvm::Loop& with_short_loops(llvm::Loop& loop, const llvm::DominatorTree& dominators,
                             const std::function<double(const llvm::Loop&)>& turns_of) {
  llvm::Loop* taken = &loop;
  for (llvm::Loop* around = taken->getParentLoop(); around != nullptr; around = around->getParentLoop()) {
    const double often = turns_of(*taken);
    if (often == 0 || often >= kShortLoopTurns || !can_be_had_twice(*around, dominators)) break;
    taken = around;
  }
  return *taken;
}

void simplify_loops(llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
                    llvm::AssumptionCache& assumptions) {
  for (llvm::Loop* loop : loops) {
    llvm::simplifyLoop(loop, &dominators, &loops, nullptr, &assumptions, nullptr, /*PreserveLCSSA=*/false);
    llvm::formLCSSARecursively(*loop, dominators, &loops, nullptr);
  }
}

}  // namespace hindsight::jit::optimizing
