// TimedLoads: from which level of memory do the hinted loads of one loop come? At the end of a strip, on the
// guest's own thread, it loads and times one place by itself (feedback/lwp/calibration/timed_load.h). The place
// is one where the loop will look some hundred iterations later. No code of the loop is involved: its code
// leaves the addresses in the LoopCell on its way to strip_ended.
//
// The place is far ahead because the loads that come next are under way already. The core's own running ahead
// brings them, or the prefetch that is on trial.
//
// Cost: a timed load takes 0.04 to 0.3 us, and at most one is done every kTimedEverySeconds. That is below
// 0.2 % of the loop's time, and less once there are enough. In the middle of a comparison both arms pay the
// same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "feedback/lwp/calibration/calibration.h"
#include "feedback/profile/evidence.h"
#include "jit/abi/loop_cell.h"

namespace hindsight::rt {

// What timed loads of one site add up to. Pure.
class TimedSums {
 public:
  static constexpr uint32_t kBinTicks = 20;

  void add(uint32_t ticks);
  uint64_t count() const { return count_; }
  double mean_ticks() const { return count_ ? static_cast<double>(ticks_) / static_cast<double>(count_) : 0; }
  // Share of those that took at least that long, to the width of a bin.
  double share_from(double ticks) const;

 private:
  static constexpr size_t kBins = 51;      // the last: clipped
  static constexpr uint64_t kMost = 4096;  // then everything is halved: what is recent weighs more

  uint64_t count_ = 0;
  uint64_t ticks_ = 0;
  std::array<uint32_t, kBins> bins_{};
};

// In the words of the profile. `calibration` null: no level, no latency.
feedback::LoadLatency latency_of(const TimedSums& sums, const lwp::Calibration* calibration);

class TimedLoads {
 public:
  explicit TimedLoads(double ticks_per_second) : ticks_per_second_(ticks_per_second) {}

  // Before the code is published.
  void arm(jit::LoopCell& cell);

  // On a guest thread, from the builtin. Loads from [memory, memory + bytes) only; a place elsewhere is not
  // touched. If two threads end a strip at once, one of them measures.
  void strip_ended(const jit::LoopCell& cell, const uint8_t* memory, uint64_t bytes);

  // Any thread.
  TimedSums sums(uint32_t slot) const;

 private:
  const double ticks_per_second_;
  mutable std::mutex mutex_;  // protects what follows; guest threads only try it
  uint64_t last_tick_ = 0;
  uint32_t next_slot_ = 0;
  std::array<TimedSums, jit::kMostTimedLoads> sums_;
};

}  // namespace hindsight::rt
