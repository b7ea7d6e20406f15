// Branch-outcome bursts end to end: a guest in baseline code, its branches' rates in the report.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

// xorshift32 decides: the first if is a coin, the second is true one time in 16, the third by a counter's
// parity.
constexpr const char* kBranches = R"((module
  (func (export "run") (param $n i32) (param $x i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
      (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))
      (if (i32.and (local.get $x) (i32.const 0x100))
        (then (local.set $sum (i32.add (local.get $sum) (i32.const 1)))))
      (if (i32.eqz (i32.and (local.get $x) (i32.const 0xf0000)))
        (then (local.set $sum (i32.add (local.get $sum) (i32.const 3)))))
      (if (i32.and (local.get $n) (i32.const 1))
        (then (local.set $sum (i32.add (local.get $sum) (i32.const 5)))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))))";

// What it returns.
uint32_t sum_of(uint32_t n, uint32_t x) {
  uint32_t sum = 0;
  for (; n != 0; --n) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    if (x & 0x100) sum += 1;
    if ((x & 0xf0000) == 0) sum += 3;
    if (n & 1) sum += 5;
  }
  return sum;
}

std::shared_ptr<Engine> make_watched_engine(const std::string& unit = "clock") {
  EngineConfig config;
  config.tier = TierMode::kBaseline;
  config.unit = unit;
  auto engine = Engine::create(config);
  if (!engine) return nullptr;
  return *engine;
}

TEST(BranchBursts, OfAGuestInBaselineCodeShowRatesWithinFiveHundredths) {
  auto engine = make_watched_engine();
  if (!engine) GTEST_SKIP() << "no clock to sample with";
  Linker linker(*engine);
  auto instance = instantiate(linker, *engine, kBranches);
  // Until there is enough to judge.
  FeedbackReport report;
  uint32_t rounds = 0;
  for (const Patience patience; patience.lasts(); ++rounds) {
    // Other coins each time: what a predictor has seen before, it knows.
    const uint32_t seed = 12345 + rounds;
    const auto result =
        instance->call("run", std::array{Value::i32(1'000'000), Value::i32(static_cast<int32_t>(seed))});
    ASSERT_TRUE(result) << result.error().describe();
    ASSERT_EQ(static_cast<uint32_t>((*result)[0].as_i32()), sum_of(1'000'000, seed))
        << "bursts change nothing";
    report = engine->feedback_report();
    if (report.bursts.branch_judged >= 12'000) break;
  }
  ASSERT_GE(report.bursts.branch_judged, 12'000u) << rounds;
  EXPECT_LE(report.bursts.branch_judged, report.bursts.branch_outcomes);
  ASSERT_EQ(report.branches.size(), 4u);
  const auto rate = [](const BranchReport& b) {
    return static_cast<double>(b.mispredicted) / static_cast<double>(std::max<uint64_t>(b.judged, 1));
  };
  for (const BranchReport& b : report.branches) {
    EXPECT_EQ(b.function, "run");
    EXPECT_GT(b.judged, 1000u);
    EXPECT_LE(b.judged, b.outcomes);
    EXPECT_LE(b.mispredicted, b.judged);
  }
  // Sorted by mispredictions: the coin, the rare one, and two that a predictor knows.
  EXPECT_NEAR(rate(report.branches[0]), 0.5, 0.05);
  EXPECT_NEAR(rate(report.branches[1]), 1.0 / 16, 0.05);
  EXPECT_NEAR(rate(report.branches[2]), 0, 0.05);
  EXPECT_NEAR(rate(report.branches[3]), 0, 0.05);
  EXPECT_NE(report.to_string().find("mispredicted"), std::string::npos);
}

TEST(BranchBursts, AreNotAskedOfAGuestThatNobodyWatches) {
  auto engine = make_watched_engine("null");
  ASSERT_TRUE(engine);
  Linker linker(*engine);
  auto instance = instantiate(linker, *engine, kBranches);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(instance->call("run", std::array{Value::i32(1'000'000), Value::i32(12345)}));
  EXPECT_EQ(engine->feedback_report().bursts.branch_bursts, 0u);
}

}  // namespace
}  // namespace hindsight
