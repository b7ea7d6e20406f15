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

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "feedback/policy/hints.h"
#include "feedback/policy/parameters.h"
#include "feedback/profile/evidence.h"
#include "feedback/profile/profile_file.h"
#include "jit/change.h"

namespace hindsight::feedback {

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

// One line an alternative, as logs and reports print it.
std::vector<std::string> describe_alternatives(const std::vector<Alternative>& alternatives);
std::vector<std::string> describe_alternatives(const FunctionPlan& plan);

// Writes a plan into the form in which it is saved, and decides a saved episode again from its evidence.
Episode make_episode(const FunctionEvidence& evidence, const FunctionPlan& plan);
bool replays(const Episode& episode, const PolicyConfig& config);

}  // namespace hindsight::feedback
