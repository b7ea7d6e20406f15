// What plans for functions are made of and made into; several parts of the adaptive tier need it. Turns settled
// changes into a plan, and a plan into the profile's ledger and into lines of the log. Pure.
#pragma once

#include <string>
#include <vector>

#include "feedback/profile/profile.h"
#include "runtime/adaptive/job.h"

namespace hindsight::rt {

// What is known to pay: `best` is the setting of its knob, `weight` the share of the unit's time that it is about, if that is known.
void plan_settled(Job& job, jit::Site site, uint32_t best, double gain, const char* reason,
                  double weight = 0);
// Settings that are known come before those that a trial would begin with.
void begin_where_settled(feedback::FunctionPlan& plan, const Settled& settled);
// What the compiler is told and its answers do not hold: kept beside the version.
std::vector<feedback::Candidate> told_by(const feedback::FunctionPlan& plan);

// Or it is that loop.
bool is_loop_in(const std::vector<wasm::LoopInfo>& loops, LoopIndex inner, LoopIndex outer);
// Something that is known to pay is in the version's code.
bool has_won(const jit::CodeVersion& version, const Settled& settled);

// What is to be tried in a nest is in trial once its second compile begins. Until then whatever takes over from its first code may try
// it, and has to: the nest's own compile ends for that. `waiting`: the units of such compiles.
void forget_what_waits(feedback::FunctionEvidence& evidence, const wasm::Module* module,
                       const DecisionLog::Units& waiting);

void mark_in_trial(feedback::FunctionCounts& counts, const feedback::FunctionPlan& plan);
void note_published(feedback::FunctionCounts& counts, const wasm::Module& module,
                    const jit::CodeVersion& version);

// Where an outcome of a change of the whole version stands in an episode: at a nest's loop, or at the function.
jit::Site site_of_version(const feedback::Episode& episode, jit::ChangeKind change);

// At the scale 1: what was expected before anything was compiled in this process.
double expected_seconds(const wasm::Module& module, jit::Unit unit, const feedback::PolicyConfig& policy);

// "main", "the loop at 0x3b2 of main".
std::string unit_name(const wasm::Module& module, jit::Unit unit);

// What is asked for in the function, a line a change.
std::vector<std::string> lines_of(const feedback::FunctionPlan& plan, const std::string& function);

}  // namespace hindsight::rt
