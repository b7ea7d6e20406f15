// What was seen of branches and selects, as the compiler is told it.
#pragma once

#include "feedback/policy/changes/change_policy.h"

namespace hindsight::feedback {

inline jit::BranchCounts counts_of(const BranchEvidence& b) {
  const uint64_t taken = b.taken + b.sampled_taken;
  return {.taken = taken, .not_taken = b.seen() - taken};
}

}  // namespace hindsight::feedback
