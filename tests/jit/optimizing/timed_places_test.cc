// Where a hinted load will look later: what the code of a loop leaves in its cell for the runtime to time.
#include "tests/jit/optimizing/hinted.h"

namespace hindsight::jit::testing {
namespace {

// What strip_ended was told, one a strip.
struct Told {
  uint64_t iterations;  // since the call began
  uint64_t upcoming[kMostTimedLoads];
};
std::vector<Told> told_places;
uint64_t iterations_done;

void look(VmContext*, LoopCell* cell) {
  iterations_done += static_cast<uint64_t>(int64_t{cell->strip_length} - 1 - cell->countdown);
  Told now{iterations_done, {}};
  std::copy(std::begin(cell->upcoming), std::end(cell->upcoming), now.upcoming);
  told_places.push_back(now);
  cell->enabled ^= 1;
  cell->countdown = static_cast<int32_t>(cell->strip_length) - 1;
}

uint32_t* watch(Hinted& h) {
  h.optimized.instance->builtins().strip_ended = look;
  for (auto& cell : h.version->loop_cells) cell->countdown = static_cast<int32_t>(cell->strip_length) - 1;
  told_places.clear();
  iterations_done = 0;
  return reinterpret_cast<uint32_t*>(h.optimized.instance->memory());
}
uint64_t offset(Hinted& h, uint64_t place) {
  return place - reinterpret_cast<uint64_t>(h.optimized.instance->memory());
}

// sum of a[b[i]] and c[b[i]], i < n: a at 65536, c at 131072, b at 0.
constexpr const char* kTwoGathers = R"((module (memory 4)
  (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32) (local $at i32)
    (block $out (br_if $out (i32.eqz (local.get $n)))
    (loop $l
      (local.set $at (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (local.get $at))))
      (local.set $sum (i32.xor (local.get $sum) (i32.load offset=131072 (local.get $at))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum))))";
constexpr uint32_t kMostPlaces = 3 * 4096 + 7;
uint32_t index_at(uint64_t i) {
  return static_cast<uint32_t>(i * 7919 % 4096);
}

TEST(TimedPlaces, OfACountedLoopLieFarAheadAndNeverBehindItsEnd) {
  Hinted h(kTwoGathers, "f", {1, 2});
  ASSERT_TRUE(h.version->answers[0].is_applied() && h.version->answers[1].is_applied()) << h.sites();
  ASSERT_TRUE(h.version->answers[0].timed && h.version->answers[1].timed);
  EXPECT_NE(*h.version->answers[0].timed, *h.version->answers[1].timed);
  for (const uint32_t n : {4096u, 4096u + 127, 4096u + 128, 4096u + 300, 2 * 4096u, kMostPlaces}) {
    uint32_t* words = watch(h);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < kMostPlaces; ++i) words[i] = index_at(i);
    for (uint32_t i = 0; i < 4096; ++i) {
      words[16384 + i] = i * 2654435761u;
      words[32768 + i] = i * 40503u;
    }
    for (uint32_t i = 0; i < n; ++i) sum = (sum + index_at(i) * 2654435761u) ^ (index_at(i) * 40503u);
    EXPECT_EQ(h.optimized.call("f", {i32(n)}), returns({i32(sum)}));
    ASSERT_FALSE(told_places.empty());
    for (const Told& t : told_places) {
      const uint64_t left = n - t.iterations;
      for (size_t site = 0; site < 2; ++site) {
        const uint64_t place = t.upcoming[*h.version->answers[site].timed];
        if (left < 128) {
          EXPECT_EQ(place, 0u) << "of " << n << ", " << left << " left";
        } else {
          const uint64_t ahead = std::min<uint64_t>(left - 1, 512);
          EXPECT_EQ(offset(h, place), (site == 0 ? 65536u : 131072u) + 4 * index_at(t.iterations + ahead))
              << "of " << n << ", behind " << t.iterations;
        }
      }
    }
  }
}

TEST(TimedPlaces, OfALoopWhoseLengthNobodyKnowsLieAFixedDistanceAhead) {
  // sum of a[b[i]] until it is $limit: a at 65536.
  Hinted h(R"((module (memory 4)
    (func (export "f") (param $limit i32) (result i32) (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum)
        (i32.load offset=65536 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $sum) (local.get $limit))))
    (local.get $i))))",
           "f", {1});
  ASSERT_TRUE(h.version->answers[0].is_applied()) << h.sites();
  ASSERT_TRUE(h.version->answers[0].timed) << h.sites();
  uint32_t* words = watch(h);
  for (uint32_t i = 0; i < 10'000; ++i) words[i] = index_at(i);
  for (uint32_t i = 0; i < 4096; ++i) words[16384 + i] = 1;
  EXPECT_EQ(h.optimized.call("f", {i32(8192)}), returns({i32(8192)}));
  ASSERT_GE(told_places.size(), 3u);
  for (const Told& t : told_places) {
    // From the iteration after the strip on; where the loop was left there is none.
    if (&t == &told_places.back())
      EXPECT_EQ(t.upcoming[0], 0u);
    else
      EXPECT_EQ(offset(h, t.upcoming[0]), 65536 + 4 * index_at(t.iterations + 256))
          << "after " << t.iterations;
  }
}

TEST(TimedPlaces, OfMoreLoadsThanACellHasRoomForAreThreeAndTheRestAreLeftOut) {
  std::string loads;
  std::vector<uint32_t> hints;
  for (uint32_t i = 0; i < 5; ++i) {
    loads +=
        "(local.set $sum (i32.add (local.get $sum) (i32.load offset=" + std::to_string(65536 + 20000 * i) +
        " (local.get $at))))";
    hints.push_back(1 + i);
  }
  Hinted h(
      "(module (memory 4) (func (export \"f\") (param $n i32) (result i32) (local $i i32) (local $sum i32) "
      "(local $at i32) (loop $l (local.set $at (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) "
      "(i32.const 2))) " +
          loads +
          "(br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))) "
          "(local.get $sum)))",
      "f", hints);
  uint32_t timed = 0;
  for (const Answer& site : h.version->answers) {
    EXPECT_TRUE(site.is_applied()) << h.sites();
    timed += site.timed.has_value();
  }
  EXPECT_EQ(timed, kMostTimedLoads);
}

}  // namespace
}  // namespace hindsight::jit::testing
