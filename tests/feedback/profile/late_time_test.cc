#include "feedback/profile/late_time.h"

#include <gtest/gtest.h>

#include "feedback/profile/profile.h"

namespace hindsight::feedback {
namespace {

constexpr FuncIndex kLateFunction{0};

// A loop [100, 1000) with loops [200, 300) and [400, 900) in it, and [500, 520) in the latter; a loop [1000, 1050).
std::shared_ptr<const wasm::Module> module_with_late_loops() {
  auto module = std::make_shared<wasm::Module>();
  module->types.push_back({});
  module->functions.push_back(TypeIndex(0));
  wasm::FunctionBody body;
  body.begin = WasmOffset(50);
  body.end = WasmOffset(1100);
  const auto add = [&](uint32_t offset, uint32_t end, std::optional<uint32_t> parent) {
    wasm::LoopInfo loop;
    loop.offset = WasmOffset(offset);
    loop.end = WasmOffset(end);
    if (parent) loop.parent = LoopIndex(*parent);
    body.loops.push_back(loop);
  };
  add(100, 1000, {});
  add(200, 300, 0);
  add(400, 900, 0);
  add(500, 520, 2);
  add(1000, 1050, {});
  module->bytes.assign(1100, 0x01);
  module->bodies.push_back(body);
  return module;
}

// A compile of up to 500 bytes is one place. It pays once the place ran for as many milliseconds as it has bytes.
constexpr HotRule kRule{.factor = 1, .seconds_per_byte = 1e-3, .most_seconds = 0.5};

class LateTimes : public ::testing::Test {
 protected:
  void sample(uint32_t at, double seconds) {
    profile.add_sample(kLateFunction, WasmOffset(at), false, seconds);
  }
  // Of the place that is told with this offset; all zeros: it is not.
  LatePlace late(uint32_t offset) const {
    for (const LatePlace& place : profile.late().worst)
      if (place.offset.value == offset) return place;
    return {};
  }
  double late(uint32_t offset, PlaceState state) const {
    return late(offset).seconds[static_cast<size_t>(state)];
  }
  Profile profile{module_with_late_loops(), kRule};
};

TEST_F(LateTimes, BeginAfterTheSampleWithWhichThePlacesCompilePays) {
  sample(250, 0.06);
  sample(250, 0.03);
  sample(250, 0.02);  // 0.11 s, for 100 bytes
  EXPECT_EQ(profile.late().places, 0u);
  sample(210, 0.01);
  EXPECT_NEAR(late(200).sum(), 0.01, 1e-9);
  EXPECT_TRUE(late(200).in_loop);
  EXPECT_EQ(late(200).function, "func[0]");
  profile.decay(0.01);
  sample(210, 0.01);
  EXPECT_NEAR(profile.late().seconds, 0.02, 1e-9) << "once hot, it stays hot";
  EXPECT_EQ(profile.late().places, 1u);
}

TEST_F(LateTimes, WhatFadedDoesNotMakeAPlaceHot) {
  for (int i = 0; i < 10; ++i) {
    sample(250, 0.09);
    profile.decay(0.1);
  }
  EXPECT_EQ(profile.late().places, 0u);
}

TEST_F(LateTimes, AreOfTheOutermostLoopWhoseCompileIsShort) {
  for (int i = 0; i < 2; ++i) {
    sample(510, 0.6);   // innermost of 20 bytes, in one of 500
    sample(450, 0.01);  // the latter
  }
  EXPECT_NEAR(late(400).sum(), 0.62, 1e-9);
  sample(150, 1);  // the outer one is too large to be one place with these
  EXPECT_EQ(late(100).sum(), 0);
  sample(950, 1);
  EXPECT_NEAR(late(100).sum(), 1, 1e-9);
  sample(60, 1.2);
  sample(1060, 1);
  EXPECT_NEAR(late(50).sum(), 1, 1e-9) << "the function outside of its loops";
  EXPECT_FALSE(late(50).in_loop);
  sample(~0u, 1);
  EXPECT_NEAR(late(50).sum(), 2, 1e-9) << "at no instruction";
}

TEST_F(LateTimes, AreNotOfSamplesInOptimizedCode) {
  sample(250, 1);
  profile.add_sample(kLateFunction, WasmOffset(250), true, 1, VersionId(3));
  EXPECT_EQ(profile.late().places, 0u);
}

TEST_F(LateTimes, AreSplitByWhatIsPublishedOrUnderWay) {
  FunctionCounts& counts = profile.counts(kLateFunction);
  sample(250, 1);
  sample(250, 0.01);
  counts.nests[1].under_way = true;
  sample(250, 0.02);
  counts.publish_nest(LoopIndex(1), VersionId(3));
  sample(250, 0.04);
  EXPECT_NEAR(late(200, PlaceState::kWaiting), 0.01, 1e-9);
  EXPECT_NEAR(late(200, PlaceState::kCompiling), 0.02, 1e-9);
  EXPECT_NEAR(late(200, PlaceState::kPublished), 0.04, 1e-9);
  sample(1010, 1);
  counts.optimized = true;
  sample(1010, 0.01);
  counts.publish(VersionId(4));
  sample(1010, 0.02);
  EXPECT_NEAR(late(1000, PlaceState::kCompiling), 0.01, 1e-9);
  EXPECT_NEAR(late(1000, PlaceState::kPublished), 0.02, 1e-9);
}

TEST_F(LateTimes, OfCodeThatIsSeenAnewAreListedApart) {
  FunctionCounts& counts = profile.counts(kLateFunction);
  sample(250, 1);
  counts.publish(VersionId(4));
  profile.note_place(kLateFunction, std::nullopt, PlaceState::kPublished);
  counts.see_anew();
  sample(250, 0.01);
  EXPECT_NEAR(late(200, PlaceState::kObserved), 0.01, 1e-9) << "what was said is true no more";
  counts.publish(VersionId(5));
  sample(250, 0.02);
  EXPECT_NEAR(late(200, PlaceState::kPublished), 0.02, 1e-9);
}

TEST_F(LateTimes, GoByWhatWasSaidOfThePlaceOrOfTheLoopAroundIt) {
  for (const uint32_t at : {250, 450, 1010}) sample(at, 1);
  profile.note_place(kLateFunction, LoopIndex(3), PlaceState::kQueued, "in one of 500 bytes");
  sample(450, 0.01);
  EXPECT_NEAR(late(400, PlaceState::kQueued), 0.01, 1e-9);
  EXPECT_EQ(late(400).why, "in one of 500 bytes");
  profile.note_place(kLateFunction, LoopIndex(0), PlaceState::kCompiling);
  for (const uint32_t at : {250, 450, 1010}) sample(at, 0.02);
  EXPECT_NEAR(late(200, PlaceState::kCompiling), 0.02, 1e-9);
  EXPECT_NEAR(late(400, PlaceState::kCompiling), 0.02, 1e-9);
  EXPECT_NEAR(late(1000, PlaceState::kWaiting), 0.02, 1e-9) << "beside it";
  profile.note_place(kLateFunction, std::nullopt, PlaceState::kRefused, "too large");
  for (const uint32_t at : {250, 1010}) sample(at, 0.04);
  EXPECT_NEAR(late(200, PlaceState::kRefused), 0.04, 1e-9);
  EXPECT_NEAR(late(1000, PlaceState::kRefused), 0.04, 1e-9);
  EXPECT_EQ(late(1000).why, "too large");
  EXPECT_NEAR(late(200).sum(), 0.06, 1e-9) << "each second is in one part";
}

TEST_F(LateTimes, AreNotCountedWithoutARule) {
  Profile without(module_with_late_loops());
  without.note_place(kLateFunction, LoopIndex(0), PlaceState::kQueued);
  for (int i = 0; i < 10; ++i) without.add_sample(kLateFunction, WasmOffset(250), false, 1);
  EXPECT_EQ(without.late().places, 0u);
}

TEST(LateSummaries, OfSeveralModulesHaveTheSumAndTheWorstPlaces) {
  const auto one = [](uint32_t first) {
    LateSummary summary;
    for (uint32_t i = 0; i < LateSummary::kMost; ++i) {
      LatePlace place;
      place.offset = WasmOffset(first + i);
      place.seconds[0] = 0.001 * (first + i);
      summary.add({.seconds = place.seconds[0], .places = 1, .worst = {place}});
    }
    return summary;
  };
  LateSummary all = one(1);
  all.add(one(9));
  EXPECT_NEAR(all.seconds, 0.136 + 0.264, 1e-9);
  EXPECT_EQ(all.places, 2 * LateSummary::kMost);
  ASSERT_EQ(all.worst.size(), LateSummary::kMost);
  EXPECT_EQ(all.worst.front().offset.value, 24u);
  EXPECT_EQ(all.worst.back().offset.value, 13u);
}

}  // namespace
}  // namespace hindsight::feedback
