// The policy: evidence in, plan out. Pure: no clock, no thread, no system call, no global state, so that a
// saved profile replays to the same plans. It weighs alternatives, doing nothing included, in seconds of CPU
// time, and says why it chose.
//
// Cost-benefit model (after Arnold et al., "Adaptive Optimization in the Jalapeno JVM", OOPSLA 2000): a
// function is assumed to run in the future as long as it has run so far. Compiling it pays when the time it
// would save exceeds the compile time:
//     gain = t * (1 - 1/optimized_speedup)
//     cost = background_cost * (compile_fixed_seconds + compile_seconds_per_byte * bytes)
// where an earlier run did not find out what the compile takes.
// Flat profiles: where the time is spread over hundreds of functions, none of them has the samples of late that the above
// goes by, and compiling them all pays all the same. t is then what the function ran since it was loaded, which does not
// fade, and what compiling it gains has to be min_flat_return times the cost.
// Prefetch: a load whose stall samples are a share s of the function's samples can save at most s of its
// time. The trial, not the estimate, has the last word; the estimate only keeps hopeless loads out.
// Branches: one that is mispredicted in a share r of its executions loses r times what a misprediction takes;
// a select in its place loses nothing that way, and makes everything behind it wait for both sides. How much
// that is depends on the code around it, which only the compiler sees (jit/optimizing/changes/branch_form/form_pass.h): it is
// given the rate, and a trial has the last word. The counts alone go with any compile, for the layout.
// Values: an operator whose operand is the same number in most of its executions (divisors; the byte counts of copies and
// fills; trip counts of inner loops) may have code for that number, behind a comparison. What one execution gains is a constant, how often it is
// executed the records say. After Calder, Feller and Eustace, "Value Profiling", MICRO 1997. A trial has the last word.
// Shifts: what a program was like does not say what it is like. Code that is optimized is looked at by its last second as
// well as by its last seconds. Where its calls go elsewhere, or its samples stand elsewhere (sample_shift.h), and it was
// made for what branches, calls and operands were like, it goes back to baseline code to be seen again. A change that was taken back is tried again where its load stalls clearly more than then;
// compiles beyond max_compiles are earned by running on.
// Jump pointers: the same loads, if their address turns out to be what the loop has just loaded, which only the
// compiler sees, and if the loop goes the same way again, which only running shows: for as long as it does not, no
// trial begins.
// Interleave: the same loads, if they turn out to be those of searches, which only the compiler sees; of w
// searches at once a stall is waited for by all together, so 1/w of it stays.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "feedback/policy/hints.h"
#include "feedback/profile/evidence.h"
#include "feedback/profile/profile_file.h"
#include "jit/change.h"

namespace hindsight::feedback {

struct PolicyConfig {
  bool optimize = true;        // decision "optimize"
  bool prefetch = true;        // decision "prefetch"
  bool interleave = true;      // decision "interleave"
  bool jump_pointers = true;   // decision "jump-pointers"
  bool inline_calls = true;    // decision "inline-calls"
  bool huge_pages = true;      // decision "huge-pages"; the rest of it below
  bool weigh_branches = true;  // decision "weigh-branches"
  bool select = true;          // decision "select": instead of a branch
  bool branch = true;          // decision "branch": instead of a select
  bool values = true;          // decision "values"
  bool follow_shifts = true;   // decision "follow-shifts"
  bool code_layout = true;     // decision "code-layout"; the rest of it below
  double min_samples = 6;      // below, evidence is noise
  // Of a function in a flat profile, which never has that many of late: samples of the whole run, and how many times its
  // cost a compile must return, for what so few samples say of it.
  double min_flat_samples = 2;
  double min_flat_return = 2;
  double min_samples_with_stalls = 24;  // before optimizing a function whose stalls are not clear yet
  double stall_share_to_wait = 0.10;    // top load's share from which it is worth waiting for that many
  double max_seconds_to_wait = 0.06;    // of baseline time: slow code is dearer than a second compile
  double min_stall_share = 0.03;        // of the function's samples, for a prefetch hint
  double min_stall_samples = 3;
  // Loads that all hit spread a loop's samples evenly: below this share in all, what stands behind loads says
  // nothing.
  double min_total_stall_share = 0.20;
  double min_top_stall_share = 0.12;   // and one load at least must stand out
  double min_blind_share = 0.15;       // of a load none of whose addresses is known
  double min_search_share = 0.15;      // of a load in a near cache, to ask whether it searches
  double min_span_bytes = 512 * 1024;  // addresses closer together than this are in a second-level cache
  double min_addresses_for_span = 8;
  double min_reoptimize_samples = 60;  // optimized code in which an untried load stalls
  double min_reoptimize_share = 0.20;
  double min_call_records = 8;      // of a call_indirect, before its targets are believed
  double min_call_share = 0.03;     // of a target
  double min_call_coverage = 0.50;  // of the targets that have that share, together
  uint32_t max_call_targets = 4;    // a call
  double calls_per_record = 16381;  // what a record of a call stands for
  // What a call costs that was not foreseen, next to one whose target stands in place.
  double seconds_per_unforeseen_call = 4e-9;
  double min_unforeseen_share = 0.04;   // of the optimized code's time, for a recompile
  double min_seconds_published = 0.05;  // of optimized code, before its calls are judged again
  double min_branch_seen = 64;  // executions of a branch or select seen, before its counts are believed
  double min_branch_seen_one_sided =
      12;                          // and of one that always went the same way, to place the other side apart
  double min_branch_judged = 128;  // of a branch: those that went through the predictor
  double min_select_rate = 0.04;   // mispredicted share from which a select may pay
  double max_branch_rate = 0.05;   // and up to which a branch may, in place of a select
  double min_branch_minority = 0.01;   // of a branch: with less the compiler leaves it a branch by itself
  double min_minority_to_wait = 0.10;  // of a branch, to wait for how well it is predicted
  double min_branch_records = 6;       // of it, so that it is hot enough to wait for
  double max_seconds_to_wait_for_outcomes = 0.03;  // of baseline time
  double min_select_seen_to_wait = 8;  // of a select that nearly always went one way, to see it often enough
  double max_seconds_to_wait_for_selects = 0.012;  // of baseline time
  double branches_per_record = 65521;              // what a record of a branch stands for
  double seconds_mispredicted = 5e-9;              // that a misprediction takes
  double seconds_chosen = 1e-9;                    // that waiting for a choice takes
  uint32_t max_conversions = 16;                   // branches and selects a function
  double min_value_records = 8;          // of an operator, before what its operand usually is is believed
  double min_value_records_to_wait = 2;  // to wait for that many
  double max_seconds_to_wait_for_values = 0.012;  // of baseline time
  double min_value_share = 0.8;                   // of its records, that the usual value has
  double min_value_gain = 0.02;  // of the function's optimized time, for it to be worth a trial
  double max_usual_bytes = 256;  // of a copy or fill
  double max_usual_trips = 64;   // of a loop; one that goes round more often gains little by knowing
  // What an execution gains by a number that is known: a division of 32 and of 64 bits; a copy or fill by the call that
  // it would be; a loop, each time that it is entered, by its turns in a row.
  double seconds_divided = 1.5e-9;
  double seconds_divided_wide = 2e-9;
  double seconds_asked_to_copy = 4e-9;
  double seconds_looped = 2e-9;
  uint32_t max_usual_values = 16;    // operators a function
  uint32_t max_compiles = 4;         // of one function
  double seconds_per_compile = 8;    // of its run, for one more
  uint32_t max_later_compiles = 60;  // that are earned so
  double min_samples_recent = 40;    // for the last second to speak for itself
  double min_reopen_share =
      0.15;  // of the function's samples, that a load must stall for more than when it was rejected
  double min_moved_share =
      0.25;  // of the last samples in optimized code, that stand elsewhere than the first did
  // In optimized code, before a change makes what it was made for a thing of the past. What changes sooner goes back and
  // forth, and code is better made for all of it.
  double min_seconds_steady = 0.8;
  double seconds_observed = 0.03;  // in baseline code, when it is seen again, before it is compiled again
  double seconds_to_reopen = 0.5;  // of the function since; four times as many with each rejection
  uint32_t max_prefetches = 8;     // loads a function
  uint32_t first_width = 16;       // searches at once that a trial begins with
  uint32_t max_osr_loops = 1;  // each costs another copy of the function's remainder, and its compile time
  // For a function's next call, in its baseline code or, while it is seen running at all, in anyone's. A loop
  // entry that it turns out not to need costs a compile, and is of use at each call until the whole function
  // is compiled.
  double max_seconds_to_wait_for_entry = 0.004;
  double max_all_seconds_to_wait_for_entry = 0.010;
  double min_seconds_watched = 0.0007;
  double min_samples_left_behind = 12;  // in baseline code while optimized code is there
  double optimized_speedup = 2.0;       // optimized against baseline code, conservative
  double compile_fixed_seconds = 0.004;
  double compile_seconds_per_byte = 6e-6;
  // What a second of compiling in the background costs the guest, in its seconds: a core that is otherwise
  // idle is cheap, not free (other work, the package's clock). 1 where the guest has to stand aside.
  double background_cost = 0.125;
  // Of pages.h.
  double min_page_addresses = 24;
  double min_page_spread = 0.6;                  // of the addresses on pages of their own
  double tlb_reach_bytes = 12.0 * (1 << 20);     // of the second level, with pages of 4 KiB
  double max_page_gap_bytes = 32.0 * (1 << 20);  // between sampled regions that are moved together
  // Of the time that loads stall, page walks that huge pages save: 0.25 to 0.45 of it, less by less stalling, in four programs
  // in a virtual machine, where tables are walked in two dimensions.
  double walk_share_of_stalls = 0.3;
  // Who ends right behind a move has lost its cost; twice that has to be there to be gained.
  double min_page_return = 2;
  // What a move costs the guest differs by a factor of ten: 0.5 ms for 2 MiB where a page can be made ready beside it, 5 to
  // 8 ms where it waits for that too (Linux 6.18, a virtual machine that has to be given the memory). So `page_probe_bytes`
  // are moved first where that would pay at the lower figure, and from then on what was measured counts: the waiting, and
  // what making pages ready took, by background_cost.
  double least_move_seconds_per_byte = 3e-10;
  double most_move_seconds_per_byte = 4e-9;
  double page_probe_bytes = 8.0 * (1 << 20);
  // Of page_fill.h.
  double min_full_blocks = 4;
  double min_full_share = 0.75;       // of the blocks that are touched at all
  double min_untouched_share = 0.05;  // of the memory: less is not worth asking
  double max_available_share = 0.25;  // of the machine's memory, that is asked for
  double seconds_per_fault = 0.5e-6;  // of 4 KiB, beside making it zeros, which huge pages take as well
  double zero_seconds_per_byte = 2e-10;
  double max_fill_slowdown = 1.4;  // of the filling itself, against before
  // Of layout.h.
  double min_layout_samples = 100;             // in optimized code
  double hot_code_share = 0.95;                // of these samples: what "hot" code holds
  double itlb_reach_bytes = 64 * 4096.0;       // of the first level, with pages of 4 KiB
  double layout_share = 0.08;                  // of the time, that waits for code far beyond that reach
  double layout_seconds_per_byte = 8e-9;       // to copy code, and to move the page that it lies in
  double layout_seconds_per_function = 10e-6;  // to count its calls, to publish it back and forth in a trial
  double min_layout_settled = 0.5;             // seconds without a new version, before the last move
  double min_layout_share = 0.75;              // of the time, in optimized code, to move before that
  double min_layout_news = 0.25;  // of the samples, outside of what was tried already, to try once more
  uint32_t max_layouts = 4;       // of one module
  // Of versions.h.
  double min_version_seconds =
      1.0;  // of CPU time in a version, before a decision in it is weighed against none
  double min_version_share = 0.10;  // of the samples of late
  double version_gain = 0.05;       // that is taken for possible, by doing without one that does not pay
  double seconds_of_version_trial = 0.1;  // of CPU time in the version without it
  double version_loss = 0.10;             // that is taken for likely meanwhile
  double max_version_trial_share = 0.08;  // of all guests' CPU time, in versions that are on trial
  friend bool operator==(const PolicyConfig&, const PolicyConfig&) = default;
};

// A decision that can be switched off, by the name that it has everywhere.
struct Decision {
  std::string_view name;
  bool PolicyConfig::*enabled;
};
// The one list of them: the changes of jit/change.h by their names there, and what is no change of code.
inline constexpr std::array kDecisions = {
    Decision{"optimize", &PolicyConfig::optimize},
    Decision{to_string(jit::ChangeKind::kPrefetch), &PolicyConfig::prefetch},
    Decision{to_string(jit::ChangeKind::kInterleave), &PolicyConfig::interleave},
    Decision{to_string(jit::ChangeKind::kJumpPointers), &PolicyConfig::jump_pointers},
    Decision{to_string(jit::ChangeKind::kInlineCalls), &PolicyConfig::inline_calls},
    Decision{"huge-pages", &PolicyConfig::huge_pages},
    Decision{to_string(jit::ChangeKind::kWeighBranches), &PolicyConfig::weigh_branches},
    Decision{to_string(jit::ChangeKind::kSelect), &PolicyConfig::select},
    Decision{to_string(jit::ChangeKind::kBranch), &PolicyConfig::branch},
    Decision{to_string(jit::ChangeKind::kValue), &PolicyConfig::values},
    Decision{to_string(jit::ChangeKind::kSplitCold), &PolicyConfig::code_layout},
    Decision{"follow-shifts", &PolicyConfig::follow_shifts},
};

// kObserve: back to baseline code, as if nothing were known; what it shows leads to a new decision.
enum class Action : uint8_t { kNothing, kWait, kOptimize, kReoptimize, kObserve };
const char* to_string(Action action);

struct Alternative {
  std::string name;  // "nothing", "optimize", "optimize + prefetch 2 loads"
  double cost_seconds = 0;
  double gain_seconds = 0;  // estimated, over the assumed future
};

struct PrefetchPlan {
  jit::PrefetchHint hint;
  double estimated_gain = 0;  // upper bound, share of the function's time
  std::string reason;
};

struct InterleavePlan {
  jit::InterleaveHint hint;
  double estimated_gain = 0;  // upper bound, share of the function's time
  std::string reason;
};

struct JumpPlan {
  jit::JumpHint hint;
  double estimated_gain = 0;  // upper bound, share of the function's time
  std::string reason;
};

struct CallPlan {
  jit::CallHint hint;
  std::string reason;
};

// What is said to the compiler about a branch or select. Where the hint asks for another form, `reason` is
// why.
struct BranchPlan {
  jit::BranchHint hint;
  double estimated_gain = 0;  // seconds over the assumed future, upper bound
  std::string reason;
};

struct ValuePlan {
  jit::ValueHint hint;
  double estimated_gain = 0;  // seconds over the assumed future, upper bound
  std::string reason;
};

struct FunctionPlan {
  Action action = Action::kNothing;
  FuncIndex function;
  std::vector<LoopIndex> osr_loops;  // loops running baseline code is to leave by
  bool loop_entries_only = false;    // nothing but these: it is not called again as far as anyone knows
  std::vector<PrefetchPlan> prefetches;
  std::vector<InterleavePlan> interleaves;  // loads whose searches are to go several at once
  std::vector<JumpPlan> jumps;              // loads whose loop is to remember where it goes
  std::vector<CallPlan> calls;  // call_indirects to test for their usual targets, and to inline these
  std::vector<BranchPlan> branches;
  std::vector<ValuePlan> values;  // operators to have code for what their operand usually is
  bool split_cold = false;        // what hardly ever runs is to lie apart
  std::vector<Alternative> alternatives;
  std::string reason;
};

// What the compiler is asked for.
std::vector<jit::Request> requests_of(const FunctionPlan& plan);

FunctionPlan decide(const FunctionEvidence& evidence, const PolicyConfig& config);
// Whether compiling a function that never has min_samples of late is worth being asked about: it ran so long in baseline
// code, with so many samples, since it was loaded. What decide() makes of the evidence, from two of its numbers.
bool may_pay_in_flat_profile(double seconds_run, double samples_run, double compile_seconds,
                             const PolicyConfig& config);
// Of CPU time: what it took before, else the estimate.
double compile_seconds(const FunctionEvidence& evidence, const PolicyConfig& config);
// `known`: what an earlier compile took; 0: not known.
double compile_seconds(double known, uint32_t code_bytes, const PolicyConfig& config);

// The calls to inline with any version of a function: testing for the usual targets costs a comparison where the
// call through the table costs two checks, and a miss of the branch predictor as before. A trial of whole versions
// (versions.h) may have taken them back: then none.
std::vector<CallPlan> plan_calls(const FunctionEvidence& evidence, const PolicyConfig& config);

// What is known of branches and selects, for any version of the function, and which of them are worth another
// form. Each form is on trial; the counts together are, in a trial of whole versions.
std::vector<BranchPlan> plan_branches(const FunctionEvidence& evidence, const PolicyConfig& config);

// Operators whose operand is usually the same number, for any version of the function: on trial, or kept by one.
std::vector<ValuePlan> plan_values(const FunctionEvidence& evidence, const PolicyConfig& config);

// Whether what hardly ever runs of any version of the function is to lie apart: in modules that the instruction TLB
// does not reach as a whole.
bool plan_split(const FunctionEvidence& evidence, const PolicyConfig& config);

// What goes with any version of a function, whatever it is compiled for: calls, branches, values, the split.
void plan_version(FunctionPlan& plan, const FunctionEvidence& evidence, const PolicyConfig& config);

// Same action, loops, prefetched loads, interleaved searches, remembered ways, calls, branches and usual values:
// what replaying must reproduce.
bool same_plan(const FunctionPlan& a, const FunctionPlan& b);

// Parameters by name, as saved with a profile. Unknown names are ignored, missing ones keep their default.
std::map<std::string, double> to_parameters(const PolicyConfig& config);
PolicyConfig from_parameters(const std::map<std::string, double>& parameters);

// One line an alternative, as logs and reports print it.
std::vector<std::string> describe_alternatives(const std::vector<Alternative>& alternatives);
std::vector<std::string> describe_alternatives(const FunctionPlan& plan);

// Writes a plan into the form in which it is saved, and decides a saved episode again from its evidence.
Episode make_episode(const FunctionEvidence& evidence, const FunctionPlan& plan);
bool replays(const Episode& episode, const PolicyConfig& config);

}  // namespace hindsight::feedback
