// The clock unit: samples of a thread's time with its registers, plus the thread's own event counting. Works
// anywhere, so it is what runs where neither LWP nor a PMU is to be had. Internal to this room; made through
// select_unit.
//
// Why time is evidence of cache misses: an out-of-order core takes the timer interrupt when the oldest
// instruction, the stalled load, retires. So the samples of a missing load stand exactly one instruction
// after it, in proportion to its stall time. The registers still give its address.
#pragma once

#include <memory>

#include "feedback/lwp/units/unit.h"

namespace hindsight::lwp {

enum class ClockSource : uint8_t {
  kBest,   // perf; the timer where perf is refused, decided anew at each attach
  kPerf,   // or fail
  kTimer,  // or fail
};

std::unique_ptr<UnitFactory> make_clock_factory(ClockSource source);

// The null unit: nothing is sampled, records are counted and dropped.
std::unique_ptr<UnitFactory> make_null_factory();

}  // namespace hindsight::lwp
