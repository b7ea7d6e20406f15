#include "runtime/adaptive/function_plans.h"

#include <fmt/format.h>

#include <algorithm>

namespace hindsight::rt {

using Form = jit::BranchHint::Form;

void plan_settled(Job& job, jit::Site site, uint32_t best, double gain, const char* reason) {
  const auto settle = [&]<typename Plan, typename Hint>(std::vector<Plan>& plans, uint32_t Hint::*tuned,
                                                        uint32_t number) {
    Plan plan;
    plan.hint.load = site.at;
    plan.hint.*tuned = number;
    plan.estimated_gain = gain;
    plan.reason = reason;
    plans.push_back(std::move(plan));
  };
  if (jit::is_of_branch(site.kind)) {
    feedback::BranchPlan plan;
    plan.hint.branch = site.at;
    plan.hint.weigh = false;
    plan.hint.form = site.kind == jit::ChangeKind::kSelect ? jit::BranchHint::Form::kSelect
                                                           : jit::BranchHint::Form::kBranch;
    plan.reason = reason;
    job.plan.branches.push_back(std::move(plan));
  } else if (site.kind == jit::ChangeKind::kInterleave) {
    settle(job.plan.interleaves, &jit::InterleaveHint::initial_width, std::max(best, 1u));
  } else if (site.kind == jit::ChangeKind::kJumpPointers) {
    settle(job.plan.jumps, &jit::JumpHint::initial_distance, best);
  } else {
    settle(job.plan.prefetches, &jit::PrefetchHint::initial_distance, best);
  }
  job.settled[site] = best;
}

void begin_where_settled(feedback::FunctionPlan& plan, const Settled& settled) {
  const auto begin = [&](jit::ChangeKind kind, WasmOffset at, uint32_t& setting) {
    if (const auto known = settled.find({kind, at}); known != settled.end()) setting = known->second;
  };
  for (feedback::PrefetchPlan& p : plan.prefetches)
    begin(jit::ChangeKind::kPrefetch, p.hint.load, p.hint.initial_distance);
  for (feedback::InterleavePlan& p : plan.interleaves)
    begin(jit::ChangeKind::kInterleave, p.hint.load, p.hint.initial_width);
  for (feedback::JumpPlan& p : plan.jumps)
    begin(jit::ChangeKind::kJumpPointers, p.hint.load, p.hint.initial_distance);
}

feedback::PrefetchOutcome& outcome_in(feedback::FunctionCounts& counts, jit::Site site) {
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

void mark_in_trial(feedback::FunctionCounts& counts, const feedback::FunctionPlan& plan) {
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

void note_published(feedback::FunctionCounts& counts, const jit::CodeVersion& version) {
  std::vector<LoopIndex> exits, entries;
  for (const jit::OsrExit& exit : version.osr_exits) exits.push_back(exit.loop);
  for (const jit::OsrEntry& entry : version.osr_entries) entries.push_back(entry.loop);
  counts.publish(version.id, std::move(exits), std::move(entries));
}

std::vector<std::string> lines_of(const feedback::FunctionPlan& plan, const std::string& function) {
  std::vector<std::string> lines;
  for (const feedback::PrefetchPlan& p : plan.prefetches)
    lines.push_back(fmt::format("prefetch in {}: {}", function, p.reason));
  for (const feedback::InterleavePlan& p : plan.interleaves)
    lines.push_back(fmt::format("interleave in {}, if it searches: {}", function, p.reason));
  for (const feedback::JumpPlan& p : plan.jumps)
    lines.push_back(fmt::format("jump-pointers in {}, if it follows pointers: {}", function, p.reason));
  const auto weighed = std::count_if(plan.branches.begin(), plan.branches.end(),
                                     [](const feedback::BranchPlan& p) { return p.hint.weigh; });
  if (weighed > 0)
    lines.push_back(fmt::format(
        "weigh-branches in {}: the compiler is told how often {} of them go which way", function, weighed));
  for (const feedback::BranchPlan& p : plan.branches) {
    if (p.hint.form == Form::kAsItComes) continue;
    const bool select = p.hint.form == Form::kSelect;
    lines.push_back(fmt::format("{} in {}, {}: {}", select ? "select" : "branch", function,
                                select ? "if both sides can be done" : "if a chain waits for a choice there",
                                p.reason));
  }
  for (const feedback::ValuePlan& p : plan.values)
    lines.push_back(fmt::format("values in {}: {}", function, p.reason));
  return lines;
}

}  // namespace hindsight::rt
