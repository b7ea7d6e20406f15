#include "runtime/adaptive/functions/function_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/changes/change_policy.h"

namespace hindsight::rt {

void plan_settled(Job& job, jit::Site site, uint32_t best, double gain, const char* reason, double weight) {
  const uint32_t setting = site.kind == jit::ChangeKind::kInterleave ? std::max(best, 1u) : best;
  job.plan.candidates.push_back({.request = {.site = site, .weight = weight, .setting = setting},
                                 .estimate = {.share = gain},
                                 .reason = reason});
  job.settled[site] = best;
}

void begin_where_settled(feedback::FunctionPlan& plan, const Settled& settled) {
  for (feedback::Candidate& candidate : plan.candidates) {
    const auto known = settled.find(candidate.site());
    if (jit::is_tuned(candidate.kind()) && known != settled.end()) candidate.request.setting = known->second;
  }
}

std::vector<feedback::Candidate> told_by(const feedback::FunctionPlan& plan) {
  std::vector<feedback::Candidate> told = plan.candidates;
  std::erase_if(told, [](const feedback::Candidate& candidate) { return jit::is_tuned(candidate.kind()); });
  return told;
}

bool is_loop_in(const std::vector<wasm::LoopInfo>& loops, LoopIndex inner, LoopIndex outer) {
  return loops[outer.value].offset <= loops[inner.value].offset &&
         loops[inner.value].offset < loops[outer.value].end;
}

bool has_won(const jit::CodeVersion& version, const Settled& settled) {
  return std::ranges::any_of(version.answers, [&](const jit::Answer& answer) {
    return answer.is_applied() && settled.contains(answer.site);
  });
}

void forget_what_waits(feedback::FunctionEvidence& evidence, const wasm::Module* module,
                       const DecisionLog::Units& waiting) {
  for (auto at = waiting.lower_bound({module, jit::Unit{evidence.function}});
       at != waiting.end() && at->first == module && at->second.function == evidence.function; ++at) {
    if (!at->second.nest) continue;
    const feedback::LoopEvidence& nest = evidence.loops[at->second.nest->value];
    evidence.changes.forget_if([&](const feedback::ChangeLedger::Entry& entry) {
      return entry.outcome.state == feedback::ChangeState::kInTrial && !jit::is_of_version(entry.site.kind) &&
             is_in(nest, entry.site.at);
    });
  }
}

void mark_in_trial(feedback::FunctionCounts& counts, const feedback::FunctionPlan& plan) {
  for (const feedback::Candidate& candidate : plan.candidates)
    if (!jit::is_of_version(candidate.kind())) counts.begin(candidate.site());
}

void note_published(feedback::FunctionCounts& counts, const wasm::Module& module,
                    const jit::CodeVersion& version) {
  if (version.nest) {
    const std::vector<wasm::LoopInfo>& loops = module.body(version.function).loops;
    counts.publish_nest(*version.nest, version.id);
    const wasm::LoopInfo& root = loops[version.nest->value];
    counts.foresee_calls(root.offset, root.end);
    for (const jit::OsrExit& exit : version.osr_exits)
      if (std::find(counts.exit_loops.begin(), counts.exit_loops.end(), exit.loop) == counts.exit_loops.end())
        counts.exit_loops.push_back(exit.loop);
    counts.nests[version.nest->value].compile_seconds = version.compile_seconds;
    const WasmOffset end = loops[version.nest->value].end;
    for (uint32_t i = version.nest->value; i < loops.size() && loops[i].offset < end; ++i)
      counts.settle_baseline(LoopIndex(i));
    return;
  }
  std::vector<LoopIndex> exits, entries;
  for (const jit::OsrExit& exit : version.osr_exits) exits.push_back(exit.loop);
  for (const jit::OsrEntry& entry : version.osr_entries) entries.push_back(entry.loop);
  counts.publish(version.id, std::move(exits), std::move(entries));
}

jit::Site site_of_version(const feedback::Episode& episode, jit::ChangeKind change) {
  const std::vector<feedback::LoopEvidence>& loops = episode.evidence.loops;
  const bool at_loop = episode.nest && episode.nest->value < loops.size();
  return feedback::version_site(change, at_loop ? loops[episode.nest->value].offset : WasmOffset());
}

double expected_seconds(const wasm::Module& module, jit::Unit unit, const feedback::PolicyConfig& policy) {
  const wasm::FunctionBody& body = module.body(unit.function);
  WasmOffset begin = body.begin, end = body.end;
  if (unit.nest) {
    begin = body.loops[unit.nest->value].offset;
    end = body.loops[unit.nest->value].end;
  }
  const auto loops = std::count_if(body.loops.begin(), body.loops.end(), [&](const wasm::LoopInfo& loop) {
    return begin <= loop.offset && loop.offset < end;
  });
  return feedback::expected_seconds(end.value - begin.value, static_cast<size_t>(loops), 1, policy);
}

std::string unit_name(const wasm::Module& module, jit::Unit unit) {
  const std::string function = module.function_name(unit.function);
  return unit.nest ? fmt::format("the loop at 0x{:x} of {}",
                                 module.body(unit.function).loops[unit.nest->value].offset.value, function)
                   : function;
}

std::vector<std::string> lines_of(const feedback::FunctionPlan& plan, const std::string& function) {
  std::vector<std::string> lines;
  if (const size_t weighed = count(plan.candidates, jit::ChangeKind::kWeighBranches); weighed > 0)
    lines.push_back(
        fmt::format("weigh-branches in {}: tells the compiler how often {} branches and selects were taken",
                    function, weighed));
  for (const feedback::Candidate& candidate : plan.candidates) {
    const jit::ChangeKind kind = candidate.kind();
    if (jit::is_of_version(kind)) continue;
    const std::string_view condition = feedback::change_policy(kind).condition(kind);
    lines.push_back(fmt::format("{} in {}{}{}: {}", to_string(kind), function, condition.empty() ? "" : ", ",
                                condition, candidate.reason));
  }
  return lines;
}

}  // namespace hindsight::rt
