// Tail calls and constant expressions on every tier, beyond what the official tests ask.
#include <gmock/gmock.h>

#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr std::string_view kTailCallsGuest = R"((module
  (import "host" "sum" (func $sum (param i32 i32 i32 i32 i32 i32 i32 i64 f32 f64) (result i64)))
  (import "host" "fail" (func $fail (param i32) (result i32)))
  (type $step (func (param i64) (result i64)))
  (table funcref (elem $even $odd))
  (func $count (export "count") (param i64 i64) (result i64)
    (if (i64.eqz (local.get 0)) (then (return (local.get 1))))
    (return_call $count (i64.sub (local.get 0) (i64.const 1)) (i64.add (local.get 1) (i64.const 3))))
  (func $even (export "even") (param i64) (result i64)
    (if (i64.eqz (local.get 0)) (then (return (i64.const 1))))
    (return_call_indirect (type $step) (i64.sub (local.get 0) (i64.const 1)) (i32.const 1)))
  (func $odd (param i64) (result i64)
    (if (i64.eqz (local.get 0)) (then (return (i64.const 0))))
    (return_call $even (i64.sub (local.get 0) (i64.const 1))))
  (func $few (export "few") (param i32) (result f64)
    (if (i32.eqz (local.get 0)) (then (return (f64.const 0.5))))
    (return_call $many (i32.const 1) (i64.const 2) (i32.const 3) (i64.const 4) (i32.const 5) (i64.const 6)
      (local.get 0) (f32.const 1) (f64.const 2) (f32.const 3) (f64.const 4) (f32.const 5) (f64.const 6)
      (f32.const 7) (f64.const 8) (f32.const 9) (f64.const 10)))
  (func $many (param i32 i64 i32 i64 i32 i64 i32 f32 f64 f32 f64 f32 f64 f32 f64 f32 f64) (result f64)
    (local $sum f64)
    (local.set $sum (f64.add (f64.promote_f32 (local.get 15)) (local.get 16)))
    (local.set $sum (f64.add (local.get $sum) (f64.convert_i64_s (local.get 5))))
    (if (i32.eqz (i32.and (local.get 6) (i32.const 0xff)))
      (then (if (f64.ne (local.get $sum) (f64.const 25)) (then unreachable))))
    (return_call $few (i32.sub (local.get 6) (i32.const 1))))
  (func (export "swap") (param i32 i32 i32) (result i32) (return_call $swap (local.get 0) (local.get 1) (local.get 2)))
  (func $swap (param i32 i32 i32) (result i32) (local $fresh i32)
    (if (local.get $fresh) (then unreachable))
    (local.set $fresh (i32.const 1))
    (if (i32.eqz (local.get 2)) (then (return (i32.add (i32.mul (local.get 0) (i32.const 10)) (local.get 1)))))
    (return_call $swap (local.get 1) (local.get 0) (i32.sub (local.get 2) (i32.const 1))))
  (func (export "to_host") (param i32) (result i64)
    (return_call $sum (i32.const 1) (i32.const 2) (i32.const 3) (i32.const 4) (i32.const 5) (i32.const 6)
      (local.get 0) (i64.const 0x100000000) (f32.const 0.5) (f64.const 0.25)))
  (func (export "to_failing_host") (param i32) (result i32) (return_call $fail (local.get 0)))
  (func $two (param i64) (result i64 f32)
    (if (result i64 f32) (i64.eqz (local.get 0))
      (then (i64.const 7) (f32.const 1.5))
      (else (return_call $two (i64.sub (local.get 0) (i64.const 1))))))
  (func (export "two") (result i64 f32) (return_call $two (i64.const 100000)))
  (func $boom (param i32) unreachable)
  (func $gone (param i32) (return_call $boom (local.get 0)))
  (func (export "backtrace") (call $gone (i32.const 3)))
  (func $spin (export "spin") (param i32) (return_call $spin (i32.add (local.get 0) (i32.const 1))))
  (func $ping (export "ping") (param i32) (return_call_indirect $both (param i32) (local.get 0) (i32.const 1)))
  (func $pong (param i32) (return_call_indirect $both (param i32) (local.get 0) (i32.const 0)))
  (table $both funcref (elem $ping $pong))
  (func (export "wrong") (param i32) (result i64)
    (return_call_indirect (type $step) (i64.const 1) (local.get 0)))
  ;; A loop with a frame of its own around calls that end in tail calls.
  (func (export "around") (param i64) (result i64) (local i64)
    (loop (result i64)
      (local.set 1 (i64.add (local.get 1) (call $count (i64.const 10) (i64.const 0))))
      (local.set 0 (i64.sub (local.get 0) (i64.const 1)))
      (br_if 0 (i64.ne (local.get 0) (i64.const 0)))
      (return_call $count (i64.const 5) (local.get 1))))
  (func (export "fine") (result i32) i32.const 42)))";

class TailCalls : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    engine_ = make_engine(GetParam());
    Linker linker(*engine_);
    linker.define_function("host", "sum",
                           [](int32_t a, int32_t b, int32_t c, int32_t d, int32_t e, int32_t f, int32_t g,
                              int64_t h, float i, double j) -> int64_t {
                             return a + b + c + d + e + f + 100 * g + h + static_cast<int64_t>(4 * (i + j));
                           });
    linker.define_function("host", "fail", [](int32_t) -> Result<int32_t> {
      return make_error(ErrorKind::kTrap, "the host says no");
    });
    guest_ = instantiate(linker, *engine_, kTailCallsGuest);
    ASSERT_NE(guest_, nullptr);
  }
  int64_t number(std::string_view function, std::vector<Value> args) {
    auto result = guest_->call(function, args);
    EXPECT_TRUE(result) << function << ": " << result.error().describe();
    return result && !result->empty() ? (*result)[0].as_i64() : -1;
  }
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Instance> guest_;
};
INSTANTIATE_TEST_SUITE_P(EveryMode, TailCalls, kEveryMode, mode_name);

// A hundred times as deep as the stack could be.
TEST_P(TailCalls, OfItselfOthersAndThroughTablesTakeNoStack) {
  EXPECT_EQ(number("count", {Value::i64(3'000'000), Value::i64(1)}), 9'000'001);
  EXPECT_EQ(number("even", {Value::i64(3'000'000)}), 1);
  EXPECT_EQ(number("even", {Value::i64(3'000'001)}), 0);
  EXPECT_EQ(number("around", {Value::i64(50'000)}), 50'000 * 30 + 15);
}

TEST_P(TailCalls, WithMoreArgumentsThanTheCallerHasTakeNoStack) {
  auto result = guest_->call("few", std::vector{Value::i32(1'000'000)});
  ASSERT_TRUE(result) << result.error().describe();
  EXPECT_EQ((*result)[0].as_f64(), 0.5);
}

TEST_P(TailCalls, AssignParametersAtOnceAndLocalsAnew) {
  EXPECT_EQ(number("swap", {Value::i32(1), Value::i32(2), Value::i32(6)}), 12);
  EXPECT_EQ(number("swap", {Value::i32(1), Value::i32(2), Value::i32(7)}), 21);
}

TEST_P(TailCalls, ReachHostFunctions) {
  EXPECT_EQ(number("to_host", {Value::i32(7)}), 21 + 700 + 0x100000000 + 3);
  EXPECT_EQ(trap_of(*guest_, "to_failing_host", {Value::i32(1)}), "the host says no");
  EXPECT_TRUE(guest_->call("fine", {}));
}

TEST_P(TailCalls, DeliverSeveralResults) {
  auto result = guest_->call("two", {});
  ASSERT_TRUE(result) << result.error().describe();
  EXPECT_EQ((*result)[0].as_i64(), 7);
  EXPECT_EQ((*result)[1].as_f32(), 1.5f);
}

TEST_P(TailCalls, LeaveTheirCallerOutOfBacktraces) {
  EXPECT_EQ(trap_of(*guest_, "backtrace"), "unreachable");
  EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre("boom", "backtrace"));
}

TEST_P(TailCalls, TrapBeforeTheyLeave) {
  EXPECT_EQ(trap_of(*guest_, "wrong", {Value::i32(9)}), "undefined element");
  EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre("wrong"));
}

TEST_P(TailCalls, WithoutEndCanBeInterrupted) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  for (const char* function : {"spin", "ping"}) {
    guest_->set_timeout(30ms);
    EXPECT_EQ(trap_of(*guest_, function, {Value::i32(1)}), "timed out") << function;
    guest_->set_timeout(0ms);
    EXPECT_TRUE(guest_->call("fine", {}));
  }
}

TEST_P(TailCalls, GoOnWhenTheOptimizedVersionTakesOver) {
  if (GetParam().tier != TierMode::kAuto) GTEST_SKIP() << "one tier";
  // Long enough to be sampled, compiled and entered on the way.
  EXPECT_EQ(number("even", {Value::i64(40'000'000)}), 1);
  EXPECT_EQ(number("even", {Value::i64(40'000'001)}), 0);
}

TEST(ConstantExpressions, ReadImportedGlobalsAndComputeWithThem) {
  auto engine = make_engine();
  Linker linker(*engine);
  auto library = instantiate(linker, *engine, R"((module
    (global (export "a") i32 (i32.const 70000)) (global (export "b") i64 (i64.const -3))))");
  linker.define_instance("lib", library);
  auto guest = instantiate(linker, *engine, R"((module
    (import "lib" "a" (global $a i32)) (import "lib" "b" (global $b i64))
    (global (export "folded") i32 (i32.sub (i32.mul (i32.const 0x10001) (i32.const 0x10001)) (i32.const 1)))
    (global (export "mixed") i32
      (i32.add (i32.mul (global.get $a) (global.get $a)) (i32.sub (i32.const 5) (i32.const 7))))
    (global (export "wide") i64
      (i64.mul (i64.sub (i64.const 10) (global.get $b)) (i64.add (global.get $b) (i64.const 1))))
    (memory (export "memory") 1)
    (data (offset (i32.sub (global.get $a) (i32.const 69995))) "five"))
  )");
  ASSERT_NE(guest, nullptr);
  EXPECT_EQ(guest->global("folded")->as_i32(), 0x20000);
  EXPECT_EQ(guest->global("mixed")->as_i32(), static_cast<int32_t>(70000u * 70000u - 2));
  EXPECT_EQ(guest->global("wide")->as_i64(), -26);
  EXPECT_EQ(static_cast<char>(guest->memory().value()[5]), 'f');
}

}  // namespace
}  // namespace hindsight
