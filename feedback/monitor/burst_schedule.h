// When a thread's next branch-outcome burst is due. Pure: time comes as an argument. It is the thread's own CPU time: where others use
// the processor as well, a guest is not looked at more often for each second that it gets.
//
// A single burst can fall into a phase that is not the program's, so evidence comes in series. A series is eight bursts
// some 20 ms apart, with jitter, so that they spread over more than 100 ms. After a series one burst every tenth of a
// second, on average, follows what changes, while baseline code runs at all. After five seconds the gaps grow as the run
// does, up to a second: what changes late has a longer past to be compared with, and begins with a series. The gaps are exponentially distributed, so
// that no period of the program's can be in step with them. A loop that begins to run in baseline code has a burst at
// once: it may have left it before the next one is due. All of it is bounded: kMostASecond bursts a second of run,
// and kAhead on top, whatever is asked for. At 4,096 outcomes of about 15 ns that is below 0.1 % of a thread's time. The
// monitor, which runs every outcome through a predictor, is shared: after their series, many threads together have as
// many bursts as one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace hindsight::feedback {

class BurstSchedule {
 public:
  static constexpr uint32_t kSeries = 8;
  static constexpr double kGapSeconds = 0.020;   // in a series; a quarter more or less
  static constexpr double kSteadySeconds = 0.1;  // after it, on average, or
  static constexpr double kSteadyShare = 0.02;   // this share of the run so far, if that is longer, but not
  static constexpr double kMostSteadySeconds = 1;
  static constexpr double kMostASecond = 12;
  static constexpr double kAhead = 2 * kSeries;

  explicit BurstSchedule(uint64_t seed) : random_(seed | 1) {}

  // More evidence is wanted now: begins a series, or does nothing while one is under way.
  void begin_series() {
    if (left_ == 0) {
      left_ = kSeries;
      next_ = 0;
    }
  }

  // One burst is wanted now, whatever is under way.
  void want_one() { next_ = 0; }

  // Not due before the thread has run so long, whatever it runs: sooner there is no need to ask how long it has. 0: at once.
  double next() const { return next_; }

  // Time `now`, in seconds that the thread has run since it was attached, and it is one of so many threads: is a burst due? True
  // is taken for one that was asked for.
  bool due(double now, size_t threads = 1) {
    if (now < next_ || static_cast<double>(bursts_) >= kAhead + kMostASecond * now) return false;
    ++bursts_;
    if (left_ > 0) --left_;
    const double steady = std::clamp(kSteadyShare * now, kSteadySeconds, kMostSteadySeconds);
    next_ = now + (left_ > 0 ? jittered(kGapSeconds) : exponential(steady * static_cast<double>(threads)));
    return true;
  }

  uint64_t bursts() const { return bursts_; }

 private:
  // In [0, 1).
  double uniform() {
    random_ ^= random_ << 13;  // xorshift64
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<double>(random_ >> 11) * 0x1p-53;
  }
  double jittered(double seconds) { return seconds * (0.75 + 0.5 * uniform()); }
  double exponential(double mean) { return mean * std::min(-std::log1p(-uniform()), 5.0); }

  uint64_t random_;
  uint32_t left_ = kSeries;
  double next_ = 0;
  uint64_t bursts_ = 0;
};

}  // namespace hindsight::feedback
