#include "feedback/profile/page_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hindsight::feedback {
namespace {

std::vector<PageEvidence::Region> regions_of(size_t count, uint64_t addresses) {
  std::vector<PageEvidence::Region> regions;
  for (size_t i = 0; i < count; ++i) regions.push_back({1000 + i, addresses});
  return regions;
}

// Moves every second region and then the rest. Between two moves so many stalls are drawn, each from a region that moved with
// `ratio` times the weight of one that did not.
PageGain gain_of(size_t count, int stalls_a_move, double ratio) {
  PageTrial trial(regions_of(count, 2));
  std::mt19937_64 random(7);
  std::vector<uint64_t> moved, left;
  for (size_t i = 0; i < count; ++i) left.push_back(1000 + i);
  const auto draw = [&](const std::vector<uint64_t>& from) { return from[random() % from.size()]; };
  for (const size_t first : {0, 1}) {
    for (size_t i = first; i < count; i += 2) {
      trial.moved(1000 + i);
      moved.push_back(1000 + i);
      std::erase(left, 1000 + i);
      if (left.empty()) break;
      const double weight = ratio * static_cast<double>(moved.size());
      const double share = weight / (weight + static_cast<double>(left.size()));
      for (int s = 0; s < stalls_a_move; ++s)
        trial.add(static_cast<double>(random() % 1'000'000) < 1e6 * share ? draw(moved) : draw(left));
    }
  }
  return trial.gain();
}

TEST(PageTrial, FindsWhatAStallTakesAfterAMove) {
  for (const double ratio : {0.5, 0.7, 1.0, 1.4}) {
    const PageGain gain = gain_of(200, 20, ratio);
    EXPECT_GT(gain.samples, 3800u);
    EXPECT_NEAR(gain.saved, 1 - ratio, 2.5 * gain.error) << ratio;
    EXPECT_LT(gain.error, 0.12 * std::max(1.0, ratio)) << ratio;  // of what a stall takes by then
  }
}

TEST(PageTrial, SaysHowUncertainItIsWithFewSamples) {
  const PageGain few = gain_of(200, 1, 0.7);
  const PageGain many = gain_of(200, 20, 0.7);
  EXPECT_GT(few.error, many.error);
  EXPECT_NEAR(few.saved, 0.3, 2.5 * few.error);
}

TEST(PageTrial, KnowsNothingWhileAllOrNoneHaveMoved) {
  PageTrial trial(regions_of(4, 10));
  for (int i = 0; i < 50; ++i) trial.add(1000);
  EXPECT_EQ(trial.gain().samples, 0u);
  for (uint64_t i = 0; i < 4; ++i) trial.moved(1000 + i);
  for (int i = 0; i < 50; ++i) trial.add(1000);
  EXPECT_EQ(trial.gain().samples, 0u);
}

TEST(PageTrial, CountsNoRegionsButItsOwn) {
  PageTrial trial(regions_of(4, 10));
  trial.moved(1000);
  trial.add(5);
  EXPECT_EQ(trial.gain().samples, 0u);
  trial.add(1001);
  EXPECT_EQ(trial.gain().samples, 1u);
  EXPECT_EQ(PageTrial().gain().samples, 0u);
}

TEST(PageTrial, DoesNotTakeAHotRegionForAGain) {
  // Half of the stalls lie in one region, which is among the first to move.
  std::vector<PageEvidence::Region> regions = regions_of(100, 10);
  regions[0].addresses = 1000;
  PageTrial trial(regions);
  for (uint64_t i = 0; i < 100; i += 2) trial.moved(1000 + i);
  for (int i = 0; i < 400; ++i) trial.add(1000);
  for (int i = 0; i < 400; ++i) trial.add(1000 + i % 100);
  const PageGain gain = trial.gain();
  EXPECT_NEAR(gain.saved, 0, 2 * gain.error);
}

}  // namespace
}  // namespace hindsight::feedback
