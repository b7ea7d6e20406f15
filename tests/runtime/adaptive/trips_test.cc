// Code for loops that usually iterate the same number of times. It is found by value records, kept where that
// pays by the clock, and right all the same when the number changes while it runs.
#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <string_view>

#include "runtime/engine/engine_for_tests.h"
#include "tests/log_lines.h"
#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using ::testing::HasSubstr;

// Weighted sums of $taps words from each place on, as many passes as asked for; the last sum.
constexpr const char* kTripsFilter = R"((module (memory 1)
  (func (export "filter") (param $taps i32) (param $passes i32) (result i32)
    (local $i i32) (local $k i32) (local $sum i32)
    (loop $again
      (local.set $i (i32.const 0))
      (loop $places
        (local.set $sum (i32.const 0))
        (local.set $k (i32.const 0))
        (loop $taps_left
          (local.set $sum (i32.add (local.get $sum) (i32.mul
            (i32.load (i32.shl (i32.add (local.get $i) (local.get $k)) (i32.const 2)))
            (i32.load offset=16384 (i32.shl (local.get $k) (i32.const 2))))))
          (br_if $taps_left (i32.ne (local.tee $k (i32.add (local.get $k) (i32.const 1))) (local.get $taps))))
        (i32.store offset=32768 (i32.shl (local.get $i) (i32.const 2)) (local.get $sum))
        (br_if $places (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3000))))
      (br_if $again (local.tee $passes (i32.sub (local.get $passes) (i32.const 1)))))
    (local.get $sum))
  (func (export "fill") (local $i i32)
    (loop $l
      (i32.store (local.get $i) (i32.mul (local.get $i) (i32.const 2654435761)))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 32768)))))))";

uint32_t filtered(uint32_t taps) {
  uint32_t sum = 0;
  for (uint32_t k = 0; k < taps; ++k) sum += 4 * (2999 + k) * 2654435761u * ((16384 + 4 * k) * 2654435761u);
  return sum;
}

DecisionReport decision(const Engine& engine, std::string_view kind) {
  for (const DecisionReport& report : engine.feedback_report().decisions)
    if (report.kind == kind) return report;
  return {};
}

// For good, and not only in its first code.
bool is_compiled(const Engine& engine) {
  const DecisionReport report = decision(engine, "optimize");
  return report.state == DecisionState::kCompiled && report.state_why.empty();
}

uint32_t call_filter(Instance& instance, uint32_t taps, uint32_t passes) {
  return static_cast<uint32_t>(instance
                                   .call("filter", std::array{Value::i32(static_cast<int32_t>(taps)),
                                                              Value::i32(static_cast<int32_t>(passes))})
                                   .value()[0]
                                   .as_i32());
}

// Whether it pays is the processor's business, and so it is said here.
class Trips : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(PayOrNot, Trips, testing::Bool(),
                         [](const auto& info) { return info.param ? "ThatPay" : "ThatDoNotPay"; });

TEST_P(Trips, ThatAreUsualAreSeenAndTried) {
  LogLines log;
  EngineConfig config;
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  config.log = log.sink();
  std::shared_ptr<Engine> engine;
  std::unique_ptr<Linker> linker;
  std::shared_ptr<Instance> instance;
  DecisionReport report;
  const auto is_over = [&] {
    return report.state == DecisionState::kKept || report.state == DecisionState::kRolledBack;
  };
  for (const Patience patience; patience.lasts() && !is_over();) {
    // A fast processor has the function compiled before enough trip counts are recorded: then the next engine may see them.
    if (!engine || (report.kind.empty() && is_compiled(*engine))) {
      instance.reset();
      linker.reset();
      engine = create_engine_for_tests(config, {.trial_bias = GetParam() ? 2.0 : 0.5}).value();
      linker = std::make_unique<Linker>(*engine);
      instance = linker->instantiate(load(*engine, kTripsFilter)).value();
      ASSERT_TRUE(instance->call("fill", {}));
    }
    ASSERT_EQ(call_filter(*instance, 7, 50), filtered(7));
    report = decision(*engine, "values");
  }
  engine->wait_for_compiles();
  EXPECT_EQ(report.state, GetParam() ? DecisionState::kKept : DecisionState::kRolledBack) << report.outcome;
  EXPECT_THAT(report.reason, HasSubstr("the trip count of the loop at 0x"));
  EXPECT_THAT(report.reason, HasSubstr(" is 7 in "));
  EXPECT_THAT(
      report.outcome,
      HasSubstr("specialized for trip count 7, when the value it depends on is 7, compared once a strip"));
  // In two steps: there is code to go back to, and nothing is compiled for that.
  EXPECT_GE(log.count("what is to be tried in it comes later"), 1u);
  EXPECT_EQ(log.count("rolled back: the code before it goes on"), GetParam() ? 0u : 1u) << log.text();
  EXPECT_EQ(log.count("rolled back: compiles"), 0u);
  // With another number, and back.
  for (const uint32_t taps : {7u, 8u, 1u, 300u, 6u, 7u})
    EXPECT_EQ(call_filter(*instance, taps, 3), filtered(taps)) << taps;
}

TEST(UsualTrips, AreLeftAloneWhereThatIsSwitchedOff) {
  EngineConfig config;
  config.tier = TierMode::kAuto;
  config.compile_threads = 1;
  config.disabled_decisions = {"values"};
  auto engine = Engine::create(config).value();
  auto module = load(*engine, kTripsFilter);
  Linker linker(*engine);
  auto instance = linker.instantiate(module).value();
  ASSERT_TRUE(instance->call("fill", {}));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(call_filter(*instance, 7, 50), filtered(7));
  engine->wait_for_compiles();
  EXPECT_EQ(decision(*engine, "values").kind, "");
}

}  // namespace
}  // namespace hindsight
