// The policy of an engine: which decisions its configuration leaves, and what the machine says about their cost.
#pragma once

#include "feedback/policy/policy.h"
#include "runtime/code/test_knobs.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

feedback::PolicyConfig make_policy(const EngineConfig& config, const TestKnobs& knobs);

}  // namespace hindsight::rt
