// How often branches are mispredicted over a run, from bursts. Pure.
//
// Bursts come in time, spread over the run as samples are; branches do not. A phase that retires ten times as
// many of them a second has as many bursts as one of the same length that hardly branches. The rate of the
// program is that of its branches. So a burst's own rate counts for the branches that it stands for: those
// since the burst before. They are known by the ordinary branch records, one in so many branches (a ratio
// estimator; Cochran, "Sampling Techniques", chapter 6).
#pragma once

#include <cstdint>

namespace hindsight::feedback {

// Sums over bursts; those of threads add up.
struct MispredictionSums {
  double weight = 0;        // branches that judged bursts stand for, in ordinary branch records
  double mispredicted = 0;  // the same, times the burst's rate

  // 0 where nothing was judged.
  double rate() const { return weight > 0 ? mispredicted / weight : 0; }
  MispredictionSums& operator+=(const MispredictionSums& other) {
    weight += other.weight;
    mispredicted += other.mispredicted;
    return *this;
  }
};

// One thread's bursts, in order. What was retired between two of them is shared between both. Before the
// first it is the first's, after the last the last's.
class BurstRates {
 public:
  // So many ordinary branch records were drained.
  void records(uint64_t count) { since_ += static_cast<double>(count); }

  // The outcomes that follow begin a burst. Returns what the bursts before add and had not yet.
  MispredictionSums begin() {
    MispredictionSums ended;
    if (judged_ > 0) {
      stands_for_ += since_ / 2;
      ended = sums();
      stands_for_ = since_ / 2;
    } else {  // there was none, or it only warmed up: what it stood for is left to this one
      stands_for_ += since_;
    }
    since_ = 0;
    judged_ = wrong_ = 0;
    return ended;
  }

  void judged(bool right) {
    ++judged_;
    wrong_ += right ? 0 : 1;
  }

  // What the last burst adds if no other follows.
  MispredictionSums rest() const {
    BurstRates last = *this;
    last.stands_for_ += last.since_;
    return last.sums();
  }

 private:
  MispredictionSums sums() const {
    if (judged_ == 0) return {};
    const double rate = static_cast<double>(wrong_) / static_cast<double>(judged_);
    return {.weight = stands_for_, .mispredicted = stands_for_ * rate};
  }

  double since_ = 0;       // records since the beginning of the last burst
  double stands_for_ = 0;  // of the last burst
  uint64_t judged_ = 0, wrong_ = 0;
};

}  // namespace hindsight::feedback
