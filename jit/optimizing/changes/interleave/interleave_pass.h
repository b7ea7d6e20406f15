// The interleave pass: loops of independent searches (interleave_shape.h), several of them at once. Sources:
// "asynchronous memory access chaining" (O. Kocberber, B. Falsafi, B. Grot, VLDB 2015), and "group
// prefetching" (S. Chen et al., ICDE 2004). Databases write both by hand. Here a group is cut out of the
// program's own loop, on line, and a trial decides whether it pays and how wide it is.
//
//     group:   remaining = iterations left - 1
//              if (cell->enabled && remaining >= width) goto warm, else goto plain
//     warm:    width times: prefetch what heads load at places that are looked up
//     heads:   width times: head; its search, if it needs one, becomes active: its state goes into slot k of
//              arrays in the frame, and what its first step loads is prefetched
//     rounds:  until none is active: one step of each active search, then prefetch what its next step loads;
//              after very many, goto plain
//     tails:   width times, in order: tail
//              countdown -= width; back to group
//     plain:   the loop as it was, for a strip of iterations, or until its end
//              countdown -= iterations; the end, or back to group
//
// When a search needs its next node again, width - 1 others have had a step. The node has arrived, or is on
// its way with as many others as the processor can have under way.
//
// Where a step is one block of operations that vectors have, each search is a lane instead. A round is then a
// step of vector after vector, in which a mask says which lanes still search. No step is guessed then, which
// is worth more than the waiting where everything is in a near cache; see `interleave_lanes.cc`.
//
// The width is read from the loop's cell, so a trial tunes it without a recompile (LoopCell::distance). The
// last iteration always is the plain loop's: so what comes after the loop sees values of one copy only.
//
// Traps. A load out of bounds traps in a group as it would have in order, though perhaps another one first.
// Nobody can tell, since a group has changed nothing before its tails, which change nothing but values. Any
// other way out of head or search (a check that failed) drops the group, whose iterations the plain loop then
// does. The trap that comes is the first one in the program's order.
//
// Searches without an end. A program may trap in a tail before it comes to a search that goes round for ever, which a group
// comes to first. So rounds are bounded, and turns of loops within head and search of which nobody knows that they come to
// an end. A group that needs more is dropped like one with a trap. The reverse stays as it is: where a search or a tail goes
// round for ever, a later search that leaves memory traps though the program would never have come to it.
//
// Where the loop around is no such loop, a dry run comes in front of its iterations instead (dry_run.h, iteration_run.h).
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/changes/change_set.h"

namespace hindsight::jit::optimizing {

class InterleavePass : public llvm::PassInfoMixin<InterleavePass> {
 public:
  explicit InterleavePass(ChangeSet& changes) : changes_(&changes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  ChangeSet* changes_;
};

// With what takes exits of running loops out of its way and puts them back.
void add_interleave(llvm::FunctionPassManager& passes, ChangeSet& changes);

}  // namespace hindsight::jit::optimizing
