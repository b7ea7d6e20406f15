// What the profiles have of one function.
#pragma once

#include "feedback/monitor/monitor.h"

namespace hindsight::rt {

// Under Monitor::with_profiles(), and no longer. Null: nothing is known of it, or its module is gone.
inline const feedback::FunctionCounts* counts_of(const feedback::Monitor::Profiles& profiles,
                                                 const wasm::Module* module, FuncIndex function) {
  const auto profile = profiles.find(module);
  if (profile == profiles.end()) return nullptr;
  const auto found = profile->second->functions().find(function.value);
  return found == profile->second->functions().end() ? nullptr : &found->second;
}

}  // namespace hindsight::rt
