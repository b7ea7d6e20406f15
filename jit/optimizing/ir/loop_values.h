// What is the same in all iterations of a loop, and what is not.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace hindsight::jit::optimizing {

// Whether `value` is computed from a phi of the loop, by way of whatever the loop computes and loads. What is not may be taken out of the loop, be it
// yet in it. `step`: asked before each instruction; false ends the search, with false.
template <typename Step>
bool varies_in(const llvm::Loop& loop, const llvm::Value& value, Step step) {
  llvm::SmallPtrSet<const llvm::Value*, 16> seen;
  std::vector<const llvm::Value*> worklist{&value};
  while (!worklist.empty()) {
    const auto* const at = llvm::dyn_cast<llvm::Instruction>(worklist.back());
    worklist.pop_back();
    if (at == nullptr || !loop.contains(at) || !seen.insert(at).second) continue;
    if (llvm::isa<llvm::PHINode>(at)) return true;
    if (!step()) return false;
    worklist.insert(worklist.end(), at->op_begin(), at->op_end());
  }
  return false;
}
inline bool varies_in(const llvm::Loop& loop, const llvm::Value& value) {
  return varies_in(loop, value, [] { return true; });
}

}  // namespace hindsight::jit::optimizing
