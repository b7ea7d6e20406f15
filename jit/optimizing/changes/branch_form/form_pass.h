// The form pass: gives branches, choices and operators the form that a profile asks for. It does so in one of
// two versions of their loop (loop_versions.h), so that a trial can compare. The forms are a branch as a
// select and the reverse (kSelect, kBranch), and value specialization (kValue, usual_values.h).
//
// It runs when LLVM is done with the IR, on what LLVM made of the program. A branch that has become a select
// by then, or has gone with its loop into vectors, is no branch to convert any more. A branch that was a
// select in the program, or the other way round, is found by its place in the program all the same.
//
// Branch or select? Of a branch that is mispredicted with rate r, every execution loses r times what a
// misprediction takes (OptimizeRequest::mispredict_cycles). A select makes the processor do both arms, and
// what comes after it wait for the condition and for both of them. The waiting counts where a value is
// carried from iteration to iteration through the choice. A predicted branch shortens such a chain to its
// likely side. So
//
//     select pays if   r * mispredict_cycles > work(both arms) - work(the arm that is chosen) + waiting
//     branch pays if   waiting > r * mispredict_cycles     (and nothing is waited for off a chain)
//
// with waiting = what the chain takes with a select - what it takes through the likely side, in cycles of
// latency. These are estimates: they keep out what is hopeless by a factor of three, and the trial decides.
//
// An operand that does not change in the loop is compared once a strip, where the version is chosen. With
// another number the loop runs as it was. One that may change is compared where it is used.
//
// What is changed in one loop goes on trial together: it has two versions and not four.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/changes/change_set.h"

namespace hindsight::jit::optimizing {

class FormPass : public llvm::PassInfoMixin<FormPass> {
 public:
  explicit FormPass(ChangeSet& changes) : changes_(&changes) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  ChangeSet* changes_;
};

void add_form(llvm::FunctionPassManager& passes, ChangeSet& changes);

}  // namespace hindsight::jit::optimizing
