#include "feedback/pmu/user_counter.h"

#include <gtest/gtest.h>

#include <functional>

namespace hindsight::pmu {
namespace {

// Plays the two instructions; `at_rdpmc` lets the "kernel" change the page in the middle of a reading.
struct PlayedInstructions final : CounterInstructions {
  uint64_t pmc = 0;
  uint64_t tsc = 0;
  int reads = 0;
  uint32_t asked = 0;
  std::function<void()> at_rdpmc = [] {};
  uint64_t rdpmc(uint32_t counter) override {
    ++reads;
    asked = counter;
    const uint64_t value = pmc;
    at_rdpmc();
    return value;
  }
  uint64_t rdtsc() override { return tsc; }
};

perf_event_mmap_page page_of_a_running_event() {
  perf_event_mmap_page page{};
  page.lock = 2;
  page.index = 4;  // counter 3
  page.offset = 1000;
  page.time_enabled = page.time_running = 500;
  page.cap_user_rdpmc = 1;
  page.pmc_width = 48;
  return page;
}

TEST(UserCounter, AddsTheCounterToTheKernelsOffset) {
  const perf_event_mmap_page page = page_of_a_running_event();
  PlayedInstructions cpu;
  cpu.pmc = 234;
  const auto value = read_user_count(page, cpu);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->count, 1234u);
  EXPECT_EQ(cpu.asked, 3u);
  EXPECT_EQ(value->enabled_ns, 500u);
  EXPECT_EQ(value->running_ns, 500u);
}

TEST(UserCounter, ExtendsTheSignOfACounterThatStartedNegative) {
  perf_event_mmap_page page = page_of_a_running_event();
  page.offset = 1'000'000;
  PlayedInstructions cpu;
  cpu.pmc = (uint64_t{1} << 48) - 50;  // -50 in 48 bits: the kernel preloads what is left of a period
  EXPECT_EQ(read_user_count(page, cpu)->count, 999'950u);
  page.pmc_width = 64;
  cpu.pmc = static_cast<uint64_t>(-7);
  EXPECT_EQ(read_user_count(page, cpu)->count, 999'993u);
}

TEST(UserCounter, ReadsAgainWhenTheKernelMovedTheEventMeanwhile) {
  perf_event_mmap_page page = page_of_a_running_event();
  PlayedInstructions cpu;
  cpu.pmc = 5;
  cpu.at_rdpmc = [&] {
    if (cpu.reads != 1) return;
    page.lock += 2;
    page.index = 1;
    page.offset = 7000;
  };
  const auto value = read_user_count(page, cpu);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->count, 7005u);
  EXPECT_EQ(cpu.reads, 2);
  EXPECT_EQ(cpu.asked, 0u);
}

TEST(UserCounter, GivesUpOnAPageThatNeverHoldsStill) {
  perf_event_mmap_page page = page_of_a_running_event();
  PlayedInstructions cpu;
  cpu.at_rdpmc = [&] { ++page.lock; };
  EXPECT_FALSE(read_user_count(page, cpu));
  EXPECT_LT(cpu.reads, 10'000);
}

TEST(UserCounter, NeverExecutesRdpmcWithoutPermissionOrCounter) {
  PlayedInstructions cpu;
  perf_event_mmap_page page = page_of_a_running_event();
  page.cap_user_rdpmc = 0;
  EXPECT_FALSE(read_user_count(page, cpu));
  page = page_of_a_running_event();
  page.index = 0;  // scheduled out
  EXPECT_FALSE(read_user_count(page, cpu));
  EXPECT_EQ(cpu.reads, 0);
}

TEST(UserCounter, BringsTheTimesOfAMultiplexedEventUpToNow) {
  perf_event_mmap_page page = page_of_a_running_event();
  page.time_enabled = 900;
  page.time_running = 300;
  page.cap_user_time = 1;
  page.time_shift = 4;
  page.time_mult = 8;  // half a nanosecond a cycle
  page.time_offset = 10;
  PlayedInstructions cpu;
  cpu.tsc = 200;
  const auto value = read_user_count(page, cpu);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->enabled_ns, 900u + 110);
  EXPECT_EQ(value->running_ns, 300u + 110);
}

TEST(UserCounter, ExtendsATimeStampCounterThatIsShort) {
  perf_event_mmap_page page = page_of_a_running_event();
  page.time_enabled = 900;
  page.cap_user_time = page.cap_user_time_short = 1;
  page.time_mult = 1;
  page.time_cycles = 0x1FF;
  page.time_mask = 0xFF;
  PlayedInstructions cpu;
  cpu.tsc = 0x05;  // wrapped since
  EXPECT_EQ(read_user_count(page, cpu)->enabled_ns, 900u + 0x205);
}

TEST(UserCounter, ConvertsCyclesWithoutOverflowing) {
  // Three days of a 2.6 GHz counter, in nanoseconds.
  const uint32_t mult = 1'652'000'000u;
  const uint64_t cycles = uint64_t{3} * 86'400 * 2'600'000'000u;
  const auto exact = static_cast<uint64_t>((static_cast<unsigned __int128>(cycles) * mult) >> 32);
  EXPECT_NEAR(static_cast<double>(user_time_delta(cycles, 0, mult, 32)), static_cast<double>(exact), 2);
  EXPECT_EQ(user_time_delta(12345, 7, 1, 0), 12352u);
}

TEST(UserCounter, MapsThePageOfARealEvent) {
  const auto fd = open_perf_event(make_perf_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK), "task clock");
  if (!fd) GTEST_SKIP() << fd.error().message;
  auto counter = UserCounter::map(*fd);
  ASSERT_TRUE(counter) << counter.error().describe();
  // A software event is on no hardware counter: nothing to read, and no crash.
  EXPECT_FALSE(counter->read());
  UserCounter moved = std::move(*counter);
  EXPECT_FALSE(moved.read());
}

TEST(UserCounter, SaysInASentenceWhetherRdpmcIsPermitted) {
  EXPECT_GT(rdpmc_state().size(), 8u);
}

}  // namespace
}  // namespace hindsight::pmu
