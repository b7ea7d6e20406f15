#include "runtime/adaptive/experiments/exchange_trial.h"

#include <fmt/format.h>

#include <algorithm>

namespace hindsight::rt {

void ExchangeTrial::chunk(uint64_t calls, double cpu_seconds) {
  if (calls < rule_.least_calls || cpu_seconds < rule_.least_seconds) {
    if (++idle_ < rule_.most_idle_chunks) return;
    state_ = State::kRolledBack;
    other_ = false;
    words_ =
        fmt::format("cannot be measured: {} chunks had next to no {} of what is counted", idle_, rule_.unit);
    return;
  }
  (other_ ? after_ : before_) = static_cast<double>(calls) / cpu_seconds;
  ++chunks_;
  if (chunks_ % 2 != 0) {
    // off on | on off | off on ...: within a pair the other one follows, between pairs it stays.
    other_ = !other_;
    return;
  }
  ratios_.push_back(after_ / before_);
  const auto behind =
      static_cast<uint32_t>(std::count_if(ratios_.begin(), ratios_.end(), [](double r) { return r <= 1; }));
  const bool lost = rule_.ends_early && behind > rule_.pairs - rule_.least_pairs_ahead;
  if (ratios_.size() == rule_.pairs || lost || is_sure()) decide();
}

bool ExchangeTrial::is_sure() const {
  if (rule_.pairs_to_be_sure == 0 || ratios_.size() != rule_.pairs_to_be_sure) return false;
  return gain_so_far() >= 2 * rule_.least_gain && std::ranges::min(ratios_) > 1;
}

double ExchangeTrial::gain_so_far() const {
  std::vector<double> sorted = ratios_;
  std::ranges::sort(sorted);
  const size_t pairs = sorted.size();
  return (sorted[(pairs - 1) / 2] + sorted[pairs / 2]) / 2 - 1;
}

void ExchangeTrial::decide() {
  const auto ahead =
      static_cast<uint32_t>(std::count_if(ratios_.begin(), ratios_.end(), [](double r) { return r > 1; }));
  gain_ = gain_so_far();
  other_ = is_sure() || (gain_ >= rule_.least_gain && ahead >= rule_.least_pairs_ahead);
  state_ = other_ ? State::kKept : State::kRolledBack;
  measured_ = true;
  words_ = fmt::format(
      "{:+.1f} % {} a second of CPU time (median of {} pairs, {} of them faster, {:+.1f} to {:+.1f} %)",
      100 * gain_, rule_.unit, ratios_.size(), ahead, 100 * (std::ranges::min(ratios_) - 1),
      100 * (std::ranges::max(ratios_) - 1));
}

void CallChunk::begin(const Reading& now) {
  begun_ = last_ = now;
  running_ = false;
}

bool CallChunk::look(const Reading& now, const Pace& pace, Chunk& chunk) {
  const bool edge = now.calls != last_.calls;  // a call has begun since the last look
  last_ = now;
  if (!running_ && edge) {
    running_ = true;
    begun_ = now;
    return false;
  }
  const double seconds = now.seconds - begun_.seconds;
  chunk = {running_ ? now.calls - begun_.calls : 0, now.cpu_seconds - begun_.cpu_seconds};
  return seconds >= pace.most_seconds ||
         (edge && seconds >= pace.least_seconds && chunk.cpu_seconds >= pace.least_cpu_seconds &&
          chunk.calls >= pace.least_calls);
}

}  // namespace hindsight::rt
