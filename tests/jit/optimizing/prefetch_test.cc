// Text in, prefetch sites out; and the code still does what it did.
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
  EXPECT_TRUE(h.sites().starts_with("applied: 1 load, ")) << h.sites();
  ASSERT_EQ(h.version->loop_cells.size(), 1u);
  EXPECT_NE(h.optimized.dump.find("prefetcht0"), std::string::npos);
  fill(h.optimized, 5000);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 5000; ++i) expected += ((i * 7919) % 1024) * 3 + 1;
  EXPECT_EQ(h.optimized.call("f", {i32(5000)}), returns({i32(expected)}));
  EXPECT_GT(h.optimized.instance->strips_ended, 0u);
}

TEST(Prefetch, HashedGathersGetASlice) {
  Hinted h(gather("(i32.shr_u (i32.mul (i32.rotl (i32.xor " + std::string(kB) +
                  " (i32.const 77)) (i32.const 5)) (i32.const 0x9e3779b1)) (i32.const 22))"),
           "f", {1});
  EXPECT_TRUE(h.sites().starts_with("applied: 1 load, ")) << h.sites();
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
  EXPECT_TRUE(h.sites().starts_with("applied: 1 load, ")) << h.sites();
  EXPECT_NE(h.optimized.dump.find("prefetcht0"), std::string::npos);
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

// What a 64-bit index would lead to anywhere is asked for within the memory.
TEST(Prefetch, OfA64BitMemoryStaysWithinIt) {
  const auto is_clamped = [](const std::string& dump) {
    const std::string call = "call void @llvm.prefetch.p0(ptr ";
    const size_t at = dump.find(call);
    if (at == std::string::npos) return false;
    const std::string place = dump.substr(at + call.size(), dump.find(',', at) - at - call.size());
    // The choice is between two places, or between two indices of one.
    const std::string made = dump.substr(dump.find(place + " = "), 120);
    const std::string index = made.substr(made.find("i64 %") + 4);
    return made.starts_with(place + " = select ") ||
           dump.find(index.substr(0, index.find(',')) + " = select ") != std::string::npos;
  };
  constexpr std::string_view kGather =
      R"((module (memory i64 4) (func (export "f") (param $n i64) (result i32)
    (local $i i64) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load (i64.mul (i64.load (i64.shl (local.get $i) (i64.const 3))) (i64.const 24)))))
      (br_if $l (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 1))) (local.get $n))))
    (local.get $sum))))";
  Hinted h(kGather, "f", {1});
  EXPECT_TRUE(h.sites().starts_with("applied: 1 load, ")) << h.sites();
  EXPECT_TRUE(is_clamped(h.optimized.dump)) << h.optimized.dump;
  Hinted narrow(gather(kB), "f", {1});
  EXPECT_FALSE(is_clamped(narrow.optimized.dump));
}

TEST(Prefetch, StreamsAreLeftToTheHardware) {
  Hinted h(gather(kB), "f", {0});
  EXPECT_EQ(h.sites(), "refused: the address has a constant stride: left to the hardware prefetcher\n");
  EXPECT_TRUE(h.version->loop_cells.empty());
  EXPECT_EQ(h.optimized.dump.find("prefetcht0"), std::string::npos);
}

TEST(Prefetch, ShortStreamsAtLookedUpPlacesAreFetchedFromTheLoopAround) {
  // for i: for k in 0..16: sum += blocks[number[i] * 64 + 4 * k]
  Hinted h(
      R"((module (memory 4) (func (export "f") (param $n i32) (result i32) (local $i i32) (local $k i32) (local $at i32) (local $sum i32)
    (loop $blocks
      (local.set $at (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 6)))
      (local.set $k (i32.const 0))
      (loop $words
        (local.set $sum (i32.xor (i32.rotl (local.get $sum) (i32.const 5))
          (i32.load offset=65536 (i32.add (local.get $at) (i32.shl (local.get $k) (i32.const 2))))))
        (br_if $words (i32.ne (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 16))))
      (br_if $blocks (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))))",
      "f", {1});
  EXPECT_TRUE(h.version->answers[0].is_applied()) << h.sites();
}

TEST(Prefetch, SlicesReadNothingBehindTheEndOfMemory) {
  // b ends where memory ends: running ahead reads beyond it.
  Hinted h(R"((module (memory 2) (func (export "f") (param $p i32) (result i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.load (local.get $p)))))
      (br_if $l (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 4))) (i32.const 131072))))
    (local.get $sum))))",
           "f", {1});
  ASSERT_TRUE(h.sites().starts_with("applied: ")) << h.sites();
  EXPECT_EQ(h.optimized.call("f", {i32(131072 - 4000)}), returns({i32(0)}));
  h.version->loop_cells[0]->distance = 1u << 29;
  EXPECT_EQ(h.optimized.call("f", {i32(131072 - 4000)}), returns({i32(0)}));
  // Garbage in b only moves prefetches, never faults in them.
  std::memset(h.optimized.instance->memory() + 100000, 0xff, 31000);
  EXPECT_EQ(h.optimized.call("f", {i32(90000)}), traps(TrapCode::kMemoryOutOfBounds));
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
  EXPECT_NE(h.version->answers[1].why.find("in 2 stages, first element of an inner loop"), std::string::npos)
      << h.sites();
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

TEST(Prefetch, BreadthFirstSearchRunsAheadInTheQueue) {
  // for i: u = queue[i]; for e in off[u]..off[u+1]: sum += visited[adj[e]]
  Hinted h(R"((module (memory 4)
    (func (export "bfs") (param $n i32) (result i32) (local $i i32) (local $u i32) (local $e i32) (local $end i32) (local $sum i32)
      (loop $queue
        (local.set $u (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))
        (local.set $e (i32.load offset=40000 (local.get $u)))
        (local.set $end (i32.load offset=40004 (local.get $u)))
        (block $done (loop $edges
          (br_if $done (i32.ge_u (local.get $e) (local.get $end)))
          (local.set $sum (i32.add (local.get $sum)
            (i32.load offset=200000 (i32.shl (i32.load offset=90000 (i32.shl (local.get $e) (i32.const 2))) (i32.const 2)))))
          (local.set $e (i32.add (local.get $e) (i32.const 1)))
          (br $edges)))
        (br_if $queue (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
      (local.get $sum))))",
           "bfs", {4});
  EXPECT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  EXPECT_NE(h.sites().find("in 3 stages, first element of an inner loop"), std::string::npos) << h.sites();
}

TEST(Prefetch, LinkedListsAreRefused) {
  Hinted h(R"((module (memory 4) (func (export "walk") (param $p i32) (result i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $p))))
      (br_if $l (local.tee $p (i32.load offset=4 (local.get $p)))))
    (local.get $sum))))",
           "walk", {0, 1});
  EXPECT_EQ(h.sites(),
            "refused: the address depends on the previous iteration's load\n"
            "refused: the address depends on the previous iteration's load\n");
  EXPECT_TRUE(h.version->loop_cells.empty());
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
