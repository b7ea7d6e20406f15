#include "feedback/policy/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "feedback/policy/questions.h"
#include "feedback/policy/start.h"

namespace hindsight::feedback {

const char* to_string(Action action) {
  switch (action) {
    case Action::kNothing:
      return "nothing";
    case Action::kWait:
      return "wait";
    case Action::kOptimize:
      return "optimize";
    case Action::kReoptimize:
      return "reoptimize";
    case Action::kObserve:
      return "observe";
  }
  return "unknown";
}

double expected_seconds(uint32_t code_bytes, size_t loops, double scale, const PolicyConfig& config) {
  return scale * (config.compile_fixed_seconds + config.compile_seconds_per_byte * code_bytes +
                  config.compile_seconds_per_loop * static_cast<double>(loops));
}

double compile_seconds(double known, uint32_t code_bytes, double scale, const PolicyConfig& config) {
  return known > 0 ? known : expected_seconds(code_bytes, 0, scale, config);
}

double compile_seconds(const FunctionEvidence& e, const PolicyConfig& config) {
  return compile_seconds(e.compile_seconds, e.code_bytes, e.compile_scale, config);
}

bool may_pay_in_flat_profile(double seconds_run, double samples_run, double compile_seconds,
                             const PolicyConfig& config) {
  return samples_run >= config.min_flat_samples &&
         seconds_run * (1 - 1 / config.optimized_speedup) >=
             config.min_flat_return * config.background_cost * compile_seconds;
}

namespace {

FunctionPlan ask(std::span<const Question> questions, const FunctionEvidence& e, const PolicyConfig& config) {
  Case c(e, config);
  for (const Question question : questions)
    if (question(c)) break;
  return std::move(c.plan);
}

}  // namespace

FunctionPlan decide(const FunctionEvidence& e, const PolicyConfig& config) {
  if (std::optional<FunctionPlan> nest = decide_nest(e, config)) return std::move(*nest);
  if (e.optimized) return ask(later_questions(), e, config);
  if (std::ranges::none_of(e.loops, &LoopEvidence::has_nest)) return ask(first_questions(), e, config);
  FunctionEvidence around = e;
  forget_of_nests(around, nullptr);
  return ask(first_questions(), around, config);
}

std::vector<jit::Request> requests_of(const FunctionPlan& plan) {
  std::vector<jit::Request> requests;
  // That something of the version is to lie apart is said for all of it (OptimizeRequest::split_cold).
  for (const Candidate& candidate : plan.candidates)
    if (candidate.site() != version_site(jit::ChangeKind::kSplitCold)) requests.push_back(candidate.request);
  return requests;
}

bool same_plan(const FunctionPlan& a, const FunctionPlan& b) {
  return a.action == b.action && a.function == b.function && a.osr_loops == b.osr_loops &&
         a.loop_entries_only == b.loop_entries_only && a.nest == b.nest && a.early == b.early &&
         std::equal(a.candidates.begin(), a.candidates.end(), b.candidates.begin(), b.candidates.end(),
                    [](const Candidate& x, const Candidate& y) {
                      // The plan depends on shares and counts only by what it asks for.
                      return x.site() == y.site() && jit::what_of<jit::UsualValue>(x.request).value ==
                                                         jit::what_of<jit::UsualValue>(y.request).value;
                    });
}

std::vector<std::string> describe_alternatives(const FunctionPlan& plan) {
  return describe_alternatives(plan.alternatives);
}

std::vector<std::string> describe_alternatives(const std::vector<Alternative>& alternatives) {
  std::vector<std::string> lines;
  for (const Alternative& a : alternatives) {
    lines.push_back(fmt::format("{}: costs {:.1f} ms, gains up to {:.1f} ms", a.name, 1e3 * a.cost_seconds,
                                1e3 * a.gain_seconds));
  }
  return lines;
}

Episode make_episode(const FunctionEvidence& evidence, const FunctionPlan& plan) {
  Episode episode;
  episode.evidence = evidence;
  episode.action = to_string(plan.action);
  for (const LoopIndex loop : plan.osr_loops) episode.osr_loops.push_back(loop.value);
  episode.nest = plan.nest;
  episode.reason = plan.reason;
  std::set<std::string_view> said;  // several changes of one load have the same reason
  for (const Candidate& candidate : plan.candidates) {
    episode.changes.push_back(candidate.site());
    if (!candidate.reason.empty() && said.insert(candidate.reason).second)
      episode.reason += "; " + candidate.reason;
  }
  episode.alternatives = describe_alternatives(plan);
  return episode;
}

bool replays(const Episode& episode, const PolicyConfig& config) {
  const Episode again =
      episode.earlier
          ? make_episode(episode.evidence, decide_start(episode.evidence, *episode.earlier, config).plan)
          : make_episode(episode.evidence, decide(episode.evidence, config));
  return again.action == episode.action && again.osr_loops == episode.osr_loops &&
         again.nest == episode.nest && again.changes == episode.changes;
}

}  // namespace hindsight::feedback
