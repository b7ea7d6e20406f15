#include "runtime/cli/accuracy/score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hindsight::cli {
namespace {

SiteWeights loads(std::initializer_list<double> weights) {
  SiteWeights sites;
  uint32_t offset = 0;
  for (const double weight : weights) sites[{"f", ++offset}] = weight;
  return sites;
}

TEST(DelinquentLoads, AreTheFewestThatHoldNineTenthsOfTheStallTime) {
  EXPECT_EQ(delinquent(loads({600, 350, 50}), 1000, {.covered = 0.9, .least_share = 0}).size(), 2u);
  EXPECT_EQ(delinquent(loads({600, 250, 150}), 1000, {.covered = 0.9, .least_share = 0}).size(), 3u);
  EXPECT_EQ(delinquent(loads({950, 50}), 1000, {.covered = 0.9, .least_share = 0}).size(), 1u);
}

TEST(DelinquentLoads, OfSamplesAreTakenUntilTheyHoldNineTenthsSurely) {
  const DelinquencyRule rule{.covered = 0.9, .least_share = 0};
  EXPECT_EQ(delinquent(loads({605, 300, 95}), 1000, rule, /*sampled=*/false).size(), 2u);
  EXPECT_EQ(delinquent(loads({605, 300, 95}), 1000, rule, /*sampled=*/true).size(), 3u);
  EXPECT_EQ(delinquent(loads({605000, 300000, 95000}), 1e6, rule, /*sampled=*/true).size(), 2u);
}

TEST(DelinquentLoads, DoNotExistWhereNothingStalls) {
  EXPECT_TRUE(delinquent({}, 1000, {}).empty());
  EXPECT_TRUE(delinquent(loads({20, 20, 20}), 1000, {}).empty());
  EXPECT_TRUE(delinquent(loads({0, 0}), 0, {}).empty());
}

TEST(DelinquentLoads, OfTheSameWeightAreInOrOutTogether) {
  EXPECT_EQ(
      delinquent(loads({500, 100, 100, 100, 100, 100}), 1000, {.covered = 0.55, .least_share = 0}).size(),
      6u);
}

TEST(Population, FollowsFromHowOftenTheSameIsSeenAgain) {
  EXPECT_NEAR(population(200, 16), 16, 0.1) << "all sixteen of them, many times";
  EXPECT_NEAR(population(2, 1), 1, 0.01);
  // 1,000 things, 500 drawn: 1000 * (1 - 0.999^500) are different.
  EXPECT_NEAR(population(500, 394), 1000, 15);
  EXPECT_TRUE(std::isinf(population(100, 100)));
  EXPECT_TRUE(std::isinf(population(0, 0)));
  EXPECT_GT(population(1000, 990), 40'000);
}

TEST(HottestFunctions, CoverNineTenths) {
  EXPECT_EQ(hottest({{"a", 80}, {"b", 15}, {"c", 5}}, 0.9), (std::set<std::string>{"a", "b"}));
}

TEST(Matches, GivePrecisionAndRecall) {
  const std::set<int> truth = {1, 2, 3, 4};
  const Match match = compare(std::set<int>{3, 4, 5}, truth);
  EXPECT_EQ(match, (Match{2, 1, 2}));
  EXPECT_DOUBLE_EQ(match.precision(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(match.recall(), 0.5);
  Match sum = match;
  sum += compare(std::set<int>{}, std::set<int>{});
  EXPECT_EQ(sum, match);
  EXPECT_DOUBLE_EQ(compare(std::set<int>{}, std::set<int>{}).recall(), 1.0);
  EXPECT_DOUBLE_EQ(compare(std::set<int>{1}, std::set<int>{}).precision(), 0.0);
}

}  // namespace
}  // namespace hindsight::cli
