// GrowthTrial: what it gives a guest to have the pages of its growing memory made. One step of growth in a few is left to the
// guest. The time from the end of that growth to the next one has its page faults in it, and whatever else the guest does. The
// step that comes next has its pages made, and the making is in its time. The two are a pair: what the guest does between two
// steps of growth changes slowly, and changes both alike.
//
//     gain = median over the last pairs of (time of the left step / time of the made one) - 1, both a byte
//
// Time is CPU time of the guest's thread. So other programs, and threads, do not count. Pages that are never touched make no
// fault: they are in the time of neither.
//
// Pure: time and page faults come as arguments.
#pragma once

#include <cstdint>
#include <deque>

#include "feedback/policy/populate.h"

namespace hindsight::rt {

class GrowthTrial {
 public:
  struct Step {
    uint64_t bytes = 0;
    double seconds = 0;   // CPU time of its thread up to the next step, and to make its pages
    uint64_t faults = 0;  // of that thread meanwhile
    bool made = false;    // its pages were
  };
  // The next step has come, or nobody can tell what this one took.
  void add(const Step& step);
  void interrupt() { left_.bytes = 0; }

  // `seconds` and `faults` of both kinds are of `kUnitBytes`.
  static constexpr uint64_t kUnitBytes = uint64_t{64} << 10;  // a page of WebAssembly
  feedback::GrowthTimes times() const;

 private:
  static constexpr size_t kMostPairs = 32;
  struct Pair {
    double left_seconds = 0, made_seconds = 0;  // of kUnitBytes
  };
  Step left_;  // the last step, if it was left to the guest; 0 bytes: it was not
  std::deque<Pair> pairs_;
  struct Sum {
    double units = 0, faults = 0;
  };
  Sum left_sum_, made_sum_;
};

}  // namespace hindsight::rt
