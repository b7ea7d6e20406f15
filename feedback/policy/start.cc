#include "feedback/policy/start.h"

#include <fmt/format.h>

#include <algorithm>

namespace hindsight::feedback {
namespace {

constexpr std::string_view kTakenOver = "decided in an earlier run: ";

double stall_share_of(const FunctionEvidence& evidence, uint32_t load) {
  const double samples = evidence.samples_baseline + evidence.samples_optimized;
  for (const LoadEvidence& l : evidence.loads)
    if (l.load.value == load && samples > 0) return std::min(1.0, l.stall_samples / samples);
  return 0;
}

// A change of a load's loop that goes with a number: what was kept is settled, what was on trial goes on trial
// again. `what`: "the prefetch at".
template <typename Plan, typename Hint>
void take_over(const Episode::Prefetch& p, const FunctionEvidence& evidence, const PolicyConfig& config,
               std::string_view what, std::string_view tuned_name, std::vector<Plan>& plans,
               uint32_t Hint::*tuned, std::map<uint32_t, uint32_t>& settled) {
  const bool kept = p.outcome == PrefetchOutcome::kKept;
  if (!kept && p.outcome != PrefetchOutcome::kInTrial) return;
  if (plans.size() >= config.max_prefetches) return;
  Plan plan;
  plan.hint.load = WasmOffset(p.load);
  plan.hint.stall_share = stall_share_of(evidence, p.load);
  plan.estimated_gain = plan.hint.stall_share;
  plan.reason = fmt::format("the trial of {} 0x{:x} had not ended", what, p.load);
  if (kept) {
    settled[p.load] = plan.hint.*tuned = jit::clamped(p.change, p.distance);
    plan.estimated_gain = p.measured_gain;
    plan.reason = fmt::format("{} 0x{:x} was kept at {} {}, {:+.1f} %", what, p.load, tuned_name,
                              plan.hint.*tuned, 100 * p.measured_gain);
  }
  plans.push_back(std::move(plan));
}

// Forms that were kept are settled, those that lost are not asked for again.
void take_over_forms(StartPlan& start, const Episode::Earlier& earlier) {
  using Form = jit::BranchHint::Form;
  for (BranchPlan& plan : start.plan.branches) {
    const jit::ChangeKind change =
        plan.hint.form == Form::kSelect ? jit::ChangeKind::kSelect : jit::ChangeKind::kBranch;
    if (plan.hint.form == Form::kAsItComes) continue;
    for (const Episode::Prefetch& p : earlier.prefetches) {
      if (p.change != change || p.load != plan.hint.branch.value) continue;
      if (p.outcome == PrefetchOutcome::kKept) {
        start.settled_forms.insert(p.load);
        plan.reason = fmt::format("the {} at 0x{:x} was kept, {:+.1f} %", to_string(change), p.load,
                                  100 * p.measured_gain);
      } else if (p.outcome != PrefetchOutcome::kInTrial) {
        plan.hint.form = Form::kAsItComes;
        plan.reason.clear();
      }
    }
  }
  std::erase_if(start.plan.branches, [](const BranchPlan& plan) {
    return plan.hint.form == Form::kAsItComes && !plan.hint.weigh && !plan.hint.one_sided;
  });
}

// Code for usual values likewise.
void take_over_values(StartPlan& start, const Episode::Earlier& earlier) {
  std::erase_if(start.plan.values, [&](ValuePlan& plan) {
    for (const Episode::Prefetch& p : earlier.prefetches) {
      if (p.change != jit::ChangeKind::kValue || p.load != plan.hint.at.value) continue;
      if (p.outcome != PrefetchOutcome::kKept) return p.outcome != PrefetchOutcome::kInTrial;
      start.settled_values.insert(p.load);
      plan.reason += fmt::format("; code for it was kept, {:+.1f} %", 100 * p.measured_gain);
    }
    return false;
  });
}

// What the decision was made on, with what trials of whole versions have found out since.
FunctionEvidence with_outcomes(FunctionEvidence evidence, const Episode::Earlier& earlier) {
  evidence.outcomes = {};  // one that nobody remembers trying may be tried again
  for (const Episode::Prefetch& p : earlier.prefetches)
    if (jit::is_of_version(p.change)) evidence.outcomes.of(p.change) = p.outcome;
  return evidence;
}

}  // namespace

StartPlan decide_start(const FunctionEvidence& evidence, const Episode::Earlier& earlier,
                       const PolicyConfig& config) {
  StartPlan start;
  FunctionPlan& plan = start.plan;
  plan.function = evidence.function;
  const double compile =
      earlier.compile_seconds > 0 ? earlier.compile_seconds : compile_seconds(evidence, config);
  const double seconds =
      earlier.runs > 0
          ? (earlier.seconds_baseline + config.optimized_speedup * earlier.seconds_optimized) / earlier.runs
          : 0;
  const double gain = seconds * (1 - 1 / config.optimized_speedup);
  const double cost = config.background_cost * compile;
  plan.alternatives.push_back({"wait until it is hot", 0, 0});
  plan.alternatives.push_back({"optimize at the start", cost, gain});
  if (!config.optimize) {
    plan.reason = "decision 'optimize' is switched off";
    return start;
  }
  const std::string seen = fmt::format(
      "{:.1f} ms of baseline code a run, the mean of {:.1f} runs: {:.1f} ms "
      "to gain against {:.1f} ms of compiling",
      1e3 * seconds, earlier.runs, 1e3 * gain, 1e3 * cost);
  if (gain <= cost) {
    plan.reason = seen;
    return start;
  }
  plan.action = Action::kOptimize;
  plan.reason = seen;
  // Undoing what was lost comes before everything (1e3 and above).
  const double rate = gain / compile;
  start.priority = 1e3 * rate / (1e3 + rate);
  for (const uint32_t loop : earlier.osr_loops) plan.osr_loops.push_back(LoopIndex(loop));
  for (const Episode::Prefetch& p : earlier.prefetches) {
    switch (p.change) {
      case jit::ChangeKind::kInlineCalls:
      case jit::ChangeKind::kWeighBranches:
      case jit::ChangeKind::kSplitCold:
        break;  // with the version, below
      case jit::ChangeKind::kPrefetch:
        if (config.prefetch)
          take_over(p, evidence, config, "the prefetch at", "distance", plan.prefetches,
                    &jit::PrefetchHint::initial_distance, start.settled);
        break;
      case jit::ChangeKind::kInterleave:
        if (config.interleave)
          take_over(p, evidence, config, "interleaving the searches of", "width", plan.interleaves,
                    &jit::InterleaveHint::initial_width, start.settled_widths);
        break;
      case jit::ChangeKind::kJumpPointers:
        if (config.jump_pointers)
          take_over(p, evidence, config, "following the history at", "distance", plan.jumps,
                    &jit::JumpHint::initial_distance, start.settled_jumps);
        break;
      case jit::ChangeKind::kSelect:
      case jit::ChangeKind::kBranch:
      case jit::ChangeKind::kValue:
        break;  // below
    }
  }
  plan_version(plan, with_outcomes(evidence, earlier), config);
  take_over_forms(start, earlier);
  take_over_values(start, earlier);
  return start;
}

std::vector<StartQuestion> start_questions(const ModuleProfile& known) {
  std::map<uint32_t, const Episode*> latest;
  for (const Episode& episode : known.episodes) {
    const bool compiled =
        episode.action == to_string(Action::kOptimize) || episode.action == to_string(Action::kReoptimize);
    // What stayed is told of by the decision that it came from.
    const bool runs = !episode.state.starts_with("failed") && episode.state != kNothingNew;
    if (compiled && runs) latest[episode.evidence.function.value] = &episode;
  }
  std::vector<StartQuestion> questions;
  for (const auto& [function, episode] : latest) {
    StartQuestion question;
    question.decision = episode;
    Episode::Earlier& earlier = question.earlier;
    earlier.runs = known.runs;
    earlier.compile_seconds = episode->compile_seconds;
    earlier.osr_loops = episode->osr_loops;
    earlier.prefetches = episode->prefetches;
    // What was found out about loads by any decision on the function: a recompile knows only its own.
    for (const Episode& other : known.episodes) {
      if (other.evidence.function.value != function || &other == episode) continue;
      for (const Episode::Prefetch& p : other.prefetches) {
        const bool listed = std::any_of(earlier.prefetches.begin(), earlier.prefetches.end(),
                                        [&](const Episode::Prefetch& q) { return same_change(p, q); });
        const bool lost = p.outcome == PrefetchOutcome::kRolledBack || p.outcome == PrefetchOutcome::kNoSlice;
        if (!listed && lost) earlier.prefetches.push_back(p);
      }
    }
    const auto samples = std::find_if(known.samples.begin(), known.samples.end(),
                                      [&](const FunctionSamples& s) { return s.function.value == function; });
    if (samples != known.samples.end()) {
      earlier.seconds_baseline = samples->seconds_baseline;
      earlier.seconds_optimized = samples->seconds_optimized;
    } else if (known.samples.empty()) {  // of a version that did not save them: what the decision knew
      earlier.seconds_baseline = episode->evidence.seconds_baseline;
      earlier.seconds_optimized = episode->evidence.seconds_optimized;
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

std::string first_reason(const Episode& decision) {
  std::string reason = decision.reason;
  // Of what was taken over more than once, the first reason counts.
  if (const size_t at = reason.rfind(kTakenOver); at != std::string::npos)
    reason.erase(0, at + kTakenOver.size());
  return std::string(kTakenOver) + reason;
}

Episode make_start_episode(const StartQuestion& question, const StartPlan& plan) {
  Episode episode = make_episode(question.decision->evidence, plan.plan);
  episode.reason += "; " + first_reason(*question.decision);
  episode.origin = Origin::kProfile;
  episode.earlier = question.earlier;
  return episode;
}

}  // namespace hindsight::feedback
