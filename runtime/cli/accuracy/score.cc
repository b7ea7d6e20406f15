#include "runtime/cli/accuracy/score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hindsight::cli {
namespace {

// The fewest entries, largest first, whose sum reaches `covered` of all; surely, if they are samples.
template <typename Key>
std::set<Key> covering(std::vector<std::pair<double, Key>> entries, double covered, bool sampled) {
  double sum = 0;
  for (const auto& [weight, key] : entries) sum += weight;
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::set<Key> chosen;
  double held = 0, last = 0;
  for (const auto& [weight, key] : entries) {
    if (weight <= 0) break;
    const double share = held / sum;
    const double doubt = sampled ? 2 * std::sqrt(std::max(0.0, share * (1 - share)) / sum) : 0;
    // Rounding in the sums must not ask for one more.
    if (share - doubt >= covered * (1 - 1e-12) && weight != last) break;
    held += weight;
    last = weight;
    chosen.insert(key);
  }
  return chosen;
}

double ratio(size_t part, size_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::set<Site> delinquent(const SiteWeights& stall, double total, const DelinquencyRule& rule, bool sampled) {
  std::vector<std::pair<double, Site>> candidates;
  for (const auto& [site, weight] : stall)
    if (weight > 0 && weight >= rule.least_share * total) candidates.emplace_back(weight, site);
  return covering(std::move(candidates), rule.covered, sampled);
}

double population(size_t sightings, size_t distinct) {
  if (distinct >= sightings) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(sightings), seen = static_cast<double>(distinct);
  // size * (1 - (1 - 1/size)^n) grows with size: halve the interval.
  double low = seen, high = n * n;
  for (int i = 0; i < 100; ++i) {
    const double size = (low + high) / 2;
    const double expected = size > 1 ? -size * std::expm1(n * std::log1p(-1 / size)) : 1;
    (expected < seen ? low : high) = size;
  }
  return high;
}

std::set<std::string> hottest(const std::map<std::string, double>& weights, double covered) {
  std::vector<std::pair<double, std::string>> entries;
  for (const auto& [name, weight] : weights) entries.emplace_back(weight, name);
  return covering(std::move(entries), covered, /*sampled=*/false);
}

double Match::precision() const {
  return ratio(both, found());
}
double Match::recall() const {
  return ratio(both, truth());
}

Match& Match::operator+=(const Match& other) {
  both += other.both;
  only_found += other.only_found;
  only_true += other.only_true;
  return *this;
}

}  // namespace hindsight::cli
