#include "feedback/lwp/calibration/calibration.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ticks.h"
#include "feedback/lwp/calibration/pointer_chase.h"
#include "feedback/lwp/calibration/timed_load.h"
#include "feedback/lwp/calibration/x86_64.h"

namespace hindsight::lwp {
namespace {

using chase::kLine, chase::kStretch, chase::make_cycle, chase::Stretches, chase::walk;

constexpr uint64_t kMostChasedBytes =
    12 << 20;  // of memory used; huge pages fault in quickly, and not all is touched
constexpr uint64_t kMemoryLines = 4096;     // flushed before each pass
constexpr uint64_t kMemoryStride = 512;     // from line to line: no neighbour is fetched along
constexpr uint32_t kTimedLoads = 512;       // a level
constexpr uint64_t kVictimBytes = 1 << 19;  // over which the lines lie that are pushed into the third level

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr uint32_t kTimedStretch = 64;

// Timed loads along the cycle. Each place is loaded once a round, so each comes from where the walks before
// have left it.
void walk_timed(void*& at, uint32_t loads, Stretches& ticks) {
  void* p = at;
  for (uint32_t done = 0; done < loads; done += kTimedStretch) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < kTimedStretch; ++i) {
      sum += time_load(p);
      p = *static_cast<void* volatile*>(p);
    }
    ticks.add(static_cast<double>(sum) / kTimedStretch);
  }
  at = p;
}

void flush(const std::byte* data, uint64_t lines, uint64_t stride) {
  for (uint64_t i = 0; i < lines; ++i) x86_64::flush_line(data + i * stride);
  x86_64::wait_for_flushes();
}

class Calibrator {
 public:
  explicit Calibrator(const std::function<bool()>& stop)
      : stop_(stop), begin_(seconds_of(CLOCK_THREAD_CPUTIME_ID)) {}

  Result<Calibration> run() {
    const chase::Mapping memory(kMostChasedBytes, chase::Pages::kHuge);
    if (!memory.data()) return make_error(ErrorKind::kResource, "no memory to calibrate with");
    Calibration c;
    const uint64_t first_tick = read_ticks();
    const double first_second = seconds_of(CLOCK_MONOTONIC);
    const CacheSizes sizes = detect_cache_sizes();
    c.l1.bytes = sizes.l1_data;
    c.l2.bytes = sizes.l2;
    c.l3.bytes = sizes.l3;
    // Half of a first-level cache; comfortably inside the second and comfortably outside the first.
    const uint64_t in_l1 = std::max<uint64_t>(sizes.l1_data / 2, 8 << 10);
    const uint64_t in_l2 = std::max(sizes.l2 / 4, 4 * sizes.l1_data);

    core_clock(c);
    level(c.l1, memory.data(), in_l1);
    if (sizes.l2 != 0 && in_l2 <= sizes.l2 / 2) level(c.l2, memory.data(), in_l2);
    branches(c);
    if (sizes.l3 >= 2 * sizes.l2 && sizes.l2 != 0 && 3 * sizes.l2 + kVictimBytes <= kMostChasedBytes)
      third(c.l3, memory.data(), 3 * sizes.l2);
    beyond(c.memory, memory.data());
    if (stopped_) return make_error(ErrorKind::kResource, "calibration was abandoned");

    const double wall = seconds_of(CLOCK_MONOTONIC) - first_second;
    c.tsc_ghz = static_cast<double>(read_ticks() - first_tick) / wall * 1e-9;
    for (LevelTiming* level : {&c.l1, &c.l2, &c.l3, &c.memory}) level->latency_ns /= c.tsc_ghz;
    c.mispredict_ns /= c.tsc_ghz;
    c.core_ghz *= c.tsc_ghz;
    c.seconds = spent();
    if (!plausible(c)) {
      return make_error(
          ErrorKind::kResource,
          fmt::format("calibration gave no plausible figures, the machine may be too busy (L1 {:.2f} ns, L2 "
                      "{:.2f}, L3 {:.2f}, memory {:.1f})",
                      c.l1.latency_ns, c.l2.latency_ns, c.l3.latency_ns, c.memory.latency_ns));
    }
    return c;
  }

 private:
  double spent() const { return seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin_; }
  // No more passes over what has been measured once already?
  bool enough() {
    stopped_ = stopped_ || (stop_ && stop_());
    return stopped_ || spent() > kCalibrationBudgetSeconds * 0.6;
  }

  void core_clock(Calibration& c) {
    Stretches ticks;
    for (int pass = 0; pass < 20; ++pass) {
      constexpr uint64_t kRounds = 2000;
      const uint64_t begin = read_ticks();
      x86_64::spend_cycles(kRounds);
      x86_64::wait_for_loads();
      ticks.add(static_cast<double>(read_ticks() - begin) / (kRounds * x86_64::kCyclesPerRound));
    }
    c.core_ghz = 1 / ticks.quick();  // cycles a tick, until ticks are known
  }

  // In ticks, until these are known.
  void level(LevelTiming& timing, std::byte* data, uint64_t bytes) {
    if (stopped_) return;
    const uint64_t lines = bytes / kLine;
    void* at = make_cycle(data, lines, kLine, random_);
    Stretches ignored, steps, timed;
    walk(at, lines, ignored);  // brings it in
    for (int pass = 0; pass < 4 && !(pass > 0 && enough()); ++pass)
      walk(at, std::clamp<uint64_t>(lines, 8192, 65536), steps);
    for (int pass = 0; pass < 3; ++pass) walk_timed(at, kTimedLoads, timed);
    timing.latency_ns = steps.quick();
    timing.timed_load_ticks = timed.quick();
  }

  // The third level: a small cycle, pushed out of the nearer levels by a sweep over `sweep` bytes before each
  // round. Short, so that it is still there whoever else runs on the machine. A cycle larger than the second
  // level would take as long as a time slice to come in.
  void third(LevelTiming& timing, std::byte* data, uint64_t sweep) {
    if (stopped_) return;
    constexpr uint64_t kLines = kVictimBytes / kMemoryStride;
    void* at = make_cycle(data, kLines, kMemoryStride, random_);
    const auto push_out = [&] {
      for (uint64_t i = 0; i < sweep; i += kLine) {
        const auto value = *reinterpret_cast<const volatile uint8_t*>(data + kVictimBytes + i);
        (void)value;
      }
    };
    Stretches ignored, steps, timed;
    walk(at, kLines, ignored);
    for (int pass = 0; pass < 16 && !(pass > 0 && enough()); ++pass) {
      push_out();
      walk(at, kLines, steps);
      push_out();
      walk_timed(at, kTimedStretch, timed);
    }
    timing.latency_ns = steps.quick();
    timing.timed_load_ticks = timed.quick();
  }

  // Memory: every line is flushed out of all caches first, so no buffer larger than them is needed.
  void beyond(LevelTiming& timing, std::byte* data) {
    if (stopped_) return;
    void* at = make_cycle(data, kMemoryLines, kMemoryStride, random_);
    Stretches steps, timed;
    for (int pass = 0; pass < 4 && !(pass > 0 && enough()); ++pass) {
      flush(data, kMemoryLines, kMemoryStride);
      walk(at, kMemoryLines, steps);
    }
    flush(data, kMemoryLines, kMemoryStride);
    walk_timed(at, kTimedLoads, timed);
    timing.latency_ns = steps.quick();
    timing.timed_load_ticks = timed.quick();
  }

  // The same code on a coin and on a constant: half of the coin's branches are predicted wrong.
  void branches(Calibration& c) {
    constexpr uint64_t kBranches = 4'000;
    const auto pass = [&](uint64_t mask) {
      // Far from where other passes are in the same sequence: predictors remember thousands of outcomes.
      const uint64_t seed = random_.next() * 0xD1342543DE82EF95 | 1;
      const uint64_t begin = read_ticks();
      x86_64::branch_on_bits(seed, kBranches, mask);
      x86_64::wait_for_loads();
      return static_cast<double>(read_ticks() - begin) / kBranches;
    };
    if (stopped_) return;
    Stretches coin, constant;
    for (int i = 0; i < 24; ++i) {
      coin.add(pass(1));
      constant.add(pass(0));
    }
    c.mispredict_ns = std::max(0.0, (coin.quick() - constant.quick()) / 0.5);
  }

  const std::function<bool()>& stop_;
  const double begin_;
  bool stopped_ = false;
  chase::Random random_;
};

}  // namespace

const LevelTiming& Calibration::operator[](MemoryLevel level) const {
  static constexpr LevelTiming kNone;
  switch (level) {
    case MemoryLevel::kL1:
      return l1;
    case MemoryLevel::kL2:
      return l2;
    case MemoryLevel::kL3:
      return l3;
    case MemoryLevel::kMemory:
      return memory;
    case MemoryLevel::kUnknown:
      break;
  }
  return kNone;
}

double Calibration::memory_threshold_ticks() const {
  const LevelTiming& nearest = l3.measured() ? l3 : l2.measured() ? l2 : l1;
  // The geometric mean: both neighbours spread in proportion to what they are.
  return std::sqrt(nearest.timed_load_ticks * memory.timed_load_ticks);
}

bool plausible(const Calibration& c) {
  const auto within = [](double value, double low, double high) { return value >= low && value <= high; };
  if (!within(c.tsc_ghz, 0.01, 20) || !within(c.core_ghz, 0.1, 20) || !within(c.mispredict_ns, 0, 100) ||
      !within(c.seconds, 0, 10))
    return false;
  const LevelTiming* before = nullptr;
  for (const LevelTiming* level : {&c.l1, &c.l2, &c.l3, &c.memory}) {
    if (level->bytes > uint64_t{1} << 40) return false;
    const bool required = level == &c.l1 || level == &c.memory;
    if (!required && level->latency_ns == 0 && level->timed_load_ticks == 0) continue;
    if (!within(level->latency_ns, 0.05, 10'000) || !within(level->timed_load_ticks, 1, kTimedLoadClipTicks))
      return false;
    // Timed loads of neighbouring caches may be equal within the counter's steps; memory is apart.
    if (before && !(level->latency_ns > before->latency_ns)) return false;
    before = level;
  }
  // Memory is far slower than any cache. Where it seems not to be, the caches belonged to other programs
  // meanwhile.
  constexpr double kFar = 1.3;
  const LevelTiming& nearest = c.l3.measured() ? c.l3 : c.l2.measured() ? c.l2 : c.l1;
  return c.memory.timed_load_ticks >= kFar * nearest.timed_load_ticks &&
         c.memory.latency_ns >= kFar * nearest.latency_ns;
}

MemoryLevel classify(const Calibration& c, double mean_ticks, uint64_t samples) {
  if (samples < kTimedLoadsToClassify || !c.l1.measured() || !c.memory.measured() ||
      !std::isfinite(mean_ticks))
    return MemoryLevel::kUnknown;
  MemoryLevel best = MemoryLevel::kL1;
  double best_distance = std::abs(mean_ticks - c.l1.timed_load_ticks);
  for (const MemoryLevel level : {MemoryLevel::kL2, MemoryLevel::kL3, MemoryLevel::kMemory}) {
    if (!c[level].measured()) continue;
    const double distance = std::abs(mean_ticks - c[level].timed_load_ticks);
    if (distance < best_distance) {
      best = level;
      best_distance = distance;
    }
  }
  return best;
}

Result<Calibration> calibrate(const std::function<bool()>& stop) {
  return Calibrator(stop).run();
}

}  // namespace hindsight::lwp
