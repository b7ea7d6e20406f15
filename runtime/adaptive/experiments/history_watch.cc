#include "runtime/adaptive/experiments/history_watch.h"

#include <algorithm>
#include <utility>

#include "runtime/adaptive/experiments/median.h"
#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {
namespace {

constexpr size_t kPlainRates = 8;

}  // namespace

void HistoryWatch::weigh(bool with, uint64_t turns, uint64_t ticks) {
  if (ticks_per_second_ <= 0 || ticks == 0 || turns == 0) return;
  if (!with) {
    if (plain_rates_.size() == kPlainRates) plain_rates_.erase(plain_rates_.begin());
    plain_rates_.push_back(static_cast<double>(ticks) / static_cast<double>(turns));
    return;
  }
  if (plain_rates_.size() < kPlainRates / 2) return;
  with_ticks_ += static_cast<double>(ticks);
  plain_ticks_ += median(plain_rates_) * static_cast<double>(turns);
  too_dear_ = with_ticks_ - plain_ticks_ >
              kMostLearningSeconds * ticks_per_second_ + kMostLearningShare * with_ticks_;
}

double HistoryWatch::cost() const {
  return plain_ticks_ > 0 ? with_ticks_ / plain_ticks_ - 1 : 0;
}

void HistoryWatch::strip(bool with, uint64_t turns, uint64_t valid, uint32_t period, uint64_t ticks) {
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
    strips_ = 0;
    plain_rates_.clear();
    return;
  }
  ++strips_;
  learning_ += turns;
  weigh(with, turns, ticks);
  if (with) in_a_row_ = mostly ? in_a_row_ + 1 : 0;
  if (in_a_row_ >= kStripsToKnow) {
    state_ = State::kKnown;
    in_a_row_ = 0;
  } else if (learning_ >= kMostTurnsLearning || too_dear_) {
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
