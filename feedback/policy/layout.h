// Code layout: whether it is worth placing the optimized code of a module's hot functions together on huge pages, in
// the order of their calls. Pure, like every decision. The order itself is the optimizing tier's
// (jit/optimizing/optimizer.h: order_by_calls); where the code goes is the engine's.
//
// Code may exceed what the first-level instruction TLB reaches. Then nearly every call costs a look in the second level,
// or a walk of the page table. Also the fetcher, which runs ahead within a page, stops at each page's end. On one huge
// page neither is left. Caches of instructions hold lines, which are the same wherever a function lies. So there is
// nothing to gain from order where code is small, and little in them where it is large.
//
//     gain = t * share of the samples in that code * layout_share * (1 - itlb_reach / hot bytes)
//     cost = layout_seconds_per_byte * bytes in whole huge pages + layout_seconds_per_function * functions
//
// with t the time run so far, taken as what is still to come. The trial (runtime/adaptive/experiments/exchange_trial.h),
// not the estimate, has the last word.
#pragma once

#include <string>
#include <vector>

#include "feedback/policy/policy.h"
#include "feedback/profile/evidence.h"
#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {

struct LayoutPlan {
  bool move = false;
  bool wait = false;          // not now: versions are still being made, or samples are too few
  double estimated_gain = 0;  // share of the module's time
  std::vector<Alternative> alternatives;
  std::string reason;
};

LayoutPlan decide_layout(const LayoutEvidence& evidence, const PolicyConfig& config);

// In the form in which it is saved, and a saved one decided again.
LayoutEpisode make_layout_episode(const LayoutEvidence& evidence, const LayoutPlan& plan);
bool replays(const LayoutEpisode& episode, const PolicyConfig& config);

}  // namespace hindsight::feedback
