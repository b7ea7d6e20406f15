#include "feedback/policy/page_fill.h"

#include <gtest/gtest.h>

#include "tests/feedback/policy/saved_pages.h"

namespace hindsight::feedback {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// 256 MiB from 16 GiB on, of which 64 blocks were looked at.
FillEvidence filled(uint32_t full, uint32_t part) {
  return {.begin = uint64_t{16} << 30,
          .end = (uint64_t{16} << 30) + 256 * kMiB,
          .full = full,
          .part = part,
          .untouched = 64 - full - part,
          .available_bytes = uint64_t{8} << 30};
}

TEST(PagesOfMemoryThatIsFilled, AreAskedForBeforeTheRestIsTouched) {
  const PagePlan plan = decide_fill(filled(5, 1), {});
  ASSERT_EQ(plan.ranges.size(), 1u) << plan.reason;
  EXPECT_EQ(plan.ranges[0], (PageRange{filled(5, 1).begin, filled(5, 1).end}));
  EXPECT_EQ(plan.bytes, 256 * kMiB);
  EXPECT_EQ(plan.alternatives.size(), 2u);
  EXPECT_GT(plan.alternatives[1].gain_seconds, plan.alternatives[1].cost_seconds);
}

TEST(PagesOfMemoryThatIsFilled, AreNotAskedForWhereLittleWasSeenOrMemoryIsTouchedHereAndThere) {
  EXPECT_TRUE(decide_fill(filled(0, 0), {}).ranges.empty());
  EXPECT_TRUE(decide_fill(filled(3, 0), {}).ranges.empty());
  const PagePlan scattered = decide_fill(filled(5, 20), {});
  EXPECT_TRUE(scattered.ranges.empty());
  EXPECT_NE(scattered.reason.find("scattered places"), std::string::npos) << scattered.reason;
  EXPECT_TRUE(decide_fill(filled(63, 0), {}).ranges.empty()) << "next to nothing is left";
}

TEST(PagesOfMemoryThatIsFilled, AreNotAskedForWhereTheTlbReachesAllOrTheMachineHasLittleLeft) {
  FillEvidence small = filled(8, 0);
  small.end = small.begin + 16 * kMiB;
  EXPECT_TRUE(decide_fill(small, {}).ranges.empty());
  FillEvidence poor = filled(8, 0);
  poor.available_bytes = 512 * kMiB;
  const PagePlan plan = decide_fill(poor, {});
  EXPECT_TRUE(plan.ranges.empty());
  EXPECT_NE(plan.reason.find("512 MiB"), std::string::npos) << plan.reason;
  EXPECT_TRUE(decide_fill(filled(8, 0), {.huge_pages = false}).ranges.empty());
}

TEST(PagesOfMemoryThatIsFilled, AreNotAskedForAgainWhereEarlierRunsAskedInVain) {
  FillEvidence fill = filled(5, 1);
  const uint64_t bytes = fill.end - fill.begin;
  fill.vain_bytes = bytes;
  const PagePlan plan = decide_fill(fill, {});
  EXPECT_TRUE(plan.ranges.empty());
  EXPECT_NE(plan.reason.find("in vain"), std::string::npos) << plan.reason;
  fill.vain_bytes = bytes / 2;
  EXPECT_FALSE(decide_fill(fill, {}).ranges.empty()) << "the memory is twice as large";
}

TEST(PagesOfMemoryThatIsFilled, AreKeptIfHalfOfWhatWasUntouchedIsFilled) {
  EXPECT_TRUE(goes_on_filling(filled(4, 0), 0));
  EXPECT_TRUE(goes_on_filling(filled(4, 0), 30));
  EXPECT_FALSE(goes_on_filling(filled(4, 0), 31));
}

TEST(PagesOfMemoryThatIsFilled, AreGivenUpWhereTheyMakeTheFillingSlower) {
  const PolicyConfig config;
  EXPECT_TRUE(fills_slower(1500e6, 700e6, config));
  EXPECT_FALSE(fills_slower(1500e6, 1400e6, config));
  EXPECT_FALSE(fills_slower(1500e6, 4000e6, config));
  EXPECT_FALSE(fills_slower(0, 700e6, config)) << "not known how fast it was";
  EXPECT_FALSE(fills_slower(1500e6, 0, config)) << "not known how fast it is";
}

TEST(PagesOfMemoryThatIsFilled, ReplayFromWhatIsSaved) {
  const PolicyConfig config;
  PageEvidence evidence;
  evidence.fill = filled(5, 1);
  PageEpisode episode = make_page_episode(evidence, decide_pages(evidence, config));
  episode.state = DecisionState::kKept;
  episode.places = {{.memory = 0, .begin = 0, .end = 256 * kMiB}};
  expect_replays_once_saved(episode, config);
  EXPECT_TRUE(decide_pages_at_start(episode, config).ask);
  PolicyConfig other = config;
  other.min_full_blocks = 50;
  EXPECT_FALSE(replays(episode, other));
}

}  // namespace
}  // namespace hindsight::feedback
