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
// Source: A. Khuong, P. Morin, "Array Layouts for Comparison-Based Searching", JEA 2017: of binary searches, the one
// that branches wins where the array is larger than the caches, since speculation prefetches, and loses where it is not.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace hindsight::jit::optimizing {

// The choices of the load's loop, in the order of the code, that say by a load of this iteration where this load goes in the
// next one. Of nested loops the innermost. Looks at a bounded number of operations, so it may find none where there are some.
std::vector<llvm::Instruction*> choices_of_way(const llvm::LoadInst& load, const llvm::Loop& loop,
                                               const llvm::LoopInfo& loops);

}  // namespace hindsight::jit::optimizing
