// Whether what a loop remembers is true of what it does now: strips add up, on made-up loops.
#include "runtime/adaptive/experiments/history_watch.h"

#include <gtest/gtest.h>

#include "jit/abi/traversal_history.h"
#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {
namespace {

using State = HistoryWatch::State;

// The first part of a traversal is all there is.
constexpr uint32_t kShort = 10'000;
// It is not.
constexpr uint32_t kLong = 1'000'000;

TEST(HistoryWatch, LearnsUntilTheWayComesAgain) {
  HistoryWatch watch;
  for (int i = 0; i < 1000; ++i) watch.strip({.with = true, .turns = 1024});
  EXPECT_EQ(watch.state(), State::kLearning);
  for (uint32_t i = 0; i + 1 < kStripsToKnow; ++i)
    watch.strip({.with = true, .turns = 1024, .valid = 1000, .period = kShort});
  EXPECT_EQ(watch.state(), State::kLearning);
  watch.strip({.with = true, .turns = 1024, .valid = 600, .period = kShort});
  EXPECT_EQ(watch.state(), State::kKnown);
}

TEST(HistoryWatch, WritesWholeTraversalsDownOnceTheFirstPartCameAgain) {
  HistoryWatch watch;
  for (uint32_t at = 0; at < kLong; at += 1000) watch.strip({.with = true, .turns = 1000, .position = at});
  EXPECT_FALSE(watch.wants_whole());
  uint32_t at = 0;
  const auto strip = [&](uint64_t valid) {
    at += 1000;
    watch.strip({.with = true, .turns = 1000, .valid = valid, .period = kLong, .position = at});
  };
  for (uint32_t i = 0; i < kStripsToKnow; ++i) strip(1000);
  EXPECT_TRUE(watch.wants_whole());
  EXPECT_EQ(watch.state(), State::kLearning);
  while (at < kLong) strip(at < jit::kHistoryFirstPart ? 1000 : 0);
  EXPECT_EQ(watch.state(), State::kLearning);
  at = 0;
  while (at < jit::kHistoryFirstPart) strip(1000);
  EXPECT_EQ(watch.state(), State::kLearning) << "the rest was not there the last time";
  for (uint32_t i = 0; i <= kStripsToKnow; ++i) strip(1000);
  EXPECT_EQ(watch.state(), State::kKnown);
}

TEST(HistoryWatch, GivesUpWhereNothingButTheFirstPartComesAgain) {
  HistoryWatch watch;
  uint64_t turns = 0;
  for (; watch.state() == State::kLearning && turns < uint64_t{1} << 32; turns += 1000) {
    const auto at = static_cast<uint32_t>(turns % kLong);
    watch.strip({.with = true,
                 .turns = 1000,
                 .valid = turns >= kLong && at < jit::kHistoryFirstPart ? uint64_t{1000} : 0,
                 .period = turns >= kLong ? kLong : 0,
                 .position = at + 1000});
  }
  EXPECT_EQ(watch.state(), State::kHopeless);
  EXPECT_NEAR(static_cast<double>(turns), 3.0 * kLong + kLeastTurnsToReanchor, 10'000);
}

TEST(HistoryWatch, WritesWholeTraversalsDownAtOnceWhereAnEarlierRunSawThemComeAgain) {
  EXPECT_TRUE(HistoryWatch(0, true).wants_whole());
  EXPECT_FALSE(HistoryWatch().wants_whole());
}

TEST(HistoryWatch, StripsWithoutSayNothingOnceTheWayIsKnown) {
  HistoryWatch watch;
  for (uint32_t i = 0; i < kStripsToKnow; ++i)
    watch.strip({.with = true, .turns = 64, .valid = 64, .period = kShort});
  for (int i = 0; i < 100; ++i) watch.strip({.with = false, .turns = 1024});
  EXPECT_EQ(watch.state(), State::kKnown);
}

TEST(HistoryWatch, OneStripElsewhereIsTheEndOfAListAndMoreOfThemAreAnotherList) {
  HistoryWatch watch;
  for (uint32_t i = 0; i < kStripsToKnow; ++i)
    watch.strip({.with = true, .turns = 64, .valid = 64, .period = kShort});
  for (int i = 0; i < 10; ++i) {
    watch.strip({.with = true, .turns = 1024, .valid = 10, .period = kShort});
    watch.strip({.with = true, .turns = 1024, .valid = 1000, .period = kShort});
  }
  EXPECT_EQ(watch.state(), State::kKnown);
  for (uint32_t i = 0; i < kStripsToForget; ++i)
    watch.strip({.with = true, .turns = 1024, .valid = 10, .period = kShort});
  EXPECT_EQ(watch.state(), State::kLearning);
  EXPECT_EQ(watch.times_forgotten(), 1u);
  EXPECT_EQ(watch.turns_learning(), 0u);
}

TEST(HistoryWatch, GivesUpWhenNothingComesAgain) {
  HistoryWatch watch;
  uint64_t turns = 0;
  constexpr uint64_t kStrip = 4096;
  for (; watch.state() == State::kLearning && turns < uint64_t{1} << 32; turns += kStrip)
    watch.strip({.with = true, .turns = kStrip, .valid = 100, .period = kShort});
  EXPECT_EQ(watch.state(), State::kHopeless);
  EXPECT_EQ(turns, 2 * uint64_t{jit::kHistoryCapacity});
  EXPECT_EQ(watch.turns_learning(), turns);
  watch.strip({.with = true, .turns = kStrip, .valid = kStrip, .period = kShort});
  EXPECT_EQ(watch.state(), State::kHopeless);
}

TEST(HistoryWatch, TakesAnotherAnchorOnceWhenTheOldOneStaysAway) {
  HistoryWatch watch;
  constexpr uint32_t kPeriod = 100'000;
  uint64_t turns = 0;
  for (; !watch.take_anchor(); turns += 1000) {
    ASSERT_LT(turns, 10u * kPeriod);
    watch.strip({.with = true, .turns = 1000, .valid = 0, .period = kPeriod});
  }
  EXPECT_EQ(turns, 2u * kPeriod);
  for (int i = 0; i < 1000; ++i) {
    watch.strip({.with = true, .turns = 1000, .valid = 0, .period = kPeriod});
    ASSERT_FALSE(watch.take_anchor());
  }
  // Without a period there is nothing to tell that it stays away.
  HistoryWatch first;
  for (int i = 0; i < 1000; ++i) first.strip({.with = true, .turns = 1000});
  EXPECT_FALSE(first.take_anchor());
}

// Learns in strips of which one in sixteen is plain, until that ends; says after how many seconds.
double seconds_of_learning(HistoryWatch& watch, uint64_t ticks_with, uint64_t ticks_plain) {
  double seconds = 0;
  bool plain = false;
  while (watch.state() == State::kLearning && seconds < 10) {
    const uint64_t ticks = plain ? ticks_plain : ticks_with;
    watch.strip({.with = !plain, .turns = 1000, .ticks = ticks});
    seconds += static_cast<double>(ticks) / 1e9;
    plain = watch.wants_plain();
  }
  return seconds;
}

TEST(HistoryWatch, GivesUpSoonWhereRememberingTakesLong) {
  HistoryWatch dear(1e9), cheap(1e9);
  EXPECT_NEAR(seconds_of_learning(dear, 130'000, 100'000), 0.1, 0.02);
  EXPECT_TRUE(dear.is_too_dear());
  EXPECT_NEAR(dear.cost(), 0.3, 0.001);
  EXPECT_GT(seconds_of_learning(cheap, 100'100, 100'000), 1.5);
  EXPECT_FALSE(cheap.is_too_dear());
}

TEST(HistoryWatch, GivesUpSoonerWhereOtherLoopsHaveSpentTheTimeThatMayBeSpent) {
  const auto turns_until_too_dear = [](double spent_elsewhere) {
    HistoryWatch watch(1e9);
    bool plain = false;
    while (watch.state() == State::kLearning) {
      watch.strip({.with = !plain,
                   .turns = 1000,
                   .ticks = plain ? 100'000u : 104'000u,
                   .spent_elsewhere = spent_elsewhere});
      plain = watch.wants_plain();
    }
    EXPECT_TRUE(watch.is_too_dear());
    return watch.turns_learning();
  };
  EXPECT_LT(turns_until_too_dear(0.015e9), turns_until_too_dear(0) / 3);
}

}  // namespace
}  // namespace hindsight::rt
