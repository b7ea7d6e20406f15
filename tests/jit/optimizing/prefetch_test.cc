// Loops with prefetches: cells, distances of any length, and the code still does what it did. Which loads get one, and what
// is said of the others, is in shapes/prefetch.
#include "tests/jit/optimizing/hinted.h"

namespace hindsight::jit::testing {
namespace {

// a at 65536 (u32), b at 0 (u32); sums a[f(b[i])] for i < n.
std::string gather(std::string_view index) {
  return R"((module (memory 4) (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (block $out (br_if $out (i32.eqz (local.get $n)))
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (i32.shl )" +
         std::string(index) + R"( (i32.const 2)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum))))";
}
constexpr const char* kB = "(i32.load (i32.shl (local.get $i) (i32.const 2)))";

void fill(Optimized& m, uint32_t n) {
  auto* words = reinterpret_cast<uint32_t*>(m.instance->memory());
  for (uint32_t i = 0; i < n; ++i) words[i] = (i * 7919) % 1024;
  for (uint32_t i = 0; i < 16384; ++i) words[16384 + i] = i * 3 + 1;
}

TEST(Prefetch, GathersGetASlice) {
  Hinted h(gather(kB), "f", {1});
  ASSERT_TRUE(h.version->answers.at(0).is_applied()) << h.sites();
  EXPECT_EQ(h.version->answers[0].slice_loads, 1u);
  ASSERT_EQ(h.version->loop_cells.size(), 1u);
  fill(h.optimized, 5000);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 5000; ++i) expected += ((i * 7919) % 1024) * 3 + 1;
  EXPECT_EQ(h.optimized.call("f", {i32(5000)}), returns({i32(expected)}));
  EXPECT_GT(h.optimized.instance->strips_ended, 0u);
}

// Whole vectors are fetched, and the indices may be lanes of vectors; what runs ahead reads sixteen bytes in
// bounds.
TEST(Prefetch, GathersOfVectorsAndByLanesGetASlice) {
  Hinted h(
      R"((module (memory 4) (func (export "f") (param $p i32) (result v128) (local $four v128) (local $sum v128)
    (loop $l
      (local.set $four (v128.load (local.get $p)))
      (local.set $sum (i32x4.add (local.get $sum) (v128.load offset=65536
        (i32.and (i32x4.extract_lane 2 (i32x4.mul (local.get $four) (i32x4.splat (i32.const 48)))) (i32.const 0xfff0)))))
      (br_if $l (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 16))) (i32.const 262144))))
    (local.get $sum))))",
      "f", {1});
  ASSERT_TRUE(h.version->answers.at(0).is_applied()) << h.sites();
  EXPECT_EQ(h.version->answers[0].slice_loads, 1u);
  auto* words = reinterpret_cast<uint32_t*>(h.optimized.instance->memory());
  for (uint32_t i = 0; i < 65536; ++i) words[i] = i * 2654435761u;
  uint32_t sum[4] = {};
  for (uint32_t p = 262144 - 16000; p < 262144; p += 16)
    for (uint32_t lane = 0; lane < 4; ++lane)
      sum[lane] += words[16384 + ((words[p / 4 + 2] * 48) & 0xfff0) / 4 + lane];
  const Outcome expected = returns({v128(uint64_t{sum[1]} << 32 | sum[0], uint64_t{sum[3]} << 32 | sum[2])});
  EXPECT_EQ(h.optimized.call("f", {i32(262144 - 16000)}), expected);
  ASSERT_EQ(h.version->loop_cells.size(), 1u);
  h.version->loop_cells[0]->distance = 1u << 29;
  EXPECT_EQ(h.optimized.call("f", {i32(262144 - 16000)}), expected);
}

TEST(Prefetch, SlicesReadNothingBehindTheEndOfMemory) {
  // b ends where memory ends: running ahead reads beyond it.
  Hinted h(R"((module (memory 2) (func (export "f") (param $p i32) (result i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.load (local.get $p)))))
      (br_if $l (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 4))) (i32.const 131072))))
    (local.get $sum))))",
           "f", {1});
  ASSERT_TRUE(h.version->answers.at(0).is_applied()) << h.sites();
  EXPECT_EQ(h.optimized.call("f", {i32(131072 - 4000)}), returns({i32(0)}));
  h.version->loop_cells[0]->distance = 1u << 29;
  EXPECT_EQ(h.optimized.call("f", {i32(131072 - 4000)}), returns({i32(0)}));
  // Garbage in b only moves prefetches, never faults in them.
  std::memset(h.optimized.instance->memory() + 100000, 0xff, 31000);
  EXPECT_EQ(h.optimized.call("f", {i32(90000)}), traps(TrapCode::kMemoryOutOfBounds));
}

TEST(Prefetch, ElementsOfRowsAheadAreReadNowhereBehindTheEndOfMemory) {
  // A worklist, and the rows that it names, end where memory ends.
  Hinted h(R"((module (memory 2) (func (export "f") (param $p i32) (result i32)
    (local $sum i32) (local $u i32) (local $e i32) (local $end i32)
    (loop $worklist
      (local.set $u (i32.load (local.get $p)))
      (local.set $e (i32.load (local.get $u)))
      (local.set $end (i32.load offset=4 (local.get $u)))
      (block $done (br_if $done (i32.eq (local.get $e) (local.get $end)))
        (loop $row
          (local.set $sum (i32.add (local.get $sum) (i32.load (i32.load (local.get $e)))))
          (br_if $row (i32.ne (local.tee $e (i32.add (local.get $e) (i32.const 4))) (local.get $end)))))
      (br_if $worklist (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 4))) (i32.const 131072))))
    (local.get $sum))))",
           "f", {4});
  ASSERT_TRUE(h.version->answers.at(0).is_applied()) << h.sites();
  ASSERT_NE(h.version->answers[0].why.find("of a row"), std::string::npos) << h.sites();
  ASSERT_EQ(h.version->loop_cells.size(), 1u);
  constexpr uint32_t kRows = 1000, kFirst = 65536, kWorklist = 131072 - 4 * kRows;
  auto* words = reinterpret_cast<uint32_t*>(h.optimized.instance->memory());
  std::memset(words, 0xff, kFirst);  // what places that are clamped say
  uint32_t expected = 0;
  for (uint32_t i = 0; i < kRows; ++i) {
    const uint32_t length = i % 21;
    words[kFirst / 4 + 2 * i] = 131072 - 4 * length;
    words[kFirst / 4 + 2 * i + 1] = 131072;
    words[kWorklist / 4 + i] = kFirst + 8 * ((i * 337) % kRows);
  }
  for (uint32_t i = 0; i < kRows; ++i)
    for (uint32_t at = words[kFirst / 4 + 2 * i] / 4; at < 131072 / 4; ++at) expected += words[words[at] / 4];
  for (const uint32_t distance : {1u, 16u, 1u << 29}) {
    h.version->loop_cells[0]->distance = distance;
    EXPECT_EQ(h.optimized.call("f", {i32(kWorklist)}), returns({i32(expected)})) << distance;
  }
}

constexpr const char* kJoin = R"((module (memory 4)
  (func (export "join") (param $n i32) (result i32) (local $i i32) (local $p i32) (local $found i32) (local $key i32)
    (loop $probe
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $p (i32.load offset=65536 (i32.shl (i32.shr_u (i32.mul (local.get $key) (i32.const 0x9e3779b1)) (i32.const 22)) (i32.const 2))))
      (block $done (loop $chain
        (br_if $done (i32.eqz (local.get $p)))
        (local.set $found (i32.add (local.get $found) (i32.eq (i32.load (local.get $p)) (local.get $key))))
        (local.set $p (i32.load offset=4 (local.get $p)))
        (br $chain)))
      (br_if $probe (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $found))))";

TEST(Prefetch, HashJoinsFetchHeadsAndFirstNodesInStages) {
  Hinted h(kJoin, "join", {1, 2});
  ASSERT_EQ(h.version->answers.size(), 2u);
  EXPECT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  EXPECT_TRUE(h.version->answers[1].is_applied()) << h.sites();
  EXPECT_EQ(h.version->loop_cells.size(), 1u);
  EXPECT_EQ(h.version->answers[0].loop, h.version->answers[1].loop);
  auto* words = reinterpret_cast<uint32_t*>(h.optimized.instance->memory());
  uint32_t free_node = 140000;
  for (uint32_t key = 0; key < 500; ++key) {
    uint32_t& head = words[16384 + ((key * 0x9e3779b1u) >> 22)];
    words[free_node / 4] = key;
    words[free_node / 4 + 1] = head;
    head = free_node;
    free_node += 8;
    words[key * 2] = key;
    words[key * 2 + 1] = key + 1000;
  }
  EXPECT_EQ(h.optimized.call("join", {i32(1000)}), returns({i32(500)}));
}

TEST(Prefetch, OsrEntriesShareTheLoopsCell) {
  Hinted h(gather(kB), "f", {1}, true);
  ASSERT_EQ(h.version->osr_entries.size(), 1u);
  EXPECT_EQ(h.version->loop_cells.size(), 1u);
}

TEST(Prefetch, ADisabledCellStillCountsStrips) {
  Hinted h(gather(kB), "f", {1});
  fill(h.optimized, 5000);
  h.version->loop_cells[0]->enabled = 0;
  const Outcome without = h.optimized.call("f", {i32(5000)});
  h.version->loop_cells[0]->enabled = 1;
  EXPECT_EQ(h.optimized.call("f", {i32(5000)}), without);
  EXPECT_GT(h.optimized.instance->strips_ended, 2u);
}

}  // namespace
}  // namespace hindsight::jit::testing
