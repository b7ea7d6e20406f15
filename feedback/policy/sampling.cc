#include "feedback/policy/sampling.h"

#include <algorithm>

namespace hindsight::feedback {

SamplingPlan plan_sampling(const SamplingState& state, const SamplingConfig& config) {
  const bool fresh = state.now - state.new_code < config.learn_seconds;
  const bool follow = state.now - state.new_version < config.follow_seconds;
  const bool place = state.now - state.new_place < config.place_seconds;
  if (!state.waiting && !fresh && !follow && !place && !state.comparing) return {config.steady_hz, "steady"};
  const double of_places =
      std::min(state.places * config.budget_seconds_a_place, config.most_budget_for_places);
  if (state.spent_seconds >= config.budget_seconds + of_places + config.budget_share * state.now)
    return {config.steady_hz, "the budget of bursts is spent"};
  if (state.waiting) return {config.learn_hz, "a decision waits for samples"};
  if (fresh) return {config.learn_hz, "new code runs"};
  if (place) return {config.learn_hz, "a loop begins to run in baseline code"};
  if (follow) return {config.follow_hz, "a new version runs"};
  return {config.follow_hz, "stalls are compared while pages move"};
}

double burst_cost(uint32_t hz, double seconds, const SamplingConfig& config) {
  if (hz <= config.steady_hz) return 0;
  return (hz - config.steady_hz) * seconds * config.seconds_a_sample;
}

}  // namespace hindsight::feedback
