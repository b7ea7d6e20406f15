// Exceptions of the form that compilers emit (try, catch, delegate, rethrow) on every tier, beyond what the
// official tests ask. try_table_test.cc has the standardised form.
#include <gmock/gmock.h>

#include <chrono>

#include "runtime/engine/handles.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kExceptionsGuest = R"((module
  (import "host" "call_back" (func $call_back (param i32) (result i32)))
  (import "host" "swallow" (func $swallow (param i32) (result i32)))
  (import "host" "fail" (func $fail))
  (import "host" "throw" (func $host_throw (param i32) (result i64)))
  (tag $number (export "number") (param i32))
  (tag $other (param i32))
  (tag $none)
  (tag $all (param i32 i64 f32 f64 funcref externref i32 i64 i32 i64 f32))
  (tag $pair (export "pair") (param i64 f64))
  (tag $vectors (param i32 v128 f32 v128))
  (table 1 funcref)
  (elem declare func $thrower)
  (memory 1)
  (global $effects (mut i32) (i32.const 0))

  (func $thrower (export "thrower") (param i32)
    (if (local.get 0) (then (throw $number (local.get 0)))))
  (func $deep (param i32 i32)
    (if (local.get 1)
      (then (call $deep (local.get 0) (i32.sub (local.get 1) (i32.const 1)))
            (global.set $effects (i32.add (global.get $effects) (i32.const 1))))
      (else (call $thrower (local.get 0)))))
  (func (export "effects") (result i32) (global.get $effects))

  ;; Everything that the function has in locals and on its stack is there behind the catch.
  (func (export "keeps") (param i32 i64 f32 f64) (result i32 i64 f32 f64 i32)
    (local $x i32) (local $y f64)
    (local.set $x (i32.const 100))
    (local.get 0) (local.get 1) (local.get 2) (local.get 3)
    (i32.const 1000)
    (try (param i32) (result i32)
      (do
        (drop)
        (local.set $x (i32.const 200))
        (local.set $y (f64.const 4))
        (call $deep (i32.const 7) (i32.const 5))
        (local.set $x (i32.const 300))
        (i32.const 1))
      (catch $number
        (i32.add (local.get $x))
        (i32.add (i32.trunc_f64_s (local.get $y))))))

  (func $throw_all (param externref)
    (throw $all (i32.const -1) (i64.const -2) (f32.const 0.5) (f64.const 0.25) (ref.func $thrower) (local.get 0)
      (i32.const 3) (i64.const 4) (i32.const 5) (i64.const 6) (f32.const 7)))
  (func (export "all") (param externref) (result i32 i64 f32 f64 funcref externref i32 i64 i32 i64 f32)
    (try (result i32 i64 f32 f64 funcref externref i32 i64 i32 i64 f32)
      (do (call $throw_all (local.get 0)) (unreachable))
      (catch $number (unreachable))
      (catch $all)))

  (func $throw_vectors (export "throw_vectors") (param i32)
    (throw $vectors (local.get 0) (i32x4.splat (local.get 0)) (f32.const 2) (v128.const i64x2 5 6)))
  (func (export "vectors") (param i32) (result v128 i32 v128 f32 v128) (local $mine v128)
    (local.set $mine (i8x16.splat (i32.const 1)))
    (i32x4.add (local.get $mine) (local.get $mine))
    (try (result i32 v128 f32 v128)
      (do (call $throw_vectors (local.get 0)) (unreachable))
      (catch $vectors)))

  (func (export "through_host") (param i32) (result i32)
    (try (result i32)
      (do (call $call_back (local.get 0)))
      (catch $number (i32.add (i32.const 1)))))
  (func (export "through_host_uncaught") (param i32) (result i32) (call $call_back (local.get 0)))
  (func (export "swallowed") (param i32) (result i32)
    (try (result i32)
      (do (call $swallow (local.get 0)))
      (catch_all (i32.const -1))))
  (func (export "thrown_by_host") (param i32) (result i64)
    (try (result i64)
      (do (call $host_throw (local.get 0)))
      (catch $pair (i64.trunc_f64_s) (i64.add))))
  (func (export "host_error") (result i32)
    (try (result i32) (do (call $fail) (i32.const 0)) (catch_all (i32.const 1))))

  ;; (5: caught at the outermost, having been thrown on by two.)
  (func (export "rethrown") (param i32) (result i32) (local $seen i32)
    (try (result i32)
      (do
        (try
          (do
            (try
              (do (call $deep (local.get 0) (i32.const 3)))
              (catch $other (drop) (unreachable))
              (catch_all (local.set $seen (i32.add (local.get $seen) (i32.const 10))) (rethrow 0))))
          (catch $number
            (drop)
            (try
              (do (throw $none))
              (catch $none
                (local.set $seen (i32.add (local.get $seen) (i32.const 100)))
                (block (loop (if (i32.const 1) (then (rethrow 4))))))))
          (catch_all (unreachable)))
        (i32.const 0))
      (catch $number (i32.add (local.get $seen)))))
  (func $cleans (param i32)
    (try (do (call $deep (local.get 0) (i32.const 1))) (catch_all (rethrow 0))))
  (func (export "cleaned") (param i32) (call $cleans (local.get 0)))
  (func (export "delegated") (param i32) (result i32)
    (try (result i32)
      (do
        (try (result i32)
          (do (try (result i32) (do (call $thrower (local.get 0)) (i32.const 1)) (delegate 1)))
          (catch_all (i32.const -1))))
      (catch $number (i32.add (i32.const 20)))))
  (func (export "delegated_out") (param i32)
    (try (do (try (do (call $thrower (local.get 0))) (delegate 1))) (catch_all)))
  ;; What is thrown in a catch is not caught by its own try.
  (func (export "thrown_in_catch") (result i32)
    (try (result i32)
      (do
        (try (result i32)
          (do (call $thrower (i32.const 1)) (i32.const 0))
          (catch $number (call $deep (i32.const 9) (i32.const 2)))
          (catch_all (unreachable))))
      (catch $number)))

  (func (export "trap_in_try") (result i32)
    (try (result i32) (do (unreachable)) (catch_all (i32.const 1))))
  (func (export "load_in_try") (param i32) (result i32)
    (try (result i32) (do (i32.load (local.get 0))) (catch_all (i32.const 1))))
  (func $endless (export "endless") (result i32)
    (try (result i32) (do (i32.add (call $endless) (i32.const 1))) (catch_all (i32.const 1))))
  (func (export "spin")
    (loop (try (do (throw $none)) (catch_all)) (br 0)))

  ;; The frame that the tail call leaves takes its handler with it.
  (func $tail (param i32) (try (do (return_call $thrower (local.get 0))) (catch_all)))
  (func (export "tail_called") (param i32) (result i32)
    (try (result i32) (do (call $tail (local.get 0)) (i32.const 0)) (catch $number)))
  (func (export "tail_uncaught") (param i32) (call $tail (local.get 0)))

  (func (export "loop") (param $n i32) (result i64) (local $sum i64)
    (loop $again
      (try
        (do (call $thrower (local.get $n)))
        (catch $number (local.set $sum (i64.add (i64.extend_i32_u) (local.get $sum)))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))

  (func $uncaught_3 (param i32) (call $thrower (local.get 0)))
  (func (export "uncaught") (param i32) (call $uncaught_3 (local.get 0)))
  (func (export "uncaught_all") (call $throw_all (ref.null extern)))
))";

class Exceptions : public testing::TestWithParam<Mode> {
 protected:
  Exceptions() {
    linker_.define_function("host", "call_back", [this](Caller& caller, int32_t x) -> Result<int32_t> {
      inside_++;
      const struct Leave {
        int& n;
        ~Leave() { n--; }
      } leave{inside_};
      auto result = caller.instance().call("thrower", std::vector{Value::i32(x)});
      if (!result) return std::unexpected(result.error());
      return -2;
    });
    linker_.define_function("host", "swallow", [](Caller& caller, int32_t x) -> int32_t {
      return caller.instance().call("thrower", std::vector{Value::i32(x)}) ? 0 : 5;
    });
    linker_.define_function("host", "fail",
                            []() -> Status { return make_error(ErrorKind::kUsage, "the host's own words"); });
    linker_.define_function("host", "throw", [](Caller& caller, int32_t how) -> Result<int64_t> {
      if (how == 0) return caller.throw_exception("pair", std::vector{Value::i64(40), Value::f64(2)});
      if (how == 1) return caller.throw_exception("number", std::vector{Value::i32(7)});
      if (how == 2) return caller.throw_exception("pair", std::vector{Value::i64(40)});
      if (how == 3) return caller.throw_exception("thrower", {});
      (void)caller.throw_exception("number", std::vector{Value::i32(7)});
      return 8;
    });
    guest_ = instantiate(linker_, *engine_, kExceptionsGuest);
  }
  std::vector<Value> call(std::string_view name, std::vector<Value> args = {}) {
    auto result = guest_->call(name, args);
    EXPECT_TRUE(result) << name << ": " << result.error().describe();
    return result ? *result : std::vector<Value>(1);
  }
  int32_t number(std::string_view name, std::vector<Value> args = {}) {
    return call(name, std::move(args)).at(0).as_i32();
  }
  const rt::ExceptionHeap& heap() {
    return static_cast<rt::InstanceHandle&>(*guest_).state()->store->exceptions();
  }
  std::shared_ptr<Engine> engine_ = make_engine(GetParam());
  Linker linker_{*engine_};
  int inside_ = 0;
  std::shared_ptr<Instance> guest_;
};
INSTANTIATE_TEST_SUITE_P(Everywhere, Exceptions, kEveryMode, mode_name);

TEST_P(Exceptions, LeaveLocalsAndOperandsOfTheCatcherAsTheyAre) {
  const auto values = call("keeps", {Value::i32(11), Value::i64(12), Value::f32(13), Value::f64(14)});
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[0].as_i32(), 11);
  EXPECT_EQ(values[1].as_i64(), 12);
  EXPECT_EQ(values[2].as_f32(), 13);
  EXPECT_EQ(values[3].as_f64(), 14);
  EXPECT_EQ(values[4].as_i32(), 7 + 200 + 4);
  EXPECT_EQ(number("effects"), 0);
}

TEST_P(Exceptions, CarryValuesOfEveryType) {
  const auto values = call("all", {{ValueKind::kExternRef, 43}});
  ASSERT_EQ(values.size(), 11u);
  EXPECT_EQ(values[0].as_i32(), -1);
  EXPECT_EQ(values[1].as_i64(), -2);
  EXPECT_EQ(values[2].as_f32(), 0.5f);
  EXPECT_EQ(values[3].as_f64(), 0.25);
  EXPECT_NE(values[4].bits, 0u);
  EXPECT_EQ(values[5].bits, 43u);
  EXPECT_EQ(values[6].as_i32(), 3);
  EXPECT_EQ(values[7].as_i64(), 4);
  EXPECT_EQ(values[8].as_i32(), 5);
  EXPECT_EQ(values[9].as_i64(), 6);
  EXPECT_EQ(values[10].as_f32(), 7);
}

TEST_P(Exceptions, CarryVectors) {
  const auto values = call("vectors", {Value::i32(9)});
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[0].bits, 0x0202'0202'0202'0202u);
  EXPECT_EQ(values[1].as_i32(), 9);
  EXPECT_EQ(values[2].high, 0x9'0000'0009u);
  EXPECT_EQ(values[3].as_f32(), 2);
  EXPECT_EQ(values[4].bits, 5u);
  EXPECT_EQ(values[4].high, 6u);
  EXPECT_EQ(trap_of(*guest_, "throw_vectors", {Value::i32(1)}),
            "uncaught exception: vectors (i32 1, v128 0x00000001000000010000000100000001, f32 2, "
            "v128 0x00000000000000060000000000000005)");
  EXPECT_EQ(guest_->last_trap()->exception->values.at(3).high, 6u);
}

TEST_P(Exceptions, PassThroughHostFunctionsWithoutSkippingTheirDestructors) {
  EXPECT_EQ(number("through_host", {Value::i32(41)}), 42);
  EXPECT_EQ(inside_, 0);
  EXPECT_EQ(number("through_host", {Value::i32(0)}), -2);
  EXPECT_EQ(guest_->last_trap(), nullptr);
  const auto result = guest_->call("through_host_uncaught", std::vector{Value::i32(6)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "uncaught exception: number (i32 6)");
  EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre("thrower", "through_host_uncaught"));
}

TEST_P(Exceptions, AreThrownByHostFunctionsToo) {
  EXPECT_EQ(call("thrown_by_host", {Value::i32(0)}).at(0).as_i64(), 42);
  EXPECT_EQ(trap_of(*guest_, "thrown_by_host", {Value::i32(1)}), "uncaught exception: number (i32 7)");
  EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre("thrown_by_host"));
  EXPECT_THAT(trap_of(*guest_, "thrown_by_host", {Value::i32(2)}), HasSubstr("has values (i64, f64) -> ()"));
  EXPECT_THAT(trap_of(*guest_, "thrown_by_host", {Value::i32(3)}), HasSubstr("no such export, wanted a tag"));
  EXPECT_EQ(call("thrown_by_host", {Value::i32(4)}).at(0).as_i64(), 8);
}

TEST_P(Exceptions, EndInAHostFunctionThatSwallowsThem) {
  EXPECT_EQ(number("swallowed", {Value::i32(3)}), 5);
  EXPECT_EQ(number("swallowed", {Value::i32(0)}), 0);
}

TEST_P(Exceptions, AreNotWhatHostFunctionsFailWith) {
  EXPECT_EQ(trap_of(*guest_, "host_error"), "the host's own words");
}

TEST_P(Exceptions, AreThrownOnFromWhereverTheyWereCaught) {
  EXPECT_EQ(number("rethrown", {Value::i32(5)}), 115);
}

TEST_P(Exceptions, AreDelegatedToHandlersAndToTheCaller) {
  EXPECT_EQ(number("delegated", {Value::i32(2)}), 22);
  EXPECT_EQ(number("delegated", {Value::i32(0)}), 1);
  EXPECT_EQ(trap_of(*guest_, "delegated_out", {Value::i32(8)}), "uncaught exception: number (i32 8)");
  EXPECT_EQ(number("thrown_in_catch"), 9);
}

TEST_P(Exceptions, AreNotTraps) {
  EXPECT_EQ(trap_of(*guest_, "trap_in_try"), "unreachable");
  EXPECT_EQ(trap_of(*guest_, "load_in_try", {Value::i32(-1)}), "out of bounds memory access");
  EXPECT_EQ(trap_of(*guest_, "endless"), "call stack exhausted");
  if (!kThreadSanitizer) {  // under which nothing interrupts a thread in generated code
    guest_->set_timeout(20ms);
    EXPECT_EQ(trap_of(*guest_, "spin"), "timed out");
    guest_->set_timeout(0ms);
  }
  EXPECT_EQ(number("through_host", {Value::i32(1)}), 2);
}

TEST_P(Exceptions, AreNotCaughtByWhatATailCallHasLeft) {
  EXPECT_EQ(number("tail_called", {Value::i32(4)}), 4);
  EXPECT_EQ(trap_of(*guest_, "tail_uncaught", {Value::i32(4)}), "uncaught exception: number (i32 4)");
  EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre("thrower", "tail_uncaught"));
}

TEST_P(Exceptions, ThatNobodyCatchesAreErrorsWithTagValuesAndBacktrace) {
  const auto result = guest_->call("uncaught", std::vector{Value::i32(17)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kTrap);
  EXPECT_EQ(result.error().message, "uncaught exception: number (i32 17)");
  const Trap* trap = guest_->last_trap();
  ASSERT_NE(trap, nullptr);
  EXPECT_EQ(trap->name, "uncaught exception");
  ASSERT_TRUE(trap->exception);
  EXPECT_EQ(trap->exception->tag, "number");
  ASSERT_EQ(trap->exception->values.size(), 1u);
  EXPECT_EQ(trap->exception->values[0].as_i32(), 17);
  EXPECT_THAT(functions_of(trap), ElementsAre("thrower", "uncaught_3", "uncaught"));
  for (const Frame& frame : trap->backtrace) EXPECT_TRUE(frame.wasm_offset) << frame.function;

  ASSERT_FALSE(guest_->call("uncaught_all", {}));
  EXPECT_EQ(guest_->last_trap()->detail,
            "all (i32 -1, i64 -2, f32 0.5, f64 0.25, funcref ref, externref null, i32 3, i64 4, ...)");
  EXPECT_EQ(guest_->last_trap()->exception->values.size(), 11u);
}

TEST_P(Exceptions, KeepTheBacktraceOfTheirFirstThrowWhenThrownOn) {
  EXPECT_EQ(trap_of(*guest_, "cleaned", {Value::i32(5)}), "uncaught exception: number (i32 5)");
  EXPECT_THAT(functions_of(guest_->last_trap()), ElementsAre("thrower", "deep", "deep", "cleans", "cleaned"));
}

TEST_P(Exceptions, AreFreedWhileTheProgramGoesOnThrowing) {
  const int32_t n = kAddressSanitizer || kThreadSanitizer ? 20'000 : 1'000'000;
  EXPECT_EQ(call("loop", {Value::i32(n)}).at(0).as_i64(), int64_t{n} * (n + 1) / 2);
  EXPECT_GT(heap().collections(), static_cast<uint64_t>(n) / 1000);
  EXPECT_LT(heap().bytes(), 4 * rt::ExceptionHeap::kLeastBytes);
}

TEST_P(Exceptions, HaveTheIdentityOfTheirTagAcrossInstances) {
  constexpr std::string_view kThrower = R"((module
    (tag $t (export "tag") (param i32))
    (func (export "throw") (param i32) (throw $t (local.get 0)))))";
  Linker linker(*engine_);
  auto module = load(*engine_, kThrower);
  auto first = linker.instantiate(module).value();
  auto second = linker.instantiate(module).value();
  linker.define_instance("first", first);
  linker.define_instance("second", second);
  auto catcher = instantiate(linker, *engine_, R"((module
    (import "first" "tag" (tag $first (param i32)))
    (import "first" "tag" (tag $again (param i32)))
    (import "second" "tag" (tag $second (param i32)))
    (import "first" "throw" (func $throw_first (param i32)))
    (import "second" "throw" (func $throw_second (param i32)))
    (tag $own (param i32))
    (export "reexported" (tag $first))
    (func (export "catch") (param i32 i32) (result i32)
      (try (result i32)
        (do
          (if (i32.eq (local.get 0) (i32.const 0)) (then (call $throw_first (local.get 1))))
          (if (i32.eq (local.get 0) (i32.const 1)) (then (call $throw_second (local.get 1))))
          (if (i32.eq (local.get 0) (i32.const 2)) (then (throw $again (local.get 1))))
          (throw $own (local.get 1)))
        (catch $second (i32.add (i32.const 200)))
        (catch $first (i32.add (i32.const 100)))
        (catch $again (unreachable))
        (catch_all (i32.const 300))))))");
  const auto caught = [](Instance& instance, int32_t which) {
    return instance.call("catch", std::vector{Value::i32(which), Value::i32(which)}).value()[0].as_i32();
  };
  EXPECT_EQ(caught(*catcher, 0), 100);
  EXPECT_EQ(caught(*catcher, 1), 201);
  EXPECT_EQ(caught(*catcher, 2), 102);
  EXPECT_EQ(caught(*catcher, 3), 300);
  linker.define_instance("third", catcher);
  auto importer = instantiate(linker, *engine_, R"((module
    (import "third" "reexported" (tag $t (param i32)))
    (import "first" "throw" (func $throw (param i32)))
    (func (export "catch") (param i32 i32) (result i32)
      (try (result i32) (do (call $throw (local.get 1)) (i32.const 0)) (catch $t)))))");
  EXPECT_EQ(caught(*importer, 8), 8);
  const auto wrong =
      linker.instantiate(load(*engine_, R"((module (import "first" "tag" (tag (param i64)))))"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kLink);
  EXPECT_THAT(wrong.error().message, HasSubstr("wants a tag of (i64) -> (), got one of (i32) -> ()"));
}

TEST_P(Exceptions, ReachTheEmbedderFromTheStartFunction) {
  Linker linker(*engine_);
  auto failed =
      linker.instantiate(load(*engine_, "(module (tag $t) (func $start (throw $t)) (start $start))"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "uncaught exception: t");
}

}  // namespace
}  // namespace hindsight
