// The part of a run's page that shows what the guest itself told: its events along time, and the values that
// it sampled.
#pragma once

#include <string>

#include "runtime/engine/hindsight.h"

namespace hindsight::report {

// HTML; empty if the guest never called module hindsight_lwp. `seconds`: how long the run was, the length of
// the time line.
std::string guest_section(const GuestEventReport& guest, double seconds);

}  // namespace hindsight::report
