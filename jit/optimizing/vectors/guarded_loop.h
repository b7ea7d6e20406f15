// A loop of one block that is to exist a second time, for vectors. Holds what was found out about it, and the condition under which the
// second one may run, computed before it.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>

#include <optional>
#include <vector>

#include "jit/optimizing/ir/ir_module.h"
#include "jit/optimizing/vectors/affine_access.h"
#include "jit/optimizing/vectors/reroll.h"

namespace hindsight::jit::optimizing {

struct GuardedLoop {
  llvm::Loop* loop = nullptr;
  llvm::BasicBlock* before = nullptr;  // the preheader; everything below is computed in it
  llvm::BasicBlock* block = nullptr;
  llvm::BasicBlock* after = nullptr;
  AffineAccesses accesses;
  Rerolling rerolling;
  std::vector<llvm::Value*> starts;  // by group: the leader's address in the first iteration
  struct Induction {
    llvm::PHINode* phi;
    int64_t step;
  };
  std::vector<Induction> inductions;
  std::vector<llvm::Value*> advancing_starts;  // of what rerolling computes anew
  llvm::Value* backedges = nullptr;            // i64
  bool backedges_known_to_llvm = false;
  llvm::Value* enough = nullptr;  // i1: the loop is long enough, and not too long
  // i1, looked at where it is: no index wraps, what rerolling reorders does not overlap. Null: nothing more to look at.
  llvm::Value* guard = nullptr;
  bool apart = false;   // the guard includes that no group that is stored to overlaps another
  bool inside = false;  // the guard includes that the loop stays within memory (memory_reach.h)
  llvm::DebugLoc location;
  llvm::MDNode* identity = nullptr;

  bool may_wrap() const;

  // What is known holds as long as nobody adds to the loop or uses more of it. Where a later loop begins with what this one ends with, LLVM
  // computes that from this one's values, and adds phis to it. So later loops come first (latest_first).
  void remember_shape();
  bool has_kept_its_shape() const;

 private:
  struct Shape {
    size_t instructions = 0, uses_behind = 0;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  Shape shape() const;
  Shape remembered_;
};

// The innermost loops of a function, of those one behind the other the last one first.
std::vector<llvm::Loop*> latest_first(llvm::LoopInfo& loops);

// Nothing if the loop has another shape, or touches memory in other than even steps. Computes nothing yet but
// the number of backedges.
std::optional<GuardedLoop> find_guarded_loop(llvm::Loop& loop, llvm::DominatorTree& dominators,
                                             llvm::ScalarEvolution& evolution);

// Computes the guard and the starts. The function's blocks stay as they are. False if something cannot be
// computed there. `least_iterations`: of one copy of the body, in which the second loop pays. `reorders`: it
// makes accesses in another order, which no trap may show.
bool emit_guard(const IrModule& ir, GuardedLoop& loop, llvm::ScalarEvolution& evolution,
                uint64_t least_iterations, bool reorders);

// Ends the preheader. It leads to the second loop where the loop is long enough and the guard holds. Else it leads to the loop there was,
// which is not to be vectorized any more. What only the guard and the second loop's entry need is computed after the first question: most
// loops have few iterations.
void branch_on_guard(GuardedLoop& loop, llvm::BasicBlock* second_entry, llvm::BasicBlock* own_entry);

}  // namespace hindsight::jit::optimizing
