// A plan in the compiler's words.
#include "feedback/policy/policy.h"

namespace hindsight::feedback {
namespace {

using jit::ChangeKind;

void add(std::vector<jit::Request>& requests, const jit::BranchHint& hint) {
  using Form = jit::BranchHint::Form;
  const jit::BranchCounts counts{hint.taken, hint.not_taken, hint.mispredicted};
  const auto ask = [&](ChangeKind kind) { requests.push_back({.site = {kind, hint.branch}, .what = counts}); };
  if (hint.weigh) ask(ChangeKind::kWeighBranches);
  if (hint.one_sided) ask(ChangeKind::kSplitCold);
  if (hint.form == Form::kSelect) ask(ChangeKind::kSelect);
  if (hint.form == Form::kBranch) ask(ChangeKind::kBranch);
}

jit::CallTargets targets_of(const jit::CallHint& hint) {
  jit::CallTargets targets{.targets = {}, .by_reference = hint.by_reference};
  for (const jit::CallHint::Target& target : hint.targets)
    targets.targets.push_back({target.element, target.share});
  return targets;
}

}  // namespace

std::vector<jit::Request> requests_of(const FunctionPlan& plan) {
  std::vector<jit::Request> requests;
  for (const auto& [hint, gain, reason] : plan.prefetches)
    requests.push_back({.site = {ChangeKind::kPrefetch, hint.load},
                        .weight = hint.stall_share,
                        .setting = hint.initial_distance,
                        .enabled = hint.initially_enabled});
  for (const auto& [hint, gain, reason] : plan.interleaves)
    requests.push_back({.site = {ChangeKind::kInterleave, hint.load},
                        .weight = hint.stall_share,
                        .setting = hint.initial_width,
                        .enabled = hint.initially_enabled});
  for (const auto& [hint, gain, reason] : plan.jumps)
    requests.push_back({.site = {ChangeKind::kJumpPointers, hint.load},
                        .weight = hint.stall_share,
                        .setting = hint.initial_distance,
                        .enabled = hint.initially_enabled});
  for (const CallPlan& call : plan.calls)
    requests.push_back({.site = {ChangeKind::kInlineCalls, call.hint.call}, .what = targets_of(call.hint)});
  for (const BranchPlan& branch : plan.branches) add(requests, branch.hint);
  for (const ValuePlan& value : plan.values)
    requests.push_back({.site = {ChangeKind::kValue, value.hint.at},
                        .what = jit::UsualValue{value.hint.value, value.hint.share}});
  return requests;
}

}  // namespace hindsight::feedback
