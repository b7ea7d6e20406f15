// The policy: evidence in, plan out. Pure: no clock, no thread, no system call, no global state, so that a
// saved profile replays to the same plans. It weighs alternatives, doing nothing included, in seconds of CPU
// time, and says why it chose.
//
// Cost-benefit model (after Arnold et al., "Adaptive Optimization in the Jalapeno JVM", OOPSLA 2000). A function is
// assumed to run in the future as long as it has run so far. Compiling it pays when the time it would save exceeds the
// compile time:
//     gain = t * (1 - 1/optimized_speedup)
//     cost = background_cost * (compile_fixed_seconds + compile_seconds_per_byte * bytes)
// where an earlier run did not find out what the compile takes.
//
// Flat profiles: the time is spread over hundreds of functions. Then none of them has the samples of late that the above
// goes by, and compiling them all pays all the same. t is then what the function ran since it was loaded, which does not
// fade. What compiling it gains has to be min_flat_return times the cost.
//
// Loops are decided about by themselves where their function is not known to be called again, or is large
// (nest_compiles.cc). What was compiled before counts for nothing there.
//
// What is asked for beside the compile, each decision says for itself (changes/).
//
// Shifts: what a program was like does not say what it is like. Code that is optimized is looked at by its last second as
// well as by its last seconds. It goes back to baseline code to be seen again where its calls go elsewhere, or its
// samples stand elsewhere (sample_shift.h). That is so only if it was made for what branches, calls and operands were
// like. A change that was taken back is tried again where its load stalls clearly more than then. Compiles
// beyond max_compiles are earned by running on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "feedback/policy/candidate.h"
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

struct FunctionPlan {
  Action action = Action::kNothing;
  FuncIndex function;
  std::vector<LoopIndex> osr_loops;  // loops running baseline code is to leave by
  bool loop_entries_only = false;    // nothing but these: it is not called again as far as anyone knows
  std::optional<LoopIndex> nest;     // this loop as a nest, and nothing else
  bool early = false;                // first code: what to try in it is asked when it was seen more often,
  bool second = false;               // by this plan
  bool for_callees = false;          // also for loads of what the nest calls, which is optimized code already
  bool only_for_callees = false;     // its own time alone is no reason
  // What is to be asked for, in the order of change_policies() (changes/change_policy.h).
  std::vector<Candidate> candidates;
  std::vector<Alternative> alternatives;
  std::string reason;

  auto of(jit::ChangeKind kind) { return feedback::of(candidates, kind); }
  auto of(jit::ChangeKind kind) const { return feedback::of(candidates, kind); }
  bool has(jit::ChangeKind kind) const { return feedback::has(candidates, kind); }
  bool has(jit::Site site) const { return find(candidates, site) != nullptr; }
};

// What the compiler is asked for.
std::vector<jit::Request> requests_of(const FunctionPlan& plan);

FunctionPlan decide(const FunctionEvidence& evidence, const PolicyConfig& config);
// Whether compiling a function that never has min_samples of late is worth being asked about. That is so if it ran so
// long in baseline code, with so many samples, since it was loaded. What decide() makes of the evidence, from two of its
// numbers.
bool may_pay_in_flat_profile(double seconds_run, double samples_run, double compile_seconds,
                             const PolicyConfig& config);
// CPU time that a compile of so many bytes and loops is expected to take. `scale`: FunctionEvidence::compile_scale.
double expected_seconds(uint32_t code_bytes, size_t loops, double scale, const PolicyConfig& config);
// CPU time that the compile takes: what it took before, else the estimate.
double compile_seconds(const FunctionEvidence& evidence, const PolicyConfig& config);
// `known`: what an earlier compile took; 0: not known. `scale`: as above.
double compile_seconds(double known, uint32_t code_bytes, double scale, const PolicyConfig& config);

// What one decision would ask for now: reports say by this why it was asked for, since the policy is pure.
std::vector<Candidate> propose(jit::ChangeKind kind, const FunctionEvidence& evidence,
                               const PolicyConfig& config);
// What all those would that are about loads that stall.
std::vector<Candidate> propose_for_loads(const FunctionEvidence& evidence, const PolicyConfig& config);
// What it would ask for by now about further loads of the plan's unit, if that asks for loads: one that waits for its compile was
// made of few samples.
std::vector<Candidate> loads_since(const FunctionPlan& plan, const FunctionEvidence& evidence,
                                   const PolicyConfig& config);
// What goes with any version of a function, whatever it is compiled for: calls, branches, values, the split.
std::vector<Candidate> propose_for_version(const FunctionEvidence& evidence, const PolicyConfig& config);

// Same action, loops and sites: what replaying must reproduce.
bool same_plan(const FunctionPlan& a, const FunctionPlan& b);

// One line an alternative, as logs and reports print it.
std::vector<std::string> describe_alternatives(const std::vector<Alternative>& alternatives);
std::vector<std::string> describe_alternatives(const FunctionPlan& plan);

// Writes a plan into the form in which it is saved, and decides a saved episode again from its evidence.
Episode make_episode(const FunctionEvidence& evidence, const FunctionPlan& plan);
bool replays(const Episode& episode, const PolicyConfig& config);

}  // namespace hindsight::feedback
