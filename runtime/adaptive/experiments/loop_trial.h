// LoopTrial: does the prefetch of one loop pay, and at which distance? It is called through a LoopCell, on the
// guest's own thread, each time the loop has done another strip of iterations. Time per iteration is the only
// evidence: no PMU needed.
//
//     estimate  the first chunk runs without prefetch; its time per iteration and the stall share of the
//               loop's loads give the first distance (estimated_distance)
//     compare   chunks of strips alternate between off and on (off on on off ...), so that drift hits both
//               alike; each change of arm is followed by one strip that is not counted. After kPairs pairs
//               the medians decide: at least 5 % faster, in at least 3 of 4 pairs. With such a gain in fewer pairs,
//               more than half of them, twice as many are measured, up to kMostPairs, and fewer wins are sure.
//               Otherwise, or as soon as too many pairs are lost, another distance is tried, unless the loss is so large that
//               no distance makes up for it. If none wins the prefetch is rejected. A chunk ends when most of its strips,
//               three at least, agree, else when it has lasted long enough
//     tune      hill climbing on the ladder of distances, the same way, from the distance that won
//     kept      runs with the best distance; looks again with a few pairs, soon at first and every few seconds in the
//               end, and sooner when the time per iteration has moved: the program does something else now. Then the
//               distance is tuned anew
//     paused    was kept and no longer pays: off, in place, and looked at again like a kept one, ever more
//               seldom while nothing moves. What still does not pay after a while is rejected
//     learning  of a loop that remembers its way (history_watch.h), before and between all of these: on, with
//               distance 0, until what it remembers is true
//     rejected  off for good; the engine replaces the code by a version without it
//
// After RPG2 (Zhang et al., ASPLOS 2024), which tunes distances in place and rolls back; the alternation
// replaces its PMU counts.
//
// TrialLogic is pure (time comes as an argument), LoopTrial adds the clock and the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "jit/abi/loop_cell.h"
#include "jit/change.h"
#include "runtime/adaptive/experiments/history_watch.h"
#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {

enum class TrialState : uint8_t { kComparing, kTuning, kKept, kRejected, kPaused };
const char* to_string(TrialState state);
// What was won stays in the code, also while it is switched off.
inline bool is_kept(TrialState state) {
  return state == TrialState::kKept || state == TrialState::kPaused;
}

// What the loop is to do until the next strip ends.
struct StripSetting {
  bool enabled = false;
  uint32_t distance = 0;
  uint32_t strip_length = 1024;  // iterations
  friend bool operator==(const StripSetting&, const StripSetting&) = default;
};

inline constexpr jit::Knob kDistance = jit::traits_of(jit::ChangeKind::kPrefetch).knob;

class TrialLogic {
 public:
  // ticks_per_second: of the clock that strip() is fed with. settled: starts as kept with this distance (known from
  // before). stall_share: the share of the loop's time in baseline code that was spent waiting for the loads that
  // are prefetched. It is 0 if not known; then first_distance is tried first. knob: what a distance is called in
  // words ("width" for a group of searches), and between what it stays. No name: there is none, the change is on or
  // off. miss_seconds: as of estimated_distance().
  TrialLogic(double ticks_per_second, uint32_t first_distance, bool settled, double stall_share = 0,
             jit::Knob knob = kDistance, double miss_seconds = kMissSeconds);

  // Another change of these loads gave so much, or may: one that gives less leaves the place to it. Until it is kept.
  void expect(double least_gain);
  // A strip of `iterations` under the current setting took `ticks`. Returns the next setting.
  StripSetting strip(uint64_t iterations, uint64_t ticks);

  // A comparison is under way, so nothing else may change meanwhile.
  bool measuring() const { return !idle_; }
  // Begins the comparison under way anew.
  void restart();
  // Rejects it, whatever was known: there is nothing left to compare.
  void give_up(const std::string& why);
  // What to do while another trial measures: the best that is known.
  StripSetting waiting() const;

  StripSetting setting() const { return setting_; }
  TrialState state() const { return state_; }
  double gain() const { return gain_; }  // last verdict: time off / time on - 1
  uint32_t distance() const { return best_distance_; }
  uint32_t chunks() const { return chunks_; }          // measured so far, both arms
  const std::string& words() const { return words_; }  // how the verdict came about
  // The median of the last strips since the prefetch was settled as kept. 0: too few of them yet.
  double settled_ticks_an_iteration() const;

 private:
  struct Arm {
    bool enabled;
    uint32_t distance;
  };
  enum class Verdict : uint8_t { kWin, kLoss };
  void begin_comparison(Arm a, Arm b, uint32_t pairs);
  void end_comparison();
  bool chunk_is_over() const;
  size_t wins() const;  // of arm b, in pairs of chunks so far
  bool cannot_win() const;
  static bool is_sure(size_t wins, size_t pairs);
  void apply_arm();
  void adapt_strip_length(uint64_t ticks);
  StripSetting idle_strip(uint64_t iterations, uint64_t ticks);
  double rate_change() const;  // from what it was when it settled; at least 1
  void say(const std::string& more);
  void check(uint32_t pairs);
  void end_check(double gain, size_t wins, size_t pairs);
  void rest(bool on);  // nothing is compared for a while
  void keep();
  void keep_unless_rival();
  void pause();
  void reject();
  void start_distance_trial();
  void estimate_distance();
  bool has_distance() const { return !knob_.name.empty(); }
  uint32_t farthest() const;  // the distance at the top of the climb

  bool climb();  // begins the next comparison of the climb; false: at the top

  const double ticks_per_second_;
  const jit::Knob knob_;
  const double miss_seconds_;
  double stall_share_ = 0;  // 0: nothing to estimate from, or done
  TrialState state_ = TrialState::kComparing;
  StripSetting setting_;
  struct Strips {
    uint32_t length = 1024;              // iterations
    uint32_t since_long = ~uint32_t{0};  // strips since one took too long, and
    double long_times = 0;               // how many times what it was to take
  };
  // `with_` begins where `without_` has come to: a change may make iterations much slower, and a first strip of too many is what it costs.
  Strips with_, without_;
  bool was_on_ = false;
  Strips& strips_of(bool on) { return on ? with_ : without_; }
  const Strips& strips_of(bool on) const { return on ? with_ : without_; }

  // The comparison under way: arm a against arm b, a the one to beat.
  Arm a_{false, 0}, b_{true, 0};
  uint32_t pairs_wanted_ = 0;
  uint32_t chunk_index_ = 0;  // position in the off-on-on-off sequence
  bool settling_ = true;      // the strip after a change of arm is not counted
  uint64_t chunk_ticks_ = 0;
  std::vector<double> strip_rates_;        // of the chunk under way
  std::vector<double> a_rates_, b_rates_;  // ticks per iteration, one a chunk
  bool idle_ = false;                      // no comparison under way
  static constexpr size_t kSettledRates = 9;
  std::vector<double> settled_rates_;  // ticks per iteration, a ring
  size_t settled_at_ = 0;

  size_t first_try_ = 0;  // index into the distances tried at first
  uint32_t best_distance_ = 0;
  int direction_ = +1;    // of the climb
  bool climbed_ = false;  // in this direction
  bool turned_ = false;
  double gain_ = 0;
  double least_gain_ = 0;  // beside another change of these loads
  uint32_t chunks_ = 0;
  uint64_t ticks_since_check_ = 0;
  uint32_t failed_checks_ = 0;
  double settled_rate_ = 0;   // of the first strips since the last verdict
  double moved_by_ = 0;       // why the check under way began; 0: it was time
  double noise_ = 1;          // the largest change of the rate after which nothing had changed
  double patience_ = 0;       // seconds until a rate that has moved is looked at again
  double check_seconds_ = 0;  // until one that has not
  double paused_seconds_ = 0;
  std::vector<uint32_t> first_tries_;
  std::string words_;
};

// The distance at which a prefetch is complete when its data is wanted. It is the latency of a load from memory
// over the time that an iteration takes once its stalls are gone. The latency is this machine's
// (runtime/adaptive/machine_costs.h), of a load that comes alone.
//
// Let a share s of the baseline code's time be stalled. Optimized code, whose other work is about half, then spends
// s' = s / (s + (1 - s) / 2) of its time so. Stalls are never gone altogether: a loop that does nothing else is
// bound by how many lines are fetched at once. So an iteration keeps at least a third of its time.
uint32_t estimated_distance(double seconds_an_iteration, double stall_share, double miss_seconds);

class LoopTrial;

// One trial measures at a time. The time per iteration of one loop includes what other loops do between its
// iterations. So two trials that toggle at once would judge each other's changes. A loop that has not ended a strip
// for a while has to stand back. The program went on to something else, or its code was replaced.
//
// Times are ticks of the time-stamp counter.
//
// Concurrency: `holder_` is only compared and exchanged; who holds it measures, nothing else is published by
// it (relaxed suffices). `seen_` is a hint of its own: read beside another holder than it was written for, it
// lets two trials in for a strip. A holder that was evicted notices at its next strip and starts its
// comparison anew.
class TrialGate {
 public:
  // Some 50 ms at the 2 to 4 GHz of these counters; strips take a thousandth of that.
  static constexpr uint64_t kPatienceTicks = 150'000'000;

  bool enter(const LoopTrial* trial, uint64_t now) {
    const LoopTrial* holder = holder_.load(std::memory_order_relaxed);
    if (holder != trial) {
      if (holder != nullptr && busy(now)) return false;
      if (!holder_.compare_exchange_strong(holder, trial, std::memory_order_relaxed)) return false;
    }
    seen_.store(now, std::memory_order_relaxed);
    return true;
  }
  // Whether it still is the holder; says that it goes on.
  bool stay(const LoopTrial* trial, uint64_t now) {
    if (holder_.load(std::memory_order_relaxed) != trial) return false;
    seen_.store(now, std::memory_order_relaxed);
    return true;
  }
  void leave(const LoopTrial* trial) {
    holder_.compare_exchange_strong(trial, nullptr, std::memory_order_relaxed);
  }
  // Ticks that loops have spent on learning their ways, in all. Relaxed: a sum that bounds what more may be spent, which
  // orders nothing, and a strip late is early enough.
  double spent_learning() const { return spent_learning_.load(std::memory_order_relaxed); }
  void add_spent_learning(double ticks) { spent_learning_.fetch_add(ticks, std::memory_order_relaxed); }

  // Whether anybody measures.
  bool busy(uint64_t now) const {
    if (holder_.load(std::memory_order_relaxed) == nullptr) return false;
    // Another thread's counter may lag a little.
    const uint64_t seen = seen_.load(std::memory_order_relaxed);
    return now < seen || now - seen < kPatienceTicks;
  }

 private:
  std::atomic<const LoopTrial*> holder_{nullptr};
  std::atomic<uint64_t> seen_{0};
  std::atomic<double> spent_learning_{0};
};

class LoopTrial {
 public:
  LoopTrial(double ticks_per_second, uint32_t first_distance, bool settled, double stall_share,
            double miss_seconds, TrialGate& gate, jit::Knob knob = kDistance);

  // The change is of a loop that remembers its way: its cell has a history. Before arm().
  void judge_history();
  // TrialLogic::expect(). Before arm().
  void expect(double least_gain);
  // For tests: time is simulated, in which the change makes the loop so many times as fast. Before arm().
  void simulate(double speedup);
  // Writes the first setting into the cell. Before the code is published.
  void arm(jit::LoopCell& cell);
  // On a guest thread, from the builtin: measures, decides, re-arms the cell. If two threads end a strip at
  // once, one of them measures and the other only re-arms.
  void strip_ended(jit::LoopCell& cell);

  struct Status {
    TrialState state = TrialState::kComparing;
    double gain = 0;
    uint32_t distance = 0;
    uint32_t chunks = 0;
    uint64_t strips = 0;
    double ticks_an_iteration = 0;  // of the last strips, once settled as kept; 0: not known
    std::string words;
  };
  // Any thread.
  Status status() const;
  // The same as status().state, at no cost. Relaxed: whoever sees that it has changed asks status() for the rest.
  TrialState state() const { return state_.load(std::memory_order_relaxed); }
  // The median of the last strips, once settled as kept; 0: not known.
  double settled_ticks_an_iteration() const;
  // Its loop has ended a strip of late. Relaxed: a hint, as the gate's.
  bool is_running(uint64_t now) const {
    const uint64_t seen = seen_.load(std::memory_order_relaxed);
    return seen != 0 && (now < seen || now - seen < TrialGate::kPatienceTicks);
  }
  // It is rejected if it is still learning its way. Any thread.
  void stop_learning(const std::string& why);

 private:
  void write(jit::LoopCell& cell, const StripSetting& setting);  // and notes the state
  void leave_gate();
  // Whether the loop has to learn its way before anything else; then the next strip is set.
  bool learns(jit::LoopCell& cell, uint64_t iterations, uint64_t ticks);
  StripSetting learning() const;

  TrialGate& gate_;
  std::atomic<TrialState> state_;
  std::atomic<uint64_t> seen_{0};  // when a strip ended last, in ticks
  mutable std::mutex mutex_;       // protects what follows; guest threads only try it
  TrialLogic logic_;
  bool holding_ = false;  // the gate, when it was last looked at
  uint64_t last_tick_ = 0;
  uint64_t strips_ = 0;
  uint64_t thread_ = 0;  // whose strips are measured
  bool remembers_ = false;
  HistoryWatch watch_;            // where it does
  double spent_learning_ = 0;     // what of the gate's sum is its own
  double simulated_speedup_ = 0;  // 0: the clock is the processor's
};

// Ticks of the time-stamp counter a second, measured once against the monotonic clock.
double tsc_ticks_per_second();

}  // namespace hindsight::rt
