// Loops in strips: the same answers whichever copy runs, and a copy without prefetch that lost nothing.
#include <cstring>

#include "tests/jit/optimizing/hinted.h"

namespace hindsight::jit::testing {
namespace {

constexpr uint32_t kStrip = 4096;
constexpr uint32_t kA = 16384;  // first word of a; b is at 0
constexpr uint32_t kMost = 3 * kStrip + 7;

// What strip_ended does in these tests: the other copy's turn, every time; and what it was told.
std::vector<int64_t> told;
void take_turns(VmContext*, LoopCell* cell) {
  told.push_back(int64_t{cell->strip_length} - 1 - cell->countdown);
  cell->enabled ^= 1;
  cell->countdown = static_cast<int32_t>(cell->strip_length) - 1;
}

Hinted with_turns(std::string_view wat, uint32_t load, bool osr = false) {
  Hinted h(wat, "f", {load}, osr);
  h.optimized.instance->builtins().strip_ended = take_turns;
  auto* words = reinterpret_cast<uint32_t*>(h.optimized.instance->memory());
  for (uint32_t i = 0; i < kMost; ++i) words[i] = (i * 7919) % 16384;
  for (uint32_t i = 0; i < 16384; ++i) words[kA + i] = i * 2654435761u;
  for (auto& cell : h.version->loop_cells) cell->countdown = static_cast<int32_t>(cell->strip_length) - 1;
  told.clear();
  return h;
}

uint32_t b_of(uint32_t i) {
  return (i * 7919) % 16384;
}
uint32_t a_of(uint32_t i) {
  return b_of(i) * 2654435761u;
}

constexpr uint32_t kTrips[] = {0, 1, 2, 63, kStrip - 1, kStrip, kStrip + 1, 2 * kStrip, kMost};

// `step` is one iteration; $i counts from 0 to below $n.
std::string counted(std::string_view locals, std::string_view step, std::string_view result) {
  return "(module (memory 4) (func (export \"f\") (param $n i32) (result i32) (local $i i32) (local $v "
         "i32) " +
         std::string(locals) + "(block $out (br_if $out (i32.eqz (local.get $n))) (loop $l " +
         std::string(step) +
         " (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))) " +
         std::string(result) + "))";
}
constexpr const char* kGathered =
    "(i32.load offset=65536 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))";

TEST(Strips, SumsGoFromStripToStripInEitherCopy) {
  Hinted h = with_turns(counted("(local $sum i32)",
                                "(local.set $sum (i32.add (local.get $sum) " + std::string(kGathered) + "))",
                                "(local.get $sum)"),
                        1);
  ASSERT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  for (uint32_t n : kTrips) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; ++i) sum += a_of(i);
    for (uint32_t round = 0; round < 3; ++round)
      EXPECT_EQ(h.optimized.call("f", {i32(n)}), returns({i32(sum)})) << n << " iterations";
    for (uint32_t enabled : {0u, 1u}) {
      h.version->loop_cells[0]->enabled = enabled;
      EXPECT_EQ(h.optimized.call("f", {i32(n)}), returns({i32(sum)})) << n << " iterations, " << enabled;
    }
  }
  EXPECT_GT(told.size(), 20u);
}

TEST(Strips, TheLastIterationsValuesLeaveTheLoop) {
  // Not sums: the previous value, the last one, a float that must be added in order, a branch in the body.
  const std::string step =
      "(local.set $before (local.get $v)) (local.set $v " + std::string(kGathered) +
      ") (local.set $f (f32.add (f32.mul (local.get $f) (f32.const 0.5)) "
      "(f32.convert_i32_u (local.get $v)))) "
      "(if (i32.and (local.get $v) (i32.const 4)) (then "
      "(local.set $odd (i32.xor (local.get $odd) (i32.add (local.get $i) (local.get $v))))))";
  Hinted h =
      with_turns(counted("(local $before i32) (local $odd i32) (local $f f32)", step,
                         "(i32.xor (i32.xor (local.get $before) (i32.rotl (local.get $v) (i32.const 5))) "
                         "(i32.xor (i32.rotl (local.get $odd) (i32.const 11)) (i32.xor (local.get $i) "
                         "(i32.reinterpret_f32 (local.get $f)))))"),
                 1);
  ASSERT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  for (uint32_t n : kTrips) {
    uint32_t before = 0, v = 0, odd = 0;
    float f = 0;
    for (uint32_t i = 0; i < n; ++i) {
      before = v;
      v = a_of(i);
      f = f * 0.5f + static_cast<float>(v);
      if (v & 4) odd ^= i + v;
    }
    uint32_t bits = 0;
    std::memcpy(&bits, &f, 4);
    const uint32_t expected = (before ^ std::rotl(v, 5)) ^ (std::rotl(odd, 11) ^ (n ^ bits));
    for (uint32_t round = 0; round < 3; ++round)
      EXPECT_EQ(h.optimized.call("f", {i32(n)}), returns({i32(expected)})) << n << " iterations";
  }
}

TEST(Strips, StoresHappenOnceInOrder) {
  // Counts backwards; the words after a are the histogram.
  Hinted h = with_turns(
      R"((module (memory 4) (func (export "f") (param $n i32) (result i32) (local $p i32) (local $sum i32)
    (block $out (br_if $out (i32.eqz (local.get $n)))
    (loop $l
      (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.load (i32.shl (local.tee $n
        (i32.sub (local.get $n) (i32.const 1))) (i32.const 2))) (i32.const 1023)) (i32.const 2))))
      (i32.store (local.get $p) (i32.add (i32.const 1)
        (i32.add (i32.mul (i32.const 3) (local.tee $sum (i32.load (local.get $p)))) (local.get $n))))
      (br_if $l (local.get $n))))
    (local.get $sum))))",
      1);
  ASSERT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  auto* histogram = reinterpret_cast<uint32_t*>(h.optimized.instance->memory() + 131072);
  for (uint32_t n : kTrips) {
    for (uint32_t round = 0; round < 2; ++round) {
      std::memset(histogram, 0, 4096);
      std::vector<uint32_t> expected(1024);
      uint32_t sum = 0;
      for (uint32_t i = n; i-- > 0;) {
        uint32_t& bin = expected[b_of(i) & 1023];
        sum = bin;
        bin = 1 + 3 * sum + i;
      }
      EXPECT_EQ(h.optimized.call("f", {i32(n)}), returns({i32(sum)})) << n << " iterations";
      EXPECT_EQ(std::memcmp(histogram, expected.data(), 4096), 0) << n << " iterations";
    }
  }
}

TEST(Strips, TheTrialIsToldEveryIterationOnce) {
  Hinted h = with_turns(counted("(local $sum i32)",
                                "(local.set $sum (i32.add (local.get $sum) " + std::string(kGathered) + "))",
                                "(local.get $sum)"),
                        1);
  LoopCell& cell = *h.version->loop_cells[0];
  uint64_t iterations = 0;
  for (uint32_t length : {1u, 1024u, 5000u, 1u << 20}) {
    cell.strip_length = length;
    cell.countdown = static_cast<int32_t>(length) - 1;
    told.clear();
    iterations = 0;
    for (uint32_t n : {kMost, 1u, 700u, kMost, kMost}) {
      h.optimized.call("f", {i32(n)});
      iterations += n;
    }
    int64_t sum = int64_t{cell.strip_length} - 1 - cell.countdown;  // not yet told
    for (int64_t strip : told) {
      sum += strip;
      EXPECT_GE(strip, length);
      EXPECT_LT(strip, int64_t{length} + kStrip);
    }
    EXPECT_EQ(sum, static_cast<int64_t>(iterations)) << "strips of " << length;
  }
}

// 28 operations on a gathered word: worth vectors.
std::string heavy_gather() {
  std::string value = kGathered;
  for (uint32_t i = 0; i < 7; ++i)
    value = "(i32.add (i32.mul (i32.xor " + value + " (i32.const " + std::to_string(0x1234 * i + 77) +
            ")) (i32.const " + std::to_string(2 * i + 0x9e3779b1u % 1000) +
            ")) (i32.rotl (local.get $i) (i32.const " + std::to_string(i + 1) + ")))";
  return counted("(local $sum i32)", "(local.set $sum (i32.add (local.get $sum) " + value + "))",
                 "(local.get $sum)");
}

bool has_vectors(const std::string& dump) {
  return dump.find(" x i32>") != std::string::npos;
}

TEST(Strips, TheCopyWithoutPrefetchIsVectorizedLikeTheLoop) {
  Optimized plain(heavy_gather());
  plain.request.dump_ir = true;
  plain.compile("f");
  if (!has_vectors(plain.dump)) GTEST_SKIP() << "this processor's vectors do not pay for a gather";
  Hinted h = with_turns(heavy_gather(), 1);
  ASSERT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  EXPECT_TRUE(has_vectors(h.optimized.dump));
  for (uint32_t n : kTrips)
    for (uint32_t round = 0; round < 3; ++round) {
      h.version->loop_cells[0]->enabled = round & 1;
      uint32_t sum = 0;
      for (uint32_t i = 0; i < n; ++i) {
        uint32_t value = a_of(i);
        for (uint32_t k = 0; k < 7; ++k)
          value = (value ^ (0x1234 * k + 77)) * (2 * k + 0x9e3779b1u % 1000) +
                  std::rotl(i, static_cast<int>(k + 1));
        sum += value;
      }
      EXPECT_EQ(h.optimized.call("f", {i32(n)}), returns({i32(sum)})) << n << " iterations";
    }
}

TEST(Strips, CountersThatGoByMoreThanOneAreCounted) {
  // `while ((m += step) != end)`, with steps that divide the way, after a turn around 2^32 or without.
  struct Way {
    int32_t step;
    uint32_t start, end;
  };
  const uint32_t odd_way = 12345 * 3 * 4;
  for (const auto [step, start, end] :
       {Way{2, 10, 20010}, Way{-2, 20010, 10}, Way{-8, 80000, 0}, Way{12, 0, odd_way}, Way{-12, odd_way, 0},
        Way{24, 0xfffffff8, 23976 - 8}}) {
    uint64_t trips = 0;
    uint32_t at = start;
    do {
      ++trips;
      at += static_cast<uint32_t>(step);
    } while (at != end);
    Hinted h = with_turns(
        R"((module (memory 4) (func (export "f") (param $m i32) (param $end i32) (result i32) (local $i i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (i32.and (i32.const 65532)
           (i32.load (i32.and (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 16380)))))))
        (br_if $l (i32.ne (local.get $end) (local.tee $m (i32.add (local.get $m) (i32.const )" +
            std::to_string(step) + R"())))))
      (i32.add (local.get $sum) (local.get $m)))))",
        1);
    ASSERT_TRUE(h.version->answers[0].is_applied()) << h.sites();
    uint32_t sum = end;
    for (uint64_t i = 0; i < trips; ++i) {
      const uint32_t b = b_of(static_cast<uint32_t>((i + 1) & 4095));
      sum += ((b & 65532) / 4) * 2654435761u;
    }
    for (uint32_t round = 0; round < 3; ++round)
      EXPECT_EQ(h.optimized.call("f", {i32(start), i32(end)}), returns({i32(sum)})) << step;
  }
}

TEST(Strips, ALoopThatMissesItsEndRunsOnUntilItTraps) {
  // The counter steps over zero; the address leaves memory some time later.
  Hinted h = with_turns(
      R"((module (memory 4) (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (i32.shl (i32.load (local.get $i)) (i32.const 2)))))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 2)))))
      (local.get $sum))))",
      1);
  ASSERT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  std::memset(h.optimized.instance->memory() + 65536, 0, 3 * 65536);
  for (uint32_t round = 0; round < 3; ++round) {
    EXPECT_EQ(h.optimized.call("f", {i32(13)}), traps(TrapCode::kMemoryOutOfBounds));
    EXPECT_NE(h.optimized.call("f", {i32(12)}), traps(TrapCode::kMemoryOutOfBounds));
  }
}

TEST(Strips, InnerLoopsOfARowEachAreStripsToo) {
  // Rows of 8, a length that only memory knows.
  Hinted h = with_turns(R"((module (memory 4) (func (export "f") (param $n i32) (result i32)
      (local $i i32) (local $end i32) (local $row i32) (local $sum i32)
    (block $out (br_if $out (i32.lt_u (local.get $n) (i32.const 8)))
    (loop $rows
      (local.set $row (i32.const 0))
      (local.set $end (i32.add (local.get $i) (i32.load (i32.const 262140))))
      (loop $l
        (local.set $row (i32.add (i32.mul (local.get $row) (i32.const 31))
          (i32.load offset=65536 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $end))))
      (local.set $sum (i32.xor (i32.rotl (local.get $sum) (i32.const 1)) (local.get $row)))
      (br_if $rows (i32.le_u (i32.add (local.get $i) (i32.const 8)) (local.get $n)))))
    (local.get $sum))))",
                        2);
  ASSERT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  reinterpret_cast<uint32_t*>(h.optimized.instance->memory())[65535] = 8;
  for (uint32_t n : kTrips) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i + 8 <= n; i += 8) {
      uint32_t row = 0;
      for (uint32_t k = i; k < i + 8; ++k) row = row * 31 + a_of(k);
      sum = std::rotl(sum, 1) ^ row;
    }
    for (uint32_t round = 0; round < 3; ++round)
      EXPECT_EQ(h.optimized.call("f", {i32(n)}), returns({i32(sum)})) << n;
  }
}

TEST(Strips, CopiesTrapWhereTheLoopWould) {
  // Division by a gathered word that is zero for b = 0 only; explicit checks have their traps in the loop,
  // too.
  for (const BoundsChecks bounds : {BoundsChecks::kGuardPages, BoundsChecks::kExplicit}) {
    OptimizeRequest settings;
    settings.options.bounds = bounds;
    const std::string wat =
        counted("(local $sum i32)",
                "(local.set $sum (i32.add (local.get $sum) (i32.div_u (i32.const 1000000) " +
                    std::string(kGathered) + ")))",
                "(local.get $sum)");
    Optimized m(wat, settings);
    m.request.changes.push_back(change(ChangeKind::kPrefetch, load_of(*m.module, "f", 1), 0.5));
    auto* words = reinterpret_cast<uint32_t*>(m.instance->memory());
    for (uint32_t i = 0; i < kMost; ++i) words[i] = b_of(i) | 1;
    for (uint32_t i = 0; i < 16384; ++i) words[kA + i] = i;
    m.instance->builtins().strip_ended = take_turns;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < kMost; ++i) sum += 1000000 / (b_of(i) | 1);
    for (uint32_t round = 0; round < 3; ++round) EXPECT_EQ(m.call("f", {i32(kMost)}), returns({i32(sum)}));
    words[kMost - 3] = 0;
    for (uint32_t round = 0; round < 3; ++round)
      EXPECT_EQ(m.call("f", {i32(kMost)}), traps(TrapCode::kIntegerDivideByZero));
    words[kMost - 3] = 0x3fffffff;
    for (uint32_t round = 0; round < 3; ++round)
      EXPECT_EQ(m.call("f", {i32(kMost)}), traps(TrapCode::kMemoryOutOfBounds));
  }
}

}  // namespace
}  // namespace hindsight::jit::testing
