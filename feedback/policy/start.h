// What to do about a function when its module starts, given what earlier runs decided about it. Pure.
//
// It will run as it did on the average of the runs that are known (merge.h). What it ran in optimized code
// would have taken baseline code longer, so
//
//     t    = (seconds in baseline code + optimized_speedup * seconds in optimized code) / runs
//     gain = t * (1 - 1 / optimized_speedup)
//     cost = background_cost * what the compile took last time
//
// and it is compiled at once where the gain is larger. The one with the most gain for each second of
// compiling comes first (Smith's rule), which makes the sum of all waiting smallest.
//
// It is compiled as it was decided: with the usual targets of its calls and with the loop entries it needed.
// Prefetches and interleaved searches that were kept are in it as they were tuned. Those whose trial had not
// ended are on trial again. Everything stays as open as it ever was. A prefetch that is settled is looked at
// again while it runs. Calls that go elsewhere are seen, and the function is compiled anew for what is.
#pragma once

#include <cstdint>
#include <map>

#include "feedback/policy/policy.h"
#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {

struct StartPlan {
  FunctionPlan plan;                      // kNothing or kOptimize
  std::map<jit::Site, uint32_t> settled;  // changes known to pay, and at which setting
  double priority = 0;                    // seconds to gain for each second of compiling
};

// `evidence`: what the decision was made on that is taken over.
StartPlan decide_start(const FunctionEvidence& evidence, const Episode::Earlier& earlier,
                       const PolicyConfig& config);

// What decide_start() is to be asked about, for each function of the module about which something was
// decided. It is the evidence of its last decision, and what earlier runs knew. Decisions that came to
// nothing (the compiler refused) are left out.
struct StartQuestion {
  const Episode* decision = nullptr;
  Episode::Earlier earlier;
};
std::vector<StartQuestion> start_questions(const ModuleProfile& known);

// "decided in an earlier run: ", and why then.
std::string first_reason(const Episode& decision);

// In the form in which it is saved; replays() asks decide_start() about it again.
Episode make_start_episode(const StartQuestion& question, const StartPlan& plan);

}  // namespace hindsight::feedback
