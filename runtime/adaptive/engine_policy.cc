#include "runtime/adaptive/engine_policy.h"

#include <algorithm>

#include "runtime/code/compile_threads.h"
#include "runtime/code/guest_unit.h"

namespace hindsight::rt {

feedback::PolicyConfig make_policy(const EngineConfig& config, const TestKnobs& knobs) {
  feedback::PolicyConfig policy;
  for (const feedback::Decision& decision : feedback::kDecisions) {
    const bool feeds_back = decision.enabled != &feedback::PolicyConfig::optimize;
    policy.*decision.enabled =
        config.tier == TierMode::kAuto && (config.feedback || !feeds_back) &&
        std::ranges::find(config.disabled_decisions, decision.name) == config.disabled_decisions.end();
  }
  if (usable_threads() == 1) policy.background_cost = 1;
  if (knobs.trial_bias != 0) {
    policy.min_version_seconds = policy.seconds_of_version_trial = 0;
    policy.version_gain = policy.max_version_trial_share = 1;
  }
  return policy;
}

}  // namespace hindsight::rt
