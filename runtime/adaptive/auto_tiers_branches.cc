// The automatic tier and branches: what decisions about them say, and the names of changes on trial.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/auto_tiers.h"

namespace hindsight::rt {

using Form = jit::BranchHint::Form;

feedback::PrefetchOutcome& AutoTiers::outcome_in(feedback::FunctionCounts& counts, jit::Site site) {
  switch (site.kind) {
    case jit::ChangeKind::kPrefetch:
      return counts.loads[site.at.value].outcome;
    case jit::ChangeKind::kInterleave:
      return counts.loads[site.at.value].interleave;
    case jit::ChangeKind::kJumpPointers:
      return counts.loads[site.at.value].jump;
    case jit::ChangeKind::kValue:
      return counts.value_outcomes[site.at.value];
    default:
      return counts.branches[site.at.value].outcome;
  }
}

void AutoTiers::mark_in_trial(feedback::FunctionCounts& counts, const feedback::FunctionPlan& plan) {
  const auto mark = [&](jit::ChangeKind kind, WasmOffset at) {
    feedback::PrefetchOutcome& outcome = outcome_in(counts, {kind, at});
    // One that was rolled back may be tried again.
    if (outcome != feedback::PrefetchOutcome::kKept) outcome = feedback::PrefetchOutcome::kInTrial;
  };
  for (const feedback::PrefetchPlan& p : plan.prefetches) mark(jit::ChangeKind::kPrefetch, p.hint.load);
  for (const feedback::InterleavePlan& p : plan.interleaves) mark(jit::ChangeKind::kInterleave, p.hint.load);
  for (const feedback::JumpPlan& p : plan.jumps) mark(jit::ChangeKind::kJumpPointers, p.hint.load);
  for (const feedback::BranchPlan& p : plan.branches)
    if (p.hint.form != Form::kAsItComes) mark(jit::ChangeKind::kSelect, p.hint.branch);
  for (const feedback::ValuePlan& p : plan.values) mark(jit::ChangeKind::kValue, p.hint.at);
}

void AutoTiers::say_branches(const std::string& function, const feedback::FunctionPlan& plan) const {
  const auto weighed = std::count_if(plan.branches.begin(), plan.branches.end(),
                                     [](const feedback::BranchPlan& p) { return p.hint.weigh; });
  if (weighed > 0) {
    say(LogLevel::kInfo, "policy",
        fmt::format("weigh-branches in {}: the compiler is told how often {} of them go which way", function,
                    weighed));
  }
  for (const feedback::BranchPlan& p : plan.branches) {
    if (p.hint.form == Form::kAsItComes) continue;
    const bool select = p.hint.form == Form::kSelect;
    say(LogLevel::kInfo, "policy",
        fmt::format("{} in {}, {}: {}", select ? "select" : "branch", function,
                    select ? "if both sides can be done" : "if a chain waits for a choice there", p.reason));
  }
}

void AutoTiers::report_branches(const feedback::Episode& e, FeedbackReport& report) const {
  if (e.weighed_branches.empty()) return;
  DecisionReport weighed;
  weighed.id = e.id;
  weighed.kind = "weigh-branches";
  weighed.function = e.evidence.name;
  weighed.wasm_offset = e.weighed_branches.front();
  weighed.reason = fmt::format("{} branches and selects were seen often enough", e.weighed_branches.size());
  weighed.alternatives = {"nothing: the compiler guesses which way branches go",
                          "tell it: costs nothing, gains by layout, spills and loops of known length"};
  weighed.seconds = e.seconds;
  report_version(e, jit::ChangeKind::kWeighBranches, weighed);
  report.decisions.push_back(weighed);
}

// The evidence says why: the policy is pure.
void AutoTiers::explain_form(const feedback::FunctionEvidence& evidence, DecisionReport& decision) const {
  for (const feedback::BranchPlan& plan : feedback::plan_branches(evidence, policy_)) {
    if (plan.hint.branch.value != decision.wasm_offset) continue;
    decision.reason = plan.reason;
    const double seconds = evidence.seconds_baseline + evidence.seconds_optimized;
    if (seconds > 0) decision.estimated_gain = std::min(1.0, plan.estimated_gain / seconds);
  }
}

}  // namespace hindsight::rt
