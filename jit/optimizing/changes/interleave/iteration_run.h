// An iteration run: the next iterations of a loop, several at once and each from its beginning to its end, whose results are
// thrown away. It is the form of a dry run (dry_run.h) for iterations that wait in several places: for two searches one after
// the other, for one of several operations on a tree, for what is done with what a search has found. Each iteration is a
// coroutine that gives way to the next where it would wait.
//
//     header, rest, group:  as of a dry run
//     starts:  width times: what the next iteration takes from this one, without what it would wait for
//     rounds:  until none is active: each active iteration goes on from where it is to where it would wait again.
//              There it prefetches what it waits for, and what it still needs goes into its slot of arrays in the frame;
//              goto rest
//
// What is computed is a guess, as of any dry run. So each part computes only what it needs: rounds what leads to the
// next place to wait, starts what rounds begin with. Branches that neither needs go the shortest way to the loop's end.
// So do those that hang on what is not to be had: in starts on what is waited for, in rounds on what a call returns.
//
// Sources: C. Jonathan, U. F. Minhas, J. Hunter, J. Levandoski, G. Nishanov, "Exploiting Coroutines to Attack the 'Killer
// Nanoseconds'", VLDB 2018; V. Kiriansky, H. Xu, M. Rinard, S. Amarasinghe, "Cimple: Instruction and Memory Level
// Parallelism", PACT 2018. There a programmer says where to give way.
#pragma once

#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/changes/interleave/node_lines.h"

namespace hindsight::jit::optimizing {

struct IterationRunShape {
  using Instructions = llvm::SmallPtrSet<const llvm::Instruction*, 16>;
  using Guesses = std::map<const llvm::Instruction*, llvm::BasicBlock*>;

  DryRunShape common;  // all the loop's blocks are its head; `ahead` are phis that rounds begin with
  std::vector<llvm::LoadInst*> waits;  // in the order of code
  NodeLines nodes;                     // what is fetched where they wait
  Instructions beside;                 // loads of the lines that are waited for

  bool is_waited_for(const llvm::LoadInst& load) const {
    return llvm::is_contained(waits, &load) || beside.contains(&load) || nodes.covered.contains(&load);
  }
  // What a copy leaves out, and where its branches go then.
  Instructions not_in_starts, not_in_rounds;
  Guesses guesses_of_starts, guesses_of_rounds;
  // What ways bring that starts do not know: the loop's own value, as before.
  std::map<const llvm::PHINode*, llvm::PHINode*> as_before;
};

// How long a load stalls, as a part of what that one does which stalls longest; 0: it does not.
using StallOfMost = std::function<double(const llvm::LoadInst&)>;

// The shape of the iterations of `outer`, or why running them ahead would find nothing. Changes nothing.
std::expected<IterationRunShape, std::string> find_iteration_run_shape(
    const IrModule& ir, llvm::Loop& outer, const StallOfMost& stall, llvm::LoopInfo& loops,
    llvm::DominatorTree& dominators, const llvm::PostDominatorTree& postdominators,
    llvm::ScalarEvolution& evolution);

// No analysis survives. Loops are neither simplified nor in LCSSA form.
void emit_iteration_run(IrModule& ir, llvm::Function& function, IterationRunShape& shape,
                        const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution, uint32_t cell,
                        const llvm::DebugLoc& location);

}  // namespace hindsight::jit::optimizing
