#include "runtime/adaptive/function_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace hindsight::rt {
namespace {

constexpr size_t kReported = 16;  // loads, and branches

double total_of(const feedback::FunctionCounts& counts) {
  return counts.samples_baseline + counts.samples_optimized;
}

// What became of a change of the whole version.
void tell_version(const feedback::Episode& e, jit::ChangeKind change, const OnTrial& on_trial,
                  DecisionReport& decision) {
  decision.state = on_trial(e.id, change) ? "trial" : e.state;
  for (const feedback::Episode::Prefetch& p : e.prefetches) {
    if (p.change != change) continue;
    decision.state = to_string(p.outcome);
    decision.measured_gain = p.measured_gain;
    decision.outcome = p.words;
  }
}

void report_branches(const feedback::Episode& e, const OnTrial& on_trial, DecisionSink& decisions) {
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
  tell_version(e, jit::ChangeKind::kWeighBranches, on_trial, weighed);
  decisions.push_back(weighed);
}

void report_split(const feedback::Episode& e, const feedback::PolicyConfig& policy, const OnTrial& on_trial,
                  DecisionSink& decisions) {
  if (!e.split_cold) return;
  DecisionReport split;
  split.id = e.id;
  split.kind = "code-layout";
  split.function = e.evidence.name;
  split.reason = fmt::format("its module has {} KiB of code, and the instruction TLB reaches {:.0f} KiB",
                             e.evidence.module_bytes >> 10, policy.itlb_reach_bytes / 1024);
  split.alternatives = {"nothing: what hardly ever runs lies between what runs",
                        "apart: a jump where it is entered, and less to lie side by side"};
  split.seconds = e.seconds;
  tell_version(e, jit::ChangeKind::kSplitCold, on_trial, split);
  decisions.push_back(split);
}

void explain_form(const feedback::FunctionEvidence& evidence, const feedback::PolicyConfig& policy,
                  DecisionReport& decision) {
  for (const feedback::BranchPlan& plan : feedback::plan_branches(evidence, policy)) {
    if (plan.hint.branch.value != decision.wasm_offset) continue;
    decision.reason = plan.reason;
    const double seconds = evidence.seconds_baseline + evidence.seconds_optimized;
    if (seconds > 0) decision.estimated_gain = std::min(1.0, plan.estimated_gain / seconds);
  }
}

void explain_value(const feedback::FunctionEvidence& evidence, const feedback::PolicyConfig& policy,
                   DecisionReport& decision) {
  for (const feedback::ValuePlan& plan : feedback::plan_values(evidence, policy)) {
    if (plan.hint.at.value != decision.wasm_offset) continue;
    decision.reason = plan.reason;
    const double seconds = evidence.seconds_baseline + evidence.seconds_optimized;
    if (seconds > 0) decision.estimated_gain = std::min(1.0, plan.estimated_gain / seconds);
  }
}

}  // namespace

void report_function(const feedback::Episode& e, const feedback::PolicyConfig& policy,
                     const OnTrial& on_trial, DecisionSink& decisions) {
  DecisionReport decision;
  decision.id = e.id;
  decision.kind = e.action == feedback::to_string(feedback::Action::kObserve) ? "follow-shifts" : "optimize";
  decision.function = e.evidence.name;
  decision.reason = e.reason;
  decision.alternatives = e.alternatives;
  decision.state = e.state;
  decision.seconds = e.seconds;
  decision.outcome = fmt::format("{:.1f} ms of compiling", 1e3 * e.compile_seconds);
  decisions.push_back(decision);
  // The evidence says which they were: the policy is pure.
  for (const feedback::CallPlan& call : feedback::plan_calls(e.evidence, policy)) {
    if (std::find(e.inlined_calls.begin(), e.inlined_calls.end(), call.hint.call.value) ==
        e.inlined_calls.end())
      continue;
    DecisionReport inlined;
    inlined.id = e.id;
    inlined.kind = "inline-calls";
    inlined.function = e.evidence.name;
    inlined.wasm_offset = call.hint.call.value;
    inlined.reason = call.reason;
    inlined.alternatives = {"nothing: every call goes through its table",
                            fmt::format("compare with {} target{}: no call where one of them matches",
                                        call.hint.targets.size(), call.hint.targets.size() == 1 ? "" : "s")};
    inlined.seconds = e.seconds;
    tell_version(e, jit::ChangeKind::kInlineCalls, on_trial, inlined);
    decisions.push_back(inlined);
  }
  double samples = e.evidence.samples_baseline + e.evidence.samples_optimized;
  report_branches(e, on_trial, decisions);
  report_split(e, policy, on_trial, decisions);
  for (const feedback::Episode::Prefetch& p : e.prefetches) {
    if (jit::is_of_version(p.change)) continue;  // said with the decision
    DecisionReport prefetch;
    prefetch.id = e.id;
    prefetch.kind = to_string(p.change);
    prefetch.function = e.evidence.name;
    prefetch.wasm_offset = p.load;
    for (const feedback::LoadEvidence& load : e.evidence.loads) {
      if (load.load.value != p.load || samples <= 0) continue;
      prefetch.estimated_gain = load.stall_samples / samples;
      prefetch.reason = fmt::format("{:.0f} of {:.0f} samples ({:.0f} %) stand behind this load",
                                    load.stall_samples, samples, 100 * load.stall_samples / samples);
    }
    if (jit::is_of_branch(p.change)) explain_form(e.evidence, policy, prefetch);
    if (p.change == jit::ChangeKind::kValue) explain_value(e.evidence, policy, prefetch);
    prefetch.alternatives = {"nothing: costs nothing, gains nothing",
                             fmt::format("{}: at most {:.0f} % of the function's time", prefetch.kind,
                                         100 * prefetch.estimated_gain)};
    prefetch.state = p.outcome == feedback::PrefetchOutcome::kInTrial   ? "trial"
                     : p.outcome == feedback::PrefetchOutcome::kNoSlice ? "rejected"
                                                                        : to_string(p.outcome);
    prefetch.measured_gain = p.measured_gain;
    prefetch.outcome = p.words;
    prefetch.seconds = e.seconds;
    decisions.push_back(prefetch);
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
          report.loads.push_back({.function = name,
                                  .wasm_offset = offset,
                                  .stall_samples = load.stall_baseline + load.stall_optimized,
                                  .function_samples = total_of(function),
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
