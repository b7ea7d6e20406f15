#include "feedback/policy/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "feedback/policy/branches.h"
#include "feedback/policy/start.h"
#include "feedback/policy/values.h"

namespace hindsight::feedback {

namespace {

double function_samples(const FunctionEvidence& e) {
  return e.samples_baseline + e.samples_optimized;
}

// All its known addresses lie within what a near cache holds.
bool cached(const LoadEvidence& load, const PolicyConfig& config) {
  return static_cast<double>(load.addresses) >= config.min_addresses_for_span &&
         static_cast<double>(load.address_span_bytes) < config.min_span_bytes;
}

// Nothing to gain by a prefetch, wherever the samples stand.
bool hopeless(const LoadEvidence& load, const PolicyConfig& config) {
  return !load.in_loop || cached(load, config);
}

// Of the last second's samples in optimized code; 0 where these are too few.
double recent_share(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config) {
  return !config.follow_shifts || e.samples_recent < config.min_samples_recent
             ? 0
             : load.stall_samples_recent / e.samples_recent;
}

// What lost may win by now: the load stalls far more than when it did. The more often that was an error, the longer
// it takes until the next.
bool reopened(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config) {
  constexpr uint32_t kMostDoublings = 8;
  return config.follow_shifts && load.rejections > 0 &&
         load.seconds_since_rejected >=
             config.seconds_to_reopen * std::exp2(2.0 * std::min(load.rejections - 1, kMostDoublings)) &&
         recent_share(load, e, config) >= load.share_when_rejected + config.min_reopen_share;
}

bool is_open(PrefetchOutcome outcome, bool reopened) {
  return outcome == PrefetchOutcome::kNone || (outcome == PrefetchOutcome::kRolledBack && reopened);
}

// Nothing was tried, or the load is not what it was when that was; and nothing else stands where something could be.
bool untried(const LoadEvidence& load, const FunctionEvidence& e, const PolicyConfig& config) {
  return is_open(load.outcome, reopened(load, e, config)) && !in_use(load.interleave) && !in_use(load.jump);
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

bool may_compile_again(const FunctionEvidence& e, const PolicyConfig& config) {
  const double earned =
      config.follow_shifts && config.seconds_per_compile > 0 ? e.seconds_run / config.seconds_per_compile : 0;
  return e.optimize_count < config.max_compiles + std::min(config.max_later_compiles,
                                                           static_cast<uint32_t>(std::min(earned, 1e6)));
}

// What the loads of a function say together, and which of them are worth a change.
struct Stalls {
  Stalls(const FunctionEvidence& e, const PolicyConfig& config) : samples(function_samples(e)) {
    double all = 0, top = 0;
    for (const LoadEvidence& load : e.loads) {
      if (hopeless(load, config)) continue;
      all += load.stall_samples;
      top = std::max(top, load.stall_samples);
    }
    stand_out = samples > 0 && all >= config.min_total_stall_share * samples &&
                top >= config.min_top_stall_share * samples;
  }
  double share_of(const LoadEvidence& load) const { return load.stall_samples / samples; }
  bool worth_a_change(const LoadEvidence& load, const PolicyConfig& config) const {
    const double share = share_of(load);
    const bool blind = load.addresses == 0 && share < config.min_blind_share;
    return stand_out && !blind && !hopeless(load, config) && load.stall_samples >= config.min_stall_samples &&
           share >= config.min_stall_share;
  }
  // Searches gain by going side by side also where all of what they load is in a near cache: what each step
  // decides is then no branch that the processor has to guess.
  bool worth_a_search(const LoadEvidence& load, const PolicyConfig& config) const {
    return load.in_loop && cached(load, config) && load.stall_samples >= config.min_stall_samples &&
           share_of(load) >= config.min_search_share;
  }
  std::string words_of(const LoadEvidence& load) const {
    std::string words = fmt::format("{:.0f} of {:.0f} samples ({:.0f} %) stand behind the load at 0x{:x}",
                                    load.stall_samples, samples, 100 * share_of(load), load.load.value);
    if (load.addresses > 0) {
      words += fmt::format(", addresses known for {}, over {:.1f} MiB on {}{} pages", load.addresses,
                           static_cast<double>(load.address_span_bytes) / (1 << 20), load.distinct_pages,
                           load.distinct_pages >= kMaxPagesSeen ? "+" : "");
    }
    return words;
  }

  double samples;
  bool stand_out;
};

// What the plans of all changes of a load's loop have in common.
template <typename Plan>
Plan plan_for(const LoadEvidence& load, const Stalls& stalls) {
  Plan plan;
  plan.hint.load = load.load;
  plan.hint.stall_share = stalls.share_of(load);
  plan.estimated_gain = stalls.share_of(load);
  plan.reason = stalls.words_of(load);
  return plan;
}

// Loads worth a hint. Those whose trial was won keep their prefetch in any new version; those that lost stay
// without.
std::vector<PrefetchPlan> plan_prefetches(const FunctionEvidence& e, const Stalls& stalls,
                                          const PolicyConfig& config) {
  std::vector<PrefetchPlan> plans;
  if (!config.prefetch || stalls.samples <= 0) return plans;
  for (const LoadEvidence& load : e.loads) {
    if (plans.size() >= config.max_prefetches) break;
    if (!in_use(load.outcome) && !(untried(load, e, config) && stalls.worth_a_change(load, config))) continue;
    plans.push_back(plan_for<PrefetchPlan>(load, stalls));
  }
  return plans;
}

// Loads whose searches are worth interleaving, should they have some: only the compiler sees that. A prefetch
// that was won stays instead, or jump pointers.
std::vector<InterleavePlan> plan_interleaves(const FunctionEvidence& e, const Stalls& stalls,
                                             const PolicyConfig& config) {
  std::vector<InterleavePlan> plans;
  if (!config.interleave || stalls.samples <= 0) return plans;
  for (const LoadEvidence& load : e.loads) {
    if (plans.size() >= config.max_prefetches) break;
    const bool fresh = is_open(load.interleave, reopened(load, e, config)) &&
                       load.outcome != PrefetchOutcome::kKept && load.jump != PrefetchOutcome::kKept &&
                       (stalls.worth_a_change(load, config) || stalls.worth_a_search(load, config));
    if (!in_use(load.interleave) && !fresh) continue;
    InterleavePlan plan = plan_for<InterleavePlan>(load, stalls);
    plan.estimated_gain *= 1 - 1.0 / plan.hint.initial_width;
    plans.push_back(std::move(plan));
  }
  return plans;
}

// Loads whose loop is worth remembering where it goes, should it follow pointers. Where a prefetch or
// interleaved searches were won, there is nothing to follow.
std::vector<JumpPlan> plan_jumps(const FunctionEvidence& e, const Stalls& stalls,
                                 const PolicyConfig& config) {
  std::vector<JumpPlan> plans;
  if (!config.jump_pointers || stalls.samples <= 0) return plans;
  for (const LoadEvidence& load : e.loads) {
    if (plans.size() >= config.max_prefetches) break;
    const bool fresh = is_open(load.jump, reopened(load, e, config)) &&
                       load.outcome != PrefetchOutcome::kKept && load.interleave != PrefetchOutcome::kKept &&
                       stalls.worth_a_change(load, config);
    if (!in_use(load.jump) && !fresh) continue;
    plans.push_back(plan_for<JumpPlan>(load, stalls));
  }
  return plans;
}

// The changes of loops that go with any version.
void plan_loops(FunctionPlan& plan, const FunctionEvidence& e, const PolicyConfig& config) {
  const Stalls stalls(e, config);
  plan.prefetches = plan_prefetches(e, stalls, config);
  plan.interleaves = plan_interleaves(e, stalls, config);
  plan.jumps = plan_jumps(e, stalls, config);
}

struct LikelyTarget {
  uint32_t element;
  double share;
  std::string words;
};

// Of the calls at a site since optimized code was published, in records: those to targets that it has in
// place. They are not recorded there; they are what is left of the calls that baseline code made a second,
// which optimized code makes faster.
double foreseen_records(const CallEvidence& call, const FunctionEvidence& e, const PolicyConfig& config) {
  // Records do not decay, as the time in which they were made does not.
  const double seconds = std::max(e.seconds_baseline, e.seconds_run_baseline);
  if (call.records == 0 || seconds <= 0) return 0;
  const double a_second = config.optimized_speedup * static_cast<double>(call.records) / seconds;
  return std::max(0.0, a_second * e.seconds_since_published - static_cast<double>(call.unforeseen_records));
}

// The targets worth a comparison, the likeliest first: of calls that the published code did not foresee, and
// of what was seen before.
std::vector<LikelyTarget> likely_targets(const CallEvidence& call, const FunctionEvidence& e,
                                         const PolicyConfig& config) {
  std::vector<LikelyTarget> likely;
  const bool later = static_cast<double>(call.unforeseen_records) >= config.min_call_records;
  const auto unforeseen = static_cast<double>(call.unforeseen_records);
  // An estimate: what was seen before is not dropped for it where there is room.
  constexpr double kMostUnforeseen = 0.8;
  const double weight =
      !later ? 0
      : call.records == 0
          ? 1
          : std::min(kMostUnforeseen, unforeseen / (unforeseen + foreseen_records(call, e, config)));
  const auto add = [&](const std::vector<CallEvidence::Target>& targets, uint64_t records, double part,
                       const char* where) {
    if (static_cast<double>(records) < config.min_call_records) return;
    for (const CallEvidence::Target& target : targets) {
      const double share = part * static_cast<double>(target.records) / static_cast<double>(records);
      const auto same = std::find_if(likely.begin(), likely.end(), [&](const LikelyTarget& other) {
        return other.element == target.element;
      });
      if (same != likely.end()) {
        same->share += share;
        continue;
      }
      likely.push_back({target.element, share,
                        fmt::format("{} {} ({} of {}{})", call.by_reference ? "function" : "element",
                                    target.element, target.records, records, where)});
    }
  };
  if (later) add(call.unforeseen, call.unforeseen_records, weight, " not foreseen");
  add(call.targets, call.records, 1 - weight, "");
  std::stable_sort(likely.begin(), likely.end(),
                   [](const LikelyTarget& a, const LikelyTarget& b) { return a.share > b.share; });
  std::erase_if(likely, [&](const LikelyTarget& target) { return target.share < config.min_call_share; });
  if (likely.size() > config.max_call_targets) likely.resize(config.max_call_targets);
  return likely;
}

}  // namespace

std::vector<CallPlan> plan_calls(const FunctionEvidence& e, const PolicyConfig& config) {
  std::vector<CallPlan> plans;
  if (!config.inline_calls || e.outcomes.inline_calls == PrefetchOutcome::kRolledBack) return plans;
  for (const CallEvidence& call : e.calls) {
    CallPlan plan;
    plan.hint.call = call.call;
    plan.hint.by_reference = call.by_reference;
    double coverage = 0;
    std::string words;
    for (const LikelyTarget& target : likely_targets(call, e, config)) {
      plan.hint.targets.push_back({target.element, target.share});
      coverage += target.share;
      words += (words.empty() ? " " : ", ") + target.words;
    }
    if (plan.hint.targets.empty() || coverage < config.min_call_coverage) continue;
    plan.reason = fmt::format("the call at 0x{:x} goes through{}", call.call.value, words);
    plans.push_back(std::move(plan));
  }
  return plans;
}

bool plan_split(const FunctionEvidence& e, const PolicyConfig& config) {
  return config.code_layout && e.outcomes.split_cold != PrefetchOutcome::kRolledBack &&
         static_cast<double>(e.module_bytes) > config.itlb_reach_bytes;
}

void plan_version(FunctionPlan& plan, const FunctionEvidence& e, const PolicyConfig& config) {
  plan.calls = plan_calls(e, config);
  plan.branches = plan_branches(e, config);
  plan.values = plan_values(e, config);
  plan.split_cold = plan_split(e, config);
}

namespace {

// Not called so far, and not yet seen to sit in a loop: a function that takes a small part of the time,
// between calls of others, is not waited for as long as it takes to run that long itself.
bool may_be_called_soon(const FunctionEvidence& e, const PolicyConfig& config) {
  return e.seconds_watched < config.max_seconds_to_wait_for_entry &&
         (e.seconds_watched < config.min_seconds_watched ||
          e.all_seconds_watched < config.max_all_seconds_to_wait_for_entry);
}

bool left_behind(const FunctionEvidence& e, const PolicyConfig& config) {
  return e.samples_left_behind >= config.min_samples_left_behind;
}

// Loops that run on in an optimized version before the published one.
bool stayed(const FunctionEvidence& e, const PolicyConfig& config) {
  return config.follow_shifts && e.samples_stayed >= config.min_samples_left_behind;
}

// The hottest loop, and of the loops around it as many as may be, outermost first. Where optimized code runs it can be
// left by some loops only, of which the new code then has the innermost around the hottest one. None for a function
// that is entered again anyway: its next call runs the new code.
std::vector<LoopIndex> plan_osr_loops(const FunctionEvidence& e, const PolicyConfig& config) {
  if (e.entered == Entered::kAgain && !left_behind(e, config) && !stayed(e, config)) return {};
  const LoopEvidence* hottest = nullptr;
  for (const LoopEvidence& loop : e.loops) {
    if (loop.samples <= 0) continue;
    // An inner loop that has nearly all of its parent's samples is the place where the time goes.
    if (!hottest || loop.samples > hottest->samples ||
        (loop.depth > hottest->depth && loop.samples >= 0.5 * hottest->samples && loop.parent >= 0 &&
         e.loops[loop.parent].loop == hottest->loop)) {
      hottest = &loop;
    }
  }
  std::vector<LoopIndex> chain;
  for (const LoopEvidence* loop = hottest; loop;
       loop = loop->parent >= 0 ? &e.loops[loop->parent] : nullptr) {
    chain.push_back(loop->loop);
  }
  if (e.optimized && !left_behind(e, config)) {
    const auto exit = std::find_if(chain.begin(), chain.end(), [&](LoopIndex loop) {
      return std::find(e.exit_loops.begin(), e.exit_loops.end(), loop) != e.exit_loops.end();
    });
    if (exit != chain.end()) return {*exit};
  }
  std::reverse(chain.begin(), chain.end());
  // The innermost ones are reached soonest; outer ones give better code. Keep the inner end of the chain.
  if (chain.size() > config.max_osr_loops) chain.erase(chain.begin(), chain.end() - config.max_osr_loops);
  return chain;
}

}  // namespace

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

namespace {

// Records of calls that a new version would have targets in place for and the published one has not, less
// those for which it would be the other way round.
double unforeseen_records(const FunctionEvidence& e, const PolicyConfig& config) {
  double records = 0;
  for (const CallEvidence& call : e.calls) {
    if (static_cast<double>(call.unforeseen_records) < config.min_call_records) continue;
    const double foreseen = foreseen_records(call, e, config);
    double share = 0;
    for (const LikelyTarget& target : likely_targets(call, e, config)) share += target.share;
    records += std::max(0.0, share * (foreseen + static_cast<double>(call.unforeseen_records)) - foreseen);
  }
  return records;
}

bool was_steady(const FunctionEvidence& e, const PolicyConfig& config) {
  return config.follow_shifts && e.seconds_since_published >= config.min_seconds_steady;
}

// Whether seeing it again pays. `gain`: by code made for what is seen then, over as long as the present one ran.
bool plan_observation(FunctionPlan& plan, const FunctionEvidence& e, const PolicyConfig& config,
                      double gain) {
  const double cost = config.seconds_observed * (config.optimized_speedup - 1) +
                      config.background_cost * compile_seconds(e, config);
  plan.alternatives.push_back({"back to baseline code, to be seen again, and recompile", cost, gain});
  if (gain > cost) plan.action = Action::kObserve;
  return gain > cost;
}

}  // namespace

double compile_seconds(double known, uint32_t code_bytes, const PolicyConfig& config) {
  return known > 0 ? known : config.compile_fixed_seconds + config.compile_seconds_per_byte * code_bytes;
}

double compile_seconds(const FunctionEvidence& e, const PolicyConfig& config) {
  return compile_seconds(e.compile_seconds, e.code_bytes, config);
}

bool may_pay_in_flat_profile(double seconds_run, double samples_run, double compile_seconds,
                             const PolicyConfig& config) {
  return samples_run >= config.min_flat_samples &&
         seconds_run * (1 - 1 / config.optimized_speedup) >=
             config.min_flat_return * config.background_cost * compile_seconds;
}

namespace {

// Of a function that has too few samples of late to say what its loads and loops are like, and is compiled as it is.
void plan_in_flat_profile(FunctionPlan& plan, const FunctionEvidence& e, const PolicyConfig& config) {
  const double cost = config.background_cost * compile_seconds(e, config);
  const double gain = e.seconds_run_baseline * (1 - 1 / config.optimized_speedup);
  if (!may_pay_in_flat_profile(e.seconds_run_baseline, e.samples_run_baseline, compile_seconds(e, config),
                               config)) {
    plan.reason =
        fmt::format("{:.0f} of {:.0f} samples: too few to judge", e.samples_baseline, e.total_samples);
    return;
  }
  plan.alternatives.push_back({"optimize for the whole run's sake", cost, gain});
  // Its loop may be all that ever runs of it, which only samples of late would tell.
  if (e.entered != Entered::kAgain) {
    plan.reason =
        fmt::format("ran {:.1f} ms in all, and was not seen entered again", 1e3 * e.seconds_run_baseline);
    return;
  }
  plan.action = Action::kOptimize;
  plan.calls = plan_calls(e, config);
  plan.branches = plan_branches(e, config);
  plan.split_cold = plan_split(e, config);
  plan.reason = fmt::format(
      "{:.0f} samples in baseline code in the whole run ({:.1f} ms), {:.1f} of late: {:.1f} ms to gain "
      "against {:.1f} ms "
      "of compiling",
      e.samples_run_baseline, 1e3 * e.seconds_run_baseline, e.samples_baseline, 1e3 * gain, 1e3 * cost);
}

}  // namespace

FunctionPlan decide(const FunctionEvidence& e, const PolicyConfig& config) {
  FunctionPlan plan;
  plan.function = e.function;
  double samples = function_samples(e);
  const double compile_cost = config.background_cost * compile_seconds(e, config);

  if (!e.optimized) {
    double gain = e.seconds_baseline * (1 - 1 / config.optimized_speedup);
    plan.alternatives.push_back({"nothing", 0, 0});
    plan.alternatives.push_back({"optimize", compile_cost, gain});
    FunctionPlan loops;
    plan_loops(loops, e, config);
    const auto offer = [&](const char* what, const auto& plans) {
      if (plans.empty()) return;
      double share = 0;
      for (const auto& p : plans) share += p.estimated_gain;
      plan.alternatives.push_back(
          {fmt::format(fmt::runtime(what), plans.size(), plans.size() == 1 ? "" : "s"), compile_cost,
           gain + e.seconds_baseline / config.optimized_speedup * share});
    };
    offer("optimize + prefetch {} load{}", loops.prefetches);
    offer("optimize + jump pointers for {} load{}, where they follow pointers", loops.jumps);
    offer("optimize + interleave the searches of {} load{}, where they are searches", loops.interleaves);
    std::vector<BranchPlan> branches = plan_branches(e, config);
    offer_forms(plan, branches, compile_cost, gain);
    std::vector<ValuePlan> values = plan_values(e, config);
    offer_values(plan, values, compile_cost, gain);
    if (!config.optimize) {
      plan.reason = "decision 'optimize' is switched off";
      return plan;
    }
    if (e.samples_baseline < config.min_samples) {
      plan_in_flat_profile(plan, e, config);
      return plan;
    }
    if (gain <= compile_cost) {
      plan.reason =
          fmt::format("ran {:.1f} ms so far: {:.1f} ms to gain against {:.1f} ms, the cost of compiling",
                      1e3 * e.seconds_baseline, 1e3 * gain, 1e3 * compile_cost);
      return plan;
    }
    double top_share = 0;
    for (const LoadEvidence& load : e.loads) {
      if (samples > 0 && !hopeless(load, config))
        top_share = std::max(top_share, load.stall_samples / samples);
    }
    if ((config.prefetch || config.interleave || config.jump_pointers) &&
        top_share >= config.stall_share_to_wait && samples < config.min_samples_with_stalls &&
        e.seconds_baseline < config.max_seconds_to_wait) {
      plan.action = Action::kWait;
      plan.reason = fmt::format(
          "hot, and a load holds {:.0f} % of {:.0f} samples: waiting for {:.0f} samples to name the stalls",
          100 * top_share, samples, config.min_samples_with_stalls);
      return plan;
    }
    if (const BranchEvidence* branch = not_judged_yet(e, config);
        branch != nullptr && e.seconds_baseline < config.max_seconds_to_wait_for_outcomes) {
      plan.action = Action::kWait;
      plan.reason = fmt::format(
          "hot, and the branch at 0x{:x} goes both ways, taken {:.0f} % of {} times: waiting for up to "
          "{:.0f} ms "
          "to see how well it is predicted",
          branch->branch.value, 100 * branch->taken_share(), branch->seen(),
          1e3 * config.max_seconds_to_wait_for_outcomes);
      return plan;
    }
    if (const BranchEvidence* choice = not_seen_often_yet(e, config);
        choice != nullptr && e.seconds_baseline < config.max_seconds_to_wait_for_selects) {
      plan.action = Action::kWait;
      plan.reason = fmt::format(
          "hot, and the select at 0x{:x} went the same way in nearly all of {} times seen: waiting for up to "
          "{:.0f} ms for "
          "{:.0f}",
          choice->branch.value, choice->seen(), 1e3 * config.max_seconds_to_wait_for_selects,
          config.min_branch_seen);
      return plan;
    }
    if (const ValueEvidence* operand = not_usual_yet(e, config);
        operand != nullptr && e.seconds_baseline < config.max_seconds_to_wait_for_values) {
      plan.action = Action::kWait;
      plan.reason = fmt::format(
          "hot, and the {} at 0x{:x} is {} in {} of {} records: waiting for up to {:.0f} ms for {:.0f} "
          "records",
          to_string(operand->site), operand->at.value, operand->values.front().value,
          operand->values.front().records, operand->records, 1e3 * config.max_seconds_to_wait_for_values,
          config.min_value_records);
      return plan;
    }
    if (e.entered == Entered::kNotYet && may_be_called_soon(e, config) &&
        !plan_osr_loops(e, config).empty()) {
      plan.action = Action::kWait;
      plan.reason =
          fmt::format("hot, and not entered in {:.1f} ms: waiting for its next call for up to {:.1f} ms",
                      1e3 * e.seconds_watched, 1e3 * config.max_seconds_to_wait_for_entry);
      return plan;
    }
    plan.action = Action::kOptimize;
    plan.prefetches = std::move(loops.prefetches);
    plan.interleaves = std::move(loops.interleaves);
    plan.jumps = std::move(loops.jumps);
    plan.calls = plan_calls(e, config);
    plan.branches = std::move(branches);
    plan.values = std::move(values);
    plan.split_cold = plan_split(e, config);
    plan.osr_loops = plan_osr_loops(e, config);
    // Of a loop with prefetches the whole function says whether it is long enough.
    plan.loop_entries_only =
        e.entered == Entered::kNotYet && !plan.osr_loops.empty() && plan.prefetches.empty();
    plan.reason = fmt::format(
        "{:.0f} of {:.0f} samples in baseline code ({:.1f} ms): {:.1f} ms to gain against {:.1f} ms of "
        "compiling",
        e.samples_baseline, e.total_samples, 1e3 * e.seconds_baseline, 1e3 * gain, 1e3 * compile_cost);
    if (plan.loop_entries_only) plan.reason += "; not called again: its running loop alone";
    return plan;
  }

  plan.alternatives.push_back({"nothing", 0, 0});
  // Optimized already: is it called again, of which only a running loop was?
  if (e.loop_entries_only && e.entered == Entered::kAgain && config.optimize &&
      may_compile_again(e, config)) {
    const double gain = (e.seconds_baseline + e.seconds_optimized) * (1 - 1 / config.optimized_speedup);
    plan.alternatives.push_back({"compile the whole function", compile_cost, gain});
    if (gain > compile_cost) {
      plan.action = Action::kReoptimize;
      plan_loops(plan, e, config);
      plan_version(plan, e, config);
      if (left_behind(e, config)) plan.osr_loops = plan_osr_loops(e, config);
      plan.reason = "called again: all of it, of which only a running loop was optimized";
      return plan;
    }
  }
  // Did a loop stay behind that has no way out of baseline code?
  if (const double gain = e.seconds_left_behind * (1 - 1 / config.optimized_speedup);
      config.optimize && left_behind(e, config) && may_compile_again(e, config)) {
    plan.alternatives.push_back({"recompile with an entry for the loop left behind", compile_cost, gain});
    plan.osr_loops = plan_osr_loops(e, config);
    if (gain > compile_cost && !plan.osr_loops.empty()) {
      plan.action = Action::kReoptimize;
      plan_loops(plan, e, config);
      plan_version(plan, e, config);
      plan.reason = fmt::format(
          "{:.0f} samples ({:.1f} ms) in baseline code since optimized code was published: a loop is to be "
          "left for it",
          e.samples_left_behind, 1e3 * e.seconds_left_behind);
      return plan;
    }
    plan.osr_loops.clear();
  }
  // Does a loop run on in code that was replaced, and can leave it?
  if (const double gain = e.seconds_stayed * config.min_reoptimize_share;
      config.optimize && stayed(e, config) && may_compile_again(e, config)) {
    plan.alternatives.push_back({"recompile with an entry for the loop that stayed", compile_cost, gain});
    plan.osr_loops = plan_osr_loops(e, config);
    // Where the new code has such an entry already, the loop has only not come by it yet.
    const bool has_entry = std::all_of(plan.osr_loops.begin(), plan.osr_loops.end(), [&](LoopIndex loop) {
      return std::find(e.entry_loops.begin(), e.entry_loops.end(), loop) != e.entry_loops.end();
    });
    if (gain > compile_cost && !has_entry) {
      plan.action = Action::kReoptimize;
      plan_loops(plan, e, config);
      plan_version(plan, e, config);
      plan.reason = fmt::format(
          "{:.0f} samples ({:.1f} ms) in optimized code that was replaced: a loop is to leave it for the new",
          e.samples_stayed, 1e3 * e.seconds_stayed);
      return plan;
    }
    plan.osr_loops.clear();
  }
  // Do its calls go elsewhere by now?
  if (const double records = unforeseen_records(e, config);
      config.inline_calls && e.outcomes.inline_calls != PrefetchOutcome::kRolledBack &&
      records >= config.min_call_records && may_compile_again(e, config) &&
      e.seconds_since_published >= config.min_seconds_published) {
    const double gain = records * config.calls_per_record * config.seconds_per_unforeseen_call;
    plan.alternatives.push_back({"recompile with the targets that calls have now", compile_cost, gain});
    const bool pays = gain > compile_cost && gain >= config.min_unforeseen_share * e.seconds_since_published;
    // The records of old do not say how many of the calls that were foreseen there still are.
    if (pays && was_steady(e, config) && plan_observation(plan, e, config, gain)) {
      plan.reason = fmt::format(
          "{:.0f} records of calls to targets that are not in place, about {:.1f} ms of {:.1f} ms since "
          "optimized code "
          "was published: what it was made for is gone",
          records, 1e3 * gain, 1e3 * e.seconds_since_published);
      return plan;
    }
    if (pays) plan.calls = plan_calls(e, config);
    if (!plan.calls.empty()) {
      plan.action = Action::kReoptimize;
      plan_loops(plan, e, config);
      plan_version(plan, e, config);
      plan.osr_loops = plan_osr_loops(e, config);
      plan.reason = fmt::format(
          "{:.0f} records of calls to targets that are not in place, about {:.1f} ms of {:.1f} ms since "
          "optimized "
          "code was published",
          records, 1e3 * gain, 1e3 * e.seconds_since_published);
      return plan;
    }
  }
  // Does it spend its time elsewhere by now, and was made for what it was like?
  if (was_steady(e, config) && e.moved_share >= config.min_moved_share && may_compile_again(e, config)) {
    const bool made_for = !plan_branches(e, config).empty() || !plan_calls(e, config).empty() ||
                          !plan_values(e, config).empty();
    const double gain = e.seconds_since_published * e.moved_share * config.min_reoptimize_share;
    if (made_for && plan_observation(plan, e, config, gain)) {
      plan.reason = fmt::format(
          "{:.0f} % of the last samples stand where the first ones in this code did not: what it was made "
          "for is gone",
          100 * e.moved_share);
      return plan;
    }
  }
  // Is there a stall that nobody has tried to remove?
  if ((!config.prefetch && !config.interleave && !config.jump_pointers) || !may_compile_again(e, config) ||
      e.samples_optimized < config.min_reoptimize_samples) {
    plan.reason = !may_compile_again(e, config) ? fmt::format("compiled {} times already", e.optimize_count)
                                                : "optimized; no evidence for more";
    return plan;
  }
  double untried_share = 0, untried_recently = 0;
  for (const LoadEvidence& load : e.loads) {
    if (!untried(load, e, config) || hopeless(load, config)) continue;
    untried_share += load.stall_samples_optimized / e.samples_optimized;
    untried_recently += recent_share(load, e, config);
  }
  // What changed a second ago counts as it is now.
  const bool changed = untried_recently > untried_share;
  const double share = changed ? untried_recently : untried_share;
  const double gain = share * e.seconds_optimized;
  const std::string words =
      changed ? fmt::format(
                    "loads not tried yet, or no longer what they were, hold {:.0f} % of the last {:.0f} "
                    "samples in optimized code, {:.0f} % of {:.0f}",
                    100 * share, e.samples_recent, 100 * untried_share, e.samples_optimized)
              : fmt::format("loads not tried yet hold {:.0f} % of {:.0f} samples in optimized code",
                            100 * share, e.samples_optimized);
  plan.alternatives.push_back({"recompile with prefetches, or searches interleaved", compile_cost, gain});
  if (share < config.min_reoptimize_share || gain <= compile_cost) {
    plan.reason = words + ": not worth a compile";
    return plan;
  }
  plan_loops(plan, changed ? recent_view(e) : e, config);
  const auto is_new = [&](const auto& p) {
    return std::any_of(e.loads.begin(), e.loads.end(),
                       [&](const LoadEvidence& l) { return l.load == p.hint.load && untried(l, e, config); });
  };
  if (std::none_of(plan.prefetches.begin(), plan.prefetches.end(), is_new) &&
      std::none_of(plan.interleaves.begin(), plan.interleaves.end(), is_new) &&
      std::none_of(plan.jumps.begin(), plan.jumps.end(), is_new)) {
    plan.prefetches.clear();
    plan.interleaves.clear();
    plan.jumps.clear();
    plan.reason = "no single untried load is worth a prefetch";
    return plan;
  }
  plan.action = Action::kReoptimize;
  plan_version(plan, e, config);
  plan.osr_loops = plan_osr_loops(e, config);
  plan.reason = words;
  return plan;
}

bool same_plan(const FunctionPlan& a, const FunctionPlan& b) {
  auto same_hint = [](const auto& x, const auto& y) { return x.hint.load == y.hint.load; };
  return a.action == b.action && a.function == b.function && a.osr_loops == b.osr_loops &&
         a.loop_entries_only == b.loop_entries_only && a.split_cold == b.split_cold &&
         std::equal(a.prefetches.begin(), a.prefetches.end(), b.prefetches.begin(), b.prefetches.end(),
                    same_hint) &&
         std::equal(a.interleaves.begin(), a.interleaves.end(), b.interleaves.begin(), b.interleaves.end(),
                    same_hint) &&
         std::equal(a.jumps.begin(), a.jumps.end(), b.jumps.begin(), b.jumps.end(), same_hint) &&
         std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(),
                    [](const CallPlan& x, const CallPlan& y) { return x.hint.call == y.hint.call; }) &&
         std::equal(a.branches.begin(), a.branches.end(), b.branches.begin(), b.branches.end(),
                    [](const BranchPlan& x, const BranchPlan& y) {
                      return x.hint.branch == y.hint.branch && x.hint.form == y.hint.form &&
                             x.hint.weigh == y.hint.weigh && x.hint.one_sided == y.hint.one_sided;
                    }) &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    [](const ValuePlan& x, const ValuePlan& y) {
                      return x.hint.at == y.hint.at && x.hint.value == y.hint.value;
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
  for (LoopIndex loop : plan.osr_loops) episode.osr_loops.push_back(loop.value);
  for (const PrefetchPlan& p : plan.prefetches) episode.prefetch_loads.push_back(p.hint.load.value);
  for (const InterleavePlan& p : plan.interleaves) episode.interleave_loads.push_back(p.hint.load.value);
  for (const JumpPlan& p : plan.jumps) episode.jump_loads.push_back(p.hint.load.value);
  episode.reason = plan.reason;
  for (const CallPlan& c : plan.calls) episode.inlined_calls.push_back(c.hint.call.value);
  for (const PrefetchPlan& p : plan.prefetches) episode.reason += "; " + p.reason;
  // Usually the same loads: once is enough.
  for (const InterleavePlan& p : plan.interleaves)
    if (episode.reason.find(p.reason) == std::string::npos) episode.reason += "; " + p.reason;
  for (const JumpPlan& p : plan.jumps)
    if (episode.reason.find(p.reason) == std::string::npos) episode.reason += "; " + p.reason;
  for (const CallPlan& c : plan.calls) episode.reason += "; " + c.reason;
  for (const BranchPlan& b : plan.branches) {
    using Form = jit::BranchHint::Form;
    if (b.hint.weigh) episode.weighed_branches.push_back(b.hint.branch.value);
    if (b.hint.form == Form::kSelect) episode.select_branches.push_back(b.hint.branch.value);
    if (b.hint.form == Form::kBranch) episode.branch_selects.push_back(b.hint.branch.value);
    if (!b.reason.empty()) episode.reason += "; " + b.reason;
  }
  for (const ValuePlan& v : plan.values) {
    episode.value_sites.push_back(v.hint.at.value);
    episode.reason += "; " + v.reason;
  }
  episode.split_cold = plan.split_cold;
  episode.alternatives = describe_alternatives(plan);
  return episode;
}

bool replays(const Episode& episode, const PolicyConfig& config) {
  const Episode again =
      episode.earlier
          ? make_episode(episode.evidence, decide_start(episode.evidence, *episode.earlier, config).plan)
          : make_episode(episode.evidence, decide(episode.evidence, config));
  return again.action == episode.action && again.osr_loops == episode.osr_loops &&
         again.prefetch_loads == episode.prefetch_loads &&
         again.interleave_loads == episode.interleave_loads && again.jump_loads == episode.jump_loads &&
         again.inlined_calls == episode.inlined_calls && again.weighed_branches == episode.weighed_branches &&
         again.select_branches == episode.select_branches && again.branch_selects == episode.branch_selects &&
         again.value_sites == episode.value_sites && again.split_cold == episode.split_cold;
}

}  // namespace hindsight::feedback
