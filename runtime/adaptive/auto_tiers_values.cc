// The automatic tier and usual values: what decisions about them say, and what of them goes with a version
// that others are taken out of.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/auto_tiers.h"

namespace hindsight::rt {

void AutoTiers::say_values(const std::string& function, const feedback::FunctionPlan& plan) const {
  for (const feedback::ValuePlan& p : plan.values)
    say(LogLevel::kInfo, "policy", fmt::format("values in {}: {}", function, p.reason));
}

// The evidence says why: the policy is pure.
void AutoTiers::explain_value(const feedback::FunctionEvidence& evidence, DecisionReport& decision) const {
  for (const feedback::ValuePlan& plan : feedback::plan_values(evidence, policy_)) {
    if (plan.hint.at.value != decision.wasm_offset) continue;
    decision.reason = plan.reason;
    const double seconds = evidence.seconds_baseline + evidence.seconds_optimized;
    if (seconds > 0) decision.estimated_gain = std::min(1.0, plan.estimated_gain / seconds);
  }
}

void AutoTiers::plan_kept_values(Job& job, const Watch& watch, std::vector<jit::Site>& instead) {
  for (const jit::Answer& answer : sites_of(watch)) {
    if (answer.site.kind != jit::ChangeKind::kValue) continue;
    const bool kept = answer.is_applied() && is_kept(watch.reported[answer.cell]);
    if (!kept && !answer.waits()) continue;
    const auto plan = std::find_if(watch.values.begin(), watch.values.end(),
                                   [&](const feedback::ValuePlan& p) { return p.hint.at == answer.site.at; });
    if (plan == watch.values.end()) continue;
    job.plan.values.push_back(*plan);
    if (kept)
      job.settled[answer.site] = 0;
    else
      instead.push_back(answer.site);
  }
}

}  // namespace hindsight::rt
