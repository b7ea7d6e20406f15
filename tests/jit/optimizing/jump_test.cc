// Loops that remember where they went. Whatever they remember, and whoever changes it without their
// knowledge, they do what they would have done without.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "jit/code/cell_memory.h"
#include "tests/jit/optimizing/hinted.h"

namespace hindsight::jit::testing {
namespace {

constexpr uint32_t kNodes = 900;
constexpr uint32_t kNodeBytes = 64;
constexpr uint32_t kMemoryBytes = 65536;

// f(p, most): follows `next` at offset 0 until it is 0, or `most` nodes; counts visits at 4, sums what is
// at 8.
constexpr const char* kWalk = R"((module (memory 1)
  (func (export "f") (param $p i32) (param $most i32) (result i32) (local $sum i32)
    (block $out (br_if $out (i32.eqz (local.get $p))) (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.mul (i32.load offset=8 (local.get $p)) (i32.const 5))))
      (i32.store offset=4 (local.get $p) (i32.add (i32.load offset=4 (local.get $p)) (local.get $sum)))
      (local.set $most (i32.sub (local.get $most) (i32.const 1)))
      (br_if $out (i32.eqz (local.get $most)))
      (br_if $l (local.tee $p (i32.load (local.get $p))))))
    (local.get $sum))))";
constexpr uint32_t kValue = 0, kNext = 2;  // which of its loads

struct Jumps {
  explicit Jumps(std::string_view wat, std::vector<uint32_t> loads = {kValue}, OptimizeRequest settings = {},
                 bool osr = false)
      : hinted(wat, settings), plain(wat, settings) {
    for (const uint32_t load : loads)
      hinted.request.changes.push_back(
          change(ChangeKind::kJumpPointers, load_of(*hinted.module, "f", load), 0.5));
    if (osr) hinted.request.osr_loops = {LoopIndex(0)};
    version = hinted.compile("f");
    if (version == nullptr) return;
    func_refs(hinted.instance->context())[hinted.module->find_export("f")->index].code = version->entry;
    hinted.instance->builtins().strip_ended = [](VmContext*, LoopCell* cell) {
      cell->countdown = static_cast<int32_t>(cell->strip_length) - 1;
      if (take_turns) cell->enabled ^= 1;
    };
    take_turns = false;
    for (const auto& cell : version->loop_cells) {
      cell->strip_length = 64;
      cell->countdown = 63;
    }
  }
  const Answer& site(size_t i = 0) const { return version->answers.at(i); }
  LoopCell& cell() const { return *version->loop_cells.at(0); }
  TraversalHistory& history() const { return history_of(cell()); }
  static uint8_t* bytes(Optimized& of) { return reinterpret_cast<uint8_t*>(of.instance->memory()); }
  uint32_t& word(uint32_t at) { return *reinterpret_cast<uint32_t*>(bytes(hinted) + at); }
  // Nodes in random order; of each list its first. Node 0 is no node.
  std::vector<uint32_t> make_lists(uint32_t seed, std::vector<uint32_t> lengths) {
    std::vector<uint32_t> order(kNodes);
    std::iota(order.begin(), order.end(), 1);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    std::vector<uint32_t> heads;
    size_t at = 0;
    for (const uint32_t length : lengths) {
      heads.push_back(kNodeBytes * order.at(at));
      for (uint32_t i = 0; i < length; ++i, ++at) {
        word(kNodeBytes * order[at]) = i + 1 < length ? kNodeBytes * order.at(at + 1) : 0;
        word(kNodeBytes * order[at] + 8) = seed + i;
      }
    }
    copy();
    return heads;
  }
  void copy() { std::memcpy(bytes(plain), bytes(hinted), kMemoryBytes); }
  void expect_same(std::vector<Value> args, const std::string& what = {}) {
    const Outcome expected = plain.call("f", args);
    EXPECT_EQ(hinted.call("f", args), expected) << what;
    EXPECT_EQ(std::memcmp(bytes(plain), bytes(hinted), kMemoryBytes), 0) << what;
  }
  uint32_t walk(uint32_t head, uint32_t most = ~0u) {
    history().valid = 0;
    expect_same({i32(head), i32(most)});
    return history().valid;
  }

  static inline bool take_turns = false;
  Optimized hinted, plain;
  const CodeVersion* version = nullptr;
};

TEST(JumpPointers, ALoopKnowsItsWayTheSecondTime) {
  Jumps j(kWalk);
  ASSERT_TRUE(j.site().is_applied()) << j.site().why;
  EXPECT_EQ(j.site().site.kind, ChangeKind::kJumpPointers);
  ASSERT_EQ(j.version->loop_cells.size(), 1u);
  // The other two loads of a node lie on the same line.
  ASSERT_EQ(j.version->answers.size(), 3u);
  for (size_t i = 1; i < 3; ++i) EXPECT_TRUE(j.site(i).follows() && j.site(i).is_applied()) << j.site(i).why;
  const uint32_t head = j.make_lists(1, {kNodes})[0];
  EXPECT_EQ(j.walk(head), 0u);
  EXPECT_EQ(j.walk(head), kNodes);
  EXPECT_EQ(j.history().period, kNodes);
  EXPECT_EQ(j.history().owner, 0u);
  // What is remembered is where the load looks.
  EXPECT_EQ(j.history().places[0], head + 8);
  EXPECT_EQ(j.history().places[1], j.word(head) + 8);
}

TEST(JumpPointers, AreNotThereWhereNobodyAskedForThem) {
  Jumps j(kWalk, {});
  EXPECT_TRUE(j.version->answers.empty());
  EXPECT_TRUE(j.version->loop_cells.empty());
}

TEST(JumpPointers, WhatChangesIsSeenAndLearnedAnew) {
  Jumps j(kWalk);
  uint32_t head = j.make_lists(2, {kNodes})[0];
  j.walk(head);
  // Another order of the same nodes.
  head = j.make_lists(3, {kNodes})[0];
  EXPECT_LT(j.walk(head), kNodes / 8);
  j.walk(head);
  EXPECT_EQ(j.walk(head), kNodes);
  // The third node leaves the list: all others come one turn sooner, up to the anchor.
  const uint32_t second = j.word(head);
  j.word(second) = j.word(j.word(second));
  j.copy();
  const uint32_t valid = j.walk(head);
  EXPECT_GE(valid, 2u);
  EXPECT_LT(valid, kNodes - 1);
  EXPECT_EQ(j.walk(head), kNodes - 1);
}

TEST(JumpPointers, AListThatGrowsAtItsFrontIsKnownWhereItWas) {
  Jumps j(kWalk);
  const std::vector<uint32_t> heads = j.make_lists(4, {kNodes - 1, 1});
  j.walk(heads[0]);
  j.word(heads[1]) = heads[0];
  j.copy();
  EXPECT_EQ(j.walk(heads[1]), kNodes - 1);
}

TEST(JumpPointers, ManyShortListsThatComeInOrderAreOneWay) {
  Jumps j(kWalk);
  const std::vector<uint32_t> heads = j.make_lists(5, {100, 1, 3, 200, 7, 2});
  for (int round = 0; round < 3; ++round) {
    uint32_t valid = 0;
    for (const uint32_t head : heads) valid += j.walk(head);
    EXPECT_EQ(valid, round == 0 ? 0u : 313u);
  }
  EXPECT_EQ(j.history().period, 313u);
}

TEST(JumpPointers, ARingIsKnownFromItsSecondTimeRound) {
  Jumps j(kWalk);
  const uint32_t head = j.make_lists(6, {100})[0];
  uint32_t last = head;
  while (j.word(last) != 0) last = j.word(last);
  j.word(last) = head;
  j.copy();
  EXPECT_EQ(j.walk(head, 1000), 900u);
  EXPECT_EQ(j.history().period, 100u);
}

TEST(JumpPointers, BothVersionsDoTheSameInStripsOfBoth) {
  Jumps j(kWalk);
  Jumps::take_turns = true;
  for (uint32_t length : {1u, 2u, 63u, 64u, 65u, 128u, 129u, kNodes}) {
    const uint32_t head = j.make_lists(7 + length, {length})[0];
    for (uint32_t most : {1u, 64u, 200u, ~0u}) {
      for (const uint32_t first : {1u, 0u}) {
        j.cell().enabled = first;
        j.walk(head, most);
      }
    }
  }
}

TEST(JumpPointers, StripsWithoutKeepThePlaceForThoseWith) {
  Jumps j(kWalk);
  const uint32_t head = j.make_lists(8, {kNodes})[0];
  j.walk(head);
  Jumps::take_turns = true;
  // Every other strip of 64, and where it was.
  const uint32_t valid = j.walk(head);
  EXPECT_GT(valid, kNodes / 3);
  EXPECT_LT(valid, 2 * kNodes / 3);
  EXPECT_EQ(j.history().position, kNodes);
}

TEST(JumpPointers, ATrapComesWhereItCame) {
  for (const BoundsChecks bounds : {BoundsChecks::kGuardPages, BoundsChecks::kExplicit}) {
    OptimizeRequest settings;
    settings.options.bounds = bounds;
    Jumps j(kWalk, {kValue, kNext}, settings);
    ASSERT_TRUE(j.site().is_applied()) << j.site().why;
    const uint32_t head = j.make_lists(9, {kNodes})[0];
    j.walk(head);
    uint32_t node = head;
    for (int i = 0; i < 500; ++i) node = j.word(node);
    j.word(node) = kMemoryBytes - 4;  // its value is out of bounds
    j.copy();
    EXPECT_EQ(j.plain.call("f", {i32(head), i32(-1)}).trap, TrapCode::kMemoryOutOfBounds);
    EXPECT_EQ(j.hinted.call("f", {i32(head), i32(-1)}), traps(TrapCode::kMemoryOutOfBounds));
    // Who left by a trap finds the history its own when it comes again.
    j.word(node) = 0;
    std::memcpy(Jumps::bytes(j.plain), Jumps::bytes(j.hinted), kMemoryBytes);
    j.walk(head);
    EXPECT_EQ(j.walk(head), 501u);
    EXPECT_EQ(j.history().owner, 0u);
  }
}

TEST(JumpPointers, AHistoryThatIsAnothersIsLeftAlone) {
  Jumps j(kWalk);
  const uint32_t head = j.make_lists(10, {kNodes})[0];
  j.walk(head);
  const TraversalHistory before = j.history();
  j.history().owner = 4711;
  EXPECT_EQ(j.walk(head), 0u);
  EXPECT_EQ(j.history().owner, 4711u);
  EXPECT_EQ(j.history().position, before.position);
  EXPECT_EQ(j.history().places[7], before.places[7]);
}

TEST(JumpPointers, WhateverStandsInAHistoryChangesNothing) {
  Jumps j(kWalk, {kValue, kNext});
  std::mt19937 generator(11);
  const auto random = [&] { return static_cast<uint32_t>(generator()); };
  for (int round = 0; round < 40; ++round) {
    const uint32_t head = j.make_lists(12 + static_cast<uint32_t>(round), {kNodes})[0];
    TraversalHistory& history = j.history();
    history.position = round % 2 ? random() : kHistoryCapacity - random() % 100;
    history.anchor = round % 3 ? random() : head + 8;
    history.period = round % 5 ? random() : 0;
    j.cell().distance = round % 7 ? random() % 200 : random();
    for (uint32_t i = 0; i < 2000; ++i) history.places[i] = random();
    j.walk(head);
    EXPECT_LE(history.position, kHistoryCapacity);
  }
}

TEST(JumpPointers, OnlyTheFirstPartIsWrittenDownUntilAllIsWanted) {
  Jumps j(kWalk);
  const uint32_t head = j.make_lists(10, {kNodes})[0];
  j.history().last = 99;
  j.walk(head);
  EXPECT_NE(j.history().places[98], 0u);
  EXPECT_EQ(j.history().places[100], 0u);
  EXPECT_EQ(j.walk(head), 99u) << "of the last entry, all later turns but one";
  remember_whole_traversals(j.history());
  EXPECT_EQ(j.history().last, kHistoryCapacity - 1);
  j.walk(head);
  EXPECT_EQ(j.walk(head), kNodes);
}

TEST(JumpPointers, WithoutMemoryForThePlacesALoopGoesWithout) {
  Jumps j(kWalk);
  uint32_t* const places = std::exchange(j.history().places, nullptr);
  const uint32_t head = j.make_lists(13, {kNodes})[0];
  j.walk(head);
  EXPECT_EQ(j.walk(head), 0u);
  j.history().places = places;
}

TEST(JumpPointers, LoadsOfOneNodeShareAHistory) {
  constexpr const char* kTwoLines = R"((module (memory 1)
    (func (export "f") (param $p i32) (param $most i32) (result i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
        (local.set $sum (i32.xor (local.get $sum) (i32.load offset=12 (local.get $p))))
        (local.set $sum (i32.mul (local.get $sum) (i32.load offset=200 (local.get $p))))
        (br_if $l (local.tee $p (i32.load (local.get $p)))))
      (local.get $sum))))";
  Jumps j(kTwoLines, {0, 1, 2});
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(j.site(i).is_applied()) << j.site(i).why;
  EXPECT_EQ(j.version->loop_cells.size(), 1u);
  const uint32_t head = j.make_lists(14, {kNodes - 10})[0];
  j.walk(head);
  EXPECT_EQ(j.walk(head), kNodes - 10);
}

TEST(JumpPointers, AnIndexThatIsLoadedIsAPointerToo) {
  constexpr const char* kIndices = R"((module (memory 1)
    (func (export "f") (param $i i32) (param $most i32) (result i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=32768 (i32.shl (local.get $i) (i32.const 2)))))
        (local.set $i (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (br_if $l (local.tee $most (i32.sub (local.get $most) (i32.const 1)))))
      (local.get $sum))))";
  Jumps j(kIndices, {0});
  ASSERT_TRUE(j.site().is_applied()) << j.site().why;
  std::vector<uint32_t> order(1000);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(15));
  for (uint32_t i = 0; i < 1000; ++i) j.word(4 * order[i]) = order[(i + 1) % 1000];
  for (uint32_t i = 0; i < 1000; ++i) j.word(32768 + 4 * i) = i * i;
  j.copy();
  EXPECT_EQ(j.walk(order[0], 5000), 4000u);
}

TEST(JumpPointers, ARunningLoopThatIsEnteredKnowsItsWayToo) {
  Jumps j(kWalk, {kValue}, {}, true);
  EXPECT_TRUE(j.site().is_applied()) << j.site().why;
  ASSERT_EQ(j.version->loop_cells.size(), 1u);
  ASSERT_EQ(j.version->osr_entries.size(), 1u);
  const uint32_t head = j.make_lists(16, {kNodes})[0];
  j.walk(head);
  EXPECT_EQ(j.walk(head), kNodes);
}

}  // namespace
}  // namespace hindsight::jit::testing
