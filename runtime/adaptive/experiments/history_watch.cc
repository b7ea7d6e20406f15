#include "runtime/adaptive/experiments/history_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "jit/abi/traversal_history.h"
#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {
namespace {

// Strips that were interrupted say nothing: a pair counts for this much at most.
constexpr double kMostExcess = 1;

}  // namespace

// Each plain strip is compared with those that came since the one before, so that drift hits both alike.
void HistoryWatch::weigh(const Strip& strip) {
  if (ticks_per_second_ <= 0 || strip.ticks == 0 || strip.turns == 0) return;
  if (strip.with) {
    with_ticks_ += static_cast<double>(strip.ticks);
    pair_ticks_ += static_cast<double>(strip.ticks);
    pair_turns_ += static_cast<double>(strip.turns);
    return;
  }
  if (pair_turns_ > 0) {
    const double plain = static_cast<double>(strip.ticks) / static_cast<double>(strip.turns);
    const double excess = std::min(kMostExcess, pair_ticks_ / pair_turns_ / plain - 1);
    pairs_ += 1;
    const double from_mean = excess - cost_;
    cost_ += from_mean / pairs_;
    squares_ += from_mean * (excess - cost_);
  }
  pair_ticks_ = pair_turns_ = 0;
  if (pairs_ < kMinPairsToBeTooDear) return;
  // What it costs at least, in all but one of fifty cases.
  const double least = cost_ - 2 * std::sqrt(squares_ / (pairs_ - 1) / pairs_);
  too_dear_ = least > 0 && least / (1 + cost_) * with_ticks_ + strip.spent_elsewhere >
                               kMostLearningSeconds * ticks_per_second_ + kMostLearningShare * with_ticks_;
}

void HistoryWatch::strip(const Strip& strip) {
  if (state_ == State::kHopeless) return;
  const bool mostly = 2 * strip.valid >= strip.turns;
  if (state_ == State::kKnown) {
    if (!strip.with) return;
    in_a_row_ = mostly ? 0 : in_a_row_ + 1;
    if (in_a_row_ < kStripsToForget) return;
    state_ = State::kLearning;
    ++forgotten_;
    learning_ = in_a_row_ = 0;
    anchor_asked_ = false;
    strips_ = 0;
    with_ticks_ = pair_ticks_ = pair_turns_ = pairs_ = cost_ = squares_ = 0;
    return;
  }
  ++strips_;
  learning_ += strip.turns;
  const bool has_more = strip.period == 0 || strip.period > jit::kHistoryFirstPart;
  if (!whole_) weigh(strip);
  // What comes again in the first part is known, and says nothing about what is only now written down.
  const bool says_nothing = whole_ && has_more && strip.position < jit::kHistoryFirstPart + strip.turns;
  if (strip.with && !says_nothing) in_a_row_ = mostly ? in_a_row_ + 1 : 0;
  const uint64_t most = whole_ && strip.period != 0 && forgotten_ == 0
                            ? std::min(kMostTurnsLearning, 2 * uint64_t{strip.period} + kLeastTurnsToReanchor)
                            : kMostTurnsLearning;
  if (in_a_row_ >= kStripsToKnow) {
    in_a_row_ = 0;
    if (whole_ || !has_more) {
      state_ = State::kKnown;
    } else {
      whole_ = true;
      learning_ = 0;
    }
  } else if (learning_ >= most || (too_dear_ && !whole_)) {
    state_ = State::kHopeless;
  } else if (!anchor_asked_ && strip.period != 0 &&
             learning_ >= std::max(2 * uint64_t{strip.period}, kLeastTurnsToReanchor)) {
    anchor_asked_ = anchor_wanted_ = true;
  }
}

bool HistoryWatch::take_anchor() {
  return std::exchange(anchor_wanted_, false);
}

}  // namespace hindsight::rt
