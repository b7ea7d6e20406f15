// Hints drawn by lot, and entering at loops: what the fuzzer relies on to reach code that only profiles lead
// to.
#include "runtime/code/random_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/engine/engine_for_tests.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

constexpr std::string_view kHintedGuest =
    R"((module (memory 1) (table 2 funcref) (elem (i32.const 0) $one $two) (type $t (func (result i32)))
  (func $one (result i32) (i32.const 1))
  (func $two (result i32) (i32.const 2))
  (func (export "sum") (param $n i32) (result i32) (local $s i32) (local $i i32)
    (loop $l
      (local.set $s (i32.add (local.get $s)
        (i32.load (i32.and (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 0xfffc)))))
      (local.set $s (i32.add (local.get $s) (call_indirect (type $t) (i32.and (local.get $i) (i32.const 1)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $s))))";

Result<std::shared_ptr<Engine>> try_engine_with(const TestKnobs& knobs) {
  EngineConfig config;
  config.tier = TierMode::kOptimized;
  config.profiling = false;
  return create_engine_for_tests(std::move(config), knobs);
}

std::shared_ptr<Engine> engine_with(const TestKnobs& knobs) {
  auto engine = try_engine_with(knobs);
  EXPECT_TRUE(engine) << engine.error().describe();
  return *engine;
}

std::shared_ptr<Engine> engine_with(uint32_t random_hints, bool enter_at_loops, bool leave_at_loops = false) {
  return engine_with(
      {.random_hints = random_hints, .enter_at_loops = enter_at_loops, .leave_at_loops = leave_at_loops});
}

int32_t sum_of(Engine& engine, int32_t turns) {
  Linker linker(engine);
  auto instance = linker.instantiate(load(engine, kHintedGuest));
  EXPECT_TRUE(instance);
  const Value n = Value::i32(turns);
  return (*(*instance)->call("sum", std::span(&n, 1)))[0].as_i32();
}

TEST(RandomHints, AreTheSameForTheSameSeedAndOthersForOthers) {
  auto bytes = wasm::assemble_text(kHintedGuest, "guest");
  ASSERT_TRUE(bytes);
  const auto module = wasm::decode_module(*bytes, "guest");
  ASSERT_TRUE(module);
  bool prefetched = false, interleaved = false, remembered = false, called = false, differ = false;
  for (uint32_t seed = 1; seed < 40; ++seed) {
    const auto sites = [&](uint32_t of) {
      std::vector<jit::Site> sites;
      for (const jit::Request& request : rt::random_hints(**module, FuncIndex(2), of))
        sites.push_back(request.site);
      return sites;
    };
    const std::vector<jit::Site> drawn = sites(seed);
    EXPECT_EQ(drawn, sites(seed));
    const auto has = [&](jit::ChangeKind kind) {
      return std::ranges::find(drawn, kind, &jit::Site::kind) != drawn.end();
    };
    prefetched |= has(jit::ChangeKind::kPrefetch);
    interleaved |= has(jit::ChangeKind::kInterleave);
    remembered |= has(jit::ChangeKind::kJumpPointers);
    called |= has(jit::ChangeKind::kInlineCalls);
    differ |= drawn != sites(seed + 1);
  }
  EXPECT_TRUE(prefetched && interleaved && remembered && called && differ);
}

TEST(RandomHints, ChangeNoResult) {
  const int32_t expected = sum_of(*engine_with(0, false), 1000);
  EXPECT_EQ(expected, 1500);
  for (uint32_t seed = 1; seed < 6; ++seed)
    EXPECT_EQ(sum_of(*engine_with(seed, false), 1000), expected) << seed;
}

TEST(EnteringAtLoops, LeavesBaselineCodeAtTheFirstLoop) {
  auto engine = engine_with(0, true);
  EXPECT_EQ(sum_of(*engine, 1000), 1500);
  const FeedbackReport report = engine->feedback_report();
  EXPECT_EQ(report.functions_baseline, 1u);   // where it begins
  EXPECT_EQ(report.functions_optimized, 3u);  // where it goes on, and the two that have no loop
}

TEST(LeavingAtLoops, GoesOnInASecondVersionOfTheCode) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    auto engine = engine_with(seed, true, true);
    EXPECT_EQ(sum_of(*engine, 1000), 1500) << seed;
    const FeedbackReport report = engine->feedback_report();
    EXPECT_EQ(report.functions_baseline, 1u);
    EXPECT_EQ(report.functions_optimized, 4u);  // two versions of the one with a loop
  }
}

// Where the way out comes first, LLVM begins the loop after it: its header stores before it is to be left.
TEST(LeavingAtLoops, DoesNothingTwice) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    auto engine = engine_with(seed, true, true);
    Linker linker(*engine);
    auto instance = linker.instantiate(load(*engine, R"((module (memory 1)
      (func (export "f") (result i32) (local $i i32)
        (loop $l
          (if (i32.eq (local.get $i) (i32.const 600)) (then (return (i32.load (i32.const 64)))))
          (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
          (i32.store (i32.const 72)
            (i32.add (i32.load (i32.shl (i32.load (i32.const 68)) (i32.const 2))) (local.get $i)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br $l))
        (unreachable))))"));
    ASSERT_TRUE(instance);
    EXPECT_EQ((*(*instance)->call("f", {}))[0].as_i32(), 600) << seed;
  }
}

TEST(LeavingAtLoops, DoesNotKeepALoadForAnExitAloneThatTrappedWhereItStood) {
  for (const bool back : {false, true}) {
    auto engine = engine_with({.enter_at_loops = true, .leave_at_loops = true, .leave_for_baseline = back});
    Linker linker(*engine);
    // What the load gives lies beneath the loops, which never end by it. The function calls itself, so that all of it is
    // in optimized code.
    auto instance =
        linker.instantiate(load(*engine, R"((module (memory 1) (global $left (mut i32) (i32.const 10))
      (func $pick (param f32) (result f32)
        (select (local.get 0) (f32.const 0) (f32.eq (local.get 0) (local.get 0))))
      (func $f (export "f") (result i32)
        (if (i32.eqz (global.get $left)) (then (return (i32.const -80))))
        (global.set $left (i32.sub (global.get $left) (i32.const 1)))
        (drop (call $f))
        (global.set $left (i32.const 9))
        (call $pick (f32.load offset=22 (i32.const -14)))
        (loop $outer
          (if (i32.eqz (global.get $left)) (then (return (i32.const -5))))
          (global.set $left (i32.sub (global.get $left) (i32.const 1)))
          (loop $inner
            (if (i32.eqz (global.get $left)) (then (return (i32.const -6))))
            (global.set $left (i32.sub (global.get $left) (i32.const 1)))
            (br $inner)))
        (drop)
        (i32.const 1))))"));
    ASSERT_TRUE(instance) << instance.error().describe();
    EXPECT_THAT(trap_of(**instance, "f"), testing::HasSubstr("memory")) << back;
  }
}

TEST(LeavingAtLoops, ForBaselineCodeDoesNothingTwice) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    auto engine = engine_with(
        {.random_hints = seed, .enter_at_loops = true, .leave_at_loops = true, .leave_for_baseline = true});
    Linker linker(*engine);
    auto instance = linker.instantiate(load(*engine, R"((module (memory 1)
      (func (export "f") (param $n i32) (result i32) (local $i i32) (local $j i32)
        (loop $outer
          (local.set $j (i32.const 0))
          (loop $inner
            (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
            (br_if $inner (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (local.get $n))))
          (br_if $outer (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
        (i32.load (i32.const 64)))))"));
    ASSERT_TRUE(instance) << instance.error().describe();
    EXPECT_EQ((*(*instance)->call("f", std::vector{Value::i32(30)}))[0].as_i32(), 900) << seed;
    EXPECT_EQ((*(*instance)->call("f", std::vector{Value::i32(20)}))[0].as_i32(), 1300) << seed;
  }
}

TEST(LeavingAtLoops, IsRefusedWhereLoopsAreNotEntered) {
  const auto engine = try_engine_with({.leave_at_loops = true});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().kind, ErrorKind::kUsage);
  const auto nowhere = try_engine_with({.enter_at_loops = true, .leave_for_baseline = true});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, ErrorKind::kUsage);
}

TEST(RandomHints, AreRefusedWhereFeedbackGivesHints) {
  for (const bool loops : {false, true}) {
    const auto engine =
        create_engine_for_tests({}, {.random_hints = loops ? 0u : 1u, .enter_at_loops = loops});
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace hindsight
