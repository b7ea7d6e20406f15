// What plans for functions are made of and made into; several parts of the adaptive tier need it. Turns settled
// changes into a plan, and a plan into the profile's ledger and into lines of the log. Pure.
#pragma once

#include <string>
#include <vector>

#include "feedback/profile/profile.h"
#include "runtime/adaptive/job.h"

namespace hindsight::rt {

// What is known to pay: `best` is the setting of its knob.
void plan_settled(Job& job, jit::Site site, uint32_t best, double gain, const char* reason);
// Settings that are known come before those that a trial would begin with.
void begin_where_settled(feedback::FunctionPlan& plan, const Settled& settled);
// What the compiler is told and its answers do not hold: kept beside the version.
std::vector<feedback::Candidate> told_by(const feedback::FunctionPlan& plan);

void mark_in_trial(feedback::FunctionCounts& counts, const feedback::FunctionPlan& plan);
void note_published(feedback::FunctionCounts& counts, const jit::CodeVersion& version);

// What is asked for in the function, a line a change.
std::vector<std::string> lines_of(const feedback::FunctionPlan& plan, const std::string& function);

}  // namespace hindsight::rt
