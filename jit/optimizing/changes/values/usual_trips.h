// Innermost loops that mostly have the same trip count, as a profile has it: code for that number. It is in
// one of two versions of the loop around them, as for other usual values (usual_values.h).
//
//     for (i = 0; i < m; ++i) {              if (enabled && n == 7)
//       s = 0;                                 for (i = 0; i < m; ++i)
//       for (k = 0; k < n; ++k)       ->         y[i] = w[0] * x[i] + ... + w[6] * x[i + 6];
//         s += w[k] * x[i + k];              else
//       y[i] = s;                              as it was
//     }
//
// This has to come before LLVM's passes over loops. What a known number is worth is what they make of it: no
// loop at all, no remainder, and the loop around as vectors. So it runs after the simplifying half of the
// pipeline, where loops are counted by their latches, and unrolls what it made countable.
//
// The number may come from one value that stays the same in the loop around. Then that value is compared, and
// is the constant from there on, also for other loops and addresses. Which constant makes the loop iterate
// so often is found by trying a few. Otherwise the trip count itself is computed and compared. That happens
// before the loop around, or before the loop itself where the count differs each time.
//
// The loop around goes in strips (strips.h) if it is counted, so that it may become vectors; else its
// iterations are counted (loop_versions.h).
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/changes/change_set.h"

namespace hindsight::jit::optimizing {

class UsualTripsPass : public llvm::PassInfoMixin<UsualTripsPass> {
 public:
  explicit UsualTripsPass(ChangeSet& changes) : changes_(&changes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  ChangeSet* changes_;
};

bool asks_for_trips(const ChangeSet& changes);
void add_usual_trips(llvm::FunctionPassManager& passes, ChangeSet& changes);

}  // namespace hindsight::jit::optimizing
