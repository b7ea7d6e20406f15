#include "feedback/policy/sampling.h"

#include <gtest/gtest.h>

namespace hindsight::feedback {
namespace {

const SamplingConfig kConfig;

TEST(Sampling, IsSteadyBetween250And500HzWhileNobodyNeedsMore) {
  const SamplingPlan plan = plan_sampling({.now = 10}, kConfig);
  EXPECT_EQ(plan.hz, kConfig.steady_hz);
  EXPECT_GE(plan.hz, 250u);
  EXPECT_LE(plan.hz, 500u);
}

TEST(Sampling, IsQuickWhileADecisionNeedsSamples) {
  EXPECT_EQ(plan_sampling({.now = 1, .new_code = 0.95}, kConfig).hz, 4000u);
  EXPECT_EQ(plan_sampling({.now = 1, .new_code = 0.5, .waiting = true}, kConfig).hz, 4000u);
  EXPECT_EQ(plan_sampling({.now = 1, .new_code = 0.5, .new_version = 0.9}, kConfig).hz, 1000u);
}

TEST(Sampling, ABurstEnds) {
  EXPECT_EQ(plan_sampling({.now = 1, .new_code = 1 - kConfig.learn_seconds, .new_version = 0}, kConfig).hz,
            250u);
  EXPECT_EQ(plan_sampling({.now = 1, .new_version = 1 - kConfig.follow_seconds}, kConfig).hz, 250u);
}

TEST(Sampling, BurstsArePaidFromABudgetThatGrowsWithTheRun) {
  SamplingState state{.now = 1, .new_code = 1, .waiting = true, .spent_seconds = 0.5};
  EXPECT_EQ(plan_sampling(state, kConfig).hz, 250u);
  EXPECT_EQ(plan_sampling(state, kConfig).reason, "the budget of bursts is spent");
  state.now = state.new_code = 1000;
  EXPECT_EQ(plan_sampling(state, kConfig).hz, 4000u);
}

TEST(Sampling, NeverCostsMoreThanItsBudgetHoweverOftenItIsAskedFor) {
  constexpr double kStep = 0.002;  // a round of the monitor
  SamplingState state;
  for (state.now = 0; state.now < 100; state.now += kStep) {
    state.new_code = state.now;
    state.waiting = true;
    state.spent_seconds += burst_cost(plan_sampling(state, kConfig).hz, kStep, kConfig);
    ASSERT_LE(state.spent_seconds, kConfig.budget_seconds + kConfig.budget_share * state.now +
                                       burst_cost(kConfig.learn_hz, kStep, kConfig));
  }
  EXPECT_GT(state.spent_seconds, 0.9 * (kConfig.budget_seconds + kConfig.budget_share * 100));
}

TEST(Sampling, TheSteadyRateCostsNothingExtra) {
  EXPECT_EQ(burst_cost(kConfig.steady_hz, 10, kConfig), 0);
  EXPECT_NEAR(burst_cost(4250, 1, kConfig), 4000 * 13e-6, 1e-9);
}

}  // namespace
}  // namespace hindsight::feedback
