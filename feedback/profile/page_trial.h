// PageTrial: what pages of 2 MiB give, seen while memory moves onto them. Pure.
//
// Regions that move are taken in an order that has nothing to do with what is in them: every second one first. So while
// some have moved and some have not, both are accessed alike, and a stalled load is a draw from either. Let m be the share of
// the stalls in regions that have moved by now, as they were spread before. Where a stall takes rho times as long after the move,
// the next sample lies in a moved region with probability
//
//     p = rho m / (rho m + 1 - m)
//
// rho is the maximum of the likelihood of all samples, found by bisection; its standard error comes from Fisher's information
// and from how well m is known. It is about the time of stalls, in one process and one phase: nothing else that changes
// meanwhile changes it, as long as it changes both kinds of regions alike.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "feedback/profile/evidence.h"

namespace hindsight::feedback {

struct PageGain {
  uint64_t samples = 0;  // stalled addresses while some regions had moved and some had not: the denominator
  double saved = 0;      // of a stall's time, by the move; negative: it takes longer
  double error = 0;      // its standard error
};

class PageTrial {
 public:
  PageTrial() = default;
  // The regions that are to move; `addresses`: stalls seen in each so far, 0 where none was.
  explicit PageTrial(const std::vector<PageEvidence::Region>& regions);

  // The region is on huge pages from now on.
  void moved(uint64_t region);
  // A load stalled at an address in the region. Regions that are not on trial count nothing.
  void add(uint64_t region);
  PageGain gain() const;

 private:
  // Samples are put together where the share that had moved was about the same.
  static constexpr size_t kBins = 64;
  struct Bin {
    uint64_t moved = 0, all = 0;
    double share_sum = 0;
  };
  struct Region {
    double share = 0;
    bool moved = false;
  };
  double known_ = 0;  // samples that say how stalls were spread, those that are made up among them
  double moved_share_ = 0;
  std::map<uint64_t, Region> regions_;
  std::array<Bin, kBins> bins_{};
};

}  // namespace hindsight::feedback
