// Fixed tiers: for TierMode::kBaseline and kOptimized. No profiling, no decisions.
#pragma once

#include <memory>

#include "runtime/code/tiers.h"

namespace hindsight::rt {

// `services` outlives it.
std::unique_ptr<TierManager> make_fixed_tiers(TierMode mode, CodeServices& services);

}  // namespace hindsight::rt
