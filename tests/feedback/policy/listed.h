// What a plan asks for of one kind, as a list to count and index.
#pragma once

#include <vector>

#include "feedback/policy/policy.h"

namespace hindsight::feedback {

using enum jit::ChangeKind;

inline std::vector<Candidate> listed(const FunctionPlan& plan, jit::ChangeKind kind) {
  auto some = plan.of(kind);
  return {some.begin(), some.end()};
}

inline std::vector<jit::CallTargets::Target> targets_of(const Candidate& candidate) {
  return jit::what_of<jit::CallTargets>(candidate.request).targets;
}
inline jit::BranchCounts counts_of(const Candidate& candidate) {
  return jit::what_of<jit::BranchCounts>(candidate.request);
}
inline jit::UsualValue usual_of(const Candidate& candidate) {
  return jit::what_of<jit::UsualValue>(candidate.request);
}

}  // namespace hindsight::feedback
