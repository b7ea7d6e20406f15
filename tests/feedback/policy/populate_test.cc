// When pages are made before the guest touches them.
#include "feedback/policy/populate.h"

#include <gmock/gmock.h>

#include <array>

namespace hindsight::feedback {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kKiB = 1024;
constexpr auto U = FillBlock::kUntouched, T = FillBlock::kTouched, J = FillBlock::kJustTouched,
               M = FillBlock::kMade;

TEST(PopulatedGrowth, IsMadeWhereEarlierStepsWereTouched) {
  const PolicyConfig config;
  EXPECT_TRUE(populates_growth({64 * kKiB, 128 * kKiB, 120 * kKiB}, config));
  EXPECT_FALSE(populates_growth({64 * kKiB, 128 * kKiB, 60 * kKiB}, config)) << "half of it was not";
  EXPECT_FALSE(populates_growth({64 * kKiB, 64 * kKiB, 64 * kKiB}, config)) << "one step says little";
  EXPECT_FALSE(populates_growth({4096 * kKiB, 128 * kKiB, 128 * kKiB}, config)) << "the guest would wait";
}

TEST(PopulatedGrowth, IsNotMadeWhereThatIsSwitchedOff) {
  PolicyConfig config;
  config.populate = false;
  EXPECT_FALSE(populates_growth({64 * kKiB, 128 * kKiB, 128 * kKiB}, config));
}

TEST(PopulatedGrowth, LeavesAStepInAFewToTheGuest) {
  const PolicyConfig config;
  int left = 0;
  for (uint64_t step = 1; step <= 160; ++step) left += watches_growth(step, config) ? 1 : 0;
  EXPECT_EQ(left, 10);
}

TEST(PopulatedGrowth, EndsWhereTheGuestWasFasterWithItsOwnPageFaults) {
  const PolicyConfig config;
  EXPECT_FALSE(growth_lost({.pairs = 12, .ratio = 1.4}, config));
  EXPECT_FALSE(growth_lost({.pairs = 12, .ratio = 0.98}, config)) << "chance";
  EXPECT_TRUE(growth_lost({.pairs = 12, .ratio = 0.8}, config));
  EXPECT_FALSE(growth_lost({.pairs = config.min_growth_pairs - 1, .ratio = 0.8}, config))
      << "too few to tell";
  EXPECT_TRUE(is_told({.pairs = config.min_growth_pairs}, config));
}

TEST(BlocksAhead, LieBehindWhereTheGuestHasJustBeen) {
  EXPECT_THAT(blocks_ahead(std::array{T, T, J, U, U, U, U}, 2), ElementsAre(3, 4));
  EXPECT_THAT(blocks_ahead(std::array{T, T, T, U, U, U, U}, 2), IsEmpty()) << "it has stopped there";
}

TEST(BlocksAhead, LeaveTheOneBehindThemUntouched) {
  EXPECT_THAT(blocks_ahead(std::array{J, U, U, U, T, U}, 8), ElementsAre(1, 2));
  EXPECT_THAT(blocks_ahead(std::array{J, U, U, U}, 8), ElementsAre(1, 2)) << "nor the last one of all";
  EXPECT_THAT(blocks_ahead(std::array{J, U}, 8), IsEmpty());
  EXPECT_THAT(blocks_ahead(std::array{J, M, U, U}, 8), IsEmpty()) << "some are made, and not reached";
}

TEST(BlocksAhead, AreMadeForEachArrayThatIsFilled) {
  EXPECT_THAT(blocks_ahead(std::array{J, U, U, U, J, U, U, U}, 1), ElementsAre(1, 5));
}

TEST(BlocksAhead, AreMoreEachTimeTheGuestHasComeBy) {
  const PolicyConfig config;
  EXPECT_EQ(window_ahead(0, 1000, config), 2u);
  EXPECT_EQ(window_ahead(1, 1000, config), 4u);
  EXPECT_EQ(window_ahead(3, 1000, config), 16u);
  EXPECT_EQ(window_ahead(20, 1000, config), 32u) << "64 MiB";
  EXPECT_EQ(window_ahead(20, 40, config), 10u) << "a quarter of what it has touched";
  EXPECT_EQ(window_ahead(20, 0, config), 2u);
}

}  // namespace
}  // namespace hindsight::feedback
