#include "feedback/pmu/counters.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <thread>

namespace hindsight::pmu {
namespace {

size_t open_descriptors() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

uint64_t burn(uint64_t rounds) {
  volatile uint64_t x = 1;
  for (uint64_t i = 0; i < rounds; ++i) x = x * 6364136223846793005u + i;
  return x;
}

TEST(PmuCounters, NamesEveryCounterAndGivesAReasonForEachThatIsMissing) {
  const PmuCounters counters = PmuCounters::open();
  ASSERT_EQ(counters.availability().size(), kCounterCount);
  for (unsigned i = 0; i < kCounterCount; ++i) {
    const CounterAvailability& row = counters.availability()[i];
    EXPECT_EQ(row.counter, static_cast<Counter>(i));
    EXPECT_EQ(row.available, row.reason.empty()) << to_string(row.counter);
    if (!row.available) {
      EXPECT_EQ(row.reason.front(), 'E') << row.reason;  // the errno's name, then what it means
      EXPECT_NE(row.reason.find(": "), std::string::npos) << row.reason;
    }
  }
}

TEST(PmuCounters, ReadsExactlyTheCountersThatItSaysItHas) {
  const PmuCounters counters = PmuCounters::open();
  const Reading reading = counters.read();
  for (unsigned i = 0; i < kCounterCount; ++i) {
    EXPECT_EQ(reading.values[i].present, counters.has(static_cast<Counter>(i)));
  }
}

TEST(PmuCounters, CountsTheOpeningThreadAndCanBeReadByAnother) {
  std::unique_ptr<PmuCounters> counters;
  uint64_t inside = 0;
  std::thread guest([&] {
    counters = std::make_unique<PmuCounters>(PmuCounters::open());
    burn(20'000'000);
    inside = counters->read()[Counter::kTaskClock].value;
  });
  guest.join();
  if (!counters->has(Counter::kTaskClock)) {
    GTEST_SKIP() << counters->availability()[static_cast<unsigned>(Counter::kTaskClock)].reason;
  }
  // The thread has ended; its last value stays, and this thread's own time does not add to it.
  const uint64_t after = counters->read()[Counter::kTaskClock].value;
  burn(20'000'000);
  EXPECT_GT(inside, 0u);
  EXPECT_GE(after, inside);
  EXPECT_EQ(counters->read()[Counter::kTaskClock].value, after);
}

TEST(PmuCounters, ReadsItsOwnThreadWithoutTheKernelWhereThatIsPermittedAndWithItElsewhere) {
  PmuCounters counters = PmuCounters::open();
  const Reading before = counters.read_own();
  burn(1'000'000);
  const Reading own = counters.read_own();
  const Reading kernels = counters.read();
  for (unsigned i = 0; i < kCounterCount; ++i) {
    EXPECT_EQ(own.values[i].present, counters.has(static_cast<Counter>(i)));
    EXPECT_LE(before.values[i].raw, own.values[i].raw);
    EXPECT_LE(own.values[i].raw, kernels.values[i].raw);
  }
  if (!counters.has(Counter::kInstructions)) {
    EXPECT_EQ(counters.groups_read_by_rdpmc(), 0u);
  } else if (rdpmc_state() == "permitted") {
    EXPECT_GT(counters.groups_read_by_rdpmc(), 0u);
  }
}

TEST(PmuCounters, ScalesMultiplexedCountsAndSaysWhenNothingWasCounted) {
  EXPECT_EQ(scale_count(100, 10, 10), 100u);
  EXPECT_EQ(scale_count(100, 30, 10), 300u);
  EXPECT_EQ(scale_count(uint64_t{1} << 62, 3, 2), (uint64_t{1} << 62) / 2 * 3);  // no overflow on the way
  EXPECT_EQ(scale_count(0, 10, 0), std::nullopt);
}

TEST(PmuCounters, ClosesWhatItOpened) {
  const size_t before = open_descriptors();
  for (int i = 0; i < 200; ++i) (void)PmuCounters::open().read();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(PerfErrno, IsExplainedByNameAndMeaning) {
  EXPECT_TRUE(explain_perf_errno(ENOENT).starts_with("ENOENT: "));
  EXPECT_NE(explain_perf_errno(EPERM).find("EPERM"), std::string::npos);
  EXPECT_FALSE(explain_perf_errno(12345).empty());
}

TEST(PerfEvent, RefusalsNameTheEvent) {
  perf_event_attr attr = make_perf_attr(PERF_TYPE_SOFTWARE, 9999);
  const auto fd = open_perf_event(attr, "nonsense clock");
  ASSERT_FALSE(fd);
  EXPECT_NE(fd.error().message.find("nonsense clock"), std::string::npos);
}

}  // namespace
}  // namespace hindsight::pmu
