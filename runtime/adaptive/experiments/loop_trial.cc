#include "runtime/adaptive/experiments/loop_trial.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/ticks.h"
#include "jit/code/cell_memory.h"
#include "runtime/adaptive/experiments/median.h"
#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {

namespace {

size_t rung_of(uint32_t distance) {
  size_t best = 0;
  for (size_t i = 0; i < std::size(kLadder); ++i) {
    if (kLadder[i] <= distance) best = i;
  }
  return best;
}

// off on on off off on on off ...: linear drift cancels within four chunks.
bool second_arm(uint32_t chunk_index) {
  uint32_t phase = chunk_index % 4;
  return phase == 1 || phase == 2;
}

}  // namespace

const char* to_string(TrialState state) {
  switch (state) {
    case TrialState::kComparing:
      return "comparing";
    case TrialState::kTuning:
      return "tuning";
    case TrialState::kKept:
      return "kept";
    case TrialState::kRejected:
      return "rejected";
    case TrialState::kPaused:
      return "paused";
  }
  return "unknown";
}

uint32_t estimated_distance(double seconds_an_iteration, double stall_share, double miss_seconds) {
  double stalled = std::clamp(stall_share, 0.0, 1.0);
  stalled = stalled / (stalled + (1 - stalled) / 2);
  double left = seconds_an_iteration * std::max(1 - stalled, kLeastTimeLeft);
  double distance = left > 0 ? std::ceil(miss_seconds / left) : kLadder[std::size(kLadder) - 1];
  return static_cast<uint32_t>(std::clamp<double>(distance, kLadder[0], kLadder[std::size(kLadder) - 1]));
}

TrialLogic::TrialLogic(double ticks_per_second, uint32_t first_distance, bool settled, double stall_share,
                       jit::Knob knob, double miss_seconds)
    : ticks_per_second_(ticks_per_second),
      knob_(knob),
      miss_seconds_(miss_seconds),
      stall_share_(stall_share),
      best_distance_(first_distance),
      patience_(kLeastPatience),
      check_seconds_(kFirstCheckSeconds),
      first_tries_{first_distance} {
  if (has_distance()) first_tries_.insert(first_tries_.end(), {std::min(48u, farthest()), 6});
  if (settled) {
    state_ = TrialState::kKept;
    words_ = "settled in an earlier version or run" +
             (has_distance() ? fmt::format(", {} {}", knob.name, first_distance) : "");
    idle_ = true;
    setting_ = {true, first_distance, strips_of(true).length};
    return;
  }
  start_distance_trial();
}

void TrialLogic::give_up(const std::string& why) {
  if (state_ == TrialState::kComparing) gain_ = 0;
  say((words_.empty() ? "" : "; ") + why);
  reject();
}

void TrialLogic::start_distance_trial() {
  begin_comparison({false, first_tries_[first_try_]}, {true, first_tries_[first_try_]}, kPairs);
}

// Called after the first chunk, which ran without prefetch: the distances to try are only wanted now.
void TrialLogic::estimate_distance() {
  double ticks = a_rates_.front();
  uint32_t distance =
      std::min(estimated_distance(ticks / ticks_per_second_, stall_share_, miss_seconds_), farthest());
  first_tries_.clear();
  for (uint32_t next : {distance, std::min(3 * distance, farthest()), std::max(distance / 3, kLadder[0])}) {
    if (std::find(first_tries_.begin(), first_tries_.end(), next) == first_tries_.end())
      first_tries_.push_back(next);
  }
  a_.distance = b_.distance = best_distance_ = distance;
  words_ = fmt::format(
      "{:.1f} ticks an iteration without it, {:.0f} % of the time stalled in baseline code: starts at "
      "distance {}",
      ticks, 100 * stall_share_, distance);
  stall_share_ = 0;
}

void TrialLogic::begin_comparison(Arm a, Arm b, uint32_t pairs) {
  a_ = a;
  b_ = b;
  pairs_wanted_ = pairs;
  chunk_index_ = 0;
  a_rates_.clear();
  b_rates_.clear();
  idle_ = false;
  apply_arm();
}

double TrialLogic::settled_ticks_an_iteration() const {
  return settled_rates_.size() < kSettledRates || state_ != TrialState::kKept ? 0 : median(settled_rates_);
}

double TrialLogic::rate_change() const {
  if (settled_rates_.size() < kSettledRates || settled_rate_ <= 0) return 1;
  const double now = median(settled_rates_);
  return now <= 0 ? 1 : std::max(now / settled_rate_, settled_rate_ / now);
}

// A program may change its phases for hours.
void TrialLogic::say(const std::string& more) {
  constexpr size_t kMostWords = 800, kKeptWords = 300;
  if (words_.size() > kMostWords) words_ = words_.substr(0, kKeptWords) + " ...";
  words_ += more;
}

void TrialLogic::check(uint32_t pairs) {
  ticks_since_check_ = 0;
  begin_comparison({false, best_distance_}, {true, best_distance_}, pairs);
}

StripSetting TrialLogic::idle_strip(uint64_t iterations, uint64_t ticks) {
  if (state_ == TrialState::kRejected) return setting_;
  const double rate = static_cast<double>(ticks) / static_cast<double>(std::max<uint64_t>(iterations, 1));
  if (settled_rates_.size() < kSettledRates) {
    settled_rates_.push_back(rate);
    if (settled_rates_.size() == kSettledRates) settled_rate_ = median(settled_rates_);
  } else {
    settled_rates_[settled_at_++ % kSettledRates] = rate;
  }
  ticks_since_check_ += ticks;
  const double seconds = static_cast<double>(ticks_since_check_) / ticks_per_second_;
  const double change = rate_change();
  // Noise wears patience out, up to its size; what is more than that is looked at soon.
  const double patience = change > kMovedRatio * noise_ ? kLeastPatience : patience_;
  moved_by_ = change > kMovedRatio && seconds > patience ? change : 0;
  if (moved_by_ == 0 && seconds <= check_seconds_) return setting_;
  if (state_ == TrialState::kPaused) paused_seconds_ += seconds;
  check(failed_checks_ ? kPairs : kCheckPairs);
  return setting_;
}

void TrialLogic::restart() {
  if (!idle_) begin_comparison(a_, b_, pairs_wanted_);
}

StripSetting TrialLogic::waiting() const {
  bool on = state_ == TrialState::kTuning || state_ == TrialState::kKept;
  return {on, best_distance_, strips_of(on).length};
}

void TrialLogic::apply_arm() {
  const Arm& arm = second_arm(chunk_index_) ? b_ : a_;
  settling_ = !(setting_.enabled == arm.enabled && setting_.distance == arm.distance) || chunk_index_ == 0;
  chunk_ticks_ = 0;
  strip_rates_.clear();
  if (arm.enabled && !was_on_) {
    was_on_ = true;
    with_.length = std::min(with_.length, without_.length);
  }
  setting_ = {arm.enabled, arm.distance, strips_of(arm.enabled).length};
}

// Keeps strips long enough that ending one costs nothing, and short enough that chunks stay short. With the change
// and without are adapted each by itself, as one may be several times as fast.
void TrialLogic::adapt_strip_length(uint64_t ticks) {
  Strips& strips = strips_of(setting_.enabled);
  double target = (idle_ ? kIdleStripSeconds : kStripSeconds) * ticks_per_second_;
  if (static_cast<double>(ticks) < target / 2 && strips.length < kMaxStrip) strips.length *= 2;
  // One long strip may have been interrupted; two of four are the loop's own, by what the shorter one takes.
  const double times = static_cast<double>(ticks) / target;
  if (times > kMostStripTimes && strips.since_long < kStripsApart) {
    const double length = strips.length / std::min(times, strips.long_times);
    strips.length = std::max(kMinStrip, static_cast<uint32_t>(length));
    strips.since_long = kStripsApart;
  } else if (times > kMostStripTimes) {
    strips.long_times = times;
    strips.since_long = 0;
  } else if (strips.since_long < kStripsApart) {
    ++strips.since_long;
  }
  setting_.strip_length = strips.length;
}

bool TrialLogic::chunk_is_over() const {
  if (strip_rates_.size() >= kMinStripsPerChunk &&
      static_cast<double>(chunk_ticks_) >= kChunkSeconds * ticks_per_second_)
    return true;
  if (strip_rates_.size() < kMinStripsThatAgree ||
      static_cast<double>(chunk_ticks_) < kMinStripsThatAgree * kStripSeconds / 2 * ticks_per_second_)
    return false;
  const double middle = median(strip_rates_);
  const auto agree =
      static_cast<size_t>(std::count_if(strip_rates_.begin(), strip_rates_.end(), [&](double r) {
        return std::abs(r - middle) <= kAgreement * middle;
      }));
  return agree >= kMinStripsThatAgree && 2 * agree > strip_rates_.size();
}

size_t TrialLogic::wins() const {
  const size_t pairs = std::min(a_rates_.size(), b_rates_.size());
  size_t wins = 0;
  for (size_t i = 0; i < pairs; ++i) wins += a_rates_[i] > b_rates_[i] ? 1 : 0;
  return wins;
}

// So many pairs lost already that those to come cannot make it three of four, and no gain by the medians that would have
// more pairs measured. A look at what was kept goes on: that asks for more than that.
bool TrialLogic::cannot_win() const {
  if (is_kept(state_)) return false;
  const size_t lost = std::min(a_rates_.size(), b_rates_.size()) - wins();
  return 4 * lost > pairs_wanted_ && median(a_rates_) / median(b_rates_) - 1 < kMinGain;
}

// Not by chance, in all but one of forty cases: of 16 pairs 12, of 64 pairs 40.
bool TrialLogic::is_sure(size_t wins, size_t pairs) {
  const double more_than_half = static_cast<double>(wins) - static_cast<double>(pairs) / 2;
  return more_than_half >= std::sqrt(static_cast<double>(pairs));
}

StripSetting TrialLogic::strip(uint64_t iterations, uint64_t ticks) {
  adapt_strip_length(ticks);
  if (idle_) return idle_strip(iterations, ticks);
  if (settling_) {
    settling_ = false;
    return setting_;
  }
  chunk_ticks_ += ticks;
  strip_rates_.push_back(static_cast<double>(ticks) / static_cast<double>(std::max<uint64_t>(iterations, 1)));
  if (!chunk_is_over()) return setting_;

  // The median strip: one that was interrupted by another process does not count.
  (second_arm(chunk_index_) ? b_rates_ : a_rates_).push_back(median(strip_rates_));
  if (stall_share_ > 0) estimate_distance();
  ++chunk_index_;
  ++chunks_;
  const size_t pairs = std::min(a_rates_.size(), b_rates_.size());
  const double loss = pairs > 0 ? 1 - median(a_rates_) / median(b_rates_) : 0;
  const bool hopeless = (pairs >= kGiveUpPairs && loss > kGiveUpLoss) ||
                        (pairs >= kGiveUpPairsAtOnce && wins() == 0 && loss > kGiveUpLossAtOnce);
  if ((a_rates_.size() >= pairs_wanted_ && b_rates_.size() >= pairs_wanted_) || hopeless || cannot_win()) {
    end_comparison();
  } else {
    apply_arm();
  }
  return setting_;
}

void TrialLogic::end_comparison() {
  const size_t pairs = std::min(a_rates_.size(), b_rates_.size());
  const size_t wins = this->wins();
  double gain = median(a_rates_) / median(b_rates_) - 1;
  const bool consistent = is_sure(wins, pairs);
  // Iterations that differ by far, of short lists and long ones, take more pairs to tell.
  const bool may_be = gain >= kMinGain && 2 * wins > pairs && !consistent;
  if (!is_kept(state_) && may_be && pairs >= pairs_wanted_ && pairs_wanted_ < kMostPairs) {
    pairs_wanted_ *= 2;
    return apply_arm();
  }

  switch (state_) {
    case TrialState::kComparing:
      gain_ = gain;
      words_ =
          fmt::format("{}{:.1f} -> {:.1f} ticks an iteration{}, {} of {} chunk pairs faster",
                      words_.empty() ? "" : words_ + "; ", median(a_rates_), median(b_rates_),
                      has_distance() ? fmt::format(" at {} {}", knob_.name, b_.distance) : "", wins, pairs);
      if (gain >= kMinGain && consistent) {
        best_distance_ = b_.distance;
        state_ = TrialState::kTuning;
        direction_ = +1;
        climbed_ = turned_ = false;
        if (!climb()) keep_unless_rival();
      } else if (gain > -kHopelessLoss && ++first_try_ < first_tries_.size()) {
        start_distance_trial();
      } else {
        reject();
      }
      return;
    case TrialState::kTuning:
      if (gain >= kMinTuneGain && consistent) {
        gain_ = (1 + gain_) * (1 + gain) - 1;
        best_distance_ = b_.distance;
        climbed_ = true;
        if (climb()) return;
      } else if (!climbed_ && !turned_) {
        turned_ = true;
        direction_ = -1;
        if (climb()) return;
      }
      if (const size_t last = words_.rfind("; tuned to ");
          last != std::string::npos && words_.find(';', last + 1) == std::string::npos)
        words_.resize(last);
      say(fmt::format("; tuned to {} {}", knob_.name, best_distance_));
      keep_unless_rival();
      return;
    case TrialState::kKept:
    case TrialState::kPaused:
      return end_check(gain, wins, pairs);
    case TrialState::kRejected:
      return;
  }
}

// A look at what was kept, or was and is paused. One look that says the contrary may be noise: the next one
// measures in full before it judges.
void TrialLogic::end_check(double gain, size_t wins, size_t pairs) {
  const bool kept = state_ == TrialState::kKept;
  const bool pays = gain >= kMinGain && 4 * wins >= 3 * pairs;
  const bool costs = gain < 0 && 4 * wins <= pairs;
  if (kept ? !costs : !pays) {
    failed_checks_ = 0;
    patience_ = std::min(2 * patience_, kCheckSeconds);
    noise_ = std::max(noise_, moved_by_);
    if (kept) {
      check_seconds_ = std::min(2 * check_seconds_, kCheckSeconds);
    } else {
      check_seconds_ = std::min(2 * check_seconds_, kMostCheckSeconds);
      if (paused_seconds_ > kPausedSeconds) return reject();
      return rest(false);
    }
    if (moved_by_ == 0 || !pays) return rest(true);
    // It pays as before, in another way perhaps: so may another distance.
    gain_ = gain;
  } else if (failed_checks_++ == 0) {
    return check(kPairs);
  } else {
    gain_ = gain;
    patience_ = kLeastPatience;
    noise_ = 1;
    say(fmt::format("; later {:.1f} -> {:.1f} ticks an iteration, {} of {} chunk pairs faster: {}",
                    median(a_rates_), median(b_rates_), wins, pairs, kept ? "no longer pays" : "pays again"));
    if (kept) return pause();
  }
  state_ = TrialState::kTuning;
  direction_ = +1;
  climbed_ = turned_ = false;
  if (!climb()) keep();
}

uint32_t TrialLogic::farthest() const {
  return std::min(kLadder[std::size(kLadder) - 1], knob_.most);
}

bool TrialLogic::climb() {
  if (!has_distance()) return false;
  size_t rung = rung_of(best_distance_);
  if (direction_ < 0 && rung == 0) return false;
  if (direction_ > 0 && (rung + 1 >= std::size(kLadder) || kLadder[rung + 1] > farthest())) return false;
  uint32_t next = kLadder[direction_ > 0 ? rung + 1 : rung - 1];
  begin_comparison({true, best_distance_}, {true, next}, kTunePairs);
  return true;
}

void TrialLogic::rest(bool on) {
  idle_ = true;
  setting_ = {on, best_distance_, strips_of(on).length};
  ticks_since_check_ = 0;
  settled_rates_.clear();
  settled_at_ = 0;
  settled_rate_ = 0;
}

void TrialLogic::keep() {
  state_ = TrialState::kKept;
  least_gain_ = 0;  // tuned anew it may gain less than at first
  failed_checks_ = 0;
  check_seconds_ = kFirstCheckSeconds;
  rest(true);
}

void TrialLogic::expect(double least_gain) {
  least_gain_ = least_gain;
}

void TrialLogic::keep_unless_rival() {
  if (gain_ >= least_gain_) return keep();
  say("; another change of these loads may give more");
  reject();
}

void TrialLogic::pause() {
  state_ = TrialState::kPaused;
  failed_checks_ = 0;
  check_seconds_ = kFirstCheckSeconds;
  paused_seconds_ = 0;
  rest(false);
}

void TrialLogic::reject() {
  state_ = TrialState::kRejected;
  rest(false);
}

LoopTrial::LoopTrial(double ticks_per_second, uint32_t first_distance, bool settled, double stall_share,
                     double miss_seconds, TrialGate& gate, jit::Knob knob)
    : gate_(gate),
      logic_(ticks_per_second, first_distance, settled, stall_share, knob, miss_seconds),
      watch_(ticks_per_second, settled) {
  state_.store(logic_.state(), std::memory_order_relaxed);
}

void LoopTrial::write(jit::LoopCell& cell, const StripSetting& setting) {
  state_.store(logic_.state(), std::memory_order_relaxed);
  // Relaxed: the fields are independent of each other and of all other memory; generated code may see any mix
  // for one iteration.
  std::atomic_ref(cell.enabled).store(setting.enabled ? 1 : 0, std::memory_order_relaxed);
  std::atomic_ref(cell.distance).store(setting.distance, std::memory_order_relaxed);
  std::atomic_ref(cell.strip_length).store(setting.strip_length, std::memory_order_relaxed);
  std::atomic_ref(cell.countdown)
      .store(static_cast<int32_t>(setting.strip_length - 1), std::memory_order_relaxed);
}

void LoopTrial::expect(double least_gain) {
  std::lock_guard lock(mutex_);
  logic_.expect(least_gain);
}

void LoopTrial::judge_history() {
  std::lock_guard lock(mutex_);
  remembers_ = true;
}

void LoopTrial::simulate(double speedup) {
  std::lock_guard lock(mutex_);
  simulated_speedup_ = speedup;
}

void LoopTrial::arm(jit::LoopCell& cell) {
  std::lock_guard lock(mutex_);
  if (remembers_ && watch_.wants_whole()) jit::remember_whole_traversals(jit::history_of(cell));
  write(cell, remembers_ ? learning() : logic_.setting());
  // Release: a thread that ends a strip finds a complete trial.
  std::atomic_ref(cell.trial).store(this, std::memory_order_release);
}

void LoopTrial::leave_gate() {
  if (!holding_) return;
  gate_.leave(this);
  holding_ = false;
}

// Distance 0: a turn prefetches what it remembers of itself, which it has just written down.
StripSetting LoopTrial::learning() const {
  return {true, 0, logic_.setting().strip_length};
}

bool LoopTrial::learns(jit::LoopCell& cell, uint64_t iterations, uint64_t ticks) {
  if (logic_.state() == TrialState::kRejected || watch_.state() == HistoryWatch::State::kHopeless)
    return false;
  jit::TraversalHistory& history = jit::history_of(cell);
  const bool with = std::atomic_ref(cell.enabled).load(std::memory_order_relaxed) != 0;
  const bool learned = watch_.state() == HistoryWatch::State::kLearning;
  const bool whole = watch_.wants_whole();
  watch_.strip({.with = with,
                .turns = iterations,
                .valid = std::atomic_ref(history.valid).exchange(0, std::memory_order_relaxed),
                .period = std::atomic_ref(history.period).load(std::memory_order_relaxed),
                .position = std::atomic_ref(history.position).load(std::memory_order_relaxed),
                .ticks = ticks,
                .spent_elsewhere = gate_.spent_learning() - spent_learning_});
  gate_.add_spent_learning(watch_.ticks_spent() - spent_learning_);
  spent_learning_ = watch_.ticks_spent();
  if (!whole && watch_.wants_whole()) jit::remember_whole_traversals(history);
  if (watch_.take_anchor()) std::atomic_ref(history.anchor).store(0, std::memory_order_relaxed);
  switch (watch_.state()) {
    case HistoryWatch::State::kLearning:
      leave_gate();
      write(cell, watch_.wants_plain() ? StripSetting{false, 0, logic_.setting().strip_length} : learning());
      return true;
    case HistoryWatch::State::kKnown:
      if (!learned) return false;
      logic_.restart();
      write(cell, logic_.setting());
      return true;
    case HistoryWatch::State::kHopeless:
      leave_gate();
      logic_.give_up(fmt::format(
          "{}no traversal repeated an earlier one in {} iterations{}",
          watch_.is_too_dear() ? fmt::format("remembering takes {:.0f} % longer, and ", 100 * watch_.cost())
                               : "",
          watch_.turns_learning(),
          watch_.times_forgotten() > 0
              ? fmt::format(", the last of {} attempts", watch_.times_forgotten() + 1)
              : ""));
      write(cell, logic_.setting());
      return true;
  }
  return false;
}

void LoopTrial::stop_learning(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!remembers_ || watch_.state() != HistoryWatch::State::kLearning ||
      logic_.state() != TrialState::kComparing)
    return;
  logic_.give_up(why);
  // The cell follows with the next strip.
  state_.store(logic_.state(), std::memory_order_relaxed);
}

void LoopTrial::strip_ended(jit::LoopCell& cell) {
  uint64_t now = read_ticks();
  seen_.store(now, std::memory_order_relaxed);
  std::unique_lock lock(mutex_, std::try_to_lock);
  uint32_t length = std::atomic_ref(cell.strip_length).load(std::memory_order_relaxed);
  if (!lock.owns_lock()) {
    std::atomic_ref(cell.countdown).store(static_cast<int32_t>(length - 1), std::memory_order_relaxed);
    return;
  }
  ++strips_;
  // The countdown stands below zero by what the last piece of work went beyond the strip's end.
  int64_t left = std::atomic_ref(cell.countdown).load(std::memory_order_relaxed);
  uint64_t iterations = left < 0 ? static_cast<uint64_t>(static_cast<int64_t>(length) - 1 - left) : length;
  // Strips of one thread only, from end to end: the first end of another thread's strips starts anew.
  uint64_t self = static_cast<uint64_t>(pthread_self());
  bool whole = thread_ == self && last_tick_ != 0 && now > last_tick_;
  uint64_t ticks = whole ? now - last_tick_ : 0;
  if (simulated_speedup_ != 0) {
    constexpr double kTicksAnIteration = 200;
    const bool with = std::atomic_ref(cell.enabled).load(std::memory_order_relaxed) != 0;
    ticks = static_cast<uint64_t>(kTicksAnIteration / (with ? simulated_speedup_ : 1) *
                                  static_cast<double>(iterations));
  }
  thread_ = self;
  last_tick_ = now;

  if (remembers_ && learns(cell, iterations, ticks)) return;
  if (logic_.measuring() && !(holding_ && gate_.stay(this, now))) {
    holding_ = gate_.enter(this, now);
    if (!holding_) return write(cell, logic_.waiting());
    logic_.restart();
    return write(cell, logic_.setting());
  }
  StripSetting next = whole ? logic_.strip(iterations, ticks) : logic_.setting();
  if (!logic_.measuring()) leave_gate();
  write(cell, next);
}

LoopTrial::Status LoopTrial::status() const {
  std::lock_guard lock(mutex_);
  return {logic_.state(),  logic_.gain(), logic_.distance(),
          logic_.chunks(), strips_,       logic_.settled_ticks_an_iteration(),
          logic_.words()};
}

double LoopTrial::settled_ticks_an_iteration() const {
  const std::lock_guard lock(mutex_);
  return logic_.settled_ticks_an_iteration();
}

double tsc_ticks_per_second() {
  static const double rate = [] {
    auto clock = [] { return std::chrono::steady_clock::now(); };
    auto begin = clock();
    uint64_t first = read_ticks();
    while (clock() - begin < std::chrono::milliseconds(2)) {
    }
    uint64_t last = read_ticks();
    double seconds = std::chrono::duration<double>(clock() - begin).count();
    return static_cast<double>(last - first) / seconds;
  }();
  return rate;
}

}  // namespace hindsight::rt
