#include "runtime/engine/layout_trial.h"

#include <fmt/format.h>

#include <algorithm>

namespace hindsight::rt {

const char* to_string(LayoutTrial::State state) {
  switch (state) {
    case LayoutTrial::State::kComparing:
      return "trial";
    case LayoutTrial::State::kKept:
      return "kept";
    case LayoutTrial::State::kRolledBack:
      return "rolled back";
  }
  return "unknown";
}

void LayoutTrial::chunk(uint64_t calls, double cpu_seconds) {
  if (calls < kLeastCalls || cpu_seconds < kLeastSeconds) {
    if (++idle_ < kMostIdleChunks) return;
    state_ = State::kRolledBack;
    moved_ = false;
    words_ = fmt::format(
        "not to be measured: {} chunks with next to no calls of the functions that are counted", idle_);
    return;
  }
  (moved_ ? after_ : before_) = static_cast<double>(calls) / cpu_seconds;
  ++chunks_;
  if (chunks_ % 2 == 0) {
    ratios_.push_back(after_ / before_);
    if (ratios_.size() == kPairs) return decide();
  } else {
    // off on | on off | off on ...: within a pair the other one follows, between pairs it stays.
    moved_ = !moved_;
  }
}

void LayoutTrial::decide() {
  const auto ahead =
      static_cast<uint32_t>(std::count_if(ratios_.begin(), ratios_.end(), [](double r) { return r > 1; }));
  std::vector<double> sorted = ratios_;
  std::sort(sorted.begin(), sorted.end());
  gain_ = (sorted[kPairs / 2 - 1] + sorted[kPairs / 2]) / 2 - 1;
  moved_ = gain_ >= kLeastGain && ahead >= kLeastPairsAhead;
  state_ = moved_ ? State::kKept : State::kRolledBack;
  words_ = fmt::format(
      "{:+.1f} % calls a second of CPU time in the median of {} pairs, {} of them ahead, {:+.1f} to {:+.1f} "
      "%",
      100 * gain_, kPairs, ahead, 100 * (sorted.front() - 1), 100 * (sorted.back() - 1));
}

}  // namespace hindsight::rt
