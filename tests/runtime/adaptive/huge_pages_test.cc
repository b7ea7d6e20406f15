#include "runtime/adaptive/experiments/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <limits>

#include "runtime/adaptive/experiments/beside_huge.h"
#include "runtime/adaptive/experiments/page_costs.h"

namespace hindsight::rt {
namespace {

constexpr uint64_t kHuge = uint64_t{2} << 20;

class HugePages : public testing::Test {
 protected:
  void SetUp() override {
    mapped_ = ::mmap(nullptr, 8 * kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                     -1, 0);
    ASSERT_NE(mapped_, MAP_FAILED);
    ::madvise(mapped_, 8 * kHuge, MADV_NOHUGEPAGE);
    begin_ = (reinterpret_cast<uint64_t>(mapped_) + kHuge - 1) / kHuge * kHuge;
    for (uint64_t i = 0; i < 4 * kHuge / 8; ++i) words()[i] = i * 0x9e3779b97f4a7c15u;
  }
  void TearDown() override { ::munmap(mapped_, 8 * kHuge); }
  uint64_t* words() const { return reinterpret_cast<uint64_t*>(begin_); }
  bool unchanged() const {
    for (uint64_t i = 0; i < 4 * kHuge / 8; ++i)
      if (words()[i] != i * 0x9e3779b97f4a7c15u) return false;
    return true;
  }
  void* mapped_ = nullptr;
  uint64_t begin_ = 0;
  std::atomic<bool> stop_{false};
};

TEST_F(HugePages, TakeOverARangeWithItsContentsAndGiveItBack) {
  const HugePageResult result = move_to_huge_pages(begin_, begin_ + 4 * kHuge, stop_);
  EXPECT_TRUE(unchanged());
  if (result.advised || result.moved_bytes == 0)
    GTEST_SKIP() << "no huge pages to be had here: "
                 << (result.advised ? "no MADV_COLLAPSE" : result.first_refusal);
  EXPECT_EQ(result.moved_bytes + result.refused_bytes, 4 * kHuge);
  EXPECT_EQ(bytes_on_huge_pages(begin_, begin_ + 4 * kHuge), result.moved_bytes);
  // But for what the kernel's own thread has made huge pages of since: nobody tells when it does.
  EXPECT_LE(result.copied_bytes, result.moved_bytes);
  EXPECT_EQ(result.copied_bytes % kHuge, 0u);
  const HugePageResult again = move_to_huge_pages(begin_, begin_ + 4 * kHuge, stop_);
  EXPECT_EQ(again.moved_bytes, result.moved_bytes);
  EXPECT_EQ(again.copied_bytes, 0u);
  leave_huge_pages(begin_, begin_ + 4 * kHuge);
  EXPECT_EQ(bytes_on_huge_pages(begin_, begin_ + 4 * kHuge), 0u);
  EXPECT_TRUE(unchanged());
}

TEST_F(HugePages, TakeOverARangeStepByStepAndSayWhatWasWaited) {
  HugePageMove move({{begin_, begin_ + kHuge}, {begin_ + 2 * kHuge, begin_ + 4 * kHuge}});
  int steps = 0;
  uint64_t seen = 0;
  while (!move.step(stop_, 0)) {
    ASSERT_LT(++steps, 4) << "a page a step, whatever time it is given";
    const uint64_t now = move.result().moved_bytes + move.result().refused_bytes;
    EXPECT_EQ(now, seen + kHuge);
    seen = now;
  }
  EXPECT_TRUE(unchanged());
  const HugePageResult result = move.result();
  if (result.advised) GTEST_SKIP() << "no MADV_COLLAPSE";
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(result.moved_bytes + result.refused_bytes, 3 * kHuge);
  EXPECT_LE(result.copied_bytes, result.moved_bytes);
  EXPECT_LE(result.waited_seconds + result.prepared_seconds, result.seconds);
  if (result.moved_bytes == 0) GTEST_SKIP() << "no huge pages to be had here: " << result.first_refusal;
  EXPECT_GT(result.waited_seconds, 0);
  EXPECT_EQ(bytes_on_huge_pages(begin_, begin_ + 4 * kHuge), result.moved_bytes);
}

TEST_F(HugePages, HoldAfterAPartUntilTheyAreToGoOn) {
  HugePageMove move({{begin_, begin_ + 4 * kHuge}}, std::numeric_limits<double>::infinity(), kHuge);
  const bool ended = move.step(stop_);
  if (move.result().advised) GTEST_SKIP() << "no MADV_COLLAPSE";
  EXPECT_FALSE(ended);
  EXPECT_TRUE(move.holds());
  EXPECT_EQ(move.done(), 1u);
  EXPECT_FALSE(move.step(stop_)) << "it goes on holding";
  EXPECT_EQ(move.done(), 1u);
  move.go_on();
  EXPECT_TRUE(move.step(stop_));
  EXPECT_EQ(move.done(), 4u);
  EXPECT_TRUE(unchanged());

  HugePageMove other({{begin_, begin_ + 4 * kHuge}}, std::numeric_limits<double>::infinity(), kHuge);
  EXPECT_FALSE(other.step(stop_));
  other.stop_here();
  EXPECT_TRUE(other.step(stop_));
  EXPECT_TRUE(other.result().stopped);
  EXPECT_EQ(other.done(), 1u);
}

TEST_F(HugePages, EndWhereWhoLivesThereHasWaitedLongEnough) {
  HugePageMove move({{begin_, begin_ + 4 * kHuge}}, 0);
  EXPECT_TRUE(move.step(stop_));
  if (move.result().advised || move.result().waited_seconds == 0)
    GTEST_SKIP() << "no huge pages to be had here: " << move.result().first_refusal;
  EXPECT_TRUE(move.result().late);
  EXPECT_LE(move.result().moved_bytes, kHuge);
  EXPECT_TRUE(unchanged());
}

TEST_F(HugePages, AreRefusedWhereNothingIsMapped) {
  ::munmap(mapped_, 8 * kHuge);
  const HugePageResult result = move_to_huge_pages(begin_, begin_ + 4 * kHuge, stop_);
  EXPECT_EQ(result.moved_bytes, 0u);
  mapped_ = ::mmap(nullptr, 8 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

TEST_F(HugePages, AndSmallOnesAreTouchedToSeeWhatThatTakes) {
  const PageCosts costs = measure_page_costs();
  EXPECT_GT(costs.small_seconds, 0);
  EXPECT_LT(costs.small_seconds, 10);
  const uint64_t untouched = begin_ + 5 * kHuge;
  ASSERT_TRUE(ask_for_huge_pages(untouched, untouched + kHuge));
  *reinterpret_cast<volatile char*>(untouched) = 1;
  if (bytes_on_huge_pages(begin_, begin_ + 7 * kHuge) == 0) GTEST_SKIP() << "no huge pages to be had here";
  EXPECT_GT(costs.huge_seconds, 0);
  EXPECT_LT(costs.huge_seconds, 10);
}

TEST_F(HugePages, AreLookedAtForAWhileForWhatTheyDoToSmallOnesBesideThem) {
  BesideHuge beside;
  BesideHuge::Time now{};
  EXPECT_FALSE(beside.is_known());
  EXPECT_FALSE(beside.is_awaited());
  // What was found does not end before the time is over, unless it is slower or there is no huge page to be had.
  for (int look = 0; look < 50 && !beside.is_known(); ++look, now += std::chrono::milliseconds(20)) {
    EXPECT_FALSE(beside.is_slower());
    beside.look(now);
    EXPECT_NE(beside.is_awaited(), beside.is_known());
  }
  now += std::chrono::milliseconds(500);
  beside.look(now);
  EXPECT_FALSE(beside.is_awaited());
  now += std::chrono::seconds(2);
  beside.look(now);
  EXPECT_TRUE(beside.is_known());
}

TEST_F(HugePages, AreNotMovedToOnceNobodyWaits) {
  stop_ = true;
  EXPECT_EQ(move_to_huge_pages(begin_, begin_ + 4 * kHuge, stop_).moved_bytes, 0u);
}

}  // namespace
}  // namespace hindsight::rt
