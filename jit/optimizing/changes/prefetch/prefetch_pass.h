// The prefetch pass: for loads that a profile says stall, compute the address some iterations ahead and
// prefetch it. After S. Ainsworth and T. Jones, "Software Prefetching for Indirect Memory Accesses", CGO
// 2017. Here hints replace static guesses, distances are set at run time, and clamps replace proofs.
//
// A counted innermost loop that got a slice is versioned in strips (strips.h). So the choice costs nothing an
// iteration, and the copy without prefetch is the loop as LLVM would have made it.
//
//   for each strip of `count` iterations:
//     if (cell->enabled) {
//       distance = cell->distance
//       loop `count` times:
//         i' = i + step * distance
//         t  = load b[clamp(i')]                   // intermediate loads, clamped to the memory's length
//         prefetch a[clamp(t)]
//         ...
//     } else {
//       loop `count` times: ...
//     }
//     if ((cell->countdown -= count) < 0) strip_ended(vmctx, cell)
//
// Where the loop may become vectors, the copy with is free to become some as well: its prefetches are calls that LLVM makes
// one of for each lane (prefetch_call.h), and prefetches once it is done (spread_prefetches.h). There is no choice in an
// iteration then. What a slice loads in even steps (stream_step.h) is at a counter of its own, without a clamp. The head asks
// whether the strip's first such place is in memory, and ends the strip before one would not be.
//
// A strip is as long as the countdown says, but never shorter than kShortestStrip iterations unless the loop
// ends. So the countdown falls below -1 by the iterations that the strip had too many.
//
// Outer loops, and loops whose trip count is not known at entry, are had in two versions (loop_versions.h): one decrement an
// iteration. So are the loops around short ones, of which rows and buckets are the usual kind: entering a strip would cost
// as much as such a run. The distance then counts iterations of the loop around. A slice in a short loop goes for each of
// them as far ahead as that loop iterates, at most 16 times.
//
// What cannot be had twice looks at the cell every iteration:
//
//   loop:
//     if (cell->enabled) { ... slices ... }        // one guard for all slices of the loop
//     if (--cell->countdown < 0) strip_ended(vmctx, cell)
//
// Where strip_ended is called, the code has computed places for the runtime to time a load at. They are where
// up to kMostTimedLoads of the hinted loads will look a few hundred iterations later. That is the address
// computation once more, with clamps, in the cold block alone.
//
// What is computed from itself alone, as random numbers are, is run ahead by a loop at the strip's entry. From then
// on the copy with carries it along, stage by stage. A loop without strips does the same whenever it finds that
// its copy is not as far ahead as the cell says.
//
// See prefetch_slice.h for how the slice is found, and node_fetch.h and recursion_fetch.h for what is done without one. Loops without slices are left as they were.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/changes/change_set.h"

namespace hindsight::jit::optimizing {

class PrefetchPass : public llvm::PassInfoMixin<PrefetchPass> {
 public:
  explicit PrefetchPass(ChangeSet& changes) : changes_(&changes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  ChangeSet* changes_;
};

void add_prefetch(llvm::FunctionPassManager& passes, ChangeSet& changes);

}  // namespace hindsight::jit::optimizing
