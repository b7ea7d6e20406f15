// One load, timed by itself: the only way to see a latency where nothing counts misses. The fences take away
// what an out-of-order core would have overlapped, so the result is an isolated latency, not a cost; and the
// time-stamp counter of a virtual machine may move in steps larger than a cache hit. Single results separate
// memory from everything nearer; means of kTimedLoadsToClassify tell the cache levels apart, against levels
// that the same function was calibrated with (calibration.h).
//
// Costs about 40 ns on a hit, what the load takes on a miss.
#pragma once

#include <x86intrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hindsight::lwp {

// Longer ones were interrupted.
inline constexpr uint32_t kTimedLoadClipTicks = 1000;
inline constexpr uint32_t kTimedLoadsToClassify = 32;

// Ticks of the time-stamp counter, clipped. `at` must be readable. Any thread.
inline uint32_t time_load(const void* at) {
  unsigned processor = 0;
  _mm_lfence();
  const uint64_t begin = __rdtsc();
  _mm_lfence();  // the load does not start before the clock was read
  const auto value = *static_cast<const volatile uint8_t*>(at);
  (void)value;
  const uint64_t end = __rdtscp(&processor);  // waits for the load
  _mm_lfence();
  return static_cast<uint32_t>(std::min<uint64_t>(end - begin, kTimedLoadClipTicks));
}

}  // namespace hindsight::lwp
