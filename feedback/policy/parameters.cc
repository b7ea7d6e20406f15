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

constexpr std::string_view kFirst = "the first compile", kLater = "later compiles", kEntries = "loop entries",
                           kLoads = "loads", kCalls = "calls", kBranches = "branches and selects",
                           kValues = "usual values", kShifts = "programs that change",
                           kPages = "huge pages for memory in use",
                           kFill = "huge pages for memory being filled", kLayout = "code layout",
                           kVersions = "trials of whole versions";

constexpr std::array kParameters = {
    NUMBER(kFirst, min_samples, kSamples, kSwept,
           "below, a function's samples are noise; at the 4 kHz of a burst they take 1.5 ms"),
    NUMBER(kFirst, min_flat_samples, kSamples, kBound,
           "of the whole run, where a profile is flat; one sample hits functions that run once"),
    NUMBER(kFirst, min_flat_return, kFactor, kSwept,
           "how often such a function must return its compile's cost, for what two samples say of it"),
    NUMBER(kFirst, optimized_speedup, kFactor, kMeasured,
           "optimized against baseline code: 3.6 of large_code (docs/results), and taken lower, so that what "
           "is compiled pays"),
    NUMBER(kFirst, compile_fixed_seconds, kSeconds, kMeasured,
           "CPU time of 143 first compiles in the suites' first runs, two busy virtual cores of an EPYC: the "
           "line of least "
           "absolute deviations; measured over expected: quartiles 0.46, 1.00, 1.54, most 6.9"),
    NUMBER(kFirst, compile_seconds_per_byte, kSecondsAByte, kMeasured,
           "the same; straight code without loops took 11 us a byte, large functions of many loops 70"),
    NUMBER(
        kFirst, background_cost, kShare, kSwept,
        "what a second of compiling on another core costs the guest. At twice as much functions with 5 % "
        "of the time were compiled 0.1 s late (scripts/arrival.mjs, when compiles were taken for a quarter "
        "of what they cost). 0.25 where there is one core: with 1 there, 16 short programs took 1.05 times "
        "as "
        "long"),

    NUMBER(kLater, min_reoptimize_samples, kSamples, kSwept,
           "in optimized code, before a load in it that nobody tried is looked at"),
    NUMBER(kLater, min_reoptimize_share, kShare, kSwept,
           "of these, behind such loads; at 0.10 loops that all hit were compiled again, as their samples "
           "spread evenly"),
    NUMBER(kLater, max_compiles, kCount, kBound, "of one function, whatever evidence asks for"),
    NUMBER(kLater, seconds_per_compile, kSeconds, kBound,
           "that a function runs for one compile more: some 50 ms in 8 s are below 1 %"),
    NUMBER(kLater, max_later_compiles, kCount, kBound,
           "that are earned so; what a run of days may compile of a function"),

    NUMBER(kEntries, max_osr_loops, kCount, kMeasured,
           "each is one more copy of the function's remainder: with 4 a function was compiled two to four "
           "times over"),
    NUMBER(kEntries, max_seconds_to_wait_for_entry, kSeconds, kSwept,
           "for the next call, in its own code; it was 10 ms, by which loops came later to their entries"),
    NUMBER(kEntries, max_all_seconds_to_wait_for_entry, kSeconds, kBound,
           "the same in all functions' time, for one that has a small part of it"),
    NUMBER(kEntries, min_seconds_watched, kSeconds, kBound,
           "of its own time in that case: three samples of a burst, so that it is seen to run at all"),
    NUMBER(kEntries, min_samples_left_behind, kSamples, kBound,
           "in code that was replaced, before a loop is taken to have stayed in it; a call's rest leaves one "
           "or two"),

    NUMBER(kLoads, min_samples_with_stalls, kSamples, kSwept,
           "to wait for where a load seems to stall; a quarter of the 100 that name every load"),
    NUMBER(kLoads, stall_share_to_wait, kShare, kSwept,
           "of the top load, from which that is worth waiting for"),
    NUMBER(kLoads, max_seconds_to_wait, kSeconds, kBound,
           "of baseline time: 15 samples at the steady rate, where bursts are spent"),
    NUMBER(kLoads, min_stall_share, kShare, kBound, "of the function's samples, for a load to be hinted at"),
    NUMBER(kLoads, min_stall_samples, kSamples, kBound, "the same in samples: fewer are noise"),
    NUMBER(kLoads, min_total_stall_share, kShare, kSwept,
           "of all loads: samples of loops that hit spread evenly, and some stand behind loads"),
    NUMBER(kLoads, min_top_stall_share, kShare, kSwept, "and one load has to stand out"),
    NUMBER(kLoads, min_blind_share, kShare, kBound,
           "of a load none of whose addresses is known: nothing says that it leaves the near caches"),
    NUMBER(kLoads, min_search_share, kShare, kBound,
           "of a load in a near cache, to ask whether it searches: half of binary_search's steps were "
           "mispredicted"),
    NUMBER(kLoads, min_span_bytes, kBytes, kMeasured,
           "of addresses, below which they lie in a near cache: 512 KB gained 1.3 to 1.5 times by "
           "prefetching in the "
           "Zen 4, 16 KB lost up to 20 %"),
    NUMBER(kLoads, min_addresses_for_span, kCount, kBound, "before their span is believed"),
    NUMBER(kLoads, max_prefetches, kCount, kBound, "loads of one function that are changed"),

    NUMBER(kCalls, min_call_records, kRecords, kBound, "of a call, before its targets are believed"),
    NUMBER(kCalls, min_call_share, kShare, kBound, "of a target, to be compared with"),
    NUMBER(kCalls, min_call_coverage, kShare, kBound,
           "of these targets together; natively 80 % on one target gave 1.4 times, four at random 0.96"),
    NUMBER(kCalls, max_call_targets, kCount, kMeasured,
           "of one call: four targets at random gave 0.96 times natively"),
    NUMBER(kCalls, calls_per_record, kExecutions, kDerived,
           "as often as the runtime records one; each run says its own"),
    NUMBER(kCalls, seconds_per_unforeseen_call, kSeconds, kBound,
           "beyond one whose target is in place: some 14 cycles"),
    NUMBER(kCalls, min_unforeseen_share, kShare, kSwept,
           "of the optimized code's time that such calls lose, to compile again"),
    NUMBER(kCalls, min_seconds_published, kSeconds, kBound, "of optimized code, before its calls are judged"),

    NUMBER(kBranches, min_branch_seen, kExecutions, kBound,
           "before its counts are believed: a share of 64 is right to 6 %"),
    NUMBER(kBranches, min_branch_seen_one_sided, kExecutions, kSwept,
           "of a branch that always went one way, before its other side lies apart"),
    NUMBER(kBranches, min_branch_judged, kExecutions, kBound,
           "that went through the predictor model, before its rate is believed"),
    NUMBER(kBranches, min_select_rate, kShare, kMeasured,
           "mispredicted, for a select: natively branch and select are even at 5 % for two arms of five "
           "operations, below for less"),
    NUMBER(kBranches, max_branch_rate, kShare, kMeasured,
           "mispredicted, up to which a branch may replace a select: natively, on a chain, branches won at "
           "10 % and lost at 25 %"),
    NUMBER(kBranches, min_branch_minority, kShare, kDerived,
           "with less the compiler leaves a branch a branch by itself"),
    NUMBER(kBranches, min_minority_to_wait, kShare, kSwept, "to wait for how well it is predicted"),
    NUMBER(kBranches, min_branch_records, kRecords, kBound, "so that it is hot enough to wait for"),
    NUMBER(kBranches, max_seconds_to_wait_for_outcomes, kSeconds, kBound,
           "of baseline time: one burst of outcomes and its gap"),
    NUMBER(kBranches, min_select_seen_to_wait, kExecutions, kBound,
           "of a select that nearly always went one way, to wait until it was seen often enough"),
    NUMBER(kBranches, max_seconds_to_wait_for_selects, kSeconds, kBound, "of baseline time"),
    NUMBER(kBranches, max_conversions, kCount, kBound,
           "branches and selects of one function in another form"),

    NUMBER(kValues, min_value_records, kRecords, kBound,
           "of an operator, before what its operand usually is is believed"),
    NUMBER(kValues, min_value_records_to_wait, kRecords, kBound, "to wait for that many"),
    NUMBER(kValues, max_seconds_to_wait_for_values, kSeconds, kBound, "of baseline time"),
    NUMBER(kValues, min_value_share, kShare, kSwept, "of its records that the usual value has"),
    NUMBER(kValues, min_value_gain, kShare, kSwept, "of the function's optimized time, to be worth a trial"),
    NUMBER(kValues, seconds_divided, kSeconds, kBound,
           "that a division of 32 bits saves by a known number: some 5 cycles; a trial decides"),
    NUMBER(kValues, seconds_divided_wide, kSeconds, kBound, "the same of 64 bits: some 7 cycles"),
    NUMBER(kValues, seconds_asked_to_copy, kSeconds, kBound,
           "that a copy or fill saves by the call that it is; a trial decides"),
    NUMBER(kValues, seconds_looped, kSeconds, kSwept,
           "that a loop saves each time it is entered, by its turns in a row; a trial decides"),
    NUMBER(kValues, max_usual_values, kCount, kBound, "operators of one function"),

    NUMBER(kShifts, min_samples_recent, kSamples, kBound, "of the last second, for it to speak for itself"),
    NUMBER(kShifts, min_reopen_share, kShare, kSwept,
           "of the function's samples that a load must stall for beyond what it did when it was rejected"),
    NUMBER(kShifts, seconds_to_reopen, kSeconds, kSwept,
           "of the function since; four times as many with each rejection"),
    NUMBER(kShifts, min_moved_share, kShare, kBound,
           "of the last samples in optimized code that stand elsewhere than its first ones"),
    NUMBER(kShifts, min_seconds_steady, kSeconds, kBound,
           "in optimized code before that counts: what changes sooner goes back and forth"),
    NUMBER(
        kShifts, seconds_observed, kSeconds, kMeasured,
        "in baseline code until it is compiled again: 35 to 60 ms until new code is there, with its compile"),

    NUMBER(kPages, min_page_addresses, kCount, kBound, "stalled ones, before their pages are judged"),
    NUMBER(kPages, min_page_spread, kShare, kSwept, "of the addresses on pages of their own"),
    NUMBER(kPages, tlb_reach_bytes, kBytes, kDerived,
           "3,072 entries of 4 KiB in the second level of the Zen 4"),
    NUMBER(
        kPages, max_page_gap_bytes, kBytes, kBound,
        "between sampled regions that move together: samples are few, what lies between is touched as well"),
    NUMBER(kPages, walk_share_of_stalls, kShare, kMeasured,
           "of the time that loads stall, page walks: 0.25 to 0.45 in four programs in a virtual machine"),
    NUMBER(kPages, min_page_return, kFactor, kBound, "of a move's cost: who ends soon after has lost it"),
    NUMBER(kPages, least_move_seconds_per_byte, kSecondsAByte, kMeasured,
           "0.5 ms for 2 MiB where a page is made ready beside the guest"),
    NUMBER(kPages, most_move_seconds_per_byte, kSecondsAByte, kMeasured,
           "5 to 8 ms for 2 MiB where the guest waits for that too"),
    NUMBER(kPages, page_probe_bytes, kBytes, kBound, "moved first, to see which: four pages"),

    NUMBER(kFill, min_full_blocks, kCount, kBound, "of 2 MiB, before it is known how the memory is filled"),
    NUMBER(kFill, min_full_share, kShare, kSwept, "of the blocks that are touched at all"),
    NUMBER(kFill, min_untouched_share, kShare, kBound, "of the memory: less is not worth asking"),
    NUMBER(kFill, max_available_share, kShare, kBound, "of the machine's memory that is asked for"),
    NUMBER(
        kFill, max_fill_slowdown, kFactor, kBound,
        "of the filling, before it goes on with small pages: where the host has no pages at hand it was 5"),

    NUMBER(kLayout, min_layout_samples, kSamples, kSwept,
           "in optimized code, before hot functions are told apart"),
    NUMBER(kLayout, hot_code_share, kShare, kSwept, "of these samples: what hot code holds"),
    NUMBER(kLayout, itlb_reach_bytes, kBytes, kDerived,
           "64 entries of 4 KiB in the first level of the Zen 4"),
    NUMBER(kLayout, layout_share, kShare, kMeasured,
           "of the time, that waits for code far beyond that reach: 5 to 16 % on random order from 0.8 MB"),
    NUMBER(kLayout, layout_seconds_per_byte, kSecondsAByte, kBound,
           "to copy code and move its page: twice the slowest move of data"),
    NUMBER(kLayout, layout_seconds_per_function, kSeconds, kBound,
           "to count its calls, to publish it back and forth in a trial"),
    NUMBER(kLayout, min_layout_settled, kSeconds, kBound, "without a new version, before the last move"),
    NUMBER(kLayout, min_layout_share, kShare, kSwept, "of the time, in optimized code, to move before that"),
    NUMBER(kLayout, min_layout_news, kShare, kBound,
           "of the samples, outside of what was tried already, to try once more"),
    NUMBER(kLayout, max_layouts, kCount, kBound, "of one module"),

    NUMBER(kVersions, min_version_seconds, kSeconds, kSwept,
           "of CPU time in a version, before a decision in it is weighed against none"),
    NUMBER(kVersions, min_version_share, kShare, kSwept,
           "of the samples of late: colder functions call too seldom"),
    NUMBER(kVersions, version_gain, kShare, kBound,
           "that a decision is taken to give, or to take, until it was tried"),
    NUMBER(kVersions, seconds_of_version_trial, kSeconds, kMeasured,
           "of CPU time in the version without it: 60 ms where it is slower, 12 pairs of 20 ms where not"),
    NUMBER(kVersions, max_version_trial_share, kShare, kBound,
           "of all guests' CPU time, in versions on trial"),
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
constexpr size_t kMembers = kParameters.size() + kDecisions.size();
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
    by_name[std::string(decision.name)] = config.*decision.enabled ? 1 : 0;
  for (const Parameter& parameter : kParameters) by_name[std::string(parameter.name)] = parameter.of(config);
  return by_name;
}

PolicyConfig from_parameters(const std::map<std::string, double>& by_name) {
  PolicyConfig config;
  if (by_name.empty()) return config;
  for (const Decision& decision : kDecisions) {
    const auto found = by_name.find(std::string(decision.name));
    config.*decision.enabled = found != by_name.end() && found->second != 0;
  }
  for (const Parameter& parameter : kParameters) {
    if (const auto found = by_name.find(std::string(parameter.name)); found != by_name.end())
      parameter.set(config, found->second);
  }
  return config;
}

}  // namespace hindsight::feedback
