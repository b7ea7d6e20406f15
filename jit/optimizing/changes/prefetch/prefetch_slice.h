// PrefetchSlice: the address computation of one load or store as a function of what a loop carries.
//
// The computation is followed backwards from its address: arithmetic, comparisons, selects and some loads
// from linear memory. It ends in values that do not change in the loop, or in what the loop carries:
//
// - An induction variable is ahead by its step times the distance.
// - What is computed from nothing but itself, as random numbers are, runs ahead in a copy of its own.
// - What the iteration before looked up is computed as that iteration would have.
// - A phi of an inner loop is replaced by the value it starts with. So the first node of a hash chain, or the first
//   neighbour of a vertex, is found from the outer loop. The next few elements are, too, if it is a row (row.h).
//
// What a loop carries may hang on what this iteration loads, but be one of a few places that are known before: the sons of a
// heap's node, the two halves of a table. Then all of them are places to prefetch (Forks).
//
// Where two ways of a branch meet, both are computed, and the branch's condition chooses. If that cannot be done,
// one of the ways is taken as a guess: a prefetch may be wrong.
#pragma once

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jit/optimizing/changes/prefetch/carried_words.h"
#include "jit/optimizing/changes/prefetch/node_fetch.h"
#include "jit/optimizing/changes/prefetch/row.h"
#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// A phi as a select.
struct Choice {
  llvm::Value *condition = nullptr, *then = nullptr, *otherwise = nullptr;
};

// Phis of a loop's header that are computed from each other alone, and what they become in the next iteration.
struct Recurrences {
  std::map<llvm::PHINode*, llvm::Value*> next;
  std::set<llvm::Instruction*> operations;
  std::map<llvm::PHINode*, Choice> choices;
};

// What a loop carries into its next iteration, where loads of this one choose between values that need none. They choose by
// conditions, which are not followed further.
struct Forks {
  // Where ways meet: the condition's value for `then`, known by the block and by which of its ways bring that.
  struct Join {
    uint32_t condition = 0;
    llvm::Value *then = nullptr, *otherwise = nullptr;
  };
  std::map<llvm::PHINode*, llvm::Value*> next;        // of the header's phis
  std::map<const llvm::Value*, uint32_t> conditions;  // numbers of those that are values
  std::map<std::pair<const llvm::BasicBlock*, std::vector<bool>>, uint32_t>
      ways;  // and of those that are not
  std::map<llvm::PHINode*, Join> joins;
  uint32_t count = 0;  // of conditions

  bool has(llvm::Instruction& instruction) const {
    auto* const phi = llvm::dyn_cast<llvm::PHINode>(&instruction);
    return conditions.contains(&instruction) || next.contains(phi) || joins.contains(phi);
  }
};

struct PrefetchSlice {
  llvm::Instruction* target = nullptr;  // a load or a store
  llvm::Loop* loop = nullptr;
  // Instructions to clone, operands before users; the target itself is not among them.
  std::vector<llvm::Instruction*> operations;
  // Induction variables with their steps, and inner phis with the values that replace them.
  std::map<llvm::PHINode*, llvm::Value*> steps;
  std::map<llvm::PHINode*, llvm::Value*> starts;
  std::map<llvm::PHINode*, Choice> choices;         // where two ways of a branch meet
  std::map<llvm::Instruction*, llvm::Value*> ways;  // phis and selects of which one operand is taken, a guess
  std::map<llvm::PHINode*, llvm::Value*> delayed;   // the header's, with their values one iteration earlier
  std::set<llvm::PHINode*> staying;                 // the header's, which mostly are what they were
  Recurrences recurrences;
  std::optional<Forks> forks;
  std::optional<NodeFetch> node;  // instead of all else: the target is part of a node that is known early
  // What is expected to miss like the target, each with its level (1 = its address comes from the
  // induction variable through cached loads only). The target has the highest. In the order in which they were found: code made of it
  // is the same from run to run.
  llvm::MapVector<const llvm::Instruction*, uint32_t> levels;
  uint32_t loads = 0;  // from linear memory, without the target
  uint32_t target_level = 1;
  // True if the inner loop of the slice is entered at unrelated places, so that running ahead in it would
  // leave it. Then an outer loop's slice is better, if there is one.
  bool short_runs = false;
  // Its loop ends before what it prefetches in it is there, but the next run goes on where this one ends.
  bool runs_on = false;
  // Of the slice of a loop around a row: the row whose first elements it has. Then `rest_of_row` is to go with it: the slice that
  // goes on from these in the row's own loop, whose `row` is the same.
  std::optional<Row> row;
  std::vector<PrefetchSlice> rest_of_row;  // at most one

  bool is_rest_of_row() const { return row && row->loop == loop; }
};

// Whether the loop is left so soon, in the mean, that it is over before what it prefetches for a later iteration is there. What its first
// iteration needs is known to a loop around it.
bool ends_before_prefetches(const llvm::Loop& loop);

// The slice in the best of the loops around a load or store, or why there is none. `distance`: expected, in
// iterations. `words`: what the loops carry in memory, as variables (carried_words.h).
std::expected<PrefetchSlice, std::string> find_prefetch_slice(const IrModule& ir, llvm::Instruction& access,
                                                              llvm::LoopInfo& loops,
                                                              llvm::ScalarEvolution& evolution,
                                                              uint32_t distance,
                                                              const CarriedWords& words = {});

// Is one way of a branch taken that is not known to be gone mostly?
bool guesses_a_way(const PrefetchSlice& slice);

// Is the address computed from what an inner loop found? The slice takes what that loop's first iteration has, which is wrong
// wherever it searches on.
bool guesses_what_is_found(const PrefetchSlice& slice, const llvm::LoopInfo& loops);

}  // namespace hindsight::jit::optimizing
