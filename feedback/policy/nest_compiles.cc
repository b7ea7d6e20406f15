// Decides by place: which loop of a function is compiled next as a nest (jit/code/unit.h), for the first time or again.
// Baseline code calls a nest wherever it comes to the loop, and goes on after it. So nests live side by side, and each
// is decided about by itself. What was compiled before, of the function or of other loops, counts for nothing.
//
// The place is the hottest loop in baseline code that has no code of its own. Its nest is that loop, or one around it that
// compiles quickly, or in little more time, and is seen to iterate. For a nest is entered at its loop's header only. It is asked what a function
// is asked in front of its first compile, about what was seen of the nest alone.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "feedback/policy/changes/loads.h"
#include "feedback/policy/questions.h"
#include "feedback/policy/stakes.h"

namespace hindsight::feedback {
namespace {

constexpr double kSamplesToIterate = 2;     // of a loop outside of its inner one, which say that it iterates
constexpr double kSecondsToIterate = 1e-3;  // or so long in the whole run
constexpr uint64_t kTripsToIterate = 2;     // or so many times that one ended
constexpr uint64_t kBranchesToIterate = 2;  // or so many branches, and this share of all in both
constexpr double kShareOfBranches = 0.001;
constexpr double kShareToWait = 0.5;   // of the samples stall: the loop around may take longer to compile
constexpr double kWaitingNests = 4;    // so many times as long
constexpr double kShareOfPlace = 0.1;  // of the samples: a loop with less is no place to wait for

bool asks_for_callees(const Case& c) {
  return std::ranges::any_of(c.plan.candidates, [&](const Candidate& candidate) {
    return jit::is_of_load(candidate.kind()) && std::ranges::any_of(c.e.loads, [&](const LoadEvidence& load) {
             return load.callee && load.load == candidate.at();
           });
  });
}

class Nests {
 public:
  Nests(const FunctionEvidence& e, const PolicyConfig& config)
      : e_(e), config_(config), sums_(e.loops.size()) {
    // Children come after their parents.
    for (size_t i = e.loops.size(); i-- > 0;) {
      const LoopEvidence& loop = e.loops[i];
      Sum& sum = sums_[i];
      known_ |= loop.code_bytes != 0;
      has_any_ |= loop.has_nest;
      sum.samples += loop.samples_baseline;
      sum.seconds += loop.seconds_baseline;
      sum.seconds_run += loop.seconds_run_baseline;
      sum.samples_optimized += loop.samples_optimized;
      sum.seconds_optimized += loop.seconds_optimized;
      if (loop.parent < 0) continue;
      Sum& parent = sums_[loop.parent];
      parent.samples += sum.samples;
      parent.seconds += sum.seconds;
      parent.seconds_run += sum.seconds_run;
      parent.samples_optimized += sum.samples_optimized;
      parent.seconds_optimized += sum.seconds_optimized;
      parent.around_one_under_way |= loop.under_way || sum.around_one_under_way;
    }
    for (size_t i = 0; i < e.loops.size(); ++i) {
      const LoopEvidence& loop = e.loops[i];
      Sum& sum = sums_[i];
      sum.under_way = loop.under_way || (loop.parent >= 0 && sums_[loop.parent].under_way);
      sum.waits = loop.parent >= 0 && (sums_[loop.parent].waits || is_awaited(e.loops[loop.parent]));
      sum.in_code = loop.parent >= 0 && ((has_code(loop.parent) && !e.loops[loop.parent].only_for_callees) ||
                                         sums_[loop.parent].in_code);
    }
  }

  // Something is known of the loops as units of compiling.
  bool known() const { return known_; }
  bool has_any() const { return has_any_; }

  // Loops with baseline samples of late in none of their inner loops, the hottest first.
  std::vector<int32_t> places() const {
    std::vector<int32_t> places;
    for (size_t i = 0; i < e_.loops.size(); ++i)
      if (e_.loops[i].samples_baseline > 0) places.push_back(static_cast<int32_t>(i));
    std::stable_sort(places.begin(), places.end(), [&](int32_t a, int32_t b) {
      return e_.loops[a].samples_baseline > e_.loops[b].samples_baseline;
    });
    return places;
  }
  // Its code is there or being made: by the next iteration of the loop, or of the one around it, it is entered. What takes
  // long, for the sake of what a loop calls, is not waited for by loops inside that are hot themselves.
  bool is_served(int32_t place) const { return has_code(place) || sums_[place].waits; }
  // The loop whose nest is to serve it; -1: none can be a nest.
  int32_t root_of(int32_t place) const {
    int32_t root = root_near(place);
    if (root < 0) return root;
    // Samples that are spread over several loops belong to the one around them. If that takes long to compile, there have
    // to be so many that each of those loops would have its own by now.
    for (int32_t parent = next(root); parent >= 0 && sums_[root].samples < enough(root);
         parent = next(root)) {
      if (expected(parent) > config_.most_nest_seconds &&
          kShareOfPlace * sums_[parent].samples < config_.min_samples)
        break;
      root = parent;
    }
    return root;
  }
  // The same, of a place that is hot by itself.
  int32_t root_near(int32_t place) const {
    int32_t root = place;
    while (root >= 0 && !can_be_nest(root)) root = has_code(root) ? -1 : e_.loops[root].parent;
    if (root < 0) return root;
    // A loop around it that adds little is waited for: what is looked up ahead, or side by side, is in that one.
    const double most = most_seconds_around(root);
    const double cheap = std::max(config_.most_nest_seconds, config_.whole_over_nest * expected(root));
    for (int32_t parent = next(root); parent >= 0; parent = next(root)) {
      if (expected(parent) > most || !iterates(parent, root)) break;
      if (expected(parent) > cheap && !iterates_for_sure(parent, root)) break;
      root = parent;
    }
    return root;
  }
  // The loop around a nest, which calls it: in baseline code for long, if never for much of the time. Or hardly at all, and nothing
  // helped what the nest stalls on.
  bool grows(int32_t root) const {
    const bool ran_long = e_.loops[root].seconds_run_baseline * (1 - 1 / config_.optimized_speedup) >=
                          config_.min_flat_return * config_.background_cost * expected(root);
    return has_nest_to_take_in(root, [&](int32_t nest) { return ran_long || may_help(root, nest); });
  }
  // The loop around it could be compiled in its place, and was not seen to iterate so far.
  bool may_take_in_more(int32_t root) const {
    const int32_t parent = next(root);
    return parent >= 0 && expected(parent) <= most_seconds_around(root);
  }
  // What is known of the nest, as of a function.
  FunctionEvidence view_of(int32_t root) const;
  bool has_nest_inside(int32_t root) const {
    const LoopEvidence& around = e_.loops[root];
    return std::any_of(e_.loops.begin(), e_.loops.end(), [&](const LoopEvidence& loop) {
      return loop.has_nest && around.offset < loop.offset && loop.offset < around.end;
    });
  }
  // In code that was to be left by now, a stale frame needs more.
  double enough(int32_t root) const {
    return e_.optimized || sums_[root].in_code ? config_.min_samples_left_behind : config_.min_samples;
  }
  // Not the whole function, which is called again: then its next call runs all of its code.
  bool is_unit(int32_t root) const {
    if (e_.optimized) return e_.samples_left_behind >= config_.min_samples_left_behind;
    if (e_.failed_compiles != 0) return true;
    return e_.entered != Entered::kAgain ||
           (!is_small(root) && 2 * sums_[root].samples >= e_.samples_baseline) ||
           has_nest_to_take_in(root, [&](int32_t nest) { return may_help(root, nest); });
  }
  // Compiling the function takes hardly longer than compiling the nest. Whatever compiles take at the time: a function is
  // not another one while the machine is busy.
  bool is_small(int32_t root) const {
    const LoopEvidence& loop = e_.loops[root];
    const double whole = expected_seconds(e_.code_bytes, e_.loops.size(), 1, config_);
    return whole <= config_.small_function_seconds ||
           whole <=
               config_.whole_over_nest * expected_seconds(loop.code_bytes, loop.inner_loops + 1, 1, config_);
  }

  FunctionPlan first_compile(int32_t root) const;
  // Of the loop around a call in baseline code. Hardly any of the time is its own: it calls what waits for memory, which is
  // inlined for that. None: it does not, or it is not for such a loop to help.
  std::optional<FunctionPlan> compile_for_callee(const CalleeEvidence& callee) const;
  // Of a nest whose first code came early. None: too little is known yet, or not worth a compile.
  std::optional<FunctionPlan> what_to_try(int32_t root) const;
  // None: nothing asks for it.
  std::optional<FunctionPlan> later_compile(int32_t root) const;
  // The program changed under its code: it is compiled again, or all of the function is seen anew.
  std::optional<FunctionPlan> follow(int32_t root) const;
  FunctionPlan nothing() const {
    Case c(e_, config_);
    c.answer(Action::kNothing, "its loops are compiled as nests, and nothing else of it is hot");
    return std::move(c.plan);
  }

 private:
  // One loop with those in it.
  struct Sum {
    double samples = 0, seconds = 0, seconds_run = 0;  // in baseline code
    double samples_optimized = 0, seconds_optimized = 0;
    bool around_one_under_way = false;  // a nest inside is being made
    bool under_way = false;             // it is, or one around it
    bool waits = false;                 // for one around it
    bool in_code = false;               // one around it has code
  };
  static bool is_awaited(const LoopEvidence& loop) { return loop.under_way && !loop.only_for_callees; }

  bool has_code(int32_t i) const {
    const std::vector<LoopIndex>& entries = e_.entry_loops;
    return e_.loops[i].has_nest ||
           (e_.optimized && std::find(entries.begin(), entries.end(), e_.loops[i].loop) != entries.end());
  }
  bool can_be_nest(int32_t i) const {
    const LoopEvidence& loop = e_.loops[i];
    return loop.code_bytes != 0 && loop.no_nest.empty() && !has_code(i) && !sums_[i].waits &&
           !sums_[i].around_one_under_way && loop.fruitless < config_.max_fruitless;
  }
  // The loop around it, if it may be a nest instead; else -1.
  int32_t next(int32_t i) const {
    const int32_t parent = e_.loops[i].parent;
    return parent >= 0 && can_be_nest(parent) ? parent : -1;
  }
  bool iterates(int32_t parent, int32_t child) const {
    const double outside = sums_[parent].samples - sums_[child].samples;
    return outside >= kSamplesToIterate || outside >= config_.min_parent_share * sums_[parent].samples ||
           e_.loops[child].trip_records > 0 || branches_outside(parent, child);
  }
  // What was seen outside of the child may be loops that run one after the other, as phases do, in a parent that is run
  // through once. That is not what is seen of its own code, in none of them.
  bool iterates_for_sure(int32_t parent, int32_t child) const {
    if (e_.loops[parent].samples_baseline >= kSamplesToIterate ||
        e_.loops[parent].seconds_run_baseline >= kSecondsToIterate ||
        e_.loops[child].trip_records >= kTripsToIterate)
      return true;
    uint64_t own = 0;
    for (const BranchEvidence& branch : e_.branches)
      if (is_in(e_.loops[parent], branch.branch) &&
          std::ranges::none_of(e_.loops, [&](const LoopEvidence& loop) {
            return loop.parent == parent && is_in(loop, branch.branch);
          }))
        own += branch.seen();
    return own >= kBranchesToIterate;
  }
  // It runs in baseline code, and calls a nest that is such: one that it could be compiled with.
  template <typename Such>
  bool has_nest_to_take_in(int32_t root, Such such) const {
    if (e_.loops[root].samples_baseline <= 0) return false;
    for (size_t i = 0; i < e_.loops.size(); ++i) {
      const auto nest = static_cast<int32_t>(i);
      if (e_.loops[i].parent == root && e_.loops[i].has_nest && expected(root) <= most_seconds_around(nest) &&
          such(nest))
        return true;
    }
    return false;
  }
  // Compiled around the nest, which it is sure to call again.
  bool may_help(int32_t root, int32_t nest) const {
    return iterates_for_sure(root, nest) && stalls_for_good(nest);
  }
  // Its code stalls on a load for which all that was asked for lost, or was not possible.
  bool stalls_for_good(int32_t nest) const {
    const LoopEvidence& loop = e_.loops[nest];
    if (loop.under_way || loop.samples_optimized < config_.min_reoptimize_samples) return false;
    double stalled = 0;
    for (const LoadEvidence& load : e_.loads) {
      if (is_in(loop, load.load) && nothing_helped(e_.changes, load.load))
        stalled += load.stall_samples_optimized;
    }
    return stalled >= config_.min_reoptimize_share * loop.samples_optimized;
  }
  // Branches of the parent were seen beside those of the child. Of a loop that iterates too often to be left, there are
  // hardly any.
  bool branches_outside(int32_t parent, int32_t child) const {
    uint64_t in_parent = 0, in_child = 0;
    for (const BranchEvidence& branch : e_.branches) {
      const uint64_t seen = branch.seen();
      if (is_in(e_.loops[parent], branch.branch)) in_parent += seen;
      if (is_in(e_.loops[child], branch.branch)) in_child += seen;
    }
    return in_parent >= in_child + kBranchesToIterate &&
           static_cast<double>(in_parent - in_child) >= kShareOfBranches * static_cast<double>(in_parent);
  }
  double expected(int32_t i) const {
    const LoopEvidence& loop = e_.loops[i];
    return loop.compile_seconds > 0
               ? loop.compile_seconds
               : expected_seconds(loop.code_bytes, loop.inner_loops + 1, e_.compile_scale, config_);
  }
  // What compiling a loop around it may take, to be compiled in its place. Where most of the time is waited for memory,
  // baseline code is not much slower meanwhile, and what helps a search is a change of the loop around it.
  double most_seconds_around(int32_t inner) const {
    const LoopEvidence& loop = e_.loops[inner];
    double stalled = 0;
    for (const LoadEvidence& load : e_.loads)
      if (is_in(loop, load.load)) stalled += load.stall_samples;
    const bool waits = stalled > 0 && stalled >= kShareToWait * sums_[inner].samples;
    return std::max((waits ? kWaitingNests : 1) * config_.most_nest_seconds,
                    config_.whole_over_nest * expected(inner));
  }
  double whole_seconds() const {
    return e_.compile_seconds > 0
               ? e_.compile_seconds
               : expected_seconds(e_.code_bytes, e_.loops.size(), e_.compile_scale, config_);
  }
  // What compiling nests of the function took, about: all compiles, or the first one of each.
  double seconds_spent(bool on_first) const {
    double spent = 0;
    for (size_t i = 0; i < e_.loops.size(); ++i)
      if (const uint32_t compiles = e_.loops[i].compiles; compiles > 0)
        spent += (on_first ? 1 : compiles) * expected(static_cast<int32_t>(i));
    return spent;
  }
  bool is_in_budget(int32_t root, double spent) const {
    return spent + expected(root) <= config_.max_nest_seconds + config_.max_nest_share * e_.seconds_run;
  }
  // Bounds what a function of a great many loops costs. What ran long enough by itself pays for itself.
  bool is_affordable(int32_t root) const {
    return is_in_budget(root, seconds_spent(false)) ||
           config_.max_nest_share * sums_[root].seconds_run >= expected(root);
  }
  // Of a loop in baseline code: whatever was tried in others, and once it ran for as long as its compile takes. So a function's
  // first compiles never take longer than it ran, and none of its loops runs in baseline code for much longer than it must.
  bool is_first_affordable(int32_t root) const {
    return is_in_budget(root, seconds_spent(true)) || sums_[root].seconds_run >= expected(root);
  }
  bool may_compile_again(int32_t root) const {
    const LoopEvidence& loop = e_.loops[root];
    const uint32_t earned = earned_compiles(sums_[root].seconds_run + loop.seconds_run_optimized, config_);
    return loop.fruitless < config_.max_fruitless + earned &&
           loop.compiles < config_.max_nest_compiles + earned;
  }
  // view_of(), of what is or would be in its own code alone.
  FunctionEvidence view_of_code(int32_t root) const;
  // Whether it has code that may be made anew.
  bool may_be_replaced(int32_t root) const {
    return e_.loops[root].has_nest && !sums_[root].under_way && !sums_[root].around_one_under_way &&
           may_compile_again(root) && is_affordable(root);
  }
  // Compiles it for what `view` stalls on. None: that is too little.
  std::optional<FunctionPlan> ask_for_stalls(const FunctionEvidence& view, int32_t root,
                                             std::string_view what_for = "") const;
  // What a question about code decided, as a plan of the nest.
  FunctionPlan plan_of(Case& c, int32_t root, std::string_view what_for = "") const;
  std::vector<Candidate> without_split(std::vector<Candidate> candidates) const {
    // What is cold in a loop stays with it: nests are not moved.
    std::erase_if(candidates,
                  [](const Candidate& candidate) { return candidate.kind() == jit::ChangeKind::kSplitCold; });
    return candidates;
  }

  const FunctionEvidence& e_;
  const PolicyConfig& config_;
  std::vector<Sum> sums_;
  bool known_ = false, has_any_ = false;
};

// What was seen of the nest, as if it were a function.
FunctionEvidence Nests::view_of(int32_t root) const {
  const LoopEvidence& loop = e_.loops[root];
  const Sum& sum = sums_[root];
  FunctionEvidence view = e_;
  view.version_at = loop.offset;
  view.code_bytes = loop.code_bytes;
  view.compile_seconds = expected(root);
  // Those before its first code were settled when that was published, and what stalled in them is known yet.
  view.samples_baseline = std::max(sum.samples, loop.samples - sum.samples_optimized);
  view.seconds_baseline = sum.seconds;
  view.samples_optimized = sum.samples_optimized;
  view.seconds_optimized = sum.seconds_optimized;
  view.seconds_run = sum.seconds_run + loop.seconds_run_optimized;
  view.optimized = false;
  view.optimize_count = loop.compiles;
  view.entered = Entered::kAgain;
  view.samples_left_behind = view.seconds_left_behind = view.samples_stayed = view.seconds_stayed = 0;
  // A load in a loop, and in none of the function's, is of a body that was inlined.
  std::erase_if(view.loads, [&](const LoadEvidence& load) {
    return !is_in(loop, load.load) &&
           (!load.in_loop || std::any_of(e_.loops.begin(), e_.loops.end(),
                                         [&](const LoopEvidence& other) { return is_in(other, load.load); }));
  });
  std::erase_if(view.callees, [&](const CalleeEvidence& callee) {
    return !is_in(loop, e_.loops[callee.called_in.value].offset);
  });
  std::erase_if(view.loads, [&](const LoadEvidence& load) { return load.callee && !callee_of(load, view); });
  std::erase_if(view.branches, [&](const BranchEvidence& branch) { return !is_in(loop, branch.branch); });
  std::erase_if(view.calls, [&](const CallEvidence& call) { return !is_in(loop, call.call); });
  std::erase_if(view.values, [&](const ValueEvidence& value) { return !is_in(loop, value.at); });
  return view;
}

FunctionEvidence Nests::view_of_code(int32_t root) const {
  const LoopEvidence& loop = e_.loops[root];
  FunctionEvidence view = view_of(root);
  view.optimized = true;
  view.samples_baseline = view.seconds_baseline = 0;
  view.samples_optimized = loop.samples_optimized;
  view.seconds_optimized = loop.seconds_optimized;
  for (LoadEvidence& load : view.loads) load.stall_samples = load.stall_samples_optimized;
  return view;
}

FunctionPlan Nests::plan_of(Case& c, int32_t root, std::string_view what_for) const {
  const LoopEvidence& loop = e_.loops[root];
  c.plan.candidates = without_split(std::move(c.plan.candidates));
  c.plan.osr_loops.clear();
  if (c.plan.action == Action::kReoptimize) c.plan.nest = loop.loop;
  c.plan.for_callees = asks_for_callees(c);
  c.plan.reason = fmt::format("the loop at 0x{:x}{}: {}", loop.offset.value, what_for, c.plan.reason);
  return std::move(c.plan);
}

std::optional<FunctionPlan> Nests::ask_for_stalls(const FunctionEvidence& view, int32_t root,
                                                  std::string_view what_for) const {
  Case c(view, config_);
  ask_for_new_stalls(c);
  if (c.plan.action != Action::kReoptimize) return std::nullopt;
  return plan_of(c, root, what_for);
}

std::optional<FunctionPlan> Nests::compile_for_callee(const CalleeEvidence& callee) const {
  const auto place = static_cast<int32_t>(callee.called_in.value);
  if (has_code(place) || sums_[place].under_way || sums_[place].samples <= 0) return std::nullopt;
  const int32_t root = root_near(place);
  if (root < 0 || e_.loops[root].set_aside || !is_unit(root) || !is_affordable(root)) return std::nullopt;
  const FunctionEvidence view = view_of_code(root);
  if (callee_samples(view, config_) < config_.min_reoptimize_samples) return std::nullopt;
  std::optional<FunctionPlan> plan = ask_for_stalls(view, root, ", for what it calls");
  if (!plan) return std::nullopt;
  plan->action = Action::kOptimize;
  plan->for_callees = plan->only_for_callees = true;
  return plan;
}

FunctionPlan Nests::first_compile(int32_t root) const {
  const LoopEvidence& loop = e_.loops[root];
  const Sum& sum = sums_[root];
  FunctionEvidence view = view_of(root);
  if (has_nest_inside(root)) forget_of_nests(view, &loop);
  Case c(view, config_);
  const auto answer = [&](Action action, std::string reason) {
    c.answer(action, std::move(reason));
    return std::move(c.plan);
  };
  const std::string samples = fmt::format("{:.0f} of {:.0f} samples in baseline code of the loop at 0x{:x}",
                                          sum.samples, e_.total_samples, loop.offset.value);
  const bool grows = this->grows(root);
  if (sum.samples < enough(root) && !grows) return answer(Action::kNothing, samples + ": too few to decide");
  weigh_changes(c);
  c.offer("optimize the whole function", config_.background_cost * whole_seconds(),
          e_.seconds_baseline * (1 - 1 / config_.optimized_speedup));
  const double seconds = grows ? std::max(sum.seconds, loop.seconds_run_baseline) : sum.seconds;
  const double gain = seconds * (1 - 1 / config_.optimized_speedup);
  const std::string words = fmt::format(
      "{} ({:.1f} ms{}): compiling it alone gains about {:.1f} ms and costs {:.1f} ms", samples,
      1e3 * seconds, grows ? " in the whole run, around a nest" : "", 1e3 * gain, 1e3 * c.compile_cost);
  if (gain <= c.compile_cost) return answer(Action::kNothing, words);
  if (!is_first_affordable(root)) {
    return answer(
        Action::kNothing,
        fmt::format("{}; too much for a function that ran {:.1f} ms, and whose loops took {:.1f} ms to "
                    "compile already",
                    words, 1e3 * e_.seconds_run, 1e3 * seconds_spent(true)));
  }
  // It is known in time whether it is called again, and then all of it is compiled. A large function is not waited for longer than
  // until it was looked at once: the burst that gives its loops their samples comes before anyone can have seen it called.
  const bool just_watched =
      e_.entered == Entered::kNotYet && e_.seconds_watched < config_.min_seconds_watched;
  if (!e_.optimized && !has_any_ && e_.failed_compiles == 0 && (is_small(root) || just_watched))
    if (auto wait = wants_its_next_call(e_, config_)) return answer(Action::kWait, std::move(*wait));
  // What is waited for is bounded by what the loop ran, which does not fade.
  FunctionEvidence so_far = view;
  so_far.seconds_baseline = std::max(sum.seconds, sum.seconds_run);
  if (so_far.seconds_baseline < config_.max_seconds_to_wait)
    if (auto wait = wants_more(so_far, config_)) {
      if (has_nest_inside(root) || (wait->for_stalls && may_take_in_more(root)))
        return answer(Action::kWait, fmt::format("the loop at 0x{:x}: {}", loop.offset.value, wait->reason));
      // Its first code runs without what is to be tried in it anyhow. What is waited for is seen while that is compiled, and in it.
      c.plan.nest = loop.loop;
      c.plan.early = true;
      return answer(Action::kOptimize, words + std::string(kTriedLater));
    }
  c.plan.candidates = without_split(propose_all(c));
  c.plan.nest = loop.loop;
  c.plan.for_callees = asks_for_callees(c);
  return answer(Action::kOptimize, words);
}

std::optional<FunctionPlan> Nests::what_to_try(int32_t root) const {
  const LoopEvidence& loop = e_.loops[root];
  if (!loop.early || !may_be_replaced(root)) return std::nullopt;
  const FunctionEvidence view = view_of(root);
  Case c(view, config_);
  c.plan.nest = loop.loop;
  if (!ask_what_to_try(c, function_samples(view, config_), loop.seconds_run_optimized, e_))
    return std::nullopt;
  return plan_of(c, root);
}

std::optional<FunctionPlan> Nests::later_compile(int32_t root) const {
  if (!may_be_replaced(root)) return std::nullopt;
  return ask_for_stalls(view_of_code(root), root);  // its own code alone says what is wrong with it
}

std::optional<FunctionPlan> Nests::follow(int32_t root) const {
  if (!may_be_replaced(root)) return std::nullopt;
  const LoopEvidence& loop = e_.loops[root];
  FunctionEvidence view = view_of(root);
  view.optimized = true;
  view.seconds_since_published = loop.seconds_in_code;
  view.moved_share = loop.moved_share;
  Case c(view, config_);
  if (!ask_whether_it_moved(c)) return std::nullopt;
  return plan_of(c, root);
}

}  // namespace

std::vector<Candidate> loads_since(const FunctionPlan& plan, const FunctionEvidence& evidence,
                                   const PolicyConfig& config) {
  // What is there for other reasons would wait for these.
  if (std::ranges::none_of(plan.candidates,
                           [](const Candidate& candidate) { return jit::is_of_load(candidate.kind()); }))
    return {};
  const bool of_loop = plan.nest && plan.nest->value < evidence.loops.size();
  std::vector<Candidate> now = propose_for_loads(
      of_loop ? Nests(evidence, config).view_of(static_cast<int32_t>(plan.nest->value)) : evidence, config);
  // What waited for something that was rejected has its turn before that is tried once more.
  const auto was_rejected = [&](const Candidate& candidate) {
    return plan.action == Action::kReoptimize &&
           evidence.changes.state(candidate.site()) == ChangeState::kRolledBack;
  };
  std::erase_if(now, [&](const Candidate& candidate) {
    return plan.has(candidate.site()) || was_rejected(candidate) ||
           count(plan.candidates, candidate.kind()) >= config.max_prefetches;
  });
  return now;
}

bool is_for_nests(const FunctionEvidence& e, const PolicyConfig& config) {
  const Nests nests(e, config);
  if (!nests.known()) return false;
  const std::vector<int32_t> places = nests.places();
  return places.empty() ? nests.has_any() : nests.is_served(places[0]) || nests.root_of(places[0]) >= 0;
}

void forget_of_nests(FunctionEvidence& e, const LoopEvidence* within) {
  e.changes.forget_if([&](const ChangeLedger::Entry& entry) {
    return is_lost(entry.outcome.state) && jit::is_of_load(entry.site.kind) &&
           (within == nullptr || is_in(*within, entry.site.at));
  });
}

std::optional<FunctionPlan> decide_nest(const FunctionEvidence& e, const PolicyConfig& config) {
  const Nests nests(e, config);
  if (!config.optimize || !nests.known()) return std::nullopt;
  std::optional<FunctionPlan> answer;  // of the hottest place that is not compiled now
  std::vector<int32_t> asked;
  for (const int32_t place : nests.places()) {
    if (nests.is_served(place)) continue;
    const int32_t root = nests.root_of(place);
    if (root < 0 || e.loops[root].set_aside || !nests.is_unit(root) ||
        std::find(asked.begin(), asked.end(), root) != asked.end())
      continue;
    asked.push_back(root);
    FunctionPlan plan = nests.first_compile(root);
    if (plan.action == Action::kOptimize) return plan;
    if (!answer || (plan.action == Action::kWait && answer->action != Action::kWait))
      answer = std::move(plan);
  }
  for (const CalleeEvidence& callee : e.callees)
    if (auto plan = nests.compile_for_callee(callee)) return plan;
  for (size_t i = 0; i < e.loops.size(); ++i) {
    if (e.loops[i].set_aside) continue;
    if (auto plan = nests.follow(static_cast<int32_t>(i))) return plan;
    if (auto plan = nests.what_to_try(static_cast<int32_t>(i))) return plan;
    if (auto plan = nests.later_compile(static_cast<int32_t>(i))) return plan;
  }
  if (answer && answer->action == Action::kWait) return answer;
  // As a whole it is asked about if it is called again, or if what runs of it cannot be a nest.
  if (e.optimized || e.entered == Entered::kAgain || !is_for_nests(e, config)) return std::nullopt;
  return answer ? std::move(*answer) : nests.nothing();
}

}  // namespace hindsight::feedback
