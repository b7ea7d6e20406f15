#include "feedback/monitor/misprediction_rate.h"

#include <gtest/gtest.h>

namespace hindsight::feedback {
namespace {

void judge(BurstRates& rates, int wrong, int of) {
  for (int i = 0; i < of; ++i) rates.judged(i >= wrong);
}

TEST(BurstRates, CountABurstForTheBranchesAroundIt) {
  BurstRates rates;
  MispredictionSums sums;
  rates.records(10);
  sums += rates.begin();
  judge(rates, 500, 1000);  // a phase of few branches, half of them mispredicted
  rates.records(10);
  sums += rates.begin();
  judge(rates, 0, 1000);  // one of many, none mispredicted
  rates.records(975);
  sums += rates.rest();
  EXPECT_DOUBLE_EQ(sums.weight, 995);
  EXPECT_DOUBLE_EQ(sums.mispredicted, 0.5 * 15);
  EXPECT_DOUBLE_EQ(sums.rate(), 7.5 / 995);
}

TEST(BurstRates, OfABurstThatOnlyWarmedUpAreLeftToTheNext) {
  BurstRates rates;
  MispredictionSums sums;
  rates.records(7);
  sums += rates.begin();
  rates.records(3);
  sums += rates.begin();
  judge(rates, 1, 4);
  sums += rates.rest();
  EXPECT_DOUBLE_EQ(sums.weight, 10);
  EXPECT_DOUBLE_EQ(sums.rate(), 0.25);
}

TEST(BurstRates, AreTheSameHoweverOftenTheyAreLookedAt) {
  BurstRates rates;
  rates.records(4);
  (void)rates.begin();
  judge(rates, 1, 2);
  EXPECT_DOUBLE_EQ(rates.rest().weight, 4);
  rates.records(2);
  EXPECT_DOUBLE_EQ(rates.rest().weight, 6);
  EXPECT_DOUBLE_EQ(rates.rest().weight, 6);
}

TEST(BurstRates, WithoutABurstAreNone) {
  BurstRates rates;
  rates.records(100);
  EXPECT_EQ(rates.rest().weight, 0);
  EXPECT_EQ(MispredictionSums{}.rate(), 0);
}

}  // namespace
}  // namespace hindsight::feedback
