// Loops over bytes that end early, as vectors: what they compute, where they trap, and which are left alone.
#include <random>

#include "tests/fuzz/early_exit_text.h"
#include "tests/jit/optimizing/both_tiers.h"

namespace hindsight::jit::testing {
namespace {

constexpr uint32_t kMemoryEnd = 65536;  // of the memory

bool has_lanes(const std::string& dump) {
  return dump.find("<16 x i8>") != std::string::npos;
}

// As C libraries for WebAssembly have them.
constexpr const char* kStrings = R"((module (memory 1)
  (func $memcmp (export "memcmp") (param $l i32) (param $r i32) (param $n i32) (result i32) (local $a i32) (local $b i32)
    (block $equal
      (br_if $equal (i32.eqz (local.get $n)))
      (block $differ
        (loop $next
          (br_if $differ (i32.ne (local.tee $a (i32.load8_u (local.get $l))) (local.tee $b (i32.load8_u (local.get $r)))))
          (local.set $r (i32.add (local.get $r) (i32.const 1)))
          (local.set $l (i32.add (local.get $l) (i32.const 1)))
          (br_if $next (local.tee $n (i32.add (local.get $n) (i32.const -1)))))
        (br $equal))
      (return (i32.sub (local.get $a) (local.get $b))))
    (i32.const 0))
  (func (export "strcmp") (param $l i32) (param $r i32) (result i32) (local $a i32) (local $b i32)
    (block $end
      (loop $next
        (local.set $b (i32.load8_u (local.get $r)))
        (br_if $end (i32.eqz (local.tee $a (i32.load8_u (local.get $l)))))
        (local.set $r (i32.add (local.get $r) (i32.const 1)))
        (local.set $l (i32.add (local.get $l) (i32.const 1)))
        (br_if $next (i32.eq (local.get $a) (local.get $b)))))
    (i32.sub (local.get $a) (local.get $b)))
  (func (export "strlen") (param $s i32) (result i32) (local $p i32)
    (local.set $p (local.get $s))
    (block $end
      (loop $next
        (br_if $end (i32.eqz (i32.load8_u (local.get $p))))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br $next)))
    (i32.sub (local.get $p) (local.get $s)))
  (func (export "after") (param $p i32) (param $q i32) (result i32) (local $a i32)
    (block $end
      (loop $next
        (br_if $end (i32.eqz (local.tee $a (i32.load8_u (local.get $p)))))
        (br_if $end (i32.ne (local.get $a) (i32.load8_u (local.get $q))))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (local.set $q (i32.add (local.get $q) (i32.const 1)))
        (br $next)))
    (local.get $p))
  (func (export "word") (param $s i32) (result i32) (local $a i32)
    (block $end
      (loop $next
        (br_if $end (i32.eq (local.tee $a (i32.load8_u (local.get $s))) (i32.const 32)))
        (br_if $end (i32.eqz (local.get $a)))
        (local.set $s (i32.add (local.get $s) (i32.const 1)))
        (br $next)))
    (i32.or (i32.shl (local.get $s) (i32.const 8)) (local.get $a)))
  (func (export "far") (param $i i32) (result i32)
    (block $end
      (loop $next
        (br_if $end (i32.eqz (i32.load8_u offset=40 (local.get $i))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $i))
  (func (export "same12") (param $p i32) (param $q i32) (param $n i32) (result i32) (local $same i32)
    (loop $rows
      (local.set $same (i32.add (local.get $same)
        (i32.eqz (call $memcmp (local.get $p) (local.get $q) (i32.const 12)))))
      (local.set $p (i32.add (local.get $p) (i32.const 12)))
      (local.set $q (i32.add (local.get $q) (i32.const 12)))
      (br_if $rows (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $same))
  (func (export "prefix") (param $s i32) (param $p i32) (param $room i64) (param $n i32) (result i32) (local $i i64) (local $k i32)
    (block $end
      (loop $next
        (br_if $end (i64.eq (local.get $i) (local.get $room)))
        (br_if $end (i32.ne (i32.load8_u (local.get $s)) (i32.load8_u (local.get $p))))
        (local.set $s (i32.add (local.get $s) (i32.const 1)))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (local.set $i (i64.add (local.get $i) (i64.const 1)))
        (br_if $next (i32.ne (local.tee $k (i32.add (local.get $k) (i32.const 1))) (local.get $n)))))
    (i32.add (i32.mul (local.get $k) (i32.const 1000)) (i32.wrap_i64 (local.get $i))))))";

struct Strings : BothTiers {
  Strings() : BothTiers(kStrings) {}
  void put(uint32_t at, uint32_t bytes, uint8_t value) {
    std::memset(optimized.instance->memory() + at, value, bytes);
    std::memset(baseline->memory() + at, value, bytes);
  }
  // Of the optimized tier, after a comparison with the other one.
  Outcome same(const char* name, const std::vector<Value>& arguments) {
    std::string words = name;
    for (const Value& argument : arguments) words += " " + std::to_string(argument.bits);
    expect_same(name, arguments, words);
    return optimized.call(name, arguments);
  }
};

TEST(EarlyExits, AreFoundInVectorsOfBytes) {
  Optimized m(kStrings, BothTiers::with_dump(BoundsChecks::kGuardPages));
  for (const char* const name : {"memcmp", "strcmp", "strlen", "after", "word", "far", "prefix"}) {
    m.compile(name);
    EXPECT_TRUE(has_lanes(m.dump)) << name;
  }
}

TEST(EarlyExits, OfAConstantLengthThatIsCalledInALoopAreInPlaceAndVectors) {
  Optimized compiled(kStrings, BothTiers::with_dump(BoundsChecks::kGuardPages));
  compiled.compile("same12");
  EXPECT_TRUE(has_lanes(compiled.dump));
  EXPECT_EQ(compiled.versions.back()->inlined.size(), 1u);
  Strings m;
  for (uint32_t difference = 0; difference <= 12; ++difference) {
    for (const uint32_t at : {1000u, 4096u - 30, 4096u - 5, kMemoryEnd - 36}) {
      m.put(at, 36, 'a');
      m.put(20001, 36, 'a');
      if (difference < 12) m.put(20013 + difference, 1, 'b');
      EXPECT_EQ(m.same("same12", {i32(at), i32(20001), i32(3)}), returns({i32(difference < 12 ? 2 : 3)}));
    }
  }
}

TEST(EarlyExits, AreFoundWhereverTheFirstDifferenceIs) {
  Strings m;
  for (const uint32_t length : {1u, 2u, 3u, 4u, 7u, 15u, 16u, 17u, 18u, 19u, 20u, 34u, 35u, 36u, 70u}) {
    for (const uint32_t at : {1000u, 4096u - 20, 4096u - 3, 4096u, 8192u - 33}) {
      m.put(at, 100, 'a');
      m.put(20001, 100, 'a');
      for (uint32_t difference = 0; difference <= length; ++difference) {
        m.put(20001 + difference, 1, 'b');
        EXPECT_EQ(m.same("memcmp", {i32(at), i32(20001), i32(length)}),
                  returns({i32(difference < length ? -1u : 0)}));
        m.put(20001 + difference, 1, 0);
        m.same("strcmp", {i32(at), i32(20001)});
        m.same("strcmp", {i32(20001), i32(at)});
        m.same("after", {i32(20001), i32(at)});
        EXPECT_EQ(m.same("strlen", {i32(20001)}), returns({i32(difference)}));
        m.same("word", {i32(20001)});
        m.put(20001 + difference, 1, ' ');
        m.same("word", {i32(20001)});
        m.put(20001 + difference, 1, 'a');
      }
    }
  }
}

TEST(EarlyExits, EndByWhicheverOfTwoCountsIsFirstAlsoIfTheyHaveNotAsManyBits) {
  Strings m;
  m.put(1000, 100, 'a');
  m.put(20001, 100, 'a');
  for (const uint32_t difference : {0u, 5u, 21u, 99u}) {
    m.put(20001 + difference, 1, 'b');
    for (const uint32_t room : {0u, 1u, 2u, 3u, 7u, 19u, 20u, 40u, 90u}) {
      for (const uint32_t length : {1u, 2u, 3u, 4u, 8u, 20u, 21u, 41u, 91u}) {
        const uint32_t turns = std::min({difference, room, length});
        EXPECT_EQ(m.same("prefix", {i32(1000), i32(20001), i64(room), i32(length)}),
                  returns({i32(turns * 1001)}));
      }
    }
    m.put(20001 + difference, 1, 'a');
  }
}

TEST(EarlyExits, TrapWhereTheLoopWouldRunOutOfMemoryAndNotBefore) {
  Strings m;
  const Outcome out_of_bounds = traps(TrapCode::kMemoryOutOfBounds);
  for (uint32_t length = 0; length < 40; ++length) {
    const uint32_t begin = kMemoryEnd - length;
    m.put(begin, length, 'a');
    m.put(10000, 100, 'a');
    EXPECT_EQ(m.same("strlen", {i32(begin)}), out_of_bounds);
    EXPECT_EQ(m.same("memcmp", {i32(begin), i32(10000), i32(length)}), returns({i32(0)}));
    EXPECT_EQ(m.same("memcmp", {i32(10000), i32(begin), i32(length + 1)}), out_of_bounds);
    EXPECT_EQ(m.same("strcmp", {i32(begin), i32(10000)}), out_of_bounds);
    if (length == 0) continue;
    m.put(kMemoryEnd - 1, 1, 'b');
    EXPECT_EQ(m.same("memcmp", {i32(begin), i32(10000), i32(99)}), returns({i32(1)}));
    EXPECT_EQ(m.same("strcmp", {i32(10000), i32(begin)}), returns({i32(-1u)}));
    m.put(kMemoryEnd - 1, 1, 0);
    EXPECT_EQ(m.same("strlen", {i32(begin)}), returns({i32(length - 1)}));
  }
}

TEST(EarlyExits, DoNotLoadWhatComesAfterAnEndInTheSameIteration) {
  Strings m;
  for (uint32_t length = 1; length < 40; ++length) {
    // The first string ends where the second one would be outside of memory.
    m.put(10000, 100, 'a');
    m.put(10000 + length, 1, 0);
    m.put(kMemoryEnd - length, length, 'a');
    EXPECT_EQ(m.same("after", {i32(10000), i32(kMemoryEnd - length)}), returns({i32(10000 + length)}));
    m.put(10000 + length, 1, 'a');
    EXPECT_EQ(m.same("after", {i32(10000), i32(kMemoryEnd - length)}), traps(TrapCode::kMemoryOutOfBounds));
  }
}

TEST(EarlyExits, OfIndicesThatWrapAreThoseOfTheWrappedOnes) {
  Strings m;
  m.put(0, kMemoryEnd, 'a');
  m.put(50, 1, 0);
  for (uint32_t before = 0; before < 45; ++before) {
    m.same("far", {i32(0u - before)});  // with the offset it is in memory only after it has wrapped
    m.same("strlen", {i32(0u - before)});
  }
  EXPECT_EQ(m.same("far", {i32(0)}), returns({i32(10)}));
  EXPECT_EQ(m.same("far", {i32(0u - 1)}), traps(TrapCode::kMemoryOutOfBounds));
}

TEST(EarlyExits, OfLoopsThatDoMoreThanLookAreLeftAlone) {
  // One stores, one sums what it passes, one goes by twos.
  Optimized m(R"((module (memory 1)
    (func (export "stores") (param $p i32) (result i32) (local $a i32)
      (block $end (loop $next
        (br_if $end (i32.eqz (local.tee $a (i32.load8_u (local.get $p)))))
        (i32.store8 offset=1000 (local.get $p) (local.get $a))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br $next)))
      (local.get $p))
    (func (export "sums") (param $p i32) (result i32) (local $a i32) (local $s i32)
      (block $end (loop $next
        (br_if $end (i32.eqz (local.tee $a (i32.load8_u (local.get $p)))))
        (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 31)) (local.get $a)))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br $next)))
      (local.get $s))
    (func (export "twos") (param $p i32) (result i32)
      (block $end (loop $next
        (br_if $end (i32.eqz (i32.load8_u (local.get $p))))
        (local.set $p (i32.add (local.get $p) (i32.const 2)))
        (br $next)))
      (local.get $p))))",
              BothTiers::with_dump(BoundsChecks::kGuardPages));
  for (const char* const name : {"stores", "sums", "twos"}) {
    m.compile(name);
    EXPECT_FALSE(has_lanes(m.dump)) << name;
  }
}

class EarlyExitShapes : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, EarlyExitShapes, ::testing::Range(0u, 8u));

TEST_P(EarlyExitShapes, ComputeWhatBaselineCodeComputes) {
  size_t in_lanes = 0;
  for (uint32_t seed = 1000 * GetParam(); seed < 1000 * GetParam() + 30; ++seed) {
    const std::string text = fuzz::EarlyExitText(seed).make();
    BothTiers tiers(text, seed % 4 == 0 ? BoundsChecks::kExplicit : BoundsChecks::kGuardPages);
    std::mt19937 random(seed);
    for (uint32_t turn = 0; turn < 60; ++turn) {
      for (uint32_t byte = 0; byte < kMemoryEnd; ++byte)
        tiers.optimized.instance->memory()[byte] = tiers.baseline->memory()[byte] =
            static_cast<uint8_t>(random());
      // Anywhere, before a page's end, and before memory's.
      const auto place = [&] {
        const uint32_t within = static_cast<uint32_t>(random() % 60);
        return turn % 3 == 0 ? 30000 + within : (turn % 3 == 1 ? 40960 : kMemoryEnd) - within;
      };
      const std::vector<Value> arguments{i32(place()), i32(place()), i32(100), i32(0),
                                         i32(static_cast<uint32_t>(random() % (turn % 2 == 0 ? 400 : 24)))};
      tiers.expect_same("f", arguments,
                        "seed " + std::to_string(seed) + " turn " + std::to_string(turn) + text);
      if (::testing::Test::HasFailure()) return;
    }
    in_lanes += has_lanes(tiers.optimized.dump) ? 1 : 0;
  }
  EXPECT_GT(in_lanes, 3u) << "little was tested";
}

}  // namespace
}  // namespace hindsight::jit::testing
