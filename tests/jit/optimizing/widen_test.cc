// Loops made for vectors: what is made of loops as compilers unroll them. Whatever is made of loops of all shapes
// computes what baseline code computes.
#include <algorithm>
#include <random>

#include "tests/fuzz/loop_text.h"
#include "tests/jit/optimizing/both_tiers.h"

namespace hindsight::jit::testing {
namespace {

bool has_wide_vectors(const std::string& dump) {
  return dump.find("%ymm") != std::string::npos || dump.find("%zmm") != std::string::npos;
}

// y[i] += a * x[i], unrolled by two, with addresses that wrap and a count that only the compiler knew to be
// even.
constexpr const char* kUnrolled = R"((module (memory 1)
  (func (export "axpy") (param $a f32) (param $x i32) (param $y i32) (param $n i32)
    (loop $l
      (f32.store (local.get $y)
        (f32.add (f32.load (local.get $y)) (f32.mul (local.get $a) (f32.load (local.get $x)))))
      (f32.store (i32.add (local.get $y) (i32.const 4))
        (f32.add (f32.load (i32.add (local.get $y) (i32.const 4)))
                 (f32.mul (local.get $a) (f32.load (i32.add (local.get $x) (i32.const 4))))))
      (local.set $x (i32.add (local.get $x) (i32.const 8)))
      (local.set $y (i32.add (local.get $y) (i32.const 8)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 2))))))
  (func (export "sum") (param $p i32) (param $n i32) (result i32) (local $s i32)
    (loop $l
      (local.set $s (i32.add (i32.add (i32.load8_u (local.get $p)) (local.get $s))
                             (i32.load8_u (i32.add (local.get $p) (i32.const 1)))))
      (local.set $p (i32.add (local.get $p) (i32.const 2)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 2)))))
    (local.get $s))))";

TEST(Widening, LoopsWhoseArraysOverlapComputeOneElementAfterTheOther) {
  Optimized m(kUnrolled);
  auto* floats = reinterpret_cast<float*>(m.instance->memory());
  for (const uint32_t distance : {1u, 2u, 3u, 7u, 8u, 31u, 64u}) {
    std::vector<float> expected(300);
    for (uint32_t i = 0; i < 300; ++i) floats[i] = expected[i] = static_cast<float>(i % 7);
    for (uint32_t i = 0; i < 200; ++i) expected[i + distance] += 0.5f * expected[i];
    m.call("axpy", {f32(0.5f), i32(0), i32(4 * distance), i32(200)});
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), floats)) << distance;
  }
}

TEST(Widening, IndicesThatWrapTrapAsTheyDidInOneLoop) {
  Optimized m(kUnrolled);
  EXPECT_EQ(m.call("sum", {i32(0xffffff00), i32(512)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("sum", {i32(65000), i32(65536)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("sum", {i32(0), i32(3)}), traps(TrapCode::kMemoryOutOfBounds))
      << "an odd count never ends";
}

// The second loop begins where the first has ended: LLVM computes that from values of the first.
struct LoopsInARow {
  const char* words;
  const char* first;  // loops of $i
  const char* second;
};
constexpr LoopsInARow kInARow[] = {
    {"two words are copied an iteration, and summed up from there on", R"(
      (loop $a
        (i32.store (i32.add (local.get $p) (i32.shl (local.get $i) (i32.const 2)))
          (i32.load offset=4100 (i32.add (local.get $p) (i32.shl (local.get $i) (i32.const 2)))))
        (i32.store offset=4 (i32.add (local.get $p) (i32.shl (local.get $i) (i32.const 2)))
          (i32.load offset=4104 (i32.add (local.get $p) (i32.shl (local.get $i) (i32.const 2)))))
        (local.set $i (i32.add (local.get $i) (i32.const 2)))
        (br_if $a (local.tee $m (i32.sub (local.get $m) (i32.const 2))))))",
     R"(
      (local.set $n (i32.add (local.get $i) (local.get $n)))
      (loop $b
        (local.set $s (i32.add (local.get $s)
          (i32.load offset=4 (i32.add (local.get $q) (i32.shl (local.get $i) (i32.const 2))))))
        (local.set $s (i32.add (local.get $s)
          (i32.load offset=8 (i32.add (local.get $q) (i32.shl (local.get $i) (i32.const 2))))))
        (br_if $b (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 2))) (local.get $n)))))"},
    {"vectors are added to, and more of them from there on", R"(
      (loop $a
        (v128.store (local.get $p) (i32x4.add (v128.load (local.get $p)) (v128.const i32x4 1 2 3 4)))
        (local.set $p (i32.add (local.get $p) (i32.const 16)))
        (local.set $i (i32.add (local.get $i) (i32.const 2)))
        (br_if $a (local.tee $m (i32.sub (local.get $m) (i32.const 2))))))",
     R"(
      (loop $b
        (v128.store (i32.add (local.get $q) (i32.shl (local.get $i) (i32.const 4)))
          (i32x4.add (v128.load (i32.add (local.get $q) (i32.shl (local.get $i) (i32.const 4))))
                     (v128.const i32x4 5 6 7 8)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $b (local.tee $n (i32.sub (local.get $n) (i32.const 2))))))"},
};

TEST(Widening, LoopsThatBeginWhereTheOneBeforeHasEndedComputeWhatBaselineCodeComputes) {
  for (const LoopsInARow& loops : kInARow) {
    BothTiers both(std::string(R"((module (memory 1)
      (func (export "fill") (local $i i32)
        (loop $l (i32.store (local.get $i) (i32.mul (local.get $i) (i32.const 77773)))
          (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 65536)))))
      (func (export "f") (param $p i32) (param $q i32) (param $m i32) (param $n i32) (result i32)
        (local $i i32) (local $s i32))") +
                   loops.first + loops.second + "(local.get $s)))");
    both.expect_same("fill", {}, loops.words);
    for (const auto& [m, n] : {std::pair{16, 96}, {64, 96}, {2, 2}, {40, 400}})
      both.expect_same("f", {i32(64), i32(16384), i32(m), i32(n)}, loops.words);
  }
}

class LoopShapes : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, LoopShapes, ::testing::Range(0u, 8u));

// A loop that was unrolled, and stores values made of an induction variable with other steps than the places.
struct StoredInduction {
  const char* what;
  const char* type;  // of what is stored
  uint32_t bytes;
  int64_t step;                     // of $i, once for all copies
  std::vector<std::string> copies;  // what each stores, of $i
  uint32_t begin = 0;               // of $i
  uint32_t turns = 0;               // known to the compiler; 0: as many as it is called with
};

std::string text_of(const StoredInduction& loop) {
  const std::string bytes = std::to_string(loop.bytes), all = std::to_string(loop.bytes * loop.copies.size());
  std::string text =
      "(module (memory 1) (func (export \"f\") (param $n i32) (result i32) (local $i i32) (local $q i32)"
      " (local.set $i (i32.const " +
      std::to_string(loop.begin) + "))";
  if (loop.turns != 0) text += " (local.set $n (i32.const " + std::to_string(loop.turns) + "))";
  text += " (loop $l";
  for (size_t copy = 0; copy < loop.copies.size(); ++copy)
    text += std::string(" (") + loop.type + " offset=" + std::to_string(1024 + loop.bytes * copy) +
            " (local.get $q) " + loop.copies[copy] + ")";
  text += " (local.set $q (i32.add (local.get $q) (i32.const " + all +
          ")))"
          " (local.set $i (i32.add (local.get $i) (i32.const " +
          std::to_string(loop.step) +
          ")))"
          " (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $i)))";
  return text;
}

std::string plus(const std::string& value, int64_t addend) {
  return "(i32.add " + value + " (i32.const " + std::to_string(addend) + "))";
}

TEST(Widening, WhatAdvancesWithTheCopiesOfABodyIsRightInEachOfThem) {
  const std::string i = "(local.get $i)";
  const auto wide = [](const std::string& value, const char* how) {
    return "(i64." + std::string(how) + " " + value + ")";
  };
  const auto wide_plus = [&](const char* how, int64_t addend) {
    return "(i64.add " + wide("(local.get $i)", how) + " (i64.const " + std::to_string(addend) + "))";
  };
  const StoredInduction loops[] = {
      // LLVM writes i + 1 as `or disjoint i, 1` where it knows i to be even.
      {"i+1, i+2", "i32.store", 4, 2, {plus(i, 1), plus(i, 2)}},
      {"i+3, i+5", "i32.store", 4, 4, {plus(i, 3), plus(i, 5)}},
      {"i+2, i+4", "i32.store", 4, 4, {plus(i, 2), plus(i, 4)}},
      {"four", "i32.store", 4, 4, {plus(i, 1), plus(i, 2), plus(i, 3), plus(i, 4)}},
      {"bytes", "i32.store8", 1, 4, {plus(i, 1), plus(i, 2), plus(i, 3), plus(i, 4)}},
      {"halves", "i32.store16", 2, 8, {plus(i, 7), plus(i, 9), plus(i, 11), plus(i, 13)}},
      {"backwards", "i32.store", 4, -4, {plus(i, 3), plus(i, 1)}, 1 << 20},
      {"i|1, i+2", "i32.store", 4, 2, {"(i32.or (local.get $i) (i32.const 1))", plus(i, 2)}},
      {"i^1, i+3", "i32.store", 4, 4, {"(i32.xor (local.get $i) (i32.const 1))", plus(i, 3)}},
      {"i+8-1", "i32.store", 4, 8, {"(i32.or (i32.const 5) (local.get $i))", plus(i, 9)}},
      {"shifted",
       "i32.store",
       4,
       2,
       {"(i32.or (i32.shl (local.get $i) (i32.const 2)) (i32.const 1))",
        "(i32.add (i32.shl (local.get $i) (i32.const 2)) (i32.const 5))"}},
      {"halved",
       "i32.store",
       4,
       2,
       {"(i32.shr_u (local.get $i) (i32.const 1))",
        "(i32.add (i32.shr_u (local.get $i) (i32.const 1)) (i32.const 1))"}},
      {"masked", "i32.store", 4, 4, {"(i32.and (local.get $i) (i32.const -2))", plus(i, 2)}},
      {"divided",
       "i32.store",
       4,
       4,
       {"(i32.div_u (local.get $i) (i32.const 4))",
        "(i32.div_u (i32.add (local.get $i) (i32.const 2)) (i32.const 4))"}},
      // Extended, values advance evenly until the narrow one wraps: which the last copy's does, but no first one's.
      {"extended",
       "i64.store",
       8,
       2,
       {wide_plus("extend_i32_u", 0), wide_plus("extend_i32_u", 1)},
       0xffffffffu - 2 * 99,
       100},
      {"extended with a sign",
       "i64.store",
       8,
       2,
       {wide_plus("extend_i32_s", 0), wide_plus("extend_i32_s", 1)},
       0x7fffffffu - 2 * 99,
       100},
      {"extended from odd to odd",
       "i64.store",
       8,
       4,
       {wide_plus("extend_i32_u", 2), wide_plus("extend_i32_u", 4)},
       1,
       100},
      {"extended within",
       "i64.store",
       8,
       2,
       {wide_plus("extend_i32_u", 1), wide(plus(i, 2), "extend_i32_u")}},
      {"narrowed",
       "i64.store32",
       4,
       2,
       {wide_plus("extend_i32_u", 1), wide_plus("extend_i32_u", 2)},
       0xffffff00u},
      {"signed bytes",
       "i32.store",
       4,
       2,
       {"(i32.extend8_s (local.get $i))", "(i32.extend8_s (i32.add (local.get $i) (i32.const 1)))"}},
  };
  const bool avx = optimizer().description().find("avx") != std::string::npos;
  for (const StoredInduction& loop : loops) {
    BothTiers tiers(text_of(loop));
    for (const uint32_t n : {1u, 2u, 7u, 16u, 17u, 100u, 256u})
      tiers.expect_same("f", {i32(n)}, std::string(loop.what) + ", " + std::to_string(n));
    if (avx) {
      EXPECT_TRUE(has_wide_vectors(tiers.optimized.dump)) << loop.what;
    }
  }
}

TEST(Widening, WhatAdvancesIsRightInSumsOverTheCopiesOfABody) {
  // s ^= a[i] * (i + 1), and what is carried to the next iteration is an induction that was an `or`.
  BothTiers tiers(R"((module (memory 1)
    (func (export "joined") (param $n i32) (result i32) (local $i i32) (local $s i32) (local $p i32)
      (loop $l
        (local.set $s (i32.xor (local.get $s)
          (i32.mul (i32.load offset=1024 (local.get $p)) (i32.add (local.get $i) (i32.const 1)))))
        (local.set $s (i32.xor (local.get $s)
          (i32.mul (i32.load offset=1028 (local.get $p)) (i32.add (local.get $i) (i32.const 2)))))
        (local.set $p (i32.add (local.get $p) (i32.const 8)))
        (local.set $i (i32.add (local.get $i) (i32.const 2)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $s))
    (func (export "itself") (param $n i32) (result i32) (local $i i32) (local $s i32) (local $p i32)
      (loop $l
        (i32.store offset=1024 (local.get $p) (i32.const 7))
        (i32.store offset=1028 (local.get $p) (i32.const 7))
        (local.set $s (i32.xor (local.get $s) (i32.add (local.get $i) (i32.const 3))))
        (local.set $s (i32.xor (local.get $s) (i32.add (local.get $i) (i32.const 5))))
        (local.set $p (i32.add (local.get $p) (i32.const 8)))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $s))
    (func (export "before") (param $n i32) (result i32) (local $i i32) (local $before i32) (local $p i32)
      (local.set $before (i32.const 77))
      (loop $l
        (i32.store offset=1024 (local.get $p) (local.get $before))
        (i32.store offset=1028 (local.get $p) (i32.add (local.get $i) (i32.const 1)))
        (local.set $before (i32.add (local.get $i) (i32.const 3)))
        (local.set $p (i32.add (local.get $p) (i32.const 8)))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $before))))");
  for (uint32_t byte = 0; byte < 65536; ++byte)
    tiers.optimized.instance->memory()[byte] = tiers.baseline->memory()[byte] =
        static_cast<uint8_t>(byte * 37 >> 3);
  for (const char* name : {"joined", "itself", "before"})
    for (const uint32_t n : {1u, 5u, 16u, 33u, 500u})
      tiers.expect_same(name, {i32(n)}, std::string(name) + ", " + std::to_string(n));
}

// How many of these loops have become vectors of 256 bits.
template <typename Text>
size_t compare_with_baseline(uint32_t first_seed, uint32_t loops) {
  size_t vectorized = 0;
  for (uint32_t seed = first_seed; seed < first_seed + loops; ++seed) {
    const std::string text = Text(seed).make();
    BothTiers tiers(text);
    std::mt19937 random(seed);
    for (const uint32_t n : {0u, 1u, 2u, 5u, 15u, 16u, 17u, 40u, 100u, 257u}) {
      for (uint32_t byte = 0; byte < 65536; ++byte)
        tiers.optimized.instance->memory()[byte] = tiers.baseline->memory()[byte] =
            static_cast<uint8_t>(random());
      // Apart, a little apart, and the same.
      const uint32_t spread = n % 3 == 0 ? 12000 : n % 3 == 1 ? 4 * (random() % 64) : 0;
      std::vector<Value> arguments;
      for (uint32_t array = 0; array < 4; ++array) arguments.push_back(i32(8400 + array * spread));
      arguments.push_back(i32(n));
      tiers.expect_same("f", arguments, "seed " + std::to_string(seed) + " n " + std::to_string(n) + text);
      if (::testing::Test::HasFailure()) return vectorized;
    }
    vectorized += has_wide_vectors(tiers.optimized.dump) ? 1 : 0;
  }
  return vectorized;
}

TEST_P(LoopShapes, ComputeWhatBaselineCodeComputes) {
  EXPECT_GT(compare_with_baseline<fuzz::LoopText>(1000 * GetParam(), 20), 0u) << "nothing was tested";
}

TEST_P(LoopShapes, OfVectorsComputeWhatBaselineCodeComputes) {
  EXPECT_GT(compare_with_baseline<fuzz::VectorLoopText>(1000 * GetParam(), 20), 0u) << "nothing was tested";
}

}  // namespace
}  // namespace hindsight::jit::testing
