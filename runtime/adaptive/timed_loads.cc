#include "runtime/adaptive/timed_loads.h"

#include <algorithm>
#include <atomic>

#include "base/ticks.h"
#include "feedback/lwp/calibration/timed_load.h"
#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {

void TimedSums::add(uint32_t ticks) {
  if (count_ >= kMost) {
    // The bins lose their halves; the sums follow them, so that shares stay shares of what is counted.
    const double mean = mean_ticks();
    count_ = 0;
    for (uint32_t& bin : bins_) count_ += bin /= 2;
    ticks_ = static_cast<uint64_t>(mean * static_cast<double>(count_));
  }
  count_ += 1;
  ticks_ += ticks;
  bins_[std::min<size_t>(ticks / kBinTicks, kBins - 1)] += 1;
}

double TimedSums::share_from(double ticks) const {
  if (count_ == 0) return 0;
  const auto first = static_cast<size_t>(std::clamp(ticks / kBinTicks, 0.0, double{kBins}));
  uint64_t slow = 0;
  for (size_t i = first; i < kBins; ++i) slow += bins_[i];
  return static_cast<double>(slow) / static_cast<double>(count_);
}

feedback::LoadLatency latency_of(const TimedSums& sums, const lwp::Calibration* calibration) {
  feedback::LoadLatency latency;
  latency.timed = sums.count();
  latency.mean_ticks = sums.mean_ticks();
  if (!calibration) return latency;
  const MemoryLevel level = lwp::classify(*calibration, latency.mean_ticks, latency.timed);
  latency.memory_share = sums.share_from(calibration->memory_threshold_ticks());
  latency.latency_ns = (*calibration)[level].latency_ns;
  latency.cycles = static_cast<uint32_t>(latency.latency_ns * calibration->core_ghz);
  latency.level = level;
  return latency;
}

void TimedLoads::arm(jit::LoopCell& cell) {
  // Release: a thread that ends a strip finds a complete object.
  std::atomic_ref(cell.timed_loads).store(this, std::memory_order_release);
}

void TimedLoads::strip_ended(const jit::LoopCell& cell, const uint8_t* memory, uint64_t bytes) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const uint64_t now = read_ticks();
  for (uint32_t tries = 0; tries < jit::kMostTimedLoads; ++tries) {
    const uint32_t slot = (next_slot_ + tries) % jit::kMostTimedLoads;
    // Another thread in this loop may have written the cell since; any address of the two does.
    const uint64_t at =
        std::atomic_ref(const_cast<uint64_t&>(cell.upcoming[slot])).load(std::memory_order_relaxed);
    const uint64_t offset = at - reinterpret_cast<uint64_t>(memory);
    if (at == 0 || offset >= bytes) continue;
    const double seconds = sums_[slot].count() < kTimedEnough ? kTimedEverySeconds : kTimedEverySecondsLater;
    // The first of a loop waits as well: its strip may have begun just now.
    if (last_tick_ == 0) last_tick_ = now;
    if (static_cast<double>(now - last_tick_) < seconds * ticks_per_second_) return;
    sums_[slot].add(lwp::time_load(memory + offset));
    last_tick_ = now;
    next_slot_ = (slot + 1) % jit::kMostTimedLoads;
    return;
  }
}

TimedSums TimedLoads::sums(uint32_t slot) const {
  std::lock_guard lock(mutex_);
  return sums_[slot];
}

}  // namespace hindsight::rt
