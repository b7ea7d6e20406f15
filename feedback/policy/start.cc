#include "feedback/policy/start.h"

#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/changes/change_policy.h"

namespace hindsight::feedback {
namespace {

constexpr std::string_view kTakenOver = "decided in an earlier run: ";

double stall_share_of(const FunctionEvidence& evidence, uint32_t load) {
  const double samples = evidence.samples_baseline + evidence.samples_optimized;
  for (const LoadEvidence& l : evidence.loads)
    if (l.load.value == load && samples > 0) return std::min(1.0, l.stall_samples / samples);
  return 0;
}

// For one decision about loads that stall: what was kept is settled, what was on trial goes on trial
// again.
void take_over_loads(StartPlan& start, const ChangePolicy& policy, const FunctionEvidence& evidence,
                     const ChangeLedger& outcomes, const PolicyConfig& config) {
  size_t taken = 0;
  for (const auto& [site, known] : outcomes) {
    if (site.kind != policy.kinds().front() || !in_use(known.state) || !config.changes[site.kind]) continue;
    if (taken++ >= config.max_prefetches) break;
    const jit::Knob& knob = jit::traits_of(site.kind).knob;
    Candidate candidate;
    candidate.request = {.site = site, .weight = stall_share_of(evidence, site.at.value)};
    if (known.state == ChangeState::kKept) {
      const uint32_t setting = jit::clamped(site.kind, known.setting);
      start.settled[site] = candidate.request.setting = setting;
      candidate.estimate.share = known.gain;
      candidate.reason = fmt::format("{} 0x{:x}: kept at {} {}, {:+.1f} %", policy.of_load(), site.at.value,
                                     knob.name, setting, 100 * known.gain);
    } else {
      // It begins as a new one does.
      candidate.request.setting = knob.first;
      candidate.estimate.share = candidate.request.weight;
      candidate.reason = fmt::format("{} 0x{:x}: its trial had not ended", policy.of_load(), site.at.value);
    }
    start.plan.candidates.push_back(std::move(candidate));
  }
}

// For branches and operands: what was kept is settled, what lost is not asked for again.
void take_over_places(StartPlan& start, const ChangeLedger& outcomes) {
  std::erase_if(start.plan.candidates, [&](Candidate& candidate) {
    const jit::ChangeKind kind = candidate.kind();
    const Outcome* const known = outcomes.find(candidate.site());
    if (jit::is_of_version(kind) || jit::is_tuned(kind) || known == nullptr) return false;
    if (known->state != ChangeState::kKept) return known->state != ChangeState::kInTrial;
    start.settled[candidate.site()] = 0;
    if (kind == jit::ChangeKind::kValue)
      candidate.reason += fmt::format("; its specialization was kept, {:+.1f} %", 100 * known->gain);
    else
      candidate.reason = fmt::format("the {} at 0x{:x} was kept, {:+.1f} %", to_string(kind),
                                     candidate.at().value, 100 * known->gain);
    return false;
  });
}

// What the decision was made on, with what trials of whole versions have found out since.
FunctionEvidence with_outcomes(FunctionEvidence evidence, const ChangeLedger& outcomes) {
  // One that nobody remembers trying may be tried again.
  evidence.changes.forget_if([](const auto& entry) { return jit::is_of_version(entry.site.kind); });
  for (const auto& [site, outcome] : outcomes)
    if (jit::is_of_version(site.kind)) evidence.changes.put(site, outcome);
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
  plan.alternatives.push_back({"wait until the function is hot", 0, 0});
  plan.alternatives.push_back({"optimize at the start", cost, gain});
  if (!config.optimize) {
    plan.reason = "decision 'optimize' is switched off";
    return start;
  }
  const std::string seen = fmt::format(
      "{:.1f} ms of baseline code a run, the mean of {:.1f} runs: compiling gains about {:.1f} ms "
      "and costs {:.1f} ms",
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
  for (const ChangePolicy* policy : change_policies())
    if (policy->is_about_loads()) take_over_loads(start, *policy, evidence, earlier.outcomes, config);
  for (Candidate& candidate : propose_for_version(with_outcomes(evidence, earlier.outcomes), config))
    plan.candidates.push_back(std::move(candidate));
  take_over_places(start, earlier.outcomes);
  return start;
}

std::vector<StartQuestion> start_questions(const ModuleProfile& known) {
  std::map<uint32_t, const Episode*> latest;
  for (const Episode& episode : known.episodes) {
    const bool compiled =
        episode.action == to_string(Action::kOptimize) || episode.action == to_string(Action::kReoptimize);
    // What stayed is told of by the decision that it came from.
    const bool runs = episode.state != DecisionState::kFailed && episode.state != DecisionState::kRefused;
    // A nest is found hot anew: it takes little to compile, and says nothing of the whole function.
    if (compiled && runs && !episode.nest) latest[episode.evidence.function.value] = &episode;
  }
  std::vector<StartQuestion> questions;
  for (const auto& [function, episode] : latest) {
    StartQuestion question;
    question.decision = episode;
    Episode::Earlier& earlier = question.earlier;
    earlier.runs = known.runs;
    earlier.compile_seconds = episode->compile_seconds;
    earlier.osr_loops = episode->osr_loops;
    earlier.outcomes = episode->outcomes;
    // What was found out about loads by any decision on the function: a recompile knows only its own.
    for (const Episode& other : known.episodes) {
      if (other.evidence.function.value != function || &other == episode) continue;
      for (const auto& [site, outcome] : other.outcomes) {
        const bool lost = is_lost(outcome.state);
        if (lost && !earlier.outcomes.contains(site)) earlier.outcomes.put(site, outcome);
      }
    }
    const auto samples = std::find_if(known.samples.begin(), known.samples.end(),
                                      [&](const FunctionSamples& s) { return s.function.value == function; });
    if (samples != known.samples.end()) {
      earlier.seconds_baseline = samples->seconds_baseline;
      earlier.seconds_optimized = samples->seconds_optimized;
    } else if (known.samples.empty()) {  // nothing was sampled: what the decision knew
      earlier.seconds_baseline = episode->evidence.seconds_baseline;
      earlier.seconds_optimized = episode->evidence.seconds_optimized;
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

std::string first_reason(const Episode& decision) {
  std::string reason = decision.reason;
  // The first reason counts for what was taken over more than once.
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
