// LayoutTrial: does it pay that code was moved? Nothing in a program says how far it has come, and moving
// code changes no loop but all of them a little. So the unit of work is a call: of some of the moved
// functions, counted on their way in by both placements alike (jit/code/call_meter.h), against the CPU time
// of the guest's threads meanwhile.
//
// Both placements run in turns, off on on off off on on ..., so that drift and phases longer than a chunk hit
// both alike. Each pair of neighbours gives a ratio of rates; after kPairs of them the median decides. A
// chunk in which the guest hardly ran or made next to no calls says nothing and is done again.
//
// Pure: time and calls come as arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hindsight::rt {

class LayoutTrial {
 public:
  enum class State : uint8_t { kComparing, kKept, kRolledBack };

  static constexpr uint32_t kPairs = 12;
  // What a chunk must hold to count.
  static constexpr uint64_t kLeastCalls = 1000;
  static constexpr double kLeastSeconds = 0.008;
  // After so many chunks that do not count the trial ends: what cannot be measured is not claimed.
  static constexpr uint32_t kMostIdleChunks = 200;
  // In the median, and in how many of the pairs there must be any gain. Once it is done a move costs nothing
  // more, and both placements are the same instructions: anything that is surely a gain is worth having,
  // where a changed loop has to pay for what it does. Of pairs without a difference 10 of 12 or more are
  // ahead in 2 % of all trials.
  static constexpr double kLeastGain = 0.01;
  static constexpr uint32_t kLeastPairsAhead = 10;

  // The chunk that has just run, under moved(), had so many calls in so much CPU time. Precondition: still
  // comparing.
  void chunk(uint64_t calls, double cpu_seconds);

  // Which placement is to run now: the moved one, or the one before.
  bool moved() const { return moved_; }
  State state() const { return state_; }
  double gain() const { return gain_; }        // median of rate moved / rate before - 1, once decided
  uint32_t chunks() const { return chunks_; }  // that counted
  const std::string& words() const { return words_; }

 private:
  void decide();

  State state_ = State::kComparing;
  bool moved_ = false;
  uint32_t chunks_ = 0, idle_ = 0;
  double before_ = 0, after_ = 0;  // rates of the pair under way
  std::vector<double> ratios_;
  double gain_ = 0;
  std::string words_;
};

const char* to_string(LayoutTrial::State state);

}  // namespace hindsight::rt
