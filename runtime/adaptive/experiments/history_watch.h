// HistoryWatch: is what a loop remembers of its last traversal (jit/abi/traversal_history.h) true of this
// one? Until it is, there is nothing to compare in a trial: the loop goes on remembering, and prefetches
// nothing ahead. What it remembers is compared with where it is turn by turn, by its own code; here strips of
// such turns add up.
//
//   learning   every strip remembers. After kStripsToKnow strips in a row of which most turns came where
//              they had been before, the history is known. An anchor that the loop has not come by in twice
//              its period is given up for a new one, once.
//   known      the trial has its turn, as for any change. kStripsToForget strips with the change in a row
//              of which most turns came elsewhere: the structure is another by now, and it is learning
//              again
//   hopeless   as many turns as there is room for, twice, were not enough: nothing comes again
//
// Pure. Cost while learning: what remembering takes, a few operations a turn, and no prefetch that brings
// anything but the line that the turn wants anyway.
#pragma once

#include <cstdint>

namespace hindsight::rt {

class HistoryWatch {
 public:
  enum class State : uint8_t { kLearning, kKnown, kHopeless };

  // A strip ended in which the loop was with the history, or without. Of a strip with: `valid` of its turns
  // came where they had been before. `period`: turns between the last two times at the anchor, 0 if not
  // known.
  void strip(bool with, uint64_t turns, uint64_t valid, uint32_t period);

  State state() const { return state_; }
  // Whether to take a new anchor; says so once.
  bool take_anchor();
  uint64_t turns_learning() const { return learning_; }  // in this state, or until it was hopeless
  uint64_t times_forgotten() const { return forgotten_; }

 private:
  State state_ = State::kLearning;
  uint64_t learning_ = 0;
  uint64_t forgotten_ = 0;
  uint32_t in_a_row_ = 0;  // strips that speak for the other state
  bool anchor_asked_ = false;
  bool anchor_wanted_ = false;
};

}  // namespace hindsight::rt
