// What it means that one unit agrees with another. Pure: weights in, sets and ratios out; the same
// definitions for both sides.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace hindsight::cli {

// A WebAssembly instruction.
struct Site {
  std::string function;
  uint32_t offset = 0;
  friend auto operator<=>(const Site&, const Site&) = default;
};

using SiteWeights = std::map<Site, double>;

// Which loads count as delinquent. They are those that matter to the program at all, and of them the fewest
// that together hold most of the stall time.
struct DelinquencyRule {
  double covered = 0.90;      // of the candidates' stall time
  double least_share = 0.05;  // of the program's time, for a load to be a candidate
};

// `stall`: time each load stalled, in any unit; `total`: the program's time in the same unit. Largest first;
// loads of exactly the same weight as the last one that is needed belong to it. Empty if nothing stalls enough.
// `sampled`: the weights are counts of samples, so the share that a few loads hold is an estimate. Loads are
// taken until they hold `covered` with a probability of 97.5 % (two standard errors of a binomial share).
std::set<Site> delinquent(const SiteWeights& stall, double total, const DelinquencyRule& rule,
                          bool sampled = false);

// From how many things, all as likely, `sightings` were drawn if they showed `distinct` different ones: the
// size that makes so many expected. Infinite if nothing was seen twice.
double population(size_t sightings, size_t distinct);

// The fewest keys, largest first, that hold `covered` of the sum.
std::set<std::string> hottest(const std::map<std::string, double>& weights, double covered);

// How a set that was found compares with the true one.
struct Match {
  size_t both = 0, only_found = 0, only_true = 0;
  size_t found() const { return both + only_found; }
  size_t truth() const { return both + only_true; }
  // 1 for an empty denominator: nothing was found wrongly, nothing was missed.
  double precision() const;
  double recall() const;
  Match& operator+=(const Match& other);
  friend bool operator==(const Match&, const Match&) = default;
};

template <typename T>
Match compare(const std::set<T>& found, const std::set<T>& truth) {
  Match match;
  for (const T& x : found) ++(truth.contains(x) ? match.both : match.only_found);
  match.only_true = truth.size() - match.both;
  return match;
}

}  // namespace hindsight::cli
