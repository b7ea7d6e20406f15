// Operators under hints of usual values: code for one divisor, or for one number of bytes, in one of two
// versions of their loop. Nobody can tell the versions apart but by the clock.
#include <cstring>
#include <random>

#include "tests/jit/optimizing/usually_hinted.h"

namespace hindsight::jit::testing {
namespace {

using wasm::Opcode;

// "f" with each of its divisions, copies and fills hinted at as having this operand.
struct Usual : UsuallyHinted {
  Usual(std::string_view wat, uint64_t value, OptimizeRequest settings = {}, bool osr = false)
      : UsuallyHinted(wat, value, is_hinted, settings, osr) {}
  static bool is_hinted(Opcode opcode) {
    const bool divides = (opcode >= Opcode::kI32DivS && opcode <= Opcode::kI32RemU) ||
                         (opcode >= Opcode::kI64DivS && opcode <= Opcode::kI64RemU);
    return divides || opcode == Opcode::kMemoryCopy || opcode == Opcode::kMemoryFill;
  }
  const Answer& site(size_t i = 0) const { return version->answers.at(i); }
};

// sum over i < n of 3 * sum + step, with x the word at 4 * i, all of type t.
std::string divisions(std::string_view t, std::string_view step) {
  const std::string type(t);
  return "(module (memory 1) (func (export \"f\") (param $n i32) (param $d " + type + ") (result " + type +
         ") (local $i i32) (local $x " + type + ") (local $sum " + type +
         ") (block $out (br_if $out (i32.eqz (local.get $n))) (loop $l (local.set $x (" + type +
         ".load (i32.shl (local.get $i) (i32.const 2)))) (local.set $sum (" + type + ".add (" + type +
         ".mul (local.get $sum) (" + type + ".const 3)) " + std::string(step) +
         ")) (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))) "
         "(local.get $sum)))";
}

TEST(UsualValues, ADivisorThatStaysTheSameIsComparedOnceAStrip) {
  Usual u(divisions("i64", "(i64.rem_u (local.get $x) (local.get $d))"), 16381);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  EXPECT_EQ(u.site().site.kind, ChangeKind::kValue);
  ASSERT_EQ(u.version->loop_cells.size(), 1u);
  u.fill_random(1);
  for (const uint32_t n : {0u, 1u, 63u, 64u, 65u, 700u, 8000u})
    for (const uint64_t d :
         {uint64_t{16381}, uint64_t{16382}, uint64_t{1}, uint64_t{16381} << 32, ~uint64_t{0}})
      u.expect_same({i32(n), i64(d)}, std::to_string(n) + " by " + std::to_string(d));
  EXPECT_EQ(u.hinted.call("f", {i32(100), i64(0)}).trap, TrapCode::kIntegerDivideByZero);
  u.expect_same({i32(100), i64(0)}, "by 0");
}

TEST(UsualValues, ADivisorThatChangesIsComparedWhereItDivides) {
  Usual u(
      divisions("i32",
                "(i32.div_u (local.get $x) (i32.load offset=32768 (i32.shl (local.get $i) (i32.const 2))))"),
      97);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  u.fill_random(2);
  std::mt19937 random(3);
  for (uint32_t i = 0; i < 8000; ++i) u.set_word(32768 + 4 * i, random() % 10 != 0 ? 97 : 1 + random() % 200);
  u.expect_same({i32(8000), i32(0)});
  u.set_word(32768 + 4 * 5000, 0);
  EXPECT_EQ(u.plain.call("f", {i32(8000), i32(0)}).trap, TrapCode::kIntegerDivideByZero);
  u.expect_same({i32(8000), i32(0)}, "a 0 among them");
}

TEST(UsualValues, EveryDivisionDividesAndTrapsAsItDid) {
  for (const char* type : {"i32", "i64"}) {
    const bool wide = std::string_view(type) == "i64";
    for (const char* name : {"div_s", "div_u", "rem_s", "rem_u"}) {
      for (const int64_t usual : {int64_t{1}, int64_t{-1}, int64_t{2}, int64_t{-7}, int64_t{1000003}}) {
        const std::string step = std::string("(") + type + "." + name + " (local.get $x) (local.get $d))";
        Usual u(divisions(type, step), wide ? static_cast<uint64_t>(usual) : static_cast<uint32_t>(usual));
        const std::string what = step + " usually by " + std::to_string(usual);
        EXPECT_TRUE(u.site().is_applied()) << what << ": " << u.site().why;
        u.fill_random(4);
        for (const int64_t d : {usual, int64_t{3}, int64_t{-1}}) {
          const Value divisor = wide ? i64(static_cast<uint64_t>(d)) : i32(static_cast<uint32_t>(d));
          u.expect_same({i32(500), divisor}, what + ", by " + std::to_string(d));
          // The least number there is, by -1, overflows or leaves nothing.
          u.set_word(4 * 200, wide ? 0 : 0x80000000u);
          u.set_word(4 * 201, 0x80000000u);
          u.expect_same({i32(500), divisor}, what + ", the least number by " + std::to_string(d));
        }
      }
    }
  }
}

TEST(UsualValues, RunningLoopsAreEnteredInTheMiddleToo) {
  Usual u(divisions("i64", "(i64.rem_u (local.get $x) (local.get $d))"), 16381, {}, true);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  ASSERT_EQ(u.version->osr_entries.size(), 1u);
  EXPECT_EQ(u.version->loop_cells.size(), 1u);
  u.fill_random(5);
  u.expect_same({i32(3000), i64(16381)});
}

// n times: `operate`, with $to and $from further on by $step each time.
std::string bulk(std::string_view operate, std::string_view memory = "(memory 1)",
                 std::string_view type = "i32") {
  const std::string t(type);
  return "(module " + std::string(memory) + " (func (export \"f\") (param $n i32) (param $to " + t +
         ") (param $from " + t + ") (param $bytes " + t + ") (param $step " + t +
         ") (result i32) (block $out (br_if $out (i32.eqz (local.get $n))) (loop $l " + std::string(operate) +
         "(local.set $to (" + t + ".add (local.get $to) (local.get $step))) (local.set $from (" + t +
         ".add (local.get $from) (local.get $step))) "
         "(br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))) (local.get $n)))";
}
constexpr const char* kCopy = "(memory.copy (local.get $to) (local.get $from) (local.get $bytes))";
constexpr const char* kFill = "(memory.fill (local.get $to) (local.get $from) (local.get $bytes))";

void expect_same_copies(Usual& u, uint32_t bytes, const std::string& what) {
  u.fill_random(bytes);
  // Apart, and overlapping either way round.
  for (const auto& [to, from] :
       {std::pair{0u, 30000u}, {100u, 103u}, {103u, 100u}, {100u, 100u}, {1000u, 1100u}}) {
    u.expect_same({i32(70), i32(to), i32(from), i32(bytes), i32(bytes + 1)}, what);
    u.expect_same({i32(70), i32(to), i32(from), i32(bytes), i32(1)}, what);
  }
  // Up to the last byte; one too far, at once and after a while.
  u.expect_same({i32(1), i32(kPage - bytes), i32(0), i32(bytes), i32(1)}, what);
  u.expect_same({i32(1), i32(0), i32(kPage - bytes), i32(bytes), i32(1)}, what);
  EXPECT_EQ(u.plain.call("f", {i32(1), i32(kPage - bytes + 1), i32(0), i32(bytes), i32(1)}).trap,
            TrapCode::kMemoryOutOfBounds);
  u.expect_same({i32(1), i32(kPage - bytes + 1), i32(0), i32(bytes), i32(1)}, what + ", beyond");
  u.expect_same({i32(1), i32(0), i32(kPage - bytes + 1), i32(bytes), i32(1)}, what + ", beyond");
  u.expect_same({i32(300), i32(kPage - bytes - 100), i32(0), i32(bytes), i32(1)}, what + ", beyond later");
  u.expect_same({i32(3), i32(~0u), i32(0), i32(bytes), i32(1)}, what + ", far beyond");
}

TEST(UsualValues, CopiesOfAnyUsualLengthCopyAndTrapAsTheyDid) {
  for (const uint32_t bytes :
       {0u,  1u,  2u,  3u,  4u,  5u,  7u,  8u,  9u,  12u, 15u, 16u,  17u,  23u,  24u,
        31u, 32u, 33u, 40u, 47u, 48u, 63u, 64u, 65u, 96u, 97u, 127u, 200u, 255u, 256u}) {
    Usual u(bulk(kCopy), bytes);
    ASSERT_TRUE(u.site().is_applied()) << u.site().why;
    const std::string what = std::to_string(bytes) + " bytes";
    expect_same_copies(u, bytes, what);
    // And of another length than that which is usual.
    expect_same_copies(u, bytes + 1, what + " and one more");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(UsualValues, CopiesWhoseLengthChangesAreComparedWhereTheyCopy) {
  Usual u(
      bulk("(memory.copy (local.get $to) (local.get $from) (i32.and (local.get $from) (local.get $bytes)))"),
      24);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  u.fill_random(6);
  u.expect_same({i32(500), i32(40000), i32(0), i32(24), i32(8)});
  u.expect_same({i32(500), i32(40), i32(0), i32(31), i32(1)});
}

TEST(UsualValues, FillsOfAnyUsualLengthFillAndTrapAsTheyDid) {
  for (const uint32_t bytes : {0u, 1u, 3u, 8u, 11u, 16u, 24u, 33u, 64u, 100u, 256u}) {
    Usual u(bulk(kFill), bytes);
    ASSERT_TRUE(u.site().is_applied()) << u.site().why;
    const std::string what = std::to_string(bytes) + " bytes";
    for (const uint32_t length : {bytes, bytes + 1}) {
      u.fill_random(7);
      u.expect_same({i32(70), i32(100), i32(0xabcdef12), i32(length), i32(3)}, what);
      u.expect_same({i32(300), i32(kPage - length - 100), i32(0x1ff), i32(length), i32(1)},
                    what + ", beyond later");
      u.expect_same({i32(1), i32(kPage + 1), i32(1), i32(length), i32(1)}, what + ", beyond");
    }
  }
}

TEST(UsualValues, AnEmptyMemoryHasRoomForNothing) {
  Usual u(
      "(module (memory 0) (func (export \"f\") (param $n i32) (param $bytes i32) (result i32) (loop $l "
      "(memory.copy (i32.const 0) (i32.const 0) (local.get $bytes)) "
      "(br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n)))",
      16);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  EXPECT_EQ(u.hinted.call("f", {i32(10), i32(16)}).trap, TrapCode::kMemoryOutOfBounds);
  EXPECT_EQ(u.hinted.call("f", {i32(10), i32(0)}), u.plain.call("f", {i32(10), i32(0)}));
}

TEST(UsualValues, ChecksOfBoundsAreTheSameWithoutGuardPages) {
  OptimizeRequest settings;
  settings.options.bounds = BoundsChecks::kExplicit;
  for (const uint32_t bytes : {5u, 24u, 100u}) {
    Usual u(bulk(kCopy), bytes, settings);
    ASSERT_TRUE(u.site().is_applied()) << u.site().why;
    expect_same_copies(u, bytes, std::to_string(bytes));
  }
}

TEST(UsualValues, AMemoryThatGrowsHasRoomForMore) {
  Usual u(
      "(module (memory 1) (func (export \"f\") (param $n i32) (param $to i32) (param $bytes i32) (result "
      "i32) "
      "(loop $l (memory.copy (local.get $to) (i32.const 0) (local.get $bytes)) "
      "(if (i32.eq (local.get $n) (i32.const 5)) (then (drop (memory.grow (i32.const 1))) "
      "(local.set $to (i32.const 65530)))) "
      "(br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n)))",
      24);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  for (Optimized* of : {&u.hinted, &u.plain})
    EXPECT_EQ(of->call("f", {i32(10), i32(100), i32(24)}).trap, TrapCode::kNone);
}

TEST(UsualValues, AddressesOfSixtyFourBitsDoNotWrap) {
  Usual u(bulk(kCopy, "(memory i64 1)", "i64"), 24);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  u.fill_random(8);
  u.expect_same({i32(70), i64(100), i64(3000), i64(24), i64(25)});
  for (const uint64_t at :
       {uint64_t{kPage - 24}, uint64_t{kPage - 23}, ~uint64_t{0}, ~uint64_t{0} - 10, uint64_t{1} << 63}) {
    u.expect_same({i32(1), i64(at), i64(0), i64(24), i64(1)}, std::to_string(at));
    u.expect_same({i32(1), i64(0), i64(at), i64(24), i64(1)}, std::to_string(at));
  }
}

TEST(UsualValues, BranchesAndOperandsOfALoopShareItsTwoVersions) {
  const std::string text =
      divisions("i32", R"((if (result i32) (i32.lt_u (local.get $x) (i32.const 0x80000000))
      (then (i32.rem_u (local.get $x) (local.get $d)))
      (else (i32.xor (local.get $x) (local.get $sum)))))");
  Usual u(text, 97);
  ASSERT_TRUE(u.site().is_applied()) << u.site().why;
  u.fill_random(9);
  u.expect_same({i32(5000), i32(97)});
  u.expect_same({i32(5000), i32(98)});
}

}  // namespace
}  // namespace hindsight::jit::testing
