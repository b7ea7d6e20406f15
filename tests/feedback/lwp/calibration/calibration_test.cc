#include "feedback/lwp/calibration/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "feedback/lwp/calibration/timed_load.h"

namespace hindsight::lwp {
namespace {

// A 2-core virtual machine on Zen 4.
Calibration example() {
  Calibration c;
  c.tsc_ghz = 2.6;
  c.core_ghz = 3.6;
  c.l1 = {32 << 10, 1.1, 60};
  c.l2 = {1 << 20, 3.9, 78};
  c.l3 = {32 << 20, 13, 104};
  c.memory = {0, 110, 420};
  c.mispredict_ns = 5.8;
  c.seconds = 0.03;
  return c;
}

TEST(Classification, TakesTheLevelWhoseTimedLoadsAreNearest) {
  const Calibration c = example();
  EXPECT_EQ(classify(c, 52, 32), MemoryLevel::kL1);
  EXPECT_EQ(classify(c, 68, 32), MemoryLevel::kL1);
  EXPECT_EQ(classify(c, 70, 32), MemoryLevel::kL2);
  EXPECT_EQ(classify(c, 100, 32), MemoryLevel::kL3);
  EXPECT_EQ(classify(c, 261, 32), MemoryLevel::kL3);
  EXPECT_EQ(classify(c, 263, 32), MemoryLevel::kMemory);
  EXPECT_EQ(classify(c, 1000, 32), MemoryLevel::kMemory);
}

TEST(Classification, SaysNothingWithoutEnoughLoadsOrLevels) {
  EXPECT_EQ(classify(example(), 400, 31), MemoryLevel::kUnknown);
  EXPECT_EQ(classify(Calibration{}, 400, 1000), MemoryLevel::kUnknown);
  EXPECT_EQ(classify(example(), std::nan(""), 1000), MemoryLevel::kUnknown);
}

TEST(Classification, LeavesOutLevelsThatTheMachineDoesNotHave) {
  Calibration c = example();
  c.l3 = {};
  EXPECT_EQ(classify(c, 104, 32), MemoryLevel::kL2);
  EXPECT_TRUE(plausible(c));
  EXPECT_GT(c.memory_threshold_ticks(), c.l2.timed_load_ticks);
  EXPECT_LT(c.memory_threshold_ticks(), c.memory.timed_load_ticks);
}

TEST(Calibration, ImplausibleFiguresAreRecognized) {
  EXPECT_TRUE(plausible(example()));
  EXPECT_FALSE(plausible({}));
  const auto with = [](auto change) {
    Calibration c = example();
    change(c);
    return plausible(c);
  };
  EXPECT_FALSE(with([](Calibration& c) { c.tsc_ghz = 0; }));
  EXPECT_FALSE(with([](Calibration& c) { c.core_ghz = std::numeric_limits<double>::infinity(); }));
  EXPECT_FALSE(with([](Calibration& c) { c.l2.latency_ns = std::nan(""); }));
  EXPECT_FALSE(with([](Calibration& c) { c.memory = {}; }));
  EXPECT_FALSE(with([](Calibration& c) { std::swap(c.l2.latency_ns, c.l3.latency_ns); })) << "slower inwards";
  EXPECT_FALSE(with([](Calibration& c) { c.memory.timed_load_ticks = 10; }));
  EXPECT_FALSE(with([](Calibration& c) { c.mispredict_ns = -1; }));
  EXPECT_FALSE(with([](Calibration& c) { c.l3.timed_load_ticks = 410; }))
      << "a third level as slow as memory";
  EXPECT_FALSE(with([](Calibration& c) { c.l3.bytes = ~uint64_t{0}; }));
}

TEST(Calibration, StopsWhenItIsToldTo) {
  int asked = 0;
  const auto result = calibrate([&] {
    ++asked;
    return true;
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kResource);
  EXPECT_GE(asked, 1);
}

// What can be said of any machine, however busy and whatever its caches: if it answers, then plausibly. How long it
// takes is judged by lwp_costs.
TEST(Calibration, OfThisMachineIsPlausible) {
  const auto result = calibrate();
  if (!result) GTEST_SKIP() << result.error().describe();
  EXPECT_TRUE(plausible(*result));
  EXPECT_GT(result->seconds, 0);
}

TEST(TimedLoad, IsNeverLongerThanItsClip) {
  std::vector<uint8_t> data(1 << 16, 1);
  for (size_t i = 0; i < 10'000; ++i) EXPECT_LE(time_load(&data[i * 7 % data.size()]), kTimedLoadClipTicks);
}

// ---------------------------------------------------------------- cache sizes

TEST(CacheSizes, AreDecodedFromTheLeafOfEitherManufacturer) {
  // AMD Fn8000_001D of a Zen 4: 32 KiB data, 32 KiB instructions, 1 MiB, 32 MiB.
  const std::vector<pmu::CpuidRegisters> zen4 = {{0x00004121, 0x01c0003f, 0x3f, 0},
                                                 {0x00004122, 0x01c0003f, 0x3f, 0},
                                                 {0x00004143, 0x01c0003f, 0x7ff, 2},
                                                 {0x0003c163, 0x03c0003f, 0x7fff, 1}};
  const auto of = [](const std::vector<pmu::CpuidRegisters>& leaves) {
    return decode_cache_leaves(
        [&](uint32_t i) { return i < leaves.size() ? leaves[i] : pmu::CpuidRegisters{}; });
  };
  EXPECT_EQ(of(zen4), (CacheSizes{32 << 10, 1 << 20, 32 << 20}));
  // Intel leaf 4 of a Skylake: instructions come second; no third level here.
  const std::vector<pmu::CpuidRegisters> skylake = {{0x1c004121, 0x01c0003f, 0x3f, 0},
                                                    {0x1c004122, 0x01c0003f, 0x3f, 0},
                                                    {0x1c004143, 0x00c0003f, 0x3ff, 0}};
  EXPECT_EQ(of(skylake), (CacheSizes{32 << 10, 256 << 10, 0}));
  EXPECT_EQ(of({}), CacheSizes{});
}

TEST(CacheSizes, AnEndlessListOfCachesEnds) {
  (void)decode_cache_leaves([](uint32_t) { return pmu::CpuidRegisters{0x00004121, 0x01c0003f, 0x3f, 0}; });
}

TEST(CacheSizes, TextOfSysfsIsReadOrRefused) {
  EXPECT_EQ(parse_cache_size("32K"), 32u << 10);
  EXPECT_EQ(parse_cache_size("32768K"), 32u << 20);
  EXPECT_EQ(parse_cache_size("8M"), 8u << 20);
  EXPECT_EQ(parse_cache_size("512"), 512u);
  for (const char* text : {"", "K", "-1K", "0K", "32KB", "32 K", "99999999999999999999K"})
    EXPECT_FALSE(parse_cache_size(text)) << text;
}

}  // namespace
}  // namespace hindsight::lwp
