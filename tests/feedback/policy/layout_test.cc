#include "feedback/policy/layout.h"

#include <gtest/gtest.h>

namespace hindsight::feedback {
namespace {

// Ten seconds of a program whose time is spread evenly over `functions` of `bytes` each, all of it in
// optimized code.
LayoutEvidence flat_code(uint32_t functions, uint32_t bytes) {
  LayoutEvidence e;
  e.samples = 1000;
  e.seconds = 10;
  e.seconds_settled = 2;
  for (uint32_t i = 0; i < functions; ++i)
    e.functions.push_back({FuncIndex(3 + i), bytes, 1000.0 / functions, false});
  return e;
}

TEST(Layout, PlacesTogetherWhatIsLargerThanTheInstructionTlbReaches) {
  const LayoutPlan plan = decide_layout(flat_code(400, 2000), {});
  EXPECT_TRUE(plan.move) << plan.reason;
  EXPECT_GT(plan.estimated_gain, 0.02);
  ASSERT_EQ(plan.alternatives.size(), 2u);
  EXPECT_EQ(plan.alternatives[0].name, "nothing");
  EXPECT_GT(plan.alternatives[1].gain_seconds, plan.alternatives[1].cost_seconds);
}

TEST(Layout, LeavesSmallCodeAlone) {
  const LayoutPlan plan = decide_layout(flat_code(50, 2000), {});
  EXPECT_FALSE(plan.move);
  EXPECT_NE(plan.reason.find("TLB"), std::string::npos) << plan.reason;
}

TEST(Layout, LooksAtTheHotPartOfTheCodeAlone) {
  LayoutEvidence e = flat_code(50, 2000);
  for (uint32_t i = 0; i < 1000; ++i) e.functions.push_back({FuncIndex(100 + i), 4000, 0.01, false});
  EXPECT_FALSE(decide_layout(e, {}).move);
}

TEST(Layout, WaitsForSamplesForTimeAndForTheLastCompile) {
  LayoutEvidence few = flat_code(400, 2000), young = few, busy = few;
  for (LayoutEvidence::Function& f : few.functions) f.samples /= 20;
  young.seconds = 0.1;
  busy.seconds_settled = 0.1;
  busy.samples *= 3;  // most of the time is not in optimized code yet
  for (const LayoutEvidence& e : {few, young, busy}) {
    const LayoutPlan plan = decide_layout(e, {});
    EXPECT_FALSE(plan.move) << plan.reason;
    EXPECT_TRUE(plan.wait) << plan.reason;
  }
}

TEST(Layout, DoesNotWaitForTheLastCompileOfAFlatProfileButKeepsAMoveForIt) {
  LayoutEvidence e = flat_code(400, 2000);
  e.seconds_settled = 0;
  EXPECT_TRUE(decide_layout(e, {}).move);
  e.layouts = PolicyConfig().max_layouts - 1;
  EXPECT_FALSE(decide_layout(e, {}).move);
  e.seconds_settled = 2;
  EXPECT_TRUE(decide_layout(e, {}).move);
}

TEST(Layout, MovesOnceMoreOnlyForWhatIsNewAndNotForever) {
  LayoutEvidence e = flat_code(400, 2000);
  e.layouts = 1;
  for (size_t i = 0; i < 350; ++i) e.functions[i].tried = true;
  EXPECT_FALSE(decide_layout(e, {}).move);
  for (size_t i = 0; i < 200; ++i) e.functions[i].tried = false;
  EXPECT_TRUE(decide_layout(e, {}).move);
  e.layouts = PolicyConfig().max_layouts;
  EXPECT_FALSE(decide_layout(e, {}).move);
}

TEST(Layout, DoesNothingWhereItIsSwitchedOff) {
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kSplitCold, false);
  const LayoutPlan plan = decide_layout(flat_code(400, 2000), off);
  EXPECT_FALSE(plan.move || plan.wait);
}

TEST(Layout, ReplaysFromWhatIsSaved) {
  const PolicyConfig config;
  const LayoutEvidence e = flat_code(400, 2000);
  LayoutEpisode episode = make_layout_episode(e, decide_layout(e, config));
  episode.id = 7;
  episode.state = DecisionState::kKept;
  episode.outcome = "in words";
  episode.measured_gain = 0.05;
  ProfileFile file;
  file.policy = to_parameters(config);
  file.modules.resize(1);
  file.modules[0].layout_episodes = {episode};
  const auto back = read_profile(format_profile(file));
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->modules[0].layout_episodes.size(), 1u);
  EXPECT_EQ(back->modules[0].layout_episodes[0], episode);
  EXPECT_TRUE(replays(back->modules[0].layout_episodes[0], from_parameters(back->policy)));
  PolicyConfig other = config;
  other.itlb_reach_bytes *= 100;
  EXPECT_FALSE(replays(episode, other));
}

TEST(Layout, RefusesSavedFunctionsOutOfOrder) {
  ProfileFile file;
  file.modules.resize(1);
  const LayoutEvidence e = flat_code(3, 100);
  file.modules[0].layout_episodes = {make_layout_episode(e, decide_layout(e, {}))};
  std::swap(file.modules[0].layout_episodes[0].evidence.functions[0],
            file.modules[0].layout_episodes[0].evidence.functions[1]);
  EXPECT_FALSE(read_profile(format_profile(file)));
}

}  // namespace
}  // namespace hindsight::feedback
