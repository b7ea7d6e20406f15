#include "runtime/adaptive/engine_policy.h"

#include <algorithm>

#include "base/thread_processor.h"
#include "runtime/code/guest_unit.h"

namespace hindsight::rt {
namespace {

// The part of a second of compiling that counts as cost, where the guest stands aside for it. Not 1: what has run so long
// mostly goes on for longer than it has run, which the policy's assumption leaves out. Swept: with 1, 16 programs of 0.2
// to 0.9 s took 1.05 times as long on one core.
constexpr double kCostOnOneCore = 0.25;

}  // namespace

feedback::PolicyConfig make_policy(const EngineConfig& config, const TestKnobs& knobs,
                                   const MachineFacts& machine) {
  feedback::PolicyConfig policy;
  set_costs(policy, machine);
  for (const feedback::Decision& decision : feedback::kDecisions) {
    const bool feeds_back = decision.what != feedback::kOptimize.what;
    decision.set(policy, config.tier == TierMode::kAuto && (config.feedback || !feeds_back) &&
                             std::ranges::find(config.disabled_decisions, decision.name) ==
                                 config.disabled_decisions.end());
  }
  if (usable_processors() == 1) policy.background_cost = kCostOnOneCore;
  if (knobs.trial_bias != 0) {
    policy.min_version_seconds = policy.seconds_of_version_trial = 0;
    policy.version_gain = policy.max_version_trial_share = 1;
  }
  return policy;
}

}  // namespace hindsight::rt
