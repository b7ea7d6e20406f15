// HistoryWatch: is what a loop remembers of its last traversal (jit/abi/traversal_history.h) true of this
// one? Until it is, there is nothing to compare in a trial: the loop goes on remembering, and prefetches
// nothing ahead. What it remembers is compared with where it is turn by turn, by its own code; here strips of
// such turns add up.
//
//   learning   every strip remembers, but only the first part of a traversal is written down. Once kStripsToKnow strips
//              in a row had most turns where they had been before, the way is known to come again, and whole traversals
//              are written down. When that is so behind the first part too, or when that part is all there is, the
//              history is known. An anchor that the loop has not come by in twice its period is given up for a new
//              one, once.
//   known      the trial has its turn, as for any change. kStripsToForget strips with the change in a row
//              of which most turns came elsewhere: the structure is another by now, and it is learning
//              again
//   hopeless   as many turns as there is room for, twice, were not enough: nothing comes again. Nor did it in two
//              periods where the first part had come again. Or remembering a first part has cost more than it may
//
// Pure. Cost while learning: what remembering takes, a few operations a turn, and no prefetch that brings
// anything but the line that the turn wants anyway. A loop that waits for each of its loads hides that; one whose
// turns overlap does not. So one strip in kPlainStripEvery remembers nothing, and tells what the others cost.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hindsight::rt {

class HistoryWatch {
 public:
  static constexpr uint64_t kPlainStripEvery = 16;
  enum class State : uint8_t { kLearning, kKnown, kHopeless };

  // `ticks_per_second`: of the ticks of strip(). 0: what remembering costs is not asked about.
  // `whole`: an earlier run has seen the way come again.
  explicit HistoryWatch(double ticks_per_second = 0, bool whole = false)
      : whole_(whole), ticks_per_second_(ticks_per_second) {}

  struct Strip {
    bool with = false;  // the history, or without
    uint64_t turns = 0;
    uint64_t valid = 0;          // of a strip with: turns that came where they had been before
    uint32_t period = 0;         // turns between the last two times at the anchor; 0: not known
    uint32_t position = 0;       // turns since the anchor, by now
    uint64_t ticks = 0;          // how long it took; 0: not known
    double spent_elsewhere = 0;  // ticks that other loops have learned for, as far as that took them longer
  };
  void strip(const Strip& strip);  // one has ended

  State state() const { return state_; }
  // Whether whole traversals are to be written down.
  bool wants_whole() const { return whole_; }
  // Whether to take a new anchor; says so once.
  bool take_anchor();
  uint64_t turns_learning() const { return learning_; }  // in this state, or until it was hopeless
  uint64_t times_forgotten() const { return forgotten_; }
  // Whether the next strip, while learning, is to be without, to tell what the others cost.
  bool wants_plain() const { return ticks_per_second_ > 0 && strips_ % kPlainStripEvery == 1; }
  // What remembering cost, as a share of what the same turns take without. 0: not known.
  double cost() const { return cost_; }
  bool is_too_dear() const { return too_dear_; }  // why it is hopeless
  // What remembering took longer so far, by the mean.
  double ticks_spent() const { return std::max(0.0, cost_ / (1 + cost_) * with_ticks_); }

 private:
  State state_ = State::kLearning;
  uint64_t learning_ = 0;
  uint64_t forgotten_ = 0;
  uint32_t in_a_row_ = 0;  // strips that speak for the other state
  bool whole_ = false;
  bool anchor_asked_ = false;
  bool anchor_wanted_ = false;
  const double ticks_per_second_;
  uint64_t strips_ = 0;                        // while learning
  double with_ticks_ = 0;                      // of strips with
  double pair_ticks_ = 0, pair_turns_ = 0;     // of those since the last one without
  double pairs_ = 0, cost_ = 0, squares_ = 0;  // their mean excess, and the sum of the squares about it
  bool too_dear_ = false;

  void weigh(const Strip& strip);
};

}  // namespace hindsight::rt
