#include "feedback/lwp/calibration.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "feedback/lwp/timed_load.h"

namespace hindsight::lwp {
namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kHugePage = 2 << 20;
constexpr uint64_t kMostBytes = 8 << 20;  // of memory used: 4 huge pages fault in a millisecond or two
constexpr uint64_t kMemoryLines = 4096;   // flushed before each pass
constexpr uint64_t kMemoryStride = 512;   // from line to line: no neighbour is fetched along
constexpr uint32_t kTimedLoads = 512;     // a level

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Random but always the same.
class Random {
 public:
  uint64_t next() {
    state_ ^= state_ << 13;  // xorshift64
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  uint64_t below(uint64_t n) { return next() % n; }

 private:
  uint64_t state_ = 0x9E3779B97F4A7C15;
};

class Mapping {
 public:
  explicit Mapping(uint64_t bytes) : bytes_(bytes + kHugePage) {
    void* const p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    mapped_ = p;
    // Without huge pages the figures include misses of the TLB, as a program without them has too.
    const auto begin = (reinterpret_cast<uintptr_t>(p) + kHugePage - 1) & ~(kHugePage - 1);
    data_ = reinterpret_cast<std::byte*>(begin);
    (void)::madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Mapping() {
    if (mapped_) ::munmap(mapped_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return data_; }

 private:
  uint64_t bytes_;
  void* mapped_ = nullptr;
  std::byte* data_ = nullptr;
};

// A cycle through `lines` places, `stride` bytes apart, in random order (Sattolo): each holds the address of
// the next, so that no load can start before the one before it is done, and no prefetcher guesses.
void* make_cycle(std::byte* data, uint64_t lines, uint64_t stride, Random& random) {
  std::vector<uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0u);
  for (uint64_t i = lines - 1; i > 0; --i) std::swap(order[i], order[random.below(i)]);
  for (uint64_t i = 0; i < lines; ++i) {
    *reinterpret_cast<void**>(data + order[i] * stride) = data + order[(i + 1) % lines] * stride;
  }
  return data + order[0] * stride;
}

// Nanoseconds a step.
double walk(void*& at, uint64_t steps) {
  void* p = at;
  const double begin = seconds_of(CLOCK_MONOTONIC);
  for (uint64_t i = 0; i < steps; ++i) p = *static_cast<void* volatile*>(p);
  const double seconds = seconds_of(CLOCK_MONOTONIC) - begin;
  at = p;
  return seconds * 1e9 / static_cast<double>(steps);
}

// Mean ticks of timed loads along the cycle. Each place is loaded once a round, so each comes from where the
// walks before have left it.
double walk_timed(void*& at, uint32_t loads) {
  uint64_t sum = 0;
  void* p = at;
  for (uint32_t i = 0; i < loads; ++i) {
    sum += time_load(p);
    p = *static_cast<void* volatile*>(p);
  }
  at = p;
  return static_cast<double>(sum) / loads;
}

void flush(const std::byte* data, uint64_t lines, uint64_t stride) {
  for (uint64_t i = 0; i < lines; ++i) _mm_clflush(data + i * stride);
  _mm_mfence();
}

class Calibrator {
 public:
  explicit Calibrator(const std::function<bool()>& stop)
      : stop_(stop), begin_(seconds_of(CLOCK_THREAD_CPUTIME_ID)) {}

  Result<Calibration> run() {
    const Mapping memory(kMostBytes);
    if (!memory.data()) return make_error(ErrorKind::kResource, "no memory to calibrate with");
    Calibration c;
    const uint64_t first_tick = __rdtsc();
    const double first_second = seconds_of(CLOCK_MONOTONIC);
    const CacheSizes sizes = detect_cache_sizes();
    c.l1.bytes = sizes.l1_data;
    c.l2.bytes = sizes.l2;
    c.l3.bytes = sizes.l3;
    // Half of a first-level cache; comfortably inside the second and the third, and comfortably outside the
    // level below.
    const uint64_t in_l1 = std::max<uint64_t>(sizes.l1_data / 2, 8 << 10);
    const uint64_t in_l2 = std::max(sizes.l2 / 4, 4 * sizes.l1_data);
    const uint64_t in_l3 = std::min({4 * sizes.l2, sizes.l3 / 2, kMostBytes});

    core_clock(c);
    level(c.l1, memory.data(), in_l1);
    if (sizes.l2 != 0 && in_l2 <= sizes.l2 / 2) level(c.l2, memory.data(), in_l2);
    branches(c);
    if (sizes.l3 != 0 && in_l3 >= 2 * sizes.l2) level(c.l3, memory.data(), in_l3);
    beyond(c.memory, memory.data());
    if (stopped_) return make_error(ErrorKind::kResource, "calibration was abandoned");

    const double wall = seconds_of(CLOCK_MONOTONIC) - first_second;
    c.tsc_ghz = static_cast<double>(__rdtsc() - first_tick) / wall * 1e-9;
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

  // Exclusive ors that depend on each other take a cycle each on every processor, and none removes them.
  void core_clock(Calibration& c) {
    for (int pass = 0; pass < 5; ++pass) {
      constexpr uint64_t kRounds = 8000, kPerRound = 32;
      uint64_t value = 1, rounds = kRounds;
      const uint64_t other = 5;
      const double begin = seconds_of(CLOCK_MONOTONIC);
      asm volatile(
          "1:\n"
          ".rept 32\n"
          "xorq %[other], %[value]\n"
          ".endr\n"
          "decq %[rounds]\n"
          "jnz 1b\n"
          : [value] "+r"(value), [rounds] "+r"(rounds)
          : [other] "r"(other)
          : "cc");
      const double seconds = seconds_of(CLOCK_MONOTONIC) - begin;
      c.core_ghz = std::max(c.core_ghz, static_cast<double>(kRounds * kPerRound) / seconds * 1e-9);
    }
  }

  void level(LevelTiming& timing, std::byte* data, uint64_t bytes) {
    if (stopped_) return;
    const uint64_t lines = bytes / kLine;
    void* at = make_cycle(data, lines, kLine, random_);
    walk(at, lines);  // brings it in
    const uint64_t steps = std::clamp<uint64_t>(lines, 8192, 65536);
    for (int pass = 0; pass < 5 && !(pass > 0 && enough()); ++pass) {
      const double ns = walk(at, steps);
      timing.latency_ns = pass == 0 ? ns : std::min(timing.latency_ns, ns);
    }
    for (int pass = 0; pass < 3; ++pass) {
      const double ticks = walk_timed(at, kTimedLoads);
      timing.timed_load_ticks = pass == 0 ? ticks : std::min(timing.timed_load_ticks, ticks);
    }
  }

  // Memory: every line is flushed out of all caches first, so no buffer larger than them is needed.
  void beyond(LevelTiming& timing, std::byte* data) {
    if (stopped_) return;
    void* at = make_cycle(data, kMemoryLines, kMemoryStride, random_);
    for (int pass = 0; pass < 4 && !(pass > 0 && enough()); ++pass) {
      flush(data, kMemoryLines, kMemoryStride);
      const double ns = walk(at, kMemoryLines);
      timing.latency_ns = pass == 0 ? ns : std::min(timing.latency_ns, ns);
    }
    flush(data, kMemoryLines, kMemoryStride);
    timing.timed_load_ticks = walk_timed(at, kTimedLoads);
  }

  // The same code on a coin and on a constant: half of the coin's branches are predicted wrong.
  void branches(Calibration& c) {
    constexpr uint64_t kBranches = 40'000;
    const auto pass = [&](uint64_t mask) {
      uint64_t x = random_.next() | 1, left = kBranches, bit = 0, shifted = 0;
      const double begin = seconds_of(CLOCK_MONOTONIC);
      asm volatile(
          "1:\n"
          "movq %[x], %[shifted]\n shlq $13, %[shifted]\n xorq %[shifted], %[x]\n"
          "movq %[x], %[shifted]\n shrq $7, %[shifted]\n xorq %[shifted], %[x]\n"
          "movq %[x], %[shifted]\n shlq $17, %[shifted]\n xorq %[shifted], %[x]\n"
          "movq %[x], %[bit]\n shrq $40, %[bit]\n"
          "testq %[mask], %[bit]\n"
          "jnz 2f\n"
          "nop\n"
          "2:\n"
          "decq %[left]\n"
          "jnz 1b\n"
          : [x] "+r"(x), [left] "+r"(left), [bit] "+r"(bit), [shifted] "+r"(shifted)
          : [mask] "r"(mask)
          : "cc");
      return (seconds_of(CLOCK_MONOTONIC) - begin) * 1e9 / kBranches;
    };
    if (stopped_) return;
    double coin = 0, constant = 0;
    for (int i = 0; i < 4 && !(i > 0 && enough()); ++i) {
      const double with = pass(1), without = pass(0);
      coin = i == 0 ? with : std::min(coin, with);
      constant = i == 0 ? without : std::min(constant, without);
    }
    c.mispredict_ns = std::max(0.0, (coin - constant) / 0.5);
  }

  const std::function<bool()>& stop_;
  const double begin_;
  bool stopped_ = false;
  Random random_;
};

}  // namespace

std::string_view to_string(MemoryLevel level) {
  switch (level) {
    case MemoryLevel::kUnknown:
      return "unknown";
    case MemoryLevel::kL1:
      return "L1";
    case MemoryLevel::kL2:
      return "L2";
    case MemoryLevel::kL3:
      return "L3";
    case MemoryLevel::kMemory:
      return "memory";
  }
  return "unknown";
}

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
  return c.memory.timed_load_ticks > c.l1.timed_load_ticks;
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
