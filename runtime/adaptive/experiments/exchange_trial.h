// ExchangeTrial: of two codes for the same functions, does the other one pay? It may be the same code in another place
// (code_layout.h), or a version that was made without one decision (version_trials.h). Nothing in a program says how
// far it has come, and what is exchanged changes no loop but all of them a little. So the unit of work is a call of
// some of these functions, against the CPU time of the guest's threads meanwhile. Calls are counted on their way in by
// both codes alike (jit/code/call_meter.h).
//
// Both run in turns, off on on off off on on ..., so that drift and phases longer than a chunk hit both alike. Each
// pair of neighbours gives a ratio of rates; after Rule::pairs of them the median decides. A chunk in which the guest
// hardly ran or made next to no calls says nothing and is done again.
//
// Pure: time and calls come as arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hindsight::rt {

class ExchangeTrial {
 public:
  enum class State : uint8_t { kComparing, kKept, kRolledBack };  // kept: the other one stays

  struct Rule {
    uint32_t pairs = 12;
    // In the median, and in how many of the pairs there must be any gain. Of pairs without a difference 10 of 12 or
    // more are ahead in 2 % of all trials.
    double least_gain = 0.01;
    uint32_t least_pairs_ahead = 10;
    // What a chunk must hold to count.
    uint64_t least_calls = 1000;
    double least_seconds = 0.008;
    // After so many chunks that do not count the trial ends: what cannot be measured is not claimed.
    uint32_t most_idle_chunks = 200;
    // It ends, rolled back, as soon as the other pairs cannot make up for the lost ones. What the other code costs, it
    // costs no longer than that.
    bool ends_early = false;
    // Also where so many pairs were all won, with twice the gain that is asked for: 1 of 64 trials without a difference has six.
    uint32_t pairs_to_be_sure = 0;    // 0: never
    std::string_view unit = "calls";  // what is counted, in words
  };
  // Once it is done a move costs nothing more, and both placements are the same instructions. So anything that is
  // surely a gain is worth having, where a changed loop has to pay for what it does.
  static constexpr Rule for_placements() { return {}; }
  // A second version takes memory, and what it is to replace was decided with reason.
  static constexpr Rule for_versions() {
    return {.least_gain = 0.02,
            .least_calls = 4,
            .least_seconds = 0.004,
            .most_idle_chunks = 12,
            .ends_early = true,
            .pairs_to_be_sure = 6};
  }

  explicit ExchangeTrial(Rule rule = for_placements()) : rule_(rule) {}

  // The chunk that has just run, under other(), had so many calls in so much CPU time. Precondition: still
  // comparing.
  void chunk(uint64_t calls, double cpu_seconds);

  // Whether the other code is to run now, or the one before.
  bool other() const { return other_; }
  State state() const { return state_; }
  bool measured() const { return measured_; }  // what is decided was decided by numbers
  double gain() const { return gain_; }        // median of rate of the other / rate before - 1, once decided
  uint32_t chunks() const { return chunks_; }  // that counted
  const std::string& words() const { return words_; }

 private:
  void decide();
  bool is_sure() const;        // before all pairs are there
  double gain_so_far() const;  // the median; precondition: there is a pair

  const Rule rule_;
  State state_ = State::kComparing;
  bool other_ = false, measured_ = false;
  uint32_t chunks_ = 0, idle_ = 0;
  double before_ = 0, after_ = 0;  // rates of the pair under way
  std::vector<double> ratios_;
  double gain_ = 0;
  std::string words_;
};

// CallChunk: where in a run a chunk begins and ends. With calls of milliseconds a chunk holds few of them. One that is
// cut off at either end would be counted whole or not at all. So a chunk begins with a call's begin and ends with one,
// as near as whoever looks comes to them. The call during which the code was exchanged is still in the code before and
// belongs to no chunk. Pure.
class CallChunk {
 public:
  struct Reading {
    double seconds = 0;      // of wall time
    uint64_t calls = 0;      // begun so far
    double cpu_seconds = 0;  // of guests
  };
  struct Pace {
    double least_seconds = 0.02;
    double least_cpu_seconds = 0;  // of guests, who may have to wait for a processor
    uint64_t least_calls = 4;
    double most_seconds = 0.4;  // then it has ended, with as many calls as there were
  };
  struct Chunk {
    uint64_t calls = 0;
    double cpu_seconds = 0;
  };

  // Another code is current from now on, or what was seen meanwhile is of no use.
  void begin(const Reading& now);
  // Whether it has ended by now.
  bool look(const Reading& now, const Pace& pace, Chunk& chunk);

 private:
  Reading begun_, last_;
  bool running_ = false;  // a call has begun since begin(): what is counted counts from there
};

}  // namespace hindsight::rt
