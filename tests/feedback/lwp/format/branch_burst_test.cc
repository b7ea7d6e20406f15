// Bursts of branch outcomes: the queue between guest and monitor, and the predictor's view of what comes out.
#include "feedback/lwp/format/branch_burst.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "feedback/lwp/model/branch_replay.h"

namespace hindsight::lwp {
namespace {

// As instrumented code does: an ordinary branch record, then every branch of the burst.
uint32_t run_burst(BranchBursts& bursts, uint64_t pc = 0x1000) {
  if (!bursts.begin()) return 0;
  uint32_t added = 1;
  while (bursts.add(pc, added % 2 == 0, 0x2000)) ++added;
  return added;
}

TEST(BranchBursts, BeginOnlyWhenAskedForAndThenOnce) {
  BranchBursts bursts;
  EXPECT_FALSE(bursts.begin());
  bursts.request(10);
  EXPECT_TRUE(bursts.requested());
  EXPECT_EQ(run_burst(bursts), 10u);
  EXPECT_FALSE(bursts.active());
  EXPECT_FALSE(bursts.requested());
  EXPECT_EQ(run_burst(bursts), 0u);
  std::vector<BranchOutcome> out;
  EXPECT_EQ(bursts.take(out), 10u);
  EXPECT_EQ(bursts.begun(), 1u);
}

TEST(BranchBursts, OutcomesKeepTheirOrderDirectionAndTarget) {
  BranchBursts bursts;
  bursts.request(3);
  ASSERT_TRUE(bursts.begin());
  EXPECT_TRUE(bursts.add(0x7fff'1234'5678, true, 0x7fff'0000'0001));
  EXPECT_TRUE(bursts.add(0x11, false, 0x22));
  EXPECT_FALSE(bursts.add(0x33, true, 0x44));
  std::vector<BranchOutcome> out;
  bursts.take(out);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_TRUE(out[0].first() && !out[1].first() && !out[2].first());
  EXPECT_TRUE(out[0].taken() && !out[1].taken() && out[2].taken());
  EXPECT_EQ(out[0].pc, 0x7fff'1234'5678u);
  EXPECT_EQ(out[0].target(), 0x7fff'0000'0001u);
  EXPECT_EQ(out[1].target(), 0x22u);
}

TEST(BranchBursts, ABurstWithoutRoomIsCountedAndDropsNothing) {
  BranchBursts bursts;
  std::vector<BranchOutcome> out;
  for (uint32_t i = 0; i < 2; ++i) {
    bursts.request(BranchBursts::kMostOutcomes);
    EXPECT_EQ(run_burst(bursts), BranchBursts::kMostOutcomes);
  }
  bursts.request(1);
  EXPECT_EQ(run_burst(bursts), 0u) << "the queue is full";
  EXPECT_EQ(bursts.refused(), 1u);
  EXPECT_EQ(bursts.take(out), BranchBursts::kCapacity);
  bursts.request(1);
  EXPECT_EQ(run_burst(bursts), 1u);
}

TEST(BranchBursts, ABurstUnderWayIsHandedOutAsFarAsItIs) {
  BranchBursts bursts;
  bursts.request(4);
  ASSERT_TRUE(bursts.begin());
  bursts.add(1, true, 2);
  std::vector<BranchOutcome> out;
  EXPECT_EQ(bursts.take(out), 1u);
  bursts.add(3, true, 4);
  EXPECT_EQ(bursts.take(out), 1u);
  EXPECT_EQ(out[1].pc, 3u);
}

TEST(BranchBursts, WhatOneThreadRecordsAnotherTakesWholeAndInOrder) {
  BranchBursts bursts;
  constexpr uint64_t kBursts = 200;
  std::thread guest([&] {
    for (uint64_t begun = 0, pc = 0; begun < kBursts;) {
      if (!bursts.begin()) {
        std::this_thread::yield();
        continue;
      }
      ++begun;
      do ++pc;
      while (bursts.add(pc, pc % 3 == 0, pc * 2));
    }
  });
  std::vector<BranchOutcome> out;
  while (out.size() < kBursts * 100) {
    if (!bursts.requested() && bursts.begun() < kBursts) bursts.request(100);
    bursts.take(out);
  }
  guest.join();
  bursts.take(out);
  ASSERT_EQ(out.size(), kBursts * 100);
  for (uint64_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i].pc, i + 1);
    ASSERT_EQ(out[i].taken(), (i + 1) % 3 == 0);
    ASSERT_EQ(out[i].target(), (i + 1) * 2);
    ASSERT_EQ(out[i].first(), i % 100 == 0);
  }
}

// ---------------------------------------------------------------- what a predictor says about them

struct Rate {
  uint64_t judged = 0;
  uint64_t wrong = 0;
  double value() const { return judged ? static_cast<double>(wrong) / static_cast<double>(judged) : -1; }
};

// `bursts` bursts of 4,096 outcomes of site 1, with a loop branch (site 2, always taken) between them. They
// are far apart: `next` is told when a burst begins.
template <typename Next>
Rate replay(uint32_t bursts, Next next) {
  BranchReplay replay(make_tage());
  Rate rate;
  for (uint32_t b = 0; b < bursts; ++b) {
    for (uint32_t i = 0; i < 4096; ++i) {
      const bool of_loop = i % 2 == 1;
      const bool taken = of_loop ? true : next(b);
      BranchOutcome outcome{of_loop ? 2u : 1u, 0x100};
      if (taken) outcome.next |= BranchOutcome::kTaken;
      if (i == 0) outcome.next |= BranchOutcome::kFirst;
      const auto right = replay.predicted_right(outcome.pc, outcome);
      if (of_loop || !right) continue;
      rate.judged += 1;
      rate.wrong += *right ? 0 : 1;
    }
  }
  return rate;
}

TEST(BranchReplay, RatesOfRandomBranchesComeOutRight) {
  for (const double bias : {0.99, 0.9, 0.75, 0.5}) {
    std::mt19937_64 random(7);
    std::bernoulli_distribution coin(bias);
    const Rate rate = replay(8, [&](uint32_t) { return coin(random); });
    EXPECT_GT(rate.judged, 8u * 1000);
    EXPECT_NEAR(rate.value(), 1 - bias, 0.05) << bias;
  }
}

TEST(BranchReplay, APeriodicBranchIsPredictedWhereverBurstsBegin) {
  for (const uint32_t period : {2u, 7u, 20u, 64u}) {
    uint64_t n = 0;
    uint32_t last = 0;
    const Rate rate = replay(8, [&](uint32_t burst) {
      if (burst != last) n += 1000003 * (last = burst);  // much happened between them
      return n++ % period == 0;
    });
    EXPECT_LT(rate.value(), 0.05) << period;
  }
}

TEST(BranchReplay, TheBeginningOfEveryBurstTrainsAndIsNotJudged) {
  BranchReplay replay(make_gshare(), {.first_warm_up = 10, .warm_up = 4, .site_warm_up = 2});
  const auto burst = [&](uint32_t outcomes) {
    uint32_t judged = 0;
    for (uint32_t i = 0; i < outcomes; ++i)
      judged +=
          replay.predicted_right(1, {1, 0x100 | BranchOutcome::kTaken | (i == 0 ? BranchOutcome::kFirst : 0)})
              .has_value();
    return judged;
  };
  EXPECT_EQ(burst(30), 20u);
  EXPECT_EQ(burst(30), 26u);
  replay.gap();
  EXPECT_FALSE(replay.predicted_right(1, {1, 0x100}));
  // A branch seen for the first time is cold to the model, not to a processor.
  for (uint32_t i = 0; i < 10; ++i) (void)replay.predicted_right(1, {1, 0x100});
  EXPECT_FALSE(replay.predicted_right(2, {2, 0x200}));
  EXPECT_FALSE(replay.predicted_right(2, {2, 0x200}));
  EXPECT_TRUE(replay.predicted_right(2, {2, 0x200}));
}

TEST(BranchReplay, ABranchOfCodeThatWasCompiledAgainIsStillAChoice) {
  BranchReplay replay(make_tage());
  std::mt19937_64 random(5);
  std::bernoulli_distribution coin(0.5);
  Rate rate;
  for (uint64_t version = 0; version < 4; ++version) {
    for (uint32_t i = 0; i < 4096; ++i) {
      const uint64_t code = 0x10000 * (version + 1);
      BranchOutcome outcome{code, code + 0x40};
      if (coin(random)) outcome.next |= BranchOutcome::kTaken;
      if (i == 0) outcome.next |= BranchOutcome::kFirst;
      const auto right = replay.predicted_right(1, outcome);
      if (!right) continue;
      rate.judged += 1;
      rate.wrong += *right ? 0 : 1;
    }
  }
  EXPECT_GT(rate.judged, 10'000u);
  EXPECT_NEAR(rate.value(), 0.5, 0.05);
}

TEST(BranchReplay, AnIndirectJumpIsJudgedByItsTarget) {
  // Always taken: a predictor of directions would be right every time.
  std::mt19937_64 random(3);
  const auto rate_of = [](auto target_at) {
    BranchReplay replay(make_tage());
    Rate rate;
    for (uint64_t i = 0; i < 4 * 4096; ++i) {
      const auto right = replay.predicted_right(
          1, {1, target_at(i) | BranchOutcome::kTaken | (i % 4096 == 0 ? BranchOutcome::kFirst : 0)});
      if (!right) continue;
      rate.judged += 1;
      rate.wrong += *right ? 0 : 1;
    }
    return rate.value();
  };
  EXPECT_LT(rate_of([](uint64_t) { return 0x1000; }), 0.01);
  EXPECT_LT(rate_of([](uint64_t i) { return 0x1000 + 64 * (i % 5); }), 0.05);
  EXPECT_NEAR(rate_of([&](uint64_t) { return 0x1000 + 64 * (random() % 4); }), 0.75, 0.05);
}

}  // namespace
}  // namespace hindsight::lwp
