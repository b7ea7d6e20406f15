// Whether a function that runs baseline code is compiled, and with what.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "feedback/policy/changes/change_policy.h"
#include "feedback/policy/questions.h"

namespace hindsight::feedback {
namespace {

// By optimized code, over as long as it ran.
double gain_of(const Case& c) {
  return c.e.seconds_baseline * (1 - 1 / c.config.optimized_speedup);
}

void append(std::vector<Candidate>& to, std::vector<Candidate> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

}  // namespace

std::vector<Candidate> propose_all(const Case& c) {
  std::vector<Candidate> all = propose_for_loads(c.e, c.config);
  append(all, propose_for_version(c.e, c.config));
  return all;
}

void weigh_changes(Case& c) {
  const double gain = gain_of(c);
  c.offer("optimize", c.compile_cost, gain);
  const std::vector<Candidate> all = propose_all(c);
  for (const ChangePolicy* policy : change_policies()) {
    for (const jit::ChangeKind kind : policy->kinds()) {
      size_t count = 0;
      Estimate sum;
      for (const Candidate& candidate : of(all, kind)) {
        ++count;
        sum.share += candidate.estimate.share;
        sum.seconds += candidate.estimate.seconds;
      }
      const std::string words = count > 0 ? policy->offer(kind, count) : std::string();
      if (words.empty()) continue;
      c.offer("optimize + " + words, c.compile_cost,
              gain + c.e.seconds_baseline / c.config.optimized_speedup * sum.share + sum.seconds);
    }
  }
}

std::optional<Wait> wants_more(const FunctionEvidence& e, const PolicyConfig& config) {
  std::optional<Wait> for_stalls;
  for (const ChangePolicy* policy : change_policies())
    if (auto wait = policy->wants_more(e, config)) {
      if (!wait->for_stalls) return wait;
      for_stalls = std::move(wait);
    }
  return for_stalls;
}

namespace {

bool weigh(Case& c) {
  weigh_changes(c);
  return false;
}

bool is_switched_off(Case& c) {
  return !c.config.optimize && c.answer(Action::kNothing, "decision 'optimize' is switched off");
}

// Memory that was short may be there later. What is too large, or took too long, fails again.
bool failed_before(Case& c) {
  return c.e.failed_compiles >= c.config.max_fruitless &&
         c.answer(Action::kNothing, "compiles of all of it failed");
}

// Too few samples of late to say what its loads and loops are like: then it is compiled as it is, if at all.
bool is_in_flat_profile(Case& c) {
  const FunctionEvidence& e = c.e;
  if (e.samples_baseline >= c.config.min_samples) return false;
  const double gain = e.seconds_run_baseline * (1 - 1 / c.config.optimized_speedup);
  if (!may_pay_in_flat_profile(e.seconds_run_baseline, e.samples_run_baseline, compile_seconds(e, c.config),
                               c.config)) {
    return c.answer(Action::kNothing, fmt::format("{:.0f} of {:.0f} samples: too few to decide",
                                                  e.samples_baseline, e.total_samples));
  }
  // What a loop ran before it had code is over.
  if (std::any_of(e.loops.begin(), e.loops.end(), [](const LoopEvidence& loop) { return loop.has_nest; }))
    return c.answer(Action::kNothing, "its loops are compiled as nests, and nothing else of it is hot");
  c.offer("optimize for what the whole run spent in it", c.compile_cost, gain);
  // Its loop may be all that ever runs of it, which only samples of late would tell.
  if (e.entered != Entered::kAgain) {
    return c.answer(Action::kNothing,
                    fmt::format("ran {:.1f} ms in the whole run, and was not seen to be called again",
                                1e3 * e.seconds_run_baseline));
  }
  c.plan.candidates = propose_for_version(e, c.config);
  // Records of operands were made in that little time as well: too few for a trial.
  std::erase_if(c.plan.candidates,
                [](const Candidate& candidate) { return candidate.kind() == jit::ChangeKind::kValue; });
  return c.answer(Action::kOptimize, fmt::format("{:.0f} samples in baseline code in the whole run ({:.1f} "
                                                 "ms), {:.1f} of late: compiling gains about "
                                                 "{:.1f} ms and costs {:.1f} ms",
                                                 e.samples_run_baseline, 1e3 * e.seconds_run_baseline,
                                                 e.samples_baseline, 1e3 * gain, 1e3 * c.compile_cost));
}

bool is_too_cheap(Case& c) {
  const double gain = gain_of(c);
  return gain <= c.compile_cost &&
         c.answer(Action::kNothing,
                  fmt::format(
                      "ran {:.1f} ms in baseline code: compiling gains about {:.1f} ms and costs {:.1f} ms",
                      1e3 * c.e.seconds_baseline, 1e3 * gain, 1e3 * c.compile_cost));
}

// Code of its loops would go, and what was won in it.
bool waits_for_evidence(Case& c) {
  if (std::ranges::none_of(c.e.loops, &LoopEvidence::has_nest)) return false;
  auto wait = wants_more(c.e, c.config);
  return wait && c.answer(Action::kWait, std::move(wait->reason));
}

bool is_still_watched(const FunctionEvidence& e, const PolicyConfig& config) {
  return e.seconds_watched < config.max_seconds_to_wait_for_entry &&
         (e.seconds_watched < config.min_seconds_watched ||
          e.all_seconds_watched < config.max_all_seconds_to_wait_for_entry);
}

std::string waits_for_call(const FunctionEvidence& e, const PolicyConfig& config) {
  return fmt::format("hot, and not called in {:.1f} ms: waits up to {:.1f} ms for its next call",
                     1e3 * e.seconds_watched, 1e3 * config.max_seconds_to_wait_for_entry);
}

bool waits_for_entry(Case& c) {
  const FunctionEvidence& e = c.e;
  return e.entered == Entered::kNotYet && is_still_watched(e, c.config) &&
         !plan_osr_loops(e, c.config).empty() && c.answer(Action::kWait, waits_for_call(e, c.config));
}

// Its first code runs without what is to be tried in it anyhow. What is waited for is seen while that is compiled, and in it.
void leave_for_later(FunctionPlan& plan) {
  plan.early = true;
  std::erase_if(plan.candidates, [](const Candidate& candidate) {
    return !jit::is_of_version(candidate.kind()) || candidate.kind() == jit::ChangeKind::kWeighBranches;
  });
}

bool compile(Case& c) {
  const FunctionEvidence& e = c.e;
  FunctionPlan& plan = c.plan;
  plan.candidates = propose_all(c);
  if (wants_more(e, c.config)) leave_for_later(plan);
  plan.osr_loops = plan_osr_loops(e, c.config);
  // For a loop with prefetches the whole function says whether it is long enough.
  plan.loop_entries_only =
      e.entered == Entered::kNotYet && !plan.osr_loops.empty() && !plan.has(jit::ChangeKind::kPrefetch);
  std::string reason = fmt::format(
      "{:.0f} of {:.0f} samples in baseline code ({:.1f} ms): compiling gains about {:.1f} ms and costs "
      "{:.1f} ms",
      e.samples_baseline, e.total_samples, 1e3 * e.seconds_baseline, 1e3 * gain_of(c), 1e3 * c.compile_cost);
  if (plan.early) reason += kTriedLater;
  if (plan.loop_entries_only) reason += "; was not called again, so only its running loop is compiled";
  return c.answer(Action::kOptimize, std::move(reason));
}

}  // namespace

std::optional<std::string> wants_its_next_call(const FunctionEvidence& e, const PolicyConfig& config) {
  // Watching begins a round after its first samples.
  const bool waits = e.entered == Entered::kUnknown
                         ? e.seconds_baseline < config.max_seconds_to_wait_for_entry
                         : e.entered == Entered::kNotYet && is_still_watched(e, config);
  return waits ? std::optional(waits_for_call(e, config)) : std::nullopt;
}

std::span<const Question> first_questions() {
  static constexpr std::array<Question, 8> kQuestions = {
      weigh,        is_switched_off,    failed_before,   is_in_flat_profile,
      is_too_cheap, waits_for_evidence, waits_for_entry, compile,
  };
  return kQuestions;
}

}  // namespace hindsight::feedback
