#include "feedback/policy/parameters.h"

#include <algorithm>
#include <utility>

namespace hindsight::feedback {
namespace {

using enum Unit;
using enum Provenance::Origin;

// "in the Zen 4": two virtual cores of an EPYC, 1 MiB of second-level and 32 MiB of third-level cache, Linux 6.18.
#define NUMBER(about, name, unit, origin, why) \
  Parameter {                                  \
    about, #name, &PolicyConfig::name, {       \
      unit, origin, why                        \
    }                                          \
  }

constexpr std::string_view kFirst = "the first compile", kNests = "loop nests", kLater = "later compiles",
                           kEntries = "loop entries", kLoads = "loads", kCalls = "calls",
                           kBranches = "branches and selects", kValues = "usual values",
                           kShifts = "programs that change", kPages = "huge pages for memory in use",
                           kFill = "huge pages for memory being filled", kPopulate = "pages made ahead",
                           kLayout = "code layout", kVersions = "trials of whole versions";

constexpr std::array kParameters = {
    NUMBER(kFirst, min_samples, kSamples, kSwept,
           "decides about a function from so many samples; fewer are noise, and at the 4 kHz of a burst they "
           "take 1.5 ms"),
    NUMBER(
        kFirst, min_flat_samples, kSamples, kBound,
        "the same over the whole run, for a flat profile; a single sample also hits functions that run once"),
    NUMBER(kFirst, min_flat_return, kFactor, kSwept,
           "compiles for two samples of the whole run only if they promise so many times the compile's cost"),
    NUMBER(kFirst, optimized_speedup, kFactor, kMeasured,
           "expects optimized code to be so much faster than baseline code: 3.6 times in large_code "
           "(docs/results), taken lower so that compiles pay"),
    NUMBER(kFirst, compile_fixed_seconds, kSeconds, kMeasured,
           "fits the CPU time of 143 first compiles in the suites' first runs on two busy virtual cores of "
           "an EPYC, by least absolute deviations. Measured over expected: quartiles 0.46, 1.00 and 1.54, at "
           "most 6.9"),
    NUMBER(
        kFirst, compile_seconds_per_byte, kSecondsAByte, kMeasured,
        "from the same fit; straight code without loops took 11 us a byte, large functions of many loops 70"),
    NUMBER(kFirst, background_cost, kShare, kSwept,
           "charges the guest this share of a compile on another core. Twice as much compiled functions with "
           "5 % of the time 0.1 s late (scripts/arrival.mjs, when a compile was charged a quarter). A single "
           "core is charged 0.25: with 1, 16 short programs took 1.05 times as long"),

    NUMBER(kNests, compile_seconds_per_loop, kSeconds, kDerived,
           "adds so much for each loop: functions of 105 to 230 bytes with one to four loops took 30 to 44 "
           "ms in "
           "saved profiles, where their bytes alone promise 16 to 21"),
    NUMBER(kNests, most_nest_seconds, kSeconds, kBound,
           "goes on to the loop around one only if compiling that is expected to take no longer, or four "
           "times as "
           "long where the inner one mostly waits for memory"),
    NUMBER(kNests, min_parent_share, kShare, kBound,
           "takes a loop to iterate that has this share of its samples outside of the inner one, or two "
           "samples"),
    NUMBER(kNests, whole_over_nest, kFactor, kBound,
           "compiles a function that is called again as a whole if that takes at most so many times what its "
           "nest would"),
    NUMBER(kNests, small_function_seconds, kSeconds, kBound, "or at most so long"),
    NUMBER(kNests, max_fruitless, kCount, kBound,
           "lets so many compiles of a nest bring nothing new, and then asks no more until more are earned"),
    NUMBER(kNests, max_nest_compiles, kCount, kBound,
           "bounds the compiles of one nest, until more are earned"),
    NUMBER(kNests, max_nest_seconds, kSeconds, kBound,
           "lets the nests of one function take so long to compile in all, and"),
    NUMBER(kNests, max_nest_share, kShare, kBound,
           "this share of the time that the function ran. A nest that ran as much longer than it takes to "
           "compile is compiled all the same; for the first time one that ran as long, and then no other but "
           "first compiles count"),

    NUMBER(kLater, min_taken_by_compiles, kShare, kBound,
           "charges a compile for trials so much of its time where it has a processor of its own"),
    NUMBER(kLater, trials_assumed, kCount, kBound,
           "assumes so many trials before the first one, half of them won"),
    NUMBER(kLater, min_reoptimize_samples, kSamples, kSwept,
           "looks at untried loads from so many samples in optimized code"),
    NUMBER(kLater, min_reoptimize_share, kShare, kSwept,
           "compiles again if so many of these stall on untried loads; at 0.10 it compiled loops again that "
           "always hit, as their samples spread evenly"),
    NUMBER(kLater, max_seconds_for_trials, kSeconds, kBound,
           "waits so much of the code's time for the trials of its loads, which say what to compile next"),
    NUMBER(kLater, max_compiles, kCount, kBound,
           "bounds the compiles of one function, whatever evidence asks for"),
    NUMBER(kLater, seconds_per_compile, kSeconds, kBound,
           "earns a function one more compile for so long a run: some 50 ms in 8 s are below 1 %"),
    NUMBER(kLater, max_later_compiles, kCount, kBound, "bounds the compiles that are earned so, over days"),

    NUMBER(kEntries, max_osr_loops, kCount, kMeasured,
           "enters so many loops by OSR. Each is one more copy of the function's remainder: with 4, a "
           "function was compiled two to four times over"),
    NUMBER(kEntries, max_seconds_to_wait_for_entry, kSeconds, kSwept,
           "waits so much of the function's time for its next call; with 10 ms, loops entered optimized code "
           "later"),
    NUMBER(kEntries, max_all_seconds_to_wait_for_entry, kSeconds, kBound,
           "the same in all functions' time, for a function with a small part of it"),
    NUMBER(kEntries, min_seconds_watched, kSeconds, kBound,
           "lets the function itself run so long in that case, and a large one before a nest of it is "
           "compiled: three samples of a burst show that it runs at all"),
    NUMBER(kEntries, min_samples_left_behind, kSamples, kBound,
           "takes a loop to have stayed in a stale frame from so many samples there; the rest of a call "
           "leaves one or two"),

    NUMBER(
        kLoads, min_samples_with_stalls, kSamples, kSwept,
        "waits for so many samples where a load seems to stall: a quarter of the 100 that name every load"),
    NUMBER(kLoads, stall_share_to_wait, kShare, kSwept,
           "waits so only if the top load has this share of the stalls"),
    NUMBER(
        kLoads, max_seconds_to_wait, kSeconds, kBound,
        "ends that wait after so much baseline time: 15 samples at the steady rate, if no bursts are left"),
    NUMBER(kLoads, min_stall_share, kShare, kBound,
           "changes a load from this share of the function's samples"),
    NUMBER(kLoads, min_stall_samples, kSamples, kBound,
           "changes a load from so many samples; fewer are noise"),
    NUMBER(kLoads, min_total_stall_share, kShare, kSwept,
           "asks this share of all loads together: samples of a loop that hits spread evenly, and some fall "
           "right after loads"),
    NUMBER(kLoads, min_top_stall_share, kShare, kSwept, "asks one load to stand out by this share"),
    NUMBER(
        kLoads, min_blind_share, kShare, kBound,
        "asks this share of a load without known addresses, as nothing says that it leaves the near caches"),
    NUMBER(kLoads, min_search_share, kShare, kBound,
           "asks a load in a near cache for this share before it may be a search: half of binary_search's "
           "steps were mispredicted"),
    NUMBER(kLoads, min_remember_share, kShare, kBound,
           "asks a load for this share before its loop remembers its way: learning that made loops of a "
           "search in a "
           "grid 3 to 17 % slower, for as long as nothing came again"),
    NUMBER(kLoads, min_callee_stall_share, kShare, kBound,
           "asks a callee's loads for this share of the run: less is not worth inlining it for them"),
    NUMBER(kLoads, min_store_share, kShare, kBound,
           "asks a store for this share: samples also stand after stores that hit, and 68 % or more after "
           "one that "
           "missed (Zen 5)"),
    NUMBER(
        kLoads, max_store_order, kShare, kBound,
        "takes a store for one that fills memory in order if more of its sampled addresses lie above the one "
        "before, or below; of random ones half do"),
    NUMBER(kLoads, min_span_bytes, kBytes, kMeasured,
           "takes addresses over less than this to lie in a near cache. On a Zen 4, prefetching gained 1.3 "
           "to 1.5 times over 512 KB and lost up to 20 % over 16 KB"),
    NUMBER(kLoads, min_addresses_for_span, kCount, kBound, "believes a span from so many addresses"),
    NUMBER(kLoads, max_prefetches, kCount, kBound, "bounds the loads that are changed in one function"),

    NUMBER(kCalls, min_call_records, kRecords, kBound, "believes the targets of a call from so many records"),
    NUMBER(kCalls, min_call_share, kShare, kBound, "compares a call with targets of at least this share"),
    NUMBER(kCalls, min_call_coverage, kShare, kBound,
           "asks the targets together for this share: natively 80 % on one target ran 1.4 times as fast, "
           "four at random 0.96"),
    NUMBER(kCalls, max_call_targets, kCount, kMeasured,
           "compares a call with at most so many targets: natively four at random ran 0.96 times as fast"),
    NUMBER(kCalls, calls_per_record, kExecutions, kDerived,
           "counts so many calls for a record, as the runtime records one of them; each run states its own"),
    NUMBER(kCalls, seconds_per_unforeseen_call, kSeconds, kBound,
           "charges a call of a target that is not inlined: some 14 cycles"),
    NUMBER(kCalls, min_unforeseen_share, kShare, kSwept,
           "compiles again if such calls lose this share of the optimized code's time"),
    NUMBER(kCalls, min_seconds_published, kSeconds, kBound,
           "judges the calls of optimized code after it ran so long"),

    NUMBER(kBranches, min_branch_seen, kExecutions, kBound,
           "believes a branch's counts from so many executions: they tell a share to 6 %"),
    NUMBER(kBranches, min_branch_seen_one_sided, kExecutions, kSwept,
           "splits off a side of a branch that was never taken in so many executions"),
    NUMBER(kBranches, min_branch_judged, kExecutions, kBound,
           "believes a misprediction rate from so many outcomes through the predictor model"),
    NUMBER(kBranches, min_select_rate, kShare, kMeasured,
           "replaces a branch by a select from this rate of mispredictions. Natively the two are even at 5 % "
           "for two arms of five operations, and below for fewer"),
    NUMBER(kBranches, max_branch_rate, kShare, kMeasured,
           "replaces a select by a branch up to this rate of mispredictions: natively, on a dependence "
           "chain, branches won at 10 % and lost at 25 %"),
    NUMBER(kBranches, min_branch_minority, kShare, kDerived,
           "tries a form only if both sides have this share; below, the compiler keeps a branch by itself"),
    NUMBER(kBranches, min_minority_to_wait, kShare, kSwept,
           "waits for the misprediction rate of a branch whose rarer side has this share"),
    NUMBER(kBranches, min_branch_records, kRecords, kBound,
           "waits so only for a branch with so many records, which is hot enough"),
    NUMBER(kBranches, max_seconds_to_wait_for_outcomes, kSeconds, kBound,
           "ends that wait after so much baseline time: one burst of outcomes and its gap"),
    NUMBER(kBranches, min_select_seen_to_wait, kExecutions, kBound,
           "waits for more executions of a select that went one way in nearly all of so many"),
    NUMBER(kBranches, max_seconds_to_wait_for_selects, kSeconds, kBound,
           "ends that wait after so much baseline time"),
    NUMBER(kBranches, max_conversions, kCount, kBound,
           "bounds the branches and selects of one function that change their form"),
    NUMBER(
        kBranches, cycles_mispredicted, kCount, kMeasured,
        "charges a misprediction by this machine's calibration. Without one, as on a Zen 4; others lose 15 "
        "to 25"),
    NUMBER(
        kBranches, seconds_a_cycle, kSeconds, kMeasured,
        "is from the calibration too. Without one, 3.6 GHz, of the Zen 4 on which those cycles were counted"),

    NUMBER(kValues, min_value_records, kRecords, kBound,
           "believes an operator's usual value from so many records"),
    NUMBER(kValues, min_value_records_to_wait, kRecords, kBound, "waits for those from so many records on"),
    NUMBER(kValues, max_seconds_to_wait_for_values, kSeconds, kBound,
           "ends that wait after so much baseline time"),
    NUMBER(kValues, min_value_share, kShare, kSwept,
           "asks the usual value for this share of its operator's records"),
    NUMBER(kValues, min_value_gain, kShare, kSwept,
           "tries a value that saves this share of the function's optimized time"),
    NUMBER(kValues, seconds_divided, kSeconds, kBound,
           "expects a known divisor to save this in a 32-bit division: some 5 cycles; a trial decides"),
    NUMBER(kValues, seconds_divided_wide, kSeconds, kBound, "the same in a 64-bit division: some 7 cycles"),
    NUMBER(kValues, seconds_asked_to_copy, kSeconds, kBound,
           "expects a known length to save this in a copy or fill, which then is no call; a trial decides"),
    NUMBER(kValues, seconds_looped, kSeconds, kSwept,
           "expects a known trip count to save this each time the loop is entered; a trial decides"),
    NUMBER(kValues, max_usual_values, kCount, kBound,
           "bounds the operators of one function that are specialized"),

    NUMBER(kShifts, min_samples_recent, kSamples, kBound,
           "lets the last second speak for itself from so many samples"),
    NUMBER(kShifts, min_reopen_share, kShare, kSwept,
           "tries a rejected change again once its load stalls for this share of the samples more than then"),
    NUMBER(kShifts, seconds_to_reopen, kSeconds, kSwept,
           "and once the function ran so long since; four times as long after each rejection"),
    NUMBER(kShifts, min_reopen_growth, kFactor, kBound,
           "or once its addresses span so many times as much as then, after a quarter of that time"),
    NUMBER(kShifts, min_moved_share, kShare, kBound,
           "deoptimizes if this share of the last samples falls elsewhere than the first ones in the code"),
    NUMBER(kShifts, min_seconds_steady, kSeconds, kBound,
           "and if the code ran so long; what changes sooner goes back and forth"),
    NUMBER(kShifts, seconds_observed, kSeconds, kMeasured,
           "expects so much time in baseline code until new code is there: 35 to 60 ms were seen, with the "
           "compile"),

    NUMBER(kPages, min_page_addresses, kCount, kBound, "judges pages from so many stalled addresses"),
    NUMBER(kPages, min_page_spread, kShare, kSwept,
           "asks for this share of stalled addresses on pages of their own"),
    NUMBER(
        kPages, tlb_reach_bytes, kBytes, kDerived,
        "covers the second level's entries of 4 KiB, as the processor tells them (CPUID). Where it does not, "
        "the 3,072 of the Zen 4"),
    NUMBER(kPages, max_page_gap_bytes, kBytes, kBound,
           "moves sampled regions together over such gaps: samples are few, and what lies between is touched "
           "as well"),
    NUMBER(kPages, walk_share_of_stalls, kShare, kMeasured,
           "takes this share of stalls for page walks: 0.25 to 0.45 in four programs in a virtual machine"),
    NUMBER(kPages, min_page_return, kFactor, kBound,
           "moves for so many times the cost, as a program that ends soon has lost it"),
    NUMBER(kPages, least_move_seconds_per_byte, kSecondsAByte, kMeasured,
           "takes 0.5 ms for 2 MiB where a page is prepared beside the guest"),
    NUMBER(kPages, most_move_seconds_per_byte, kSecondsAByte, kMeasured,
           "takes 5 to 8 ms for 2 MiB where the guest waits for that too"),
    NUMBER(kPages, page_probe_bytes, kBytes, kBound,
           "moves four pages first to learn which of the two it is"),
    NUMBER(kPages, max_page_idle_seconds, kSeconds, kBound,
           "begins no move where no stall came for so long: 125 samples"),
    NUMBER(kPages, min_page_trial_samples, kCount, kDerived,
           "judges a move from so many samples: they tell half more or less from nothing"),
    NUMBER(kPages, page_trial_errors, kFactor, kDerived, "leaves one in twenty verdicts of a side to chance"),
    NUMBER(kPages, page_trial_share, kShare, kDerived,
           "holds after this share: were its stalls a third longer, the program would lose 4 %"),
    NUMBER(kPages, min_page_hold_seconds, kSeconds, kBound,
           "holds at least so long: who looks again and again finds a gain by chance"),
    NUMBER(kPages, most_page_hold_seconds, kSeconds, kDerived,
           "holds so long: 1,500 stalls in moved pages or beside them tell a tenth from nothing"),
    NUMBER(
        kPages, max_page_trial_error, kShare, kBound,
        "gives no figure where its interval is wider to either side, as a share of what a stall takes: of a "
        "small part that moved many samples say little"),
    NUMBER(kPages, min_page_gain, kShare, kBound,
           "makes a move again in a later run that gave so much: less cannot be told from nothing"),
    NUMBER(kPages, most_unjudged_runs, kCount, kBound,
           "tries a move again after runs that could not tell what it gave, so many in all"),

    NUMBER(kPopulate, min_growth_watched_bytes, kBytes, kBound,
           "judges how a memory grows from so much of it: two steps of a malloc"),
    NUMBER(kPopulate, min_growth_touched_share, kShare, kBound,
           "asks this share of earlier growth to be touched: what is not touched is made for nothing"),
    NUMBER(kPopulate, max_growth_step_bytes, kBytes, kBound,
           "makes steps up to this size at once, in which the guest waits: 0.05 to 0.3 ms"),
    NUMBER(kPopulate, growth_watch_every, kCount, kBound,
           "leaves one step in so many to the guest, to see whether it touches it"),
    NUMBER(kPopulate, min_growth_pairs, kCount, kBound,
           "judges by so many steps that were left to the guest and those that came next"),
    NUMBER(
        kPopulate, max_growth_slowdown, kFactor, kBound,
        "leaves all steps to the guest where those whose pages are made take so much longer, in the median: "
        "on a busy machine six pairs were 1.1 apart by chance"),
    NUMBER(kPopulate, first_window_bytes, kBytes, kBound, "makes two blocks of 2 MiB ahead at first"),
    NUMBER(kPopulate, max_window_bytes, kBytes, kDerived,
           "makes so much ahead at most: 10 ms of a guest that fills 6 GB a second"),
    NUMBER(kPopulate, max_window_share, kShare, kBound,
           "makes at most this share of what the guest has touched ahead, as it may stop there"),

    NUMBER(kFill, min_full_blocks, kCount, kBound,
           "judges how a memory is filled from so many full blocks of 2 MiB"),
    NUMBER(kFill, min_full_share, kShare, kBound,
           "asks this share of the touched blocks to be full: several arrays are filled at a time"),
    NUMBER(kFill, min_untouched_share, kShare, kBound,
           "asks this share of the memory to be untouched; less is not worth a call"),
    NUMBER(kFill, max_available_share, kShare, kBound,
           "takes at most this share of the machine's available memory"),
    NUMBER(kFill, max_fill_slowdown, kFactor, kBound,
           "goes back to small pages where filling slows down so; it was 5 times where the host has no pages "
           "at hand"),

    NUMBER(kLayout, min_layout_samples, kSamples, kSwept,
           "tells hot functions apart from so many samples in optimized code"),
    NUMBER(kLayout, hot_code_share, kShare, kSwept,
           "calls functions hot that hold this share of these samples together"),
    NUMBER(kLayout, itlb_reach_bytes, kBytes, kDerived,
           "covers 64 entries of 4 KiB, the first level of the Zen 4"),
    NUMBER(kLayout, layout_share, kShare, kMeasured,
           "expects this share of the time to wait for code far beyond that reach: 5 to 16 % in random order "
           "over 0.8 MB and more"),
    NUMBER(kLayout, layout_seconds_per_byte, kSecondsAByte, kBound,
           "charges copying code and moving its page: twice the slowest move of data"),
    NUMBER(kLayout, layout_seconds_per_function, kSeconds, kBound,
           "charges counting the function's calls and exchanging it in a trial"),
    NUMBER(kLayout, min_layout_settled, kSeconds, kBound,
           "waits so long without a new version before the last move"),
    NUMBER(kLayout, min_layout_share, kShare, kSwept,
           "moves before that if optimized code has this share of the time"),
    NUMBER(kLayout, min_layout_news, kShare, kBound,
           "moves once more if this share of the samples is outside of what was tried"),
    NUMBER(kLayout, max_layouts, kCount, kBound, "bounds the moves of one module"),

    NUMBER(kVersions, min_version_seconds, kSeconds, kSwept,
           "tries a version's changes after so much CPU time in it"),
    NUMBER(
        kVersions, min_version_share, kShare, kSwept,
        "tries them in functions with this share of the recent samples; colder ones are called too seldom"),
    NUMBER(kVersions, version_gain, kShare, kBound,
           "expects such a change to gain or lose this share until it was tried"),
    NUMBER(kVersions, seconds_of_version_trial, kSeconds, kMeasured,
           "charges CPU time in the version without the change: 60 ms where it is slower, else 12 pairs of "
           "20 ms"),
    NUMBER(kVersions, max_version_trial_share, kShare, kBound,
           "bounds what trials cost, of the CPU time of all guests: 60 ms in a version of half the speed are "
           "30"),
};
#undef NUMBER

// How many members an aggregate has.
struct Anything {
  template <typename T>
  constexpr operator T() const;
};
template <typename T, size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), Anything())...};
  };
}
constexpr size_t kMembers =
    kParameters.size() + 1 + kDecisions.size() - jit::kChangeKinds;  // one has all changes
static_assert(takes<PolicyConfig>(std::make_index_sequence<kMembers>()) &&
                  !takes<PolicyConfig>(std::make_index_sequence<kMembers + 1>()),
              "every member of PolicyConfig is a decision or has a row");

}  // namespace

double Parameter::of(const PolicyConfig& config) const {
  return std::visit([&](auto number) { return static_cast<double>(config.*number); }, member);
}

void Parameter::set(PolicyConfig& config, double number) const {
  const double allowed = bounded(from.unit, number);
  std::visit(
      [&](auto to) { config.*to = static_cast<std::remove_reference_t<decltype(config.*to)>>(allowed); },
      member);
}

std::span<const Parameter> parameters() {
  return kParameters;
}

std::map<std::string, double> to_parameters(const PolicyConfig& config) {
  std::map<std::string, double> by_name;
  for (const Decision& decision : kDecisions)
    by_name[std::string(decision.name)] = decision.is_on(config) ? 1 : 0;
  for (const Parameter& parameter : kParameters) by_name[std::string(parameter.name)] = parameter.of(config);
  return by_name;
}

PolicyConfig from_parameters(const std::map<std::string, double>& by_name) {
  PolicyConfig config;
  if (by_name.empty()) return config;
  for (const Decision& decision : kDecisions) {
    const auto found = by_name.find(std::string(decision.name));
    decision.set(config, found != by_name.end() && found->second != 0);
  }
  for (const Parameter& parameter : kParameters) {
    if (const auto found = by_name.find(std::string(parameter.name)); found != by_name.end())
      parameter.set(config, found->second);
  }
  return config;
}

}  // namespace hindsight::feedback
