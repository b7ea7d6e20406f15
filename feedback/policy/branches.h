// Of decide(): what is said to the compiler about branches and selects.
#pragma once

#include "feedback/policy/policy.h"

namespace hindsight::feedback {

// Of outcomes of a change: it is in the code.
inline bool in_use(PrefetchOutcome outcome) {
  return outcome == PrefetchOutcome::kKept || outcome == PrefetchOutcome::kInTrial;
}

// A hot branch that goes both ways, and nobody has said yet how well it is predicted: the next compile is the
// last time that this can be seen. Null: there is none.
const BranchEvidence* not_judged_yet(const FunctionEvidence& evidence, const PolicyConfig& config);

// A select of an innermost loop that may be better a branch, of which too little was seen yet, for the same reason.
// Null: there is none.
const BranchEvidence* not_seen_often_yet(const FunctionEvidence& evidence, const PolicyConfig& config);

// The alternatives of a compile that gives some of `branches` another form: `gain` without them.
void offer_forms(FunctionPlan& plan, const std::vector<BranchPlan>& branches, double cost, double gain);

}  // namespace hindsight::feedback
