// What the machine costs, for those who decide and try: the calibration's figures, and what the processor says of itself.
// Where neither says anything, or what no processor has, constants stay: the policy's parameters as they are by default
// (feedback/policy/parameters.h), and kMissSeconds (trial_parameters.h).
//
// The policy gets its figures once, when the engine is created: they are saved with its decisions, and replay with them. A
// machine that is not calibrated by then is so for the next engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "feedback/lwp/calibration/calibration.h"
#include "feedback/policy/parameters.h"

namespace hindsight::rt {

struct MachineFacts {
  std::shared_ptr<const lwp::Calibration> calibration = nullptr;  // null: there is none
  std::optional<uint64_t> tlb_reach = std::nullopt;               // bytes
};

void set_costs(feedback::PolicyConfig& policy, const MachineFacts& machine);

// That a load from memory takes. Null: not calibrated.
double miss_seconds(const lwp::Calibration* calibration);

}  // namespace hindsight::rt
