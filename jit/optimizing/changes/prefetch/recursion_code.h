// What a prefetch adds to a function that calls itself with nodes: further nodes are fetched as soon as one is there (recursion_fetch.h).
//
//   key = load node[8]
//   if (--cell->countdown < 0) strip_ended(vmctx, cell)
//   if (cell->enabled)
//     for each place of a further node: prefetch (load clamp(node[place]))[8]
//
// So the runtime compares time a node, whichever call that is in.
#pragma once

#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>

#include <vector>

#include "jit/optimizing/changes/change_set.h"
#include "jit/optimizing/changes/prefetch/recursion_fetch.h"

namespace hindsight::jit::optimizing {

// All fetches for one node of a function. Their slots have one cell.
struct RecursionWork {
  LoopClaim claim;
  uint32_t cell = 0;
  struct Fetch {
    llvm::Instruction* access = nullptr;
    RecursionFetch what = {};
    llvm::Instruction* before =
        nullptr;  // where it is done, a mark that goes then; null: right behind the access
  };
  std::vector<Fetch> fetches = {};
  // With each node of a row, the next ones.
  struct Row {
    RecursionRow what;
    const Fetch* from = nullptr;  // whose access is in the node whose row it is
  };
  std::vector<Row> rows = {};
};

// Has all that is asked for of a node fetched once, with the first of its accesses: those that no other one always comes before. Where
// most nodes lead no further, as those of a tree that is cut off by distance, that is done where a node is known to.
void choose_places(RecursionWork& work, const llvm::DominatorTree& dominators, const llvm::LoopInfo& loops,
                   const llvm::BlockFrequencyInfo& frequencies);
void emit_recursion_fetches(ChangeSet& changes, llvm::Function& function, const RecursionWork& work);

}  // namespace hindsight::jit::optimizing
