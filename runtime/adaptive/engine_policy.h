// The policy of an engine: which decisions its configuration leaves, and what is known of the machine about their cost.
#pragma once

#include <string_view>

#include "feedback/policy/policy.h"
#include "runtime/adaptive/machine_costs.h"
#include "runtime/code/test_knobs.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

// EngineConfig::unit for comparisons: samples of time alone say what is hot. Nothing is counted in code, no event of the
// processor is opened, no branches are recorded, and the machine is not calibrated.
inline constexpr std::string_view kTimeUnit = "time";

feedback::PolicyConfig make_policy(const EngineConfig& config, const TestKnobs& knobs,
                                   const MachineFacts& machine = {});

}  // namespace hindsight::rt
