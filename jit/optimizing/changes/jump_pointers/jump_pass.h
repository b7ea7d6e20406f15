// The jump-pointer pass: a loop that follows pointers remembers where it was, and prefetches from that when
// it goes the same way again. jit/abi/traversal_history.h says how, and after whom.
//
// It takes hinted loads whose address is computed from nothing but what the loop carries. Some of that is a
// pointer, or an index, that the loop has loaded in the turn before:
//
//     while (p) { work(p); p = p->next; }
//
// No slice can run ahead there, for the next address is known only when the node has come. A loop that
// chooses its way by a key, as a search in a tree does, hardly goes the same way twice. It is left alone. One
// that chooses by what stands in its nodes does.
//
// It runs when LLVM is done with the IR, on one of two versions of the loop (loop_versions.h):
//
//     head:     mine = the history was nobody's, and is this VmContext's now
//               if (mine and here == anchor, or there is none) a traversal begins: position = 0
//               with = mine and enabled, and there is room behind `position`
//     with:     each turn, first: what traversal_history.h says
//     without:  the loop as it was
//     strip's   mine: position += turns, if they were done without; the history is nobody's again
//     end:
//
// Nothing that the program can see is read or written beside its own accesses. What a turn adds reads the
// history, and the pointer that the turn has anyway. A prefetch faults nowhere.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/changes/change_set.h"

namespace hindsight::jit::optimizing {

// Before LLVM's second half: a turn of such a loop stays a turn. Unrolled, the loop would remember one of
// several.
class KeepTurnsPass : public llvm::PassInfoMixin<KeepTurnsPass> {
 public:
  explicit KeepTurnsPass(ChangeSet& changes) : changes_(&changes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  ChangeSet* changes_;
};

class JumpPass : public llvm::PassInfoMixin<JumpPass> {
 public:
  explicit JumpPass(ChangeSet& changes) : changes_(&changes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  ChangeSet* changes_;
};

void add_keep_turns(llvm::FunctionPassManager& passes, ChangeSet& changes);
void add_jump(llvm::FunctionPassManager& passes, ChangeSet& changes);

}  // namespace hindsight::jit::optimizing
