#include "runtime/instance/code_tally.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace hindsight::rt {
namespace {

std::shared_ptr<StoreBudget> budget_of(uint64_t code_bytes) {
  return std::make_shared<StoreBudget>(StoreLimits{.code_bytes = code_bytes});
}

TEST(CodeTally, CountsInEachStoreAsLongAsTheCodeIsThere) {
  const auto tally = std::make_shared<CodeTally>(1000);
  const auto a = budget_of(1000), b = budget_of(1000);
  ASSERT_TRUE(tally->join(a, "m"));
  auto first = tally->take_needed("f", 100, *a);
  ASSERT_TRUE(first);
  ASSERT_TRUE(tally->join(b, "m"));
  ASSERT_TRUE(tally->join(b, "m")) << "once";
  EXPECT_EQ(a->code_bytes(), 100u);
  EXPECT_EQ(b->code_bytes(), 100u);
  auto second = tally->take_for_speed("f", 50);
  ASSERT_TRUE(second);
  EXPECT_EQ(tally->bytes(), 150u);
  EXPECT_EQ(a->code_bytes(), 150u);
  EXPECT_EQ(b->code_bytes(), 150u);
  first->reset();
  second->reset();
  EXPECT_EQ(tally->bytes(), 0u);
  EXPECT_EQ(a->code_bytes(), 0u);
  EXPECT_EQ(b->code_bytes(), 0u);
}

TEST(CodeTally, DoesNotKeepBudgetsOfStoresThatAreGoneInMind) {
  const auto tally = std::make_shared<CodeTally>(1000);
  const auto stays = budget_of(1000);
  ASSERT_TRUE(tally->join(stays, "m"));
  auto code = tally->take_needed("f", 100, *stays);
  ASSERT_TRUE(code);
  for (int i = 0; i < 1000; ++i) {
    const auto comes = budget_of(1000);
    ASSERT_TRUE(tally->join(comes, "m"));
    EXPECT_EQ(comes->code_bytes(), 100u);
  }
  EXPECT_LE(tally->budget_count(), 32u);
  std::vector<std::shared_ptr<StoreBudget>> many;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(tally->join(many.emplace_back(budget_of(1000)), "m"));
  for (const auto& budget : many) ASSERT_TRUE(tally->join(budget, "m"));
  code->reset();
  for (const auto& budget : many) EXPECT_EQ(budget->code_bytes(), 0u) << "each once";
  EXPECT_EQ(stays->code_bytes(), 0u);
}

TEST(CodeTally, LeavesRoomForWhatIsNeeded) {
  const auto tally = std::make_shared<CodeTally>(100);
  const auto budget = budget_of(100);
  ASSERT_TRUE(tally->join(budget, "m"));
  auto half = tally->take_for_speed("f", 50);
  ASSERT_TRUE(half);
  const auto refused = tally->take_for_speed("f", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kResource);
  EXPECT_EQ(
      refused.error().message,
      "f would take 1 bytes of code more; the limit code-bytes allows 100, at most half of it for speed");
  EXPECT_FALSE(tally->room_for_speed("f", 1));
  auto needed = tally->take_needed("f", 50, *budget);
  ASSERT_TRUE(needed);
  EXPECT_EQ(
      tally->take_needed("f", 1, *budget).error().message,
      "f would take 1 bytes of code besides the 100 that the store has; the limit code-bytes allows 100");
  half->reset();
  EXPECT_TRUE(tally->room_for_speed("f", 50));
  EXPECT_FALSE(tally->room_for_speed("f", 51));
}

TEST(CodeTally, AsksOnlyTheStoreThatWaits) {
  const auto tally = std::make_shared<CodeTally>(1000);
  const auto large = budget_of(1000), small = budget_of(10);
  ASSERT_TRUE(tally->join(large, "m"));
  ASSERT_TRUE(tally->join(small, "m"));
  auto charge = tally->take_needed("f", 100, *large);
  ASSERT_TRUE(charge);
  EXPECT_EQ(small->code_bytes(), 100u);
  EXPECT_FALSE(tally->take_needed("f", 1, *small));
  EXPECT_FALSE(tally->take_for_speed("f", 1)) << "which all must have room for";
  EXPECT_EQ(large->code_bytes(), 100u) << "what was taken before one refused is given back";
  EXPECT_TRUE(tally->take_needed("f", 1, *large));
}

TEST(CodeTally, ForgetsStoresThatAreGone) {
  const auto tally = std::make_shared<CodeTally>(1000);
  auto small = budget_of(10);
  ASSERT_TRUE(tally->join(small, "m"));
  auto charge = tally->take_needed("f", 5, *small);
  ASSERT_TRUE(charge);
  EXPECT_FALSE(tally->take_for_speed("f", 20));
  small.reset();
  EXPECT_TRUE(tally->take_for_speed("f", 20));
  const auto late = budget_of(4);
  const Status refused = tally->join(late, "module m");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "module m would take 5 bytes of code; the limit code-bytes allows 4");
  EXPECT_EQ(late->code_bytes(), 0u);
}

TEST(CodeTally, LetsNoModuleHaveMoreForSpeedThanAStoreToComeWouldAllow) {
  const auto tally = std::make_shared<CodeTally>(100);
  EXPECT_FALSE(tally->take_for_speed("f", 51));
  EXPECT_TRUE(tally->take_for_speed("f", 50));
}

}  // namespace
}  // namespace hindsight::rt
