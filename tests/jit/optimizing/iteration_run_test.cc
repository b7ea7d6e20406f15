// Iterations that wait in several places: the next ones run ahead as a whole, and nobody can tell but by the clock.
#include <algorithm>

#include "tests/jit/optimizing/searches.h"

namespace hindsight::jit::testing {
namespace {

constexpr const char* kStore =
    "(i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))";

// From $q along the chain of what `kTreeSearch` calls left, for $steps nodes.
constexpr const char* kWalk = R"(
  (block $end (loop $walk
    (br_if $end (i32.eqz (local.get $q)))
    (br_if $end (i32.lt_s (local.tee $steps (i32.sub (local.get $steps) (i32.const 1))) (i32.const 0)))
    (local.set $sum (i64.add (i64.rotl (local.get $sum) (i64.const 3)) (i64.extend_i32_u (i32.load offset=12 (local.get $q)))))
    (local.set $q (i32.load (local.get $q)))
    (br $walk))))";

void expect_iterations(const Searches& s) {
  ASSERT_TRUE(s.site().is_applied()) << s.site().why;
  EXPECT_NE(s.site().why.find("a dry run of whole iterations"), std::string::npos) << s.site().why;
}

std::string in_loop(std::string_view locals, std::string_view body) {
  return searches(locals, body, "", "(local.get $sum)") + kEnd;
}

TEST(IterationRun, ASearchMayFollowASearch) {
  const std::string second[] = {
      // For what the first one found; for a key of its own; only if the first one found something.
      "(local.set $q (local.get $p)) (local.set $steps (i32.const 9))" + std::string(kWalk),
      "(local.set $q (local.get $root)) (local.set $steps (i32.and (local.get $key) (i32.const 15)))" +
          std::string(kWalk),
      "(if (local.get $p) (then (local.set $q (i32.load offset=4 (local.get $p))) (local.set $steps "
      "(i32.const 5)) " +
          std::string(kWalk) + "))",
  };
  for (const std::string& after : second) {
    Searches s(
        in_loop("(local $q i32) (local $steps i32)", kTreeSearch + std::string(kStore) + after + kSumUp), 1);
    expect_iterations(s);
    s.fill(fill_tree);
    s.expect_same_at_all_widths(of_tree);
    EXPECT_GT(s.interleaved.instance->strips_ended, 0u);
    s.expect_same({i32(100), i32(0)}, "without a tree");
  }
}

// What is done is drawn from a state in memory, and draws from it again: a search, a walk, both, a change of the tree, nothing.
TEST(IterationRun, IterationsMayDoDifferentThings) {
  const std::string draw =
      "(i32.store offset=60004 (i32.const 0) (i32.add (i32.mul (i32.load offset=60004 (i32.const 0))"
      " (i32.const 1664525)) (i32.const 1013904223)))"
      "(local.set $key (i32.rem_u (i32.shr_u (i32.load offset=60004 (i32.const 0)) (i32.const 7)) (i32.const "
      "10002)))";
  const std::string walk =
      "(local.set $steps (i32.const 12)) (local.set $q (local.get $root))" + std::string(kWalk);
  const std::string body =
      draw +
      "(block $done (block $nothing (block $change (block $both (block $walks (block $finds "
      "(br_table $finds $walks $both $change $finds $nothing (i32.rem_u (local.get $key) (i32.const 6))))" +
      draw + kTreeSearch + kSumUp + "(br $done))" + walk + "(br $done))" + draw + kTreeSearch + walk +
      kSumUp + "(br $done))" + draw + kTreeSearch +
      "(if (local.get $p) (then (i32.store (local.get $p) (i32.load offset=4 (local.get $p)))))" +
      "(br $done)) (local.set $sum (i64.xor (local.get $sum) (i64.extend_i32_u (local.get $key)))))";
  Searches s(in_loop("(local $q i32) (local $steps i32)", body), 5);
  expect_iterations(s);
  EXPECT_NE(s.site().why.find("words of memory"), std::string::npos) << s.site().why;
  s.fill(fill_tree);
  s.expect_same_at_all_widths(of_tree);
}

// The words that are looked through are known only when the iteration has stored which. What memory has there before that has no
// end: each of the iterations that run ahead would go round for ever, not the first one alone.
TEST(IterationRun, AllGuessesThatGoRoundForEverEnd) {
  const std::string same = "(i32.and (local.get $root) (i32.const 15))";  // 0, which nobody knows here
  const auto set = [&](int first, int end) {
    return "(i32.store offset=60000 " + same + " (i32.const " + std::to_string(first) +
           ")) (i32.store offset=60004 " + same + " (i32.const " + std::to_string(end) + "))";
  };
  const std::string body = std::string(kTreeSearch) + std::string(kStore) + set(64, 256) + R"(
    (local.set $q (i32.load offset=60000 (i32.const 0)))
    (local.set $end (i32.load offset=60004 (i32.const 0)))
    (local.set $steps (i32.const 0))
    (block $out (loop $look
      (br_if $out (i32.eq (local.get $q) (local.get $end)))
      (local.set $steps (i32.or (local.get $steps) (i32.eq (i32.load (local.get $q)) (local.get $key))))
      (local.set $q (i32.add (local.get $q) (i32.const 4)))
      (br $look)))
    (if (i32.eqz (local.get $steps)) (then
      (local.set $q (local.get $p)) (local.set $steps (i32.const 9)))" +
                           std::string(kWalk) + "))" + set(1, 2) + kSumUp;
  Searches s(in_loop("(local $q i32) (local $end i32) (local $steps i32)", body), 1);
  expect_iterations(s);
  s.fill([](uint32_t* words) {
    fill_tree(words);
    words[60000 / 4] = 1;  // begins where it cannot end
    words[60004 / 4] = 2;
  });
  s.expect_same_at_all_widths(of_tree);
}

// All kinds of values are needed behind a wait that were there before.
TEST(IterationRun, WhatIsThereBeforeAWaitIsThereBehindIt) {
  const std::string body =
      "(local.set $wide (i64.mul (i64.extend_i32_u (local.get $key)) (i64.const 0x9e3779b97f4a7c15)))"
      "(local.set $real (f64.convert_i64_u (local.get $wide)))"
      "(local.set $small (f32.convert_i32_u (local.get $key)))"
      "(local.set $four (i32x4.mul (i32x4.splat (local.get $key)) (v128.const i32x4 1 3 5 7)))"
      "(local.set $is_odd (i32.and (local.get $key) (i32.const 1)))" +
      std::string(kTreeSearch) +
      "(local.set $q (local.get $root)) (local.set $steps (i32.add (i32.add (local.get $is_odd)"
      " (i32.wrap_i64 (i64.rem_u (local.get $wide) (i64.const 7))))"
      " (i32.add (i32.and (i32.trunc_sat_f64_u (f64.sqrt (local.get $real))) (i32.const 3))"
      " (i32.add (i32.and (i32.trunc_sat_f32_u (local.get $small)) (i32.const 1))"
      " (i32.and (i32x4.extract_lane 2 (local.get $four)) (i32.const 3))))))" +
      kWalk + kSumUp + kStore;
  Searches s(in_loop("(local $q i32) (local $steps i32) (local $wide i64) (local $real f64) (local $small "
                     "f32) (local $four v128) "
                     "(local $is_odd i32)",
                     body),
             1);
  expect_iterations(s);
  s.fill(fill_tree);
  s.expect_same_at_all_widths(of_tree);
}

// Of what a call returns nothing is known ahead: a search for that is not run, one behind it is.
TEST(IterationRun, CallsBetweenSearchesAreLeftOut) {
  for (const std::string_view returned :
       {"(local.set $steps (call $pick (local.get $key)))",
        "(drop (call $pick (local.get $key))) (local.set $steps (i32.const 6))"}) {
    const std::string wat = in_loop(
        "(local $q i32) (local $steps i32)",
        kTreeSearch + std::string(returned) + "(local.set $q (local.get $root))" + kWalk +
            "(local.set $q (local.get $p)) (local.set $steps (i32.const 3))" +
            "(loop $last (local.set $q (i32.load offset=4 (local.get $q))) (br_if $last (i32.and (i32.ne "
            "(local.get $q) (i32.const 0))"
            " (i32.gt_s (local.tee $steps (i32.sub (local.get $steps) (i32.const 1))) (i32.const 0)))))" +
            kSumUp);
    const std::string with_callee =
        wat.substr(0, wat.size() - 1) +
        "(func $pick (param $x i32) (result i32) (loop $l (i32.store offset=40000 (i32.const 0) (local.get "
        "$x))"
        "(br_if $l (i32.gt_u (local.tee $x (i32.shr_u (local.get $x) (i32.const 1))) (i32.const 9))))"
        "(local.get $x)))";
    Searches s(with_callee, 1);
    expect_iterations(s);
    s.fill(fill_tree);
    s.expect_same_at_all_widths(of_tree);
  }
}

TEST(IterationRun, TrapsAndExitsAreTheLoopsOwn) {
  const std::string ends[] = {
      "(br_if $out (i32.eq (local.get $i) (i32.const 333)))",
      "(br_if $out (i32.gt_u (local.get $q) (i32.const 140000)))",
      "(if (i32.eq (local.get $i) (i32.const 207)) (then (return (i64.const 7))))",
      "(if (i32.eq (local.get $i) (i32.const 207)) (then (unreachable)))",
      "(i32.store offset=16384 (i32.const 0) (i32.rem_s (local.get $i) (local.get $p)))",
  };
  for (const BoundsChecks bounds : {BoundsChecks::kGuardPages, BoundsChecks::kExplicit}) {
    for (const std::string& end : ends) {
      for (const bool breaks_tree : {false, true}) {
        OptimizeRequest settings;
        settings.options.bounds = bounds;
        const std::string walk =
            "(local.set $q (local.get $p)) (local.set $steps (i32.const 9))" + std::string(kWalk);
        Searches s(in_loop("(local $q i32) (local $steps i32)", kTreeSearch + end + walk + kStore + kSumUp),
                   1, false, {}, settings);
        expect_iterations(s);
        s.fill([&](uint32_t* words) {
          fill_tree(words);
          if (breaks_tree) words[kData / 4 + 400 * 4] = 0xfffffff0;
        });
        s.expect_same_at_all_widths(of_tree);
      }
    }
  }
}

// In memory as it is, the second search goes round for ever.
TEST(IterationRun, GuessesThatGoRoundForEverEnd) {
  const std::string body =
      "(local.set $q (i32.const 200000)) (i32.store offset=200000 (i32.const 0) (i32.const 0))" +
      std::string(kTreeSearch) +
      "(loop $ring (local.set $q (i32.load (local.get $q))) (br_if $ring (local.get $q)))"
      "(i32.store offset=200000 (i32.const 0) (i32.const 200000))" +
      kSumUp;
  Searches s(in_loop("(local $q i32)", body), 1);
  expect_iterations(s);
  s.fill([](uint32_t* words) {
    fill_tree(words);
    words[200000 / 4] = 200000;
  });
  s.expect_same_at_all_widths(of_tree);
}

// What is spelled lies in the bytes that an iteration keeps beside memory, across their end, or behind them.
TEST(IterationRun, WordsThatAreSpelledStayInTheFrame) {
  for (const uint32_t unused : {0u, 60u, 64u, 200u}) {
    const std::string in_front = "(i32.const " + std::to_string(unused) + ")";
    const std::string body =
        "(local.set $buffer (i32.add (local.get $root) (i32.const 131072))) (local.set $end " + in_front +
        ") (local.set $rest (local.get $key))"
        "(loop $spell (i32.store8 (i32.add (local.get $buffer) (local.get $end)) (i32.and (local.get $rest) "
        "(i32.const 1)))"
        "(local.set $end (i32.add (local.get $end) (i32.const 1)))"
        "(br_if $spell (local.tee $rest (i32.shr_u (local.get $rest) (i32.const 1)))))" +
        std::string(kTreeSearch) +
        "(local.set $q (local.get $root)) (local.set $steps (i32.add (i32.const 2) (i32.load8_u (i32.add "
        "(local.get $buffer) " +
        in_front + "))))" + kWalk + kSumUp + kStore;
    Searches s(
        in_loop("(local $q i32) (local $steps i32) (local $buffer i32) (local $end i32) (local $rest i32)",
                body),
        1);
    expect_iterations(s);
    EXPECT_NE(s.site().why.find("with bytes of memory beside it"), std::string::npos) << s.site().why;
    s.fill(fill_tree);
    s.expect_same_at_all_widths(of_tree);
    s.expect_same({i32(100), i32(131072 + 300)}, "with a buffer outside of memory");
  }
}

TEST(IterationRun, RunningLoopsAreEnteredInTheMiddleToo) {
  const std::string walk =
      "(local.set $q (local.get $p)) (local.set $steps (i32.const 9))" + std::string(kWalk);
  Searches s(in_loop("(local $q i32) (local $steps i32)", kTreeSearch + std::string(kStore) + walk + kSumUp),
             1, true);
  expect_iterations(s);
  ASSERT_EQ(s.version->osr_entries.size(), 1u);
  s.fill(fill_tree);
  s.expect_same({i32(kMost), i32(kData)}, "entered at the top");
  s.cell().distance = 16;
  s.cell().countdown = 100000;
  s.expect_same({i32(40), i32(kData)}, "counted");
  EXPECT_EQ(s.cell().countdown, 100000 - 40);
}

// A hash of eight bytes that may end after the first: more loads than a slice has, so a prefetch guesses that it does.
TEST(IterationRun, APrefetchThatGuessesAWayIsTheirRival) {
  Optimized m(R"((module (memory 4)
    (func $hash (param $p i32) (param $length i32) (result i32) (local $h i32) (local $end i32)
      (local.set $end (i32.add (local.get $p) (local.get $length)))
      (loop $bytes
        (local.set $h (i32.mul (i32.xor (local.get $h) (i32.load8_u (local.get $p))) (i32.const 16777619)))
        (br_if $bytes (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 1))) (local.get $end))))
      (local.get $h))
    (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536
          (i32.and (call $hash (i32.shl (local.get $i) (i32.const 3)) (i32.const 8)) (i32.const 0xfffc)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
      (local.get $sum))))");
  const WasmOffset load = load_of(*m.module, "f", 0);
  m.request.changes = {change(ChangeKind::kPrefetch, load, 0.5), change(ChangeKind::kInterleave, load, 0.5)};
  const CodeVersion* const version = m.compile("f");
  ASSERT_NE(version, nullptr);
  const auto runs = std::ranges::find(version->answers, Site{ChangeKind::kInterleave, load}, &Answer::site);
  ASSERT_NE(runs, version->answers.end());
  EXPECT_TRUE(runs->is_applied()) << runs->why;
  EXPECT_TRUE(runs->has_rival);
}

}  // namespace
}  // namespace hindsight::jit::testing
