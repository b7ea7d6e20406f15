#include "runtime/adaptive/experiments/history_watch.h"

#include <algorithm>
#include <utility>

#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {
void HistoryWatch::strip(bool with, uint64_t turns, uint64_t valid, uint32_t period) {
  if (state_ == State::kHopeless) return;
  const bool mostly = 2 * valid >= turns;
  if (state_ == State::kKnown) {
    if (!with) return;
    in_a_row_ = mostly ? 0 : in_a_row_ + 1;
    if (in_a_row_ < kStripsToForget) return;
    state_ = State::kLearning;
    ++forgotten_;
    learning_ = in_a_row_ = 0;
    anchor_asked_ = false;
    return;
  }
  learning_ += turns;
  in_a_row_ = with && mostly ? in_a_row_ + 1 : 0;
  if (in_a_row_ >= kStripsToKnow) {
    state_ = State::kKnown;
    in_a_row_ = 0;
  } else if (learning_ >= kMostTurnsLearning) {
    state_ = State::kHopeless;
  } else if (!anchor_asked_ && period != 0 &&
             learning_ >= std::max(2 * uint64_t{period}, kLeastTurnsToReanchor)) {
    anchor_asked_ = anchor_wanted_ = true;
  }
}

bool HistoryWatch::take_anchor() {
  return std::exchange(anchor_wanted_, false);
}

}  // namespace hindsight::rt
