#include "runtime/adaptive/functions/function_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "feedback/policy/changes/change_policy.h"
#include "runtime/adaptive/functions/function_plans.h"

namespace hindsight::rt {
namespace {

constexpr size_t kReported = 16;  // loads, and branches

DecisionState state_of(feedback::ChangeState state) {
  switch (state) {
    case feedback::ChangeState::kNone:
      return DecisionState::kNone;
    case feedback::ChangeState::kInTrial:
      return DecisionState::kTrial;
    case feedback::ChangeState::kKept:
      return DecisionState::kKept;
    case feedback::ChangeState::kRolledBack:
      return DecisionState::kRolledBack;
    case feedback::ChangeState::kNotPossible:
      return DecisionState::kNotPossible;
  }
  return DecisionState::kNone;
}

// What became of a change of the whole version.
void tell_version(const feedback::Episode& e, jit::ChangeKind change, const OnTrial& on_trial,
                  DecisionReport& decision) {
  const bool tried = on_trial(e.id, change);
  decision.state = tried ? DecisionState::kTrial : e.state;
  if (!tried) decision.state_why = e.state_why;
  if (const feedback::Outcome* const known = e.outcomes.find(site_of_version(e, change))) {
    decision.state = state_of(known->state);
    decision.state_why.clear();
    decision.measured_gain = known->gain;
    decision.outcome = known->why;
  }
}

// Changes of the whole version that were asked for. Of code out of the code cache that is not known of all of them, but what
// became of them here.
void report_version(const feedback::Episode& e, const feedback::PolicyConfig& policy, const OnTrial& on_trial,
                    DecisionSink& decisions) {
  for (const feedback::ChangePolicy* change : feedback::change_policies()) {
    const jit::ChangeKind kind = change->kinds().front();
    if (!jit::is_of_version(kind)) continue;
    std::vector<feedback::Reported> asked_for = change->report(e, policy);
    if (asked_for.empty() && e.origin == feedback::Origin::kCodeCache &&
        e.outcomes.contains(site_of_version(e, kind)))
      asked_for.push_back({.reason = "is in the code that an earlier run kept", .alternatives = {}});
    for (feedback::Reported& reported : asked_for) {
      DecisionReport decision;
      decision.id = e.id;
      decision.kind = to_string(kind);
      decision.function = e.evidence.name;
      if (reported.at) decision.wasm_offset = reported.at->value;
      decision.reason = std::move(reported.reason);
      decision.alternatives = std::move(reported.alternatives);
      decision.seconds = e.seconds;
      tell_version(e, kind, on_trial, decision);
      decisions.push_back(decision);
    }
  }
}

// The evidence says why: the policy is pure.
void explain_site(const feedback::FunctionEvidence& evidence, const feedback::PolicyConfig& policy,
                  jit::Site site, DecisionReport& decision) {
  for (const feedback::Candidate& candidate : feedback::propose(site.kind, evidence, policy)) {
    if (candidate.site() != site) continue;
    decision.reason = candidate.reason;
    const double seconds = evidence.seconds_baseline + evidence.seconds_optimized;
    if (seconds > 0) decision.estimated_gain = std::min(1.0, candidate.estimate.seconds / seconds);
  }
}

}  // namespace

void report_function(const feedback::Episode& e, const feedback::PolicyConfig& policy,
                     const OnTrial& on_trial, DecisionSink& decisions) {
  DecisionReport decision;
  decision.id = e.id;
  decision.kind = e.action == feedback::to_string(feedback::Action::kObserve) ? "follow-shifts" : "optimize";
  decision.function = e.evidence.name;
  if (e.nest && e.nest->value < e.evidence.loops.size())
    decision.wasm_offset = e.evidence.loops[e.nest->value].offset.value;
  decision.reason = e.reason;
  decision.alternatives = e.alternatives;
  decision.state = e.state;
  decision.state_why = e.state_why;
  decision.seconds = e.seconds;
  decision.outcome = fmt::format("{:.1f} ms of compiling", 1e3 * e.compile_seconds);
  decisions.push_back(decision);
  report_version(e, policy, on_trial, decisions);
  double samples = e.evidence.samples_baseline + e.evidence.samples_optimized;
  for (const auto& [site, outcome] : e.outcomes) {
    if (jit::is_of_version(site.kind)) continue;  // said with the decision
    DecisionReport change;
    change.id = e.id;
    change.kind = to_string(site.kind);
    change.function = e.evidence.name;
    change.wasm_offset = site.at.value;
    for (const feedback::LoadEvidence& load : e.evidence.loads) {
      if (load.load != site.at || samples <= 0) continue;
      change.estimated_gain = load.stall_samples / samples;
      change.reason =
          fmt::format("{:.0f} of {:.0f} samples ({:.0f} %) stall on this {}", load.stall_samples, samples,
                      100 * load.stall_samples / samples, load.is_store ? "store" : "load");
    }
    if (!jit::is_tuned(site.kind)) explain_site(e.evidence, policy, site, change);
    change.alternatives = {"nothing: costs nothing, gains nothing",
                           fmt::format("{}: gains at most {:.0f} % of the function's time", change.kind,
                                       100 * change.estimated_gain)};
    change.state = state_of(outcome.state);
    change.measured_gain = outcome.gain;
    change.outcome = outcome.why;
    change.seconds = e.seconds;
    decisions.push_back(change);
  }
}

void report_evidence(feedback::Monitor& monitor, FeedbackReport& report) {
  const feedback::MonitorCounts counts = monitor.counts();
  report.bursts = {.branch_bursts = counts.branch_bursts,
                   .branch_bursts_refused = counts.bursts_refused,
                   .branch_outcomes = counts.burst_outcomes,
                   .branch_judged = counts.burst_judged,
                   .branch_mispredicted = counts.burst_mispredicted,
                   .mispredicted_share = counts.burst_rates.rate()};
  monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (const auto& [module, profile] : profiles) {
      for (const auto& [index, function] : profile->functions()) {
        const std::string name = module->function_name(FuncIndex(index));
        for (const auto& [offset, load] : function.loads) {
          if (load.is_store) continue;
          report.loads.push_back({.function = name,
                                  .wasm_offset = offset,
                                  .stall_samples = load.stall_baseline + load.stall_optimized,
                                  .function_samples = function.samples(),
                                  .level = std::string(to_string(load.latency.level)),
                                  .timed = load.latency.timed,
                                  .mean_ticks = load.latency.mean_ticks,
                                  .memory_share = load.latency.memory_share,
                                  .latency_ns = load.latency.latency_ns});
        }
        for (const auto& [offset, branch] : function.branches) {
          if (!branch.seen()) continue;
          report.branches.push_back({.function = name,
                                     .wasm_offset = offset,
                                     .sampled = branch.total,
                                     .sampled_taken = branch.taken,
                                     .outcomes = branch.bursts.outcomes,
                                     .taken = branch.bursts.taken,
                                     .judged = branch.bursts.judged,
                                     .mispredicted = branch.bursts.mispredicted});
        }
      }
    }
  });
  std::stable_sort(report.loads.begin(), report.loads.end(), [](const LoadReport& a, const LoadReport& b) {
    return a.stall_samples > b.stall_samples;
  });
  std::stable_sort(report.branches.begin(), report.branches.end(),
                   [](const BranchReport& a, const BranchReport& b) {
                     return std::tie(a.mispredicted, a.outcomes, a.sampled) >
                            std::tie(b.mispredicted, b.outcomes, b.sampled);
                   });
  if (report.loads.size() > kReported) report.loads.resize(kReported);
  if (report.branches.size() > kReported) report.branches.resize(kReported);
}

}  // namespace hindsight::rt
