// LLVM removes loads that nothing needs and moves those that are needed elsewhere. The trap of one that is
// out of bounds must come all the same (jit/optimizing/generate/needs.h).
#include <gtest/gtest.h>

#include "tests/jit/optimizing/hinted.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

constexpr int32_t kOutside = -8;

// Loops whose parameter $p advances by 8 for $n iterations. Only the first of the addresses is out of bounds.
std::string turns(std::string_view body, std::string_view result) {
  return "(module (memory 1) (global $g (mut i32) (i32.const 0)) "
         "(func (export \"f\") (param $p i32) (param $n i32) (result i32) (local $x i32) (local $y i32) "
         "(loop $l " +
         std::string(body) +
         " (local.set $p (i32.add (local.get $p) (i32.const 8)))"
         " (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) " +
         std::string(result) + "))";
}

class TurnsOfALoop : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(TurnsOfALoop, TrapAtTheFirstThoughOnlyTheLastMatters) {
  Optimized m(turns(GetParam().first, GetParam().second));
  EXPECT_EQ(m.call("f", {i32(kOutside), i32(5)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("f", {i32(kOutside), i32(1)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("f", {i32(0), i32(5)}).trap, TrapCode::kNone);
}

INSTANTIATE_TEST_SUITE_P(
    Of, TurnsOfALoop,
    ::testing::Values(
        std::pair("(local.set $x (i32.load (local.get $p)))", "(local.get $x)"),
        std::pair("(local.set $y (local.get $x)) (local.set $x (i32.load (local.get $p)))", "(local.get $y)"),
        std::pair("(global.set $g (i32.load (local.get $p)))", "(i32.const 1)"),
        std::pair("(i32.store (i32.const 64) (i32.load (local.get $p)))", "(i32.const 1)"),
        std::pair("(local.set $x (select (i32.load (local.get $p)) (local.get $x)"
                  " (i32.and (local.get $n) (i32.const 1))))",
                  "(local.get $x)"),
        std::pair(
            "(if (i32.and (local.get $n) (i32.const 1)) (then (local.set $x (i32.load (local.get $p)))))",
            "(local.get $x)"),
        std::pair("(local.set $x (i32.add (local.get $x) (i32.load (local.get $p))))", "(local.get $x)"),
        std::pair(
            "(local.set $x (i32.add (i32.shl (local.get $x) (i32.const 16)) (i32.load (local.get $p))))",
            "(local.get $x)"),
        std::pair("(local.set $x (i32.and (local.get $x) (i32.load (local.get $p))))", "(local.get $x)"),
        std::pair("(local.set $x (i32.add (local.get $x) (i32.load (local.get $p))))", "(i32.const 1)")));

TEST(Needs, AStoreThatIsOverwrittenIsNone) {
  Optimized m(R"((module (memory 1) (global $g (mut i32) (i32.const 0))
    (func (export "memory") (param $p i32) (param $c i32)
      (i32.store (i32.const 8) (i32.load (local.get $p)))
      (if (local.get $c) (then (global.set $g (i32.const 7))))
      (i32.store (i32.const 8) (i32.const 5)))
    (func (export "global") (param $p i32) (param $c i32)
      (global.set $g (i32.load (local.get $p)))
      (if (local.get $c) (then (i32.store (i32.const 8) (i32.const 7))))
      (global.set $g (i32.const 5)))))");
  for (const char* name : {"memory", "global"}) {
    EXPECT_EQ(m.call(name, {i32(kOutside), i32(1)}), traps(TrapCode::kMemoryOutOfBounds)) << name;
    EXPECT_EQ(m.call(name, {i32(kOutside), i32(0)}), traps(TrapCode::kMemoryOutOfBounds)) << name;
    EXPECT_EQ(m.call(name, {i32(0), i32(1)}).trap, TrapCode::kNone) << name;
  }
}

TEST(Needs, AnArgumentThatTheCalleeIgnoresIsNone) {
  Optimized m(R"((module (memory 1)
    (func $f (export "f") (param $ignored i32) (param $n i32) (param $p i32) (result i32)
      (if (i32.eqz (local.get $n)) (then (return (i32.const 4))))
      (drop (call $f (i32.load (local.get $p)) (i32.sub (local.get $n) (i32.const 1)) (local.get $p)))
      (i32.const 9))))");
  EXPECT_EQ(m.call("f", {i32(0), i32(3), i32(kOutside)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("f", {i32(0), i32(3), i32(0)}).trap, TrapCode::kNone);
}

// One way needs the value, the other does not.
TEST(Needs, AnArmOfAnIfIsNotEveryWay) {
  Optimized m(R"((module (memory 1)
    (func (export "f") (param $p i32) (param $c i32) (result i32) (local $x i32)
      (local.set $x (i32.load (local.get $p)))
      (if (local.get $c) (then (i32.store (i32.const 100) (i32.const 1)) (local.set $x (i32.const 3)))
        (else (i32.store (i32.const 104) (i32.const 1))))
      (local.get $x))))");
  EXPECT_EQ(m.call("f", {i32(kOutside), i32(1)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("f", {i32(kOutside), i32(0)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("f", {i32(0), i32(1)}), returns({i32(3)}));
}

// What the compiler adds to find the load again goes before the code is made.
// No byte's double is above 900: what is loaded matters to nothing, and the loop has no end but the memory's.
TEST(Needs, ALoopThatCannotEndTrapsInTheEnd) {
  Optimized m(R"((module (memory 1)
    (func (export "f") (param $p i32) (result i32) (local $x i32)
      (block $end (loop $next
        (local.set $x (i32.load8_u (local.get $p)))
        (br_if $end (i32.gt_s (i32.add (local.get $x) (local.get $x)) (i32.const 900)))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br $next)))
      (local.get $p))))");
  EXPECT_EQ(m.call("f", {i32(65000)}), traps(TrapCode::kMemoryOutOfBounds));
}

// The first turn knows whether it is left; if not, it has no end but the memory's.
TEST(Needs, ALoopWhoseEndDoesNotDependOnItsTurnTrapsInTheEnd) {
  Optimized m(R"((module (memory 1)
    (func (export "f") (param $p i32) (param $d i32) (param $x i32) (result i32)
      (block $end (loop $next
        (drop (i32.load offset=7 (local.get $p)))
        (br_if $end (i32.lt_s (i32.load16_u offset=1038 (local.get $d)) (local.get $x)))
        (br_if $end (i32.eq (i32.load offset=1034 (local.get $d)) (local.get $x)))
        (local.set $p (i32.add (local.get $p) (i32.const 16)))
        (br $next)))
      (i32.const 3))))");
  EXPECT_EQ(m.call("f", {i32(30000), i32(0), i32(1)}), returns({i32(3)}));
  EXPECT_EQ(m.call("f", {i32(30000), i32(0), i32(0u - 1)}), traps(TrapCode::kMemoryOutOfBounds));
}

// Code generation makes two branches of the one on `or`. Where the first is taken, nothing needs what the second compares.
TEST(Needs, WhatTheSecondOfTwoConditionsComparesIsLoadedWhereTheFirstHolds) {
  Optimized m(R"((module (memory 1)
    (func (export "f") (param $p i32) (param $q i32) (param $n i32) (result i32)
        (local $x i32) (local $y i32) (local $way i32)
      (block $end (loop $next
        (local.set $x (i32.load8_u (local.get $p)))
        (if (i32.eqz (local.tee $n (i32.sub (local.get $n) (i32.const 1))))
          (then (local.set $way (i32.const 3)) (br $end)))
        (local.set $y (i32.load8_u (local.get $q)))
        (if (i32.or (i32.eqz (local.get $x)) (i32.eq (local.get $y) (i32.const 44)))
          (then (local.set $way (i32.const 1)) (br $end)))
        (br_if $end (i32.eq (local.get $x) (i32.const 58)))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (local.set $q (i32.add (local.get $q) (i32.const 1)))
        (br $next)))
      (i32.add (local.get $x) (i32.add (local.get $q) (local.get $way))))))");
  EXPECT_EQ(m.call("f", {i32(100), i32(65536), i32(10)}), traps(TrapCode::kMemoryOutOfBounds));
}

TEST(Needs, AHintIsNone) {
  const auto module =
      TestInstance::module_of(turns("(drop (i32.load (local.get $p))) (local.set $y (i32.add (local.get $y) "
                                    "(i32.load offset=32 (i32.const 0))))",
                                    "(local.get $y)"));
  OptimizeRequest settings;
  for (const ChangeKind kind : {ChangeKind::kPrefetch, ChangeKind::kInterleave})
    settings.changes.push_back(change(kind, load_of(*module, "f", 0), 0.5));
  Optimized m(module, settings);
  EXPECT_EQ(m.call("f", {i32(kOutside), i32(5)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("f", {i32(0), i32(5)}), returns({i32(0)}));
}

TEST(Needs, BytesThatALoopByTwoCountsLoadsForTheirTrapAreVectorsOfFewerBitsThanARegister) {
  Optimized m(R"((module (memory 1)
    (func (export "f") (param $p i32) (param $n i32) (result i32) (local $i i32) (local $x i32) (local $j i64) (local $most i64)
      (local.set $most (i64.and (i64.mul (i64.extend_i32_u (local.get $n)) (i64.const 40503)) (i64.const 127)))
      (block $out (loop $l
        (local.set $x (i32.load8_u offset=15 (i32.add (local.get $i) (local.get $p))))
        (br_if $out (i64.eq (local.get $j) (local.get $most)))
        (local.set $j (i64.add (local.get $j) (i64.const 1)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $l)))
      (local.get $i))))");
  const int32_t most = 77 * 40503 & 127;
  EXPECT_EQ(m.call("f", {i32(1000), i32(77)}), returns({i32(most)}));
  EXPECT_EQ(m.call("f", {i32(65536 - 16 - most), i32(77)}), returns({i32(most)}));
  EXPECT_EQ(m.call("f", {i32(65536 - 15 - most), i32(77)}), traps(TrapCode::kMemoryOutOfBounds));
}

// A masked value is not needed where the mask is zero: each load has to be made all the same. That the loops become vectors is
// in shapes/unasked.
class MaskedLoads : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  // Bytes, words and doubles by the parameter: sums `value` where another value is 2, from $p on for $n
  // iterations.
  static std::string sum() {
    const auto [load, size] = GetParam();
    const std::string type(load, 3);
    return "(module (memory 1) (func (export \"f\") (param $p i32) (param $n i32) (param $out i32) "
           "(loop $l (" +
           type + ".store" + (std::string(load).find("load8") != std::string::npos ? "8" : "") +
           " (local.get $out) (select (" + load + " (local.get $p)) (" + type + ".const 0)" +
           " (i32.eq (i32.load8_u offset=16384 (local.get $out)) (i32.const 2))))"
           " (local.set $p (i32.add (local.get $p) (i32.const " +
           size + "))) (local.set $out (i32.add (local.get $out) (i32.const " + size +
           ")))"
           " (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))";
  }
};

TEST_P(MaskedLoads, TrapWhereTheMaskIsZero) {
  Optimized m(sum());
  // The first of 64 elements is outside, and the mask is zero everywhere.
  EXPECT_EQ(m.call("f", {i32(kOutside), i32(64), i32(8192)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("f", {i32(65536 - 16), i32(64), i32(8192)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("f", {i32(0), i32(64), i32(8192)}).trap, TrapCode::kNone);
}

INSTANTIATE_TEST_SUITE_P(Of, MaskedLoads,
                         ::testing::Values(std::pair("i32.load8_u", "1"), std::pair("i32.load", "4"),
                                           std::pair("f64.load", "8")));

}  // namespace
}  // namespace hindsight::jit::testing
