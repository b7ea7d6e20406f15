// One load, timed by itself: the only way to see a latency where nothing counts misses. The fences take away
// what an out-of-order core would have overlapped, so the result is an isolated latency, not a cost. The
// time-stamp counter of a virtual machine may move in steps larger than a cache hit. Single results separate
// memory from everything nearer; means of kTimedLoadsToClassify tell the cache levels apart, against levels
// that the same function was calibrated with (calibration.h).
//
// Costs about 40 ns on a hit, what the load takes on a miss.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/ticks.h"
#include "feedback/lwp/calibration/x86_64.h"

namespace hindsight::lwp {

// Longer ones were interrupted.
inline constexpr uint32_t kTimedLoadClipTicks = 1000;
inline constexpr uint32_t kTimedLoadsToClassify = 32;

// Ticks of the time-stamp counter, clipped. `at` must be readable. Any thread.
inline uint32_t time_load(const void* at) {
  x86_64::wait_for_loads();
  const uint64_t begin = read_ticks();
  x86_64::wait_for_loads();  // the load does not start before the clock was read
  const auto value = *static_cast<const volatile uint8_t*>(at);
  (void)value;
  const uint64_t end = x86_64::read_ticks_after_loads();
  x86_64::wait_for_loads();
  return static_cast<uint32_t>(std::min<uint64_t>(end - begin, kTimedLoadClipTicks));
}

}  // namespace hindsight::lwp
