// What moves of pages and moves of code say alike of themselves. `Move` has a plan, state, outcome, seconds
// and measured_gain.
#pragma once

#include "feedback/policy/policy.h"
#include "feedback/profile/profile_file.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

// `moved`: what, in words.
template <typename Move>
DecisionReport report_of_move(const Move& move, uint64_t id, const char* kind, const char* moved) {
  DecisionReport decision;
  decision.id = id;
  decision.kind = kind;
  decision.function = moved;
  decision.reason = move.plan.reason;
  decision.alternatives = feedback::describe_alternatives(move.plan.alternatives);
  decision.state = move.state;
  decision.estimated_gain = move.plan.estimated_gain;
  decision.measured_gain = move.measured_gain;
  decision.outcome = move.outcome;
  decision.seconds = move.seconds;
  return decision;
}

// What became of the move goes into its episode.
template <typename Move>
void put_outcome(const Move& move, uint64_t id, feedback::ModuleEpisode& episode) {
  episode.id = id;
  episode.seconds = move.seconds;
  episode.state = move.state;
  episode.outcome = move.outcome;
  episode.measured_gain = move.measured_gain;
}

}  // namespace hindsight::rt
