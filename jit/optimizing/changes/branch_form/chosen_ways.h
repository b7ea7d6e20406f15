// Choices that say where a loop goes next: the larger son of a heap's node, the half of a table, by what this iteration loads.
//
// As a choice, the next iteration's address waits for this iteration's load, and so for memory. As a branch it waits for
// nothing: the processor guesses, and loads from there on. A wrong guess costs a misprediction, which is little next to a load
// from memory. A right one has the next load under way at once, as far ahead as the processor's window goes.
//
//     i' = 2 * i + 1 + (a[2 * i + 1] < a[2 * i + 2])        i' = 2 * i + 1;  if (a[2 * i + 1] < a[2 * i + 2]) ++i'
//
// A compiler for WebAssembly makes choices of such branches by what their operations cost, as selects are cheap there.
//
// Source: P.-V. Khuong, P. Morin, "Array Layouts for Comparison-Based Searching", JEA 2017: of binary searches, the one
// that branches wins where the array is larger than the caches, since speculation prefetches, and loses where it is not.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <map>
#include <vector>

namespace hindsight::jit::optimizing {

// The choices of a loop, of nested loops the innermost. While the loop stays as it is.
class ChosenWays {
 public:
  ChosenWays(const llvm::Loop& loop, const llvm::LoopInfo& loops);

  // Those that say by a load of this iteration where this load goes in the next one, in the order of the code. Looks at a
  // bounded number of operations, so it may find none where there are some.
  std::vector<llvm::Instruction*> of(const llvm::LoadInst& load) const;

 private:
  const llvm::Loop& loop_;
  // By the header's phi that they lead to.
  std::map<const llvm::PHINode*, llvm::SmallPtrSet<const llvm::Instruction*, 8>> choices_;
};

}  // namespace hindsight::jit::optimizing
