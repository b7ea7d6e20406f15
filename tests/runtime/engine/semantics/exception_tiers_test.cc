// Exceptions on stacks on which both tiers' frames alternate, and in loops that optimized code has taken
// over.
#include <gmock/gmock.h>

#include "jit/code/code_registry.h"
#include "runtime/engine/handles.h"
#include "tests/jit/wasm/exception_bytes.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight::rt {
namespace {

using testing::ElementsAre;

class ExceptionTiers : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = std::static_pointer_cast<EngineHandle>(make_engine({"automatic", TierMode::kAuto}));
    linker_ = std::make_unique<Linker>(*engine_);
    linker_->define_function("host", "tick", [this](int32_t x) {
      if (tick_) tick_(x);
    });
  }
  void start(std::string_view wat) {
    module_ = load(*engine_, wat);
    guest_ = linker_->instantiate(module_).value();
  }
  ModuleCode& code() { return *static_cast<const ModuleHandle&>(*module_).code(); }
  void optimize(uint32_t function, std::vector<LoopIndex> loops = {}) {
    jit::OptimizeRequest request;
    request.function = FuncIndex(function);
    request.osr_loops = std::move(loops);
    request.tuning.inline_functions = false;
    auto made = code().optimize(request);
    ASSERT_TRUE(made) << made.error().describe();
    std::shared_ptr<jit::CodeVersion> version = std::move(made->version);
    if (version->id == VersionId{}) version->id = jit::CodeRegistry::next_version_id();
    code().publish(version);
  }
  int64_t call(std::string_view name, std::vector<hindsight::Value> args) {
    auto result = guest_->call(name, args);
    EXPECT_TRUE(result) << name << ": " << result.error().describe();
    return result && !result->empty() ? static_cast<int64_t>((*result)[0].bits) : -1;
  }
  std::shared_ptr<EngineHandle> engine_;
  std::unique_ptr<Linker> linker_;
  std::shared_ptr<const hindsight::Module> module_;
  std::shared_ptr<hindsight::Instance> guest_;
  std::function<void(int32_t)> tick_;
};

// Functions 1 to 5, each of which may be of either tier. The outermost has values in all registers that
// survive calls, which the throw must not lose.
constexpr std::string_view kStack = R"((module
  (import "host" "tick" (func (param i32)))
  (tag $t (param i64))
  (memory 1)
  (func $thrower (param i64) (if (i64.ne (local.get 0) (i64.const 0)) (then (throw $t (local.get 0)))))
  (func $busy (param i64) (result i64) (local $a i64) (local $b i64) (local $c i64) (local $d i64) (local $e i64)
    (local.set $a (i64.add (local.get 0) (i64.load (i32.const 0))))
    (local.set $b (i64.mul (local.get $a) (i64.load (i32.const 8))))
    (local.set $c (i64.xor (local.get $b) (i64.load (i32.const 16))))
    (local.set $d (i64.sub (local.get $c) (i64.load (i32.const 24))))
    (local.set $e (i64.or (local.get $d) (i64.load (i32.const 32))))
    (call $thrower (local.get 0))
    (call $thrower (i64.const 0))
    (i64.add (local.get $a) (i64.add (local.get $b) (i64.add (local.get $c) (i64.add (local.get $d) (local.get $e))))))
  (func $catcher (param i64) (result i64) (local $before i64)
    (local.set $before (i64.add (local.get 0) (i64.const 1)))
    (try (result i64)
      (do (call $busy (local.get 0)))
      (catch $t (i64.add (local.get $before)) (i64.mul (i64.load (i32.const 0))))))
  (func $passes (param i64) (result i64)
    (try (result i64) (do (call $catcher (local.get 0))) (catch_all (rethrow 0))))
  (func $outer (export "outer") (param i64 i64 i64 i64 i64) (result i64)
    (local $p i64) (local $q i64) (local $r i64) (local $s i64) (local $u i64) (local $sum i64)
    (loop $again
      (local.set $p (i64.add (local.get 0) (i64.load (i32.const 40))))
      (local.set $q (i64.mul (local.get 1) (i64.load (i32.const 48))))
      (local.set $r (i64.xor (local.get 2) (i64.load (i32.const 56))))
      (local.set $s (i64.sub (local.get 3) (i64.load (i32.const 64))))
      (local.set $u (i64.or (local.get 4) (i64.load (i32.const 72))))
      (local.set $sum (i64.add (local.get $sum) (call $passes (local.get 0))))
      (local.set $sum (i64.add (local.get $sum) (i64.add (local.get $p) (i64.mul (local.get $q) (i64.const 3)))))
      (local.set $sum (i64.add (local.get $sum) (i64.add (local.get $r) (i64.mul (local.get $s) (i64.const 5)))))
      (local.set $sum (i64.add (local.get $sum) (i64.mul (local.get $u) (i64.const 7))))
      (br_if $again (i64.ne (local.tee 0 (i64.sub (local.get 0) (i64.const 1))) (i64.const 0))))
    (local.get $sum))
  (data (i32.const 0) "\05\00\00\00\00\00\00\00\03\00\00\00\00\00\00\00\77\00\00\00\00\00\00\00\09\00\00\00\00\00\00\00")
  (data (i32.const 32) "\01\00\00\00\00\00\00\00\06\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00\55\00\00\00\00\00\00\00")
  (data (i32.const 64) "\08\00\00\00\00\00\00\00\10\00\00\00\00\00\00\00")))";

int64_t expected_of_outer(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) {
  int64_t sum = 0;
  for (; a != 0; --a)
    sum += (a + a + 1) * 5 + (a + 6) + b * 2 * 3 + (c ^ 0x55) + (d - 8) * 5 + (e | 0x10) * 7;
  return sum;
}

TEST_F(ExceptionTiers, ComeThroughFramesOfBothTiersInAnyOrder) {
  for (uint32_t optimized = 0; optimized < 32; ++optimized) {
    start(kStack);
    for (uint32_t f = 0; f < 5; ++f)
      if (optimized & (1u << f)) optimize(f + 1);
    std::vector<hindsight::Value> args;
    for (int64_t v : {20, 3, 4, 5, 6}) args.push_back(hindsight::Value::i64(v));
    EXPECT_EQ(call("outer", args), expected_of_outer(20, 3, 4, 5, 6)) << "optimized: " << optimized;
  }
}

// In a try, in a catch, and around both, optimized code takes over in the middle of a loop.
constexpr std::string_view kLoops = R"((module
  (import "host" "tick" (func $tick (param i32)))
  (tag $t (param i32))
  (tag $u)
  (func $throw_at (param i32 i32)
    (if (i32.eq (local.get 0) (local.get 1)) (then (throw $t (local.get 0)))))
  (func $in_try (export "in_try") (param $n i32) (result i32) (local $i i32)
    (i32.const 1000)
    (try (result i32)
      (do
        (loop $again (result i32)
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (call $tick (local.get $i))
          (call $throw_at (local.get $i) (local.get $n))
          (br $again)))
      (catch $u (i32.const -1))
      (catch $t (i32.add (local.get $i))))
    (i32.add))
  (func $in_catch (export "in_catch") (param $n i32) (result i32) (local $i i32)
    (try (result i32)
      (do
        (try (result i32)
          (do (call $throw_at (i32.const 7) (i32.const 7)) (i32.const 0))
          (catch $t
            (loop $again (param i32) (result i32)
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (call $tick (local.get $i))
              (if (i32.eq (local.get $i) (local.get $n)) (then (rethrow 2)))
              (br $again)))
          (catch_all (i32.const -1))))
      (catch $t (i32.add (i32.mul (i32.const 100) (local.get $i))))))
  (func $around (export "around") (param $n i32) (result i32) (local $i i32) (local $caught i32)
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (call $tick (local.get $i))
      (try
        (do (call $throw_at (i32.and (local.get $i) (i32.const 1)) (i32.const 1)))
        (catch $t (local.set $caught (i32.add (local.get $caught)))))
      (br_if $again (i32.ne (local.get $i) (local.get $n))))
    (local.get $caught))
  (func $inner_of_two (export "inner_of_two") (param $n i32) (result i32) (local $i i32) (local $j i32)
    (loop $outer
      (try
        (do
          (local.set $j (i32.const 0))
          (loop $inner
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (call $tick (local.get $i))
            (br_if $inner (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (i32.const 10))))
          (throw $t (local.get $i)))
        (catch $t (drop)))
      (br_if $outer (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $i))
  (func $uncaught (export "uncaught") (param $n i32) (local $i i32)
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (call $tick (local.get $i))
      (call $throw_at (local.get $i) (local.get $n))
      (br $again)))))";

TEST_F(ExceptionTiers, AreCaughtInLoopsThatOptimizedCodeHasTakenOver) {
  start(kLoops);
  uint32_t function = 0;
  std::vector<LoopIndex> loops;
  tick_ = [&](int32_t i) {
    if (i == 15) optimize(function, loops);  // entered at the next iteration
  };
  const auto run = [&](uint32_t index, const char* name, uint32_t loop_count, int32_t n) {
    function = index;
    loops.clear();
    for (uint32_t i = 0; i < loop_count; ++i) loops.push_back(LoopIndex(i));
    return call(name, {hindsight::Value::i32(n)});
  };
  for (int again = 0; again < 2; ++again) {  // the second time in optimized code from the start
    EXPECT_EQ(run(2, "in_try", 1, 30), 1000 + 30 + 30);
    EXPECT_EQ(run(3, "in_catch", 1, 30), 7 + 100 * 30);
    EXPECT_EQ(run(4, "around", 1, 40), 20);
    EXPECT_EQ(run(5, "inner_of_two", 2, 95), 100);
  }
  function = 6;
  loops = {LoopIndex(0)};
  const auto result = guest_->call("uncaught", std::vector{hindsight::Value::i32(30)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "uncaught exception: t (i32 30)");
  // The optimized remainder was called by the baseline code that it replaced: its place is told once.
  EXPECT_THAT(functions_of(guest_->last_trap()), testing::Contains("throw_at"));
}

}  // namespace
}  // namespace hindsight::rt
