// What plans for functions are made of and made into, which several parts of the adaptive tier need: settled changes into a
// plan, a plan into the profile's outcomes and into lines of the log. Pure.
#pragma once

#include <string>
#include <vector>

#include "feedback/profile/profile.h"
#include "runtime/adaptive/job.h"

namespace hindsight::rt {

inline jit::Site site_of(const feedback::Episode::Prefetch& p) {
  return {p.change, WasmOffset(p.load)};
}

// What is known to pay: `best` is the prefetch's distance or the width of the interleaved searches.
void plan_settled(Job& job, jit::Site site, uint32_t best, double gain, const char* reason);
// Settings that are known come before those that a trial would begin with.
void begin_where_settled(feedback::FunctionPlan& plan, const Settled& settled);

void mark_in_trial(feedback::FunctionCounts& counts, const feedback::FunctionPlan& plan);
feedback::PrefetchOutcome& outcome_in(feedback::FunctionCounts& counts, jit::Site site);
void note_published(feedback::FunctionCounts& counts, const jit::CodeVersion& version);

// What is asked for in the function, a line a change.
std::vector<std::string> lines_of(const feedback::FunctionPlan& plan, const std::string& function);

}  // namespace hindsight::rt
