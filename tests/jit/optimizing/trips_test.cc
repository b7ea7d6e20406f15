// Loops under hints of how often they usually go round: code for that number, in one of two versions of the loop around
// them. Nobody can tell the versions apart but by the clock.
#include <cstring>
#include <random>

#include "tests/jit/optimizing/usually_hinted.h"

namespace hindsight::jit::testing {
namespace {

using wasm::Opcode;

// "f" with each of its loops hinted at as going round so often.
struct Trips : UsuallyHinted {
  Trips(std::string_view wat, uint64_t turns, OptimizeRequest settings = {}, bool osr = false)
      : UsuallyHinted(
            wat, turns, [](Opcode opcode) { return opcode == Opcode::kLoop; }, settings, osr) {}
  // The innermost loop's.
  const Answer& site() const { return version->answers.back(); }
};

// For each of $m rows from $to on: the sum over k < `bound` of words at 4 * (row + k), times 3 each, stored there.
std::string rows(std::string_view bound, std::string_view more = "") {
  return "(module (memory 1) (func (export \"f\") (param $m i32) (param $n i32) (param $to i32) (result i32) "
         "(local $i i32) (local $k i32) (local $sum i32) "
         "(block $out (br_if $out (i32.eqz (local.get $m))) (loop $rows "
         "(local.set $sum (i32.const 0)) (local.set $k (i32.const 0)) "
         "(block $none (br_if $none (i32.le_s " +
         std::string(bound) +
         " (i32.const 0))) (loop $row "
         "(local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) "
         "(i32.load (i32.shl (i32.add (local.get $i) (local.get $k)) (i32.const 2))))) " +
         std::string(more) + "(br_if $row (i32.lt_s (local.tee $k (i32.add (local.get $k) (i32.const 1))) " +
         std::string(bound) +
         ")))) "
         "(i32.store (i32.add (local.get $to) (i32.shl (local.get $i) (i32.const 2))) (local.get $sum)) "
         "(br_if $rows (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $m))))) "
         "(local.get $sum)))";
}

TEST(UsualTrips, ANumberThatStaysTheSameIsComparedOnceAStrip) {
  for (const uint32_t turns : {1u, 2u, 3u, 7u, 8u, 16u, 64u}) {
    Trips t(rows("(local.get $n)"), turns);
    ASSERT_TRUE(t.site().is_applied()) << turns << ": " << t.site().why;
    EXPECT_EQ(t.site().site.kind, ChangeKind::kValue);
    ASSERT_EQ(t.version->loop_cells.size(), 1u);
    t.fill_random(turns);
    for (const uint32_t m : {0u, 1u, 63u, 64u, 1300u, 4000u})
      for (const uint32_t n : {turns, turns + 1, turns - 1, 0u, ~0u, 0x80000000u, 2 * turns})
        t.expect_same({i32(m), i32(n), i32(40000)}, std::to_string(m) + " rows of " + std::to_string(n));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(UsualTrips, ANumberThatChangesIsComparedWhereItsLoopBegins) {
  Trips t(rows("(i32.and (i32.load8_u (local.get $i)) (local.get $n))"), 5);
  ASSERT_TRUE(t.site().is_applied()) << t.site().why;
  t.fill_random(1);
  for (const uint32_t n : {7u, 5u, 0u}) t.expect_same({i32(3000), i32(n), i32(40000)}, std::to_string(n));
  Trips u(rows("(i32.and (i32.add (i32.shr_u (local.get $i) (i32.const 6)) (i32.const 5)) (local.get $n))"),
          5);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  u.fill_random(2);
  for (const uint32_t n : {7u, 5u, 4u, 0u, 255u})
    u.expect_same({i32(3000), i32(n), i32(40000)}, std::to_string(n));
}

TEST(UsualTrips, StoresInTheMiddleTrapWhereTheyDid) {
  for (const bool explicit_checks : {false, true}) {
    OptimizeRequest settings;
    if (explicit_checks) settings.options.bounds = BoundsChecks::kExplicit;
    Trips t(rows("(local.get $n)",
                 "(i32.store (i32.add (local.get $to) (i32.shl (i32.add (local.get $i) (local.get $k)) "
                 "(i32.const 2))) "
                 "(local.get $sum)) "),
            6, settings);
    ASSERT_TRUE(t.site().is_applied()) << t.site().why;
    t.fill_random(3);
    for (const uint32_t n : {6u, 7u, 1u, 0u}) {
      t.expect_same({i32(900), i32(n), i32(40000)}, std::to_string(n));
      const std::vector<Value> beyond{i32(900), i32(n), i32(kPage - 2000)};
      const Outcome expected = t.plain.call("f", beyond);
      EXPECT_EQ(expected.trap, TrapCode::kMemoryOutOfBounds);
      EXPECT_EQ(t.hinted.call("f", beyond).trap, expected.trap);
    }
  }
}

TEST(UsualTrips, ALoopThatLooksForSomethingIsLeftAlone) {
  Trips t(rows("(local.get $n)", "(br_if $none (i32.eqz (local.get $sum))) "), 6);
  EXPECT_FALSE(t.site().is_applied());
  t.fill_random(4);
  t.expect_same({i32(900), i32(6), i32(40000)});
}

TEST(UsualTrips, ManyTurnsAndNoneAreLeftAlone) {
  for (const uint32_t turns : {0u, 65u}) {
    Trips t(rows("(local.get $n)"), turns);
    EXPECT_FALSE(t.site().is_applied());
    EXPECT_TRUE(t.version->loop_cells.empty());
  }
}

TEST(UsualTrips, LoopsThatCountDownOrComparePlacesAreCountedAllTheSame) {
  // $n is the number of iterations left; and, in bytes, the length of each row.
  Trips down(
      "(module (memory 1) (func (export \"f\") (param $m i32) (param $n i32) (result i32) (local $k i32) "
      "(local $at i32) (local $sum i32) (loop $rows (local.set $k (local.get $n)) (loop $row "
      "(local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (i32.load (local.get $at)))) "
      "(local.set $at (i32.add (local.get $at) (i32.const 4))) "
      "(br_if $row (local.tee $k (i32.sub (local.get $k) (i32.const 1))))) "
      "(br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1))))) (local.get $sum)))",
      4);
  ASSERT_TRUE(down.site().is_applied()) << down.site().why;
  down.fill_random(5);
  for (const uint32_t n : {4u, 5u, 1u}) down.expect_same({i32(3000), i32(n)}, std::to_string(n));
  Trips places(
      "(module (memory 1) (func (export \"f\") (param $m i32) (param $n i32) (result i32) (local $end i32) "
      "(local $at i32) (local $sum i32) (loop $rows "
      "(local.set $at (i32.and (i32.mul (local.get $m) (i32.const 48)) (i32.const 0x7fff))) "
      "(local.set $end (i32.add (local.get $at) (i32.shl (local.get $n) (i32.const 2)))) (loop $row "
      "(local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (i32.load (local.get $at)))) "
      "(br_if $row (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end)))) "
      "(br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1))))) (local.get $sum)))",
      4);
  ASSERT_TRUE(places.site().is_applied()) << places.site().why;
  places.fill_random(6);
  for (const uint32_t n : {4u, 5u, 1u}) places.expect_same({i32(3000), i32(n)}, std::to_string(n));
}

TEST(UsualTrips, RunningLoopsAreEnteredInTheMiddleToo) {
  Trips t(rows("(local.get $n)"), 7, {}, true);
  ASSERT_TRUE(t.site().is_applied()) << t.site().why;
  ASSERT_EQ(t.version->osr_entries.size(), 1u);
  EXPECT_EQ(t.version->loop_cells.size(), 1u);
  t.fill_random(7);
  t.expect_same({i32(3000), i32(7), i32(40000)});
}

}  // namespace
}  // namespace hindsight::jit::testing
