#include "runtime/adaptive/timed_loads.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "feedback/lwp/calibration/timed_load.h"

namespace hindsight::rt {
namespace {

lwp::Calibration machine() {
  lwp::Calibration c;
  c.tsc_ghz = 2.6;
  c.core_ghz = 3.6;
  c.l1 = {32 << 10, 1.1, 60};
  c.l2 = {1 << 20, 3.9, 78};
  c.l3 = {32 << 20, 13, 104};
  c.memory = {0, 110, 420};
  return c;
}

TEST(TimedSums, HaveAMeanAndTheShareOfSlowOnes) {
  TimedSums sums;
  EXPECT_EQ(sums.mean_ticks(), 0);
  EXPECT_EQ(sums.share_from(0), 0);
  for (int i = 0; i < 30; ++i) sums.add(60);
  for (int i = 0; i < 10; ++i) sums.add(420);
  EXPECT_EQ(sums.count(), 40u);
  EXPECT_DOUBLE_EQ(sums.mean_ticks(), 150);
  EXPECT_DOUBLE_EQ(sums.share_from(209), 0.25);
  EXPECT_DOUBLE_EQ(sums.share_from(0), 1);
  EXPECT_DOUBLE_EQ(sums.share_from(1e9), 0);
  sums.add(lwp::kTimedLoadClipTicks);
  EXPECT_EQ(sums.count(), 41u);
}

TEST(TimedSums, FollowAChange) {
  TimedSums sums;
  for (int i = 0; i < 100'000; ++i) sums.add(60);
  for (int i = 0; i < 20'000; ++i) sums.add(420);
  EXPECT_GT(sums.mean_ticks(), 400);
  EXPECT_GT(sums.share_from(209), 0.9);
  EXPECT_LT(sums.count(), 5000u);
}

TEST(TimedSums, BecomeALevelWithItsLatencyOnceTheMachineIsKnown) {
  TimedSums sums;
  for (int i = 0; i < 40; ++i) sums.add(i % 2 ? 104 : 130);
  const lwp::Calibration c = machine();
  const feedback::LoadLatency latency = latency_of(sums, &c);
  EXPECT_EQ(latency.level, MemoryLevel::kL3);
  EXPECT_EQ(latency.timed, 40u);
  EXPECT_DOUBLE_EQ(latency.latency_ns, 13);
  EXPECT_EQ(latency.cycles, 46u);
  EXPECT_EQ(latency.memory_share, 0);
  const feedback::LoadLatency blind = latency_of(sums, nullptr);
  EXPECT_EQ(blind.level, MemoryLevel::kUnknown);
  EXPECT_DOUBLE_EQ(blind.mean_ticks, 117);
  EXPECT_EQ(blind.cycles, 0u);
}

TEST(TimedSums, OfAFewLoadsHaveNoLevel) {
  TimedSums sums;
  for (int i = 0; i < 31; ++i) sums.add(420);
  const lwp::Calibration c = machine();
  EXPECT_EQ(latency_of(sums, &c).level, MemoryLevel::kUnknown);
}

class TimedLoadsTest : public ::testing::Test {
 protected:
  // Every strip's end is late enough on this clock.
  static constexpr double kEveryStrip = 1e-9;
  std::vector<uint8_t> memory = std::vector<uint8_t>(4096, 1);
  uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(memory.data()) + offset; }
};

TEST_F(TimedLoadsTest, TheLoadsOfALoopTakeTurns) {
  TimedLoads timed(kEveryStrip);
  jit::LoopCell cell;
  timed.arm(cell);
  EXPECT_EQ(cell.timed_loads, &timed);
  cell.upcoming[0] = at(0);
  cell.upcoming[2] = at(4095);
  // One more: the first only starts the clock.
  for (int i = 0; i < 21; ++i) timed.strip_ended(cell, memory.data(), memory.size());
  EXPECT_EQ(timed.sums(0).count(), 10u);
  EXPECT_EQ(timed.sums(1).count(), 0u) << "no place is known for this one";
  EXPECT_EQ(timed.sums(2).count(), 10u);
  EXPECT_LE(timed.sums(0).mean_ticks(), lwp::kTimedLoadClipTicks);
}

TEST_F(TimedLoadsTest, APlaceOutsideTheMemoryIsNotTouched) {
  TimedLoads timed(kEveryStrip);
  jit::LoopCell cell;
  for (const uint64_t place : {at(4096), at(0) - 1, uint64_t{1}, ~uint64_t{0}}) {
    cell.upcoming[0] = place;
    timed.strip_ended(cell, memory.data(), memory.size());
  }
  EXPECT_EQ(timed.sums(0).count(), 0u);
}

TEST_F(TimedLoadsTest, LoadsAreAsRareAsTheyMustBe) {
  // An hour of ticks between two of them.
  TimedLoads timed(1e18);
  jit::LoopCell cell;
  cell.upcoming[0] = at(0);
  for (int i = 0; i < 100; ++i) timed.strip_ended(cell, memory.data(), memory.size());
  EXPECT_EQ(timed.sums(0).count(), 0u);
}

TEST_F(TimedLoadsTest, ThreadsInTheSameLoopDoNotDisturbEachOther) {
  TimedLoads timed(kEveryStrip);
  jit::LoopCell cell;
  cell.upcoming[0] = at(64);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) timed.strip_ended(cell, memory.data(), memory.size());
    });
  }
  // A reader holds the lock, and who finds it held does not measure: nobody waits.
  uint64_t seen = 0;
  for (int k = 0; k < 100; ++k) seen = timed.sums(0).count();
  for (auto& thread : threads) thread.join();
  EXPECT_GE(timed.sums(0).count(), seen);
  EXPECT_LE(timed.sums(0).count(), 3000u);  // fewer than are halved
}

}  // namespace
}  // namespace hindsight::rt
