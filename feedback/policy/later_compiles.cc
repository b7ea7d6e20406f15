// Decides whether a function that was compiled is compiled again, or goes back to baseline code to be seen again. The
// reason is what is not as it was when its code was made.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "feedback/policy/changes/inline_calls.h"
#include "feedback/policy/changes/loads.h"
#include "feedback/policy/questions.h"
#include "feedback/policy/stakes.h"

namespace hindsight::feedback {
namespace {

bool may_compile_again(const FunctionEvidence& e, const PolicyConfig& config) {
  return e.optimize_count < config.max_compiles + earned_compiles(e.seconds_run, config);
}

// What the last second alone would have shown.
FunctionEvidence recent_view(const FunctionEvidence& e) {
  FunctionEvidence recent = e;
  recent.samples_baseline = 0;
  recent.samples_optimized = e.samples_recent;
  for (LoadEvidence& load : recent.loads)
    load.stall_samples = load.stall_samples_optimized = load.stall_samples_recent;
  return recent;
}

// What is found out about its loads right now says what the next compile is to be made of.
bool has_loads_in_trial(const FunctionEvidence& e) {
  const auto in_trial = [](jit::ChangeKind, ChangeState state) { return state == ChangeState::kInTrial; };
  return std::any_of(e.loads.begin(), e.loads.end(), [&](const LoadEvidence& load) {
    return has_load_change(e.changes, load.load, in_trial);
  });
}

bool was_steady(const Case& c) {
  return c.config.follow_shifts && c.e.seconds_since_published >= c.config.min_seconds_steady;
}

void propose_version(Case& c) {
  std::vector<Candidate> more = propose_for_version(c.e, c.config);
  std::move(more.begin(), more.end(), std::back_inserter(c.plan.candidates));
}

// `loads`: what is known of its loads.
bool recompile(Case& c, std::string reason, const FunctionEvidence& loads) {
  c.plan.candidates = propose_for_loads(loads, c.config);
  propose_version(c);
  return c.answer(Action::kReoptimize, std::move(reason));
}
bool recompile(Case& c, std::string reason) {
  return recompile(c, std::move(reason), c.e);
}

// Whether seeing it again pays. `gain`: by code made for what is seen then, over as long as the present one ran.
bool pays_to_observe(Case& c, double gain) {
  const double cost = c.config.seconds_observed * (c.config.optimized_speedup - 1) + c.compile_cost;
  c.offer("deoptimize, observe again, and recompile", cost, gain);
  return gain > cost;
}

bool knows_what_to_try(Case& c) {
  const FunctionEvidence& e = c.e;
  if (!e.early || !c.config.optimize || !may_compile_again(e, c.config) ||
      !ask_what_to_try(c, e.samples_baseline + e.samples_optimized, e.seconds_since_published, e))
    return false;
  c.plan.osr_loops = plan_osr_loops(e, c.config);
  return true;
}

// Is it called again, of which only a running loop was compiled?
bool is_called_after_all(Case& c) {
  const FunctionEvidence& e = c.e;
  if (!e.loop_entries_only || e.entered != Entered::kAgain || !c.config.optimize ||
      !may_compile_again(e, c.config))
    return false;
  const double gain = (e.seconds_baseline + e.seconds_optimized) * (1 - 1 / c.config.optimized_speedup);
  c.offer("compile the whole function", c.compile_cost, gain);
  if (gain <= c.compile_cost) return false;
  if (is_left_behind(e, c.config)) c.plan.osr_loops = plan_osr_loops(e, c.config);
  return recompile(c, "is called again, and only its running loop was compiled: compiles the whole function");
}

// Is a loop still in baseline code that has no way out of it?
bool was_left_behind(Case& c) {
  const FunctionEvidence& e = c.e;
  if (!c.config.optimize || !is_left_behind(e, c.config) || is_for_nests(e, c.config)) return false;
  // A loop that has no code gets it, whatever was compiled before, once it ran many times as long as that takes.
  const bool ran_long = e.seconds_left_behind * c.config.max_nest_share >= compile_seconds(e, c.config);
  if (!ran_long && !may_compile_again(e, c.config)) return false;
  const double gain = e.seconds_left_behind * (1 - 1 / c.config.optimized_speedup);
  c.offer("recompile with a loop entry for the loop in baseline code", c.compile_cost, gain);
  std::vector<LoopIndex> loops = plan_osr_loops(e, c.config);
  if (gain <= c.compile_cost || loops.empty()) return false;
  c.plan.osr_loops = std::move(loops);
  return recompile(
      c,
      fmt::format("{:.0f} samples ({:.1f} ms) in baseline code since optimized code was published: compiles "
                  "an entry for the running loop",
                  e.samples_left_behind, 1e3 * e.seconds_left_behind));
}

// Does a loop run on in code that was replaced, and can leave it?
bool stayed(Case& c) {
  const FunctionEvidence& e = c.e;
  if (!c.config.optimize || !has_stayed(e, c.config) || !may_compile_again(e, c.config)) return false;
  const double gain = e.seconds_stayed * c.config.min_reoptimize_share;
  c.offer("recompile with a loop entry for the loop in stale code", c.compile_cost, gain);
  std::vector<LoopIndex> loops = plan_osr_loops(e, c.config);
  // Where the new code has such an entry already, the loop has only not come by it yet.
  const bool has_entry = std::all_of(loops.begin(), loops.end(), [&](LoopIndex loop) {
    return std::find(e.entry_loops.begin(), e.entry_loops.end(), loop) != e.entry_loops.end();
  });
  if (gain <= c.compile_cost || has_entry) return false;
  c.plan.osr_loops = std::move(loops);
  return recompile(
      c,
      fmt::format("{:.0f} samples ({:.1f} ms) in stale optimized code: compiles an entry for the loop that "
                  "stayed there",
                  e.samples_stayed, 1e3 * e.seconds_stayed));
}

// The share of its samples that stall in loops with calls whose targets are known by now, at loads for which nothing that was asked
// for helped. Where such a load waits for what a call brings, nothing can, as long as that call is none that is seen through.
double stalls_beside_calls(const FunctionEvidence& e, const PolicyConfig& config) {
  const auto calls_in = [&](const LoopEvidence& loop) {
    return std::ranges::any_of(e.calls, [&](const CallEvidence& call) {
      return static_cast<double>(call.unforeseen_records) >= config.min_call_records &&
             is_in(loop, call.call);
    });
  };
  double stalled = 0;
  for (const LoadEvidence& load : e.loads) {
    const bool beside = std::ranges::any_of(
        e.loops, [&](const LoopEvidence& loop) { return is_in(loop, load.load) && calls_in(loop); });
    if (beside && nothing_helped(e.changes, load.load)) stalled += load.stall_samples_optimized;
  }
  return e.samples_optimized > 0 ? std::min(stalled / e.samples_optimized, 1.0) : 0;
}

// Then its loads are asked about anew, in code with the calls in place.
bool waits_for_calls(Case& c) {
  const FunctionEvidence& e = c.e;
  const double share = stalls_beside_calls(e, c.config);
  const double gain = share * e.seconds_optimized;
  if (gain <= 0) return false;
  c.offer("recompile with calls inlined that stalled loads may wait for", c.compile_cost, gain);
  if (e.samples_optimized < c.config.min_reoptimize_samples || share < c.config.min_reoptimize_share ||
      gain <= std::max(c.compile_cost, e.price_of_trying * compile_seconds(e, c.config)))
    return false;
  FunctionEvidence anew = e;
  forget_of_nests(anew, nullptr);
  c.plan.osr_loops = plan_osr_loops(e, c.config);
  return recompile(
      c,
      fmt::format("{:.0f} % of {:.0f} samples in optimized code stall on loads that nothing helped, "
                  "in loops with calls that could be inlined by now",
                  100 * share, e.samples_optimized),
      anew);
}

// Do its calls go elsewhere by now?
bool calls_moved(Case& c) {
  const FunctionEvidence& e = c.e;
  const PolicyConfig& config = c.config;
  const double records = unforeseen_records(e, config);
  if (!config.changes[jit::ChangeKind::kInlineCalls] ||
      e.changes.state(version_site(jit::ChangeKind::kInlineCalls, e.version_at)) ==
          ChangeState::kRolledBack ||
      records < config.min_call_records || !may_compile_again(e, config) ||
      e.seconds_since_published < config.min_seconds_published)
    return false;
  const double gain = records * config.calls_per_record * config.seconds_per_unforeseen_call;
  c.offer("recompile with the present targets of calls inlined", c.compile_cost, gain);
  if (gain <= c.compile_cost || gain < config.min_unforeseen_share * e.seconds_since_published)
    return !propose(jit::ChangeKind::kInlineCalls, e, config).empty() && waits_for_calls(c);
  const std::string reason = fmt::format(
      "{:.0f} records of calls to targets that are not inlined, which took about {:.1f} of {:.1f} ms since "
      "the code was published",
      records, 1e3 * gain, 1e3 * e.seconds_since_published);
  // The records of old do not say how many of the calls that were foreseen there still are.
  if (was_steady(c) && pays_to_observe(c, gain))
    return c.answer(Action::kObserve, reason + ": deoptimizes what was specialized for other calls");
  if (propose(jit::ChangeKind::kInlineCalls, e, config).empty()) return false;
  c.plan.osr_loops = plan_osr_loops(e, config);
  return recompile(c, reason);
}

// Does it spend its time elsewhere by now, and was made for what it was like?
bool time_moved(Case& c) {
  const FunctionEvidence& e = c.e;
  if (!was_steady(c) || e.moved_share < c.config.min_moved_share || !may_compile_again(e, c.config))
    return false;
  const std::vector<Candidate> version = propose_for_version(e, c.config);
  const bool made_for = std::any_of(version.begin(), version.end(), [](const Candidate& candidate) {
    return candidate.site() != version_site(jit::ChangeKind::kSplitCold);
  });
  const double gain = e.seconds_since_published * e.moved_share * c.config.min_reoptimize_share;
  return made_for && pays_to_observe(c, gain) &&
         c.answer(Action::kObserve,
                  fmt::format("{:.0f} % of the last samples are where the first ones in this code were not: "
                              "deoptimizes it",
                              100 * e.moved_share));
}

bool has_new_stalls(Case& c) {
  if (!may_compile_again(c.e, c.config))
    return c.answer(Action::kNothing, fmt::format("compiled {} times already", c.e.optimize_count));
  return ask_for_new_stalls(c);
}

}  // namespace

uint32_t earned_compiles(double seconds_run, const PolicyConfig& config) {
  const double earned =
      config.follow_shifts && config.seconds_per_compile > 0 ? seconds_run / config.seconds_per_compile : 0;
  return std::min(config.max_later_compiles, static_cast<uint32_t>(std::min(earned, 1e6)));
}

bool ask_what_to_try(Case& c, double samples, double seconds, const FunctionEvidence& function) {
  if (samples < c.config.min_samples_with_stalls) return false;
  std::vector<Candidate> nothing = std::exchange(c.plan.candidates, propose_all(c));
  const double saved = seconds * may_save(c.plan, function);
  if (saved <= 0 || saved < function.price_of_trying * compile_seconds(c.e, c.config)) {
    c.plan.candidates = std::move(nothing);
    return false;
  }
  c.plan.second = true;
  return c.answer(
      Action::kReoptimize,
      fmt::format("by {:.0f} samples of its baseline code and its first code, trials may save {:.1f} ms",
                  samples, 1e3 * saved));
}

bool ask_whether_it_moved(Case& c) {
  return calls_moved(c) || time_moved(c);
}

bool ask_for_new_stalls(Case& c) {
  const FunctionEvidence& e = c.e;
  const PolicyConfig& config = c.config;
  const bool any_on = std::any_of(jit::kChanges.begin(), jit::kChanges.end(), [&](const auto& change) {
    return change.of_load && config.changes[change.kind];
  });
  // What is inlined for its loads would be in this code.
  const double samples = e.samples_optimized + callee_samples(e, config);
  if (!any_on || samples < config.min_reoptimize_samples)
    return c.answer(Action::kNothing, "optimized, and nothing asks for more");
  if (e.seconds_since_published < config.max_seconds_for_trials && has_loads_in_trial(e))
    return c.answer(Action::kNothing, "optimized, and changes of its loads are in trial");
  double untried_share = 0, untried_recently = 0;
  for (const LoadEvidence& load : e.loads) {
    if (!is_worth_another_look(load, e, config) || is_hopeless(load, e, config)) continue;
    untried_share += load.stall_samples_optimized / samples;
    untried_recently += recent_share(load, e, config);
  }
  // What changed a second ago counts as it is now.
  const bool changed = untried_recently > untried_share;
  // Stalls of a callee are of its own code, which may have more of them than what is left of its samples.
  const double share = std::min(changed ? untried_recently : untried_share, 1.0);
  const double gain = share * (e.seconds_optimized + callee_seconds(e, config));
  const std::string words =
      changed ? fmt::format(
                    "{:.0f} % of the last {:.0f} samples in optimized code stall on untried or changed "
                    "loads, {:.0f} % of {:.0f} before",
                    100 * share, e.samples_recent, 100 * untried_share, samples)
              : fmt::format("{:.0f} % of {:.0f} samples in optimized code stall on untried loads",
                            100 * share, samples);
  c.offer("recompile with prefetches or interleaved searches", c.compile_cost, gain);
  if (share < config.min_reoptimize_share ||
      gain <= std::max(c.compile_cost, e.price_of_trying * compile_seconds(e, config)))
    return c.answer(Action::kNothing, words + ": too little for a compile");
  std::vector<Candidate> loads = propose_for_loads(changed ? recent_view(e) : e, config);
  const bool any_new = std::any_of(loads.begin(), loads.end(), [&](const Candidate& candidate) {
    return std::any_of(e.loads.begin(), e.loads.end(), [&](const LoadEvidence& load) {
      return load.load == candidate.at() && is_worth_another_look(load, e, config);
    });
  });
  if (!any_new) return c.answer(Action::kNothing, "no single untried load stalls enough for a prefetch");
  c.plan.candidates = std::move(loads);
  propose_version(c);
  c.plan.osr_loops = plan_osr_loops(e, config);
  return c.answer(Action::kReoptimize, words);
}

std::span<const Question> later_questions() {
  static constexpr std::array<Question, 7> kQuestions = {
      knows_what_to_try, is_called_after_all, was_left_behind, stayed,
      calls_moved,       time_moved,          has_new_stalls,
  };
  return kQuestions;
}

}  // namespace hindsight::feedback
