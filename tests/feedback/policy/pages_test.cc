#include "feedback/policy/pages.h"

#include <gtest/gtest.h>

#include "tests/feedback/policy/saved_pages.h"

namespace hindsight::feedback {
namespace {

// Forty seconds since the first stall of a program of which `share` stalls, spread over `mib` MiB from 16 GiB on.
PageEvidence spread_over(uint64_t mib, double share) {
  PageEvidence e;
  e.samples = 1000;
  e.seconds = 40;
  e.stall_samples = 1000 * share;
  e.addresses = static_cast<uint64_t>(1000 * share);
  e.distinct_pages = std::min<uint64_t>(e.addresses, kMaxPagesSeen);
  for (uint64_t i = 0; i < mib / 2; i += 3) e.regions.push_back({8192 + i, 1});
  return e;
}

TEST(Pages, MoveARangeThatIsLargerThanTheTlbReaches) {
  const PagePlan plan = decide_pages(spread_over(256, 0.6), {});
  ASSERT_EQ(plan.ranges.size(), 1u) << plan.reason;
  EXPECT_EQ(plan.ranges[0].begin, uint64_t{16} << 30);
  EXPECT_EQ(plan.ranges[0].end, (uint64_t{16} << 30) + plan.bytes);
  EXPECT_GE(plan.bytes, uint64_t{252} << 20);
  EXPECT_GT(plan.estimated_gain, 0.05);
  EXPECT_EQ(plan.alternatives.front().name, "nothing");
}

TEST(Pages, LeaveASmallRangeAlone) {
  const PagePlan plan = decide_pages(spread_over(16, 0.6), {});
  EXPECT_TRUE(plan.ranges.empty());
  EXPECT_NE(plan.reason.find("TLB"), std::string::npos) << plan.reason;
}

TEST(Pages, DoNotMoveForMoreThanItReturns) {
  PageEvidence e = spread_over(256, 0.6);
  e.seconds = 8;
  e.move_seconds_per_byte = 4e-9;
  const PagePlan plan = decide_pages(e, {});
  EXPECT_TRUE(plan.ranges.empty());
  EXPECT_NE(plan.reason.find("gains about"), std::string::npos) << plan.reason;
}

TEST(Pages, MoveAPartFirstWhereItIsNotKnownWhatMovingTakes) {
  const PolicyConfig config;
  PageEvidence e = spread_over(256, 0.6);
  e.seconds = 8;  // enough if moving is quick
  const PagePlan plan = decide_pages(e, config);
  ASSERT_EQ(plan.ranges.size(), 1u) << plan.reason;
  EXPECT_TRUE(plan.probe);
  EXPECT_EQ(static_cast<double>(plan.bytes), config.page_probe_bytes);
  ASSERT_EQ(plan.whole.size(), 1u);
  EXPECT_GE(plan.whole[0].end - plan.whole[0].begin, uint64_t{252} << 20) << "what the part belongs to";
  EXPECT_EQ(plan.ranges[0].begin, uint64_t{16} << 30);
  // As quick as it can be: the rest follows; as slow: it stays.
  e.move_seconds_per_byte = config.least_move_seconds_per_byte;
  EXPECT_GE(decide_pages(e, config).bytes, uint64_t{252} << 20);
  EXPECT_FALSE(decide_pages(e, config).probe);
  e.move_seconds_per_byte = config.most_move_seconds_per_byte;
  EXPECT_TRUE(decide_pages(e, config).ranges.empty());
  // Nor is a part moved where the whole would not pay for long however quick it is, or a part not even for itself.
  e.move_seconds_per_byte = 0;
  e.seconds = 0.3;
  EXPECT_TRUE(decide_pages(e, config).ranges.empty());
  PageEvidence huge = spread_over(4096, 0.6);
  huge.seconds = 2;
  EXPECT_TRUE(decide_pages(huge, config).ranges.empty());
}

TEST(Pages, MoveAPartWithinTheFirstSecondOfAProgramThatStalls) {
  const PolicyConfig config;
  PageEvidence e = spread_over(256, 0.6);
  e.seconds = 0.6;
  const PagePlan plan = decide_pages(e, config);
  EXPECT_TRUE(plan.probe) << plan.reason;
  const double gain = plan.estimated_gain * e.seconds;
  EXPECT_GT(gain, config.min_page_return * config.most_move_seconds_per_byte * config.page_probe_bytes)
      << "what it may take is known before";
  // By the time at which the rest pays it is known what it takes.
  e.move_seconds_per_byte = config.least_move_seconds_per_byte;
  EXPECT_TRUE(decide_pages(e, config).ranges.empty());
  e.seconds = 1.2;
  EXPECT_FALSE(decide_pages(e, config).ranges.empty());
}

TEST(Pages, DoNotMoveWhereTheyWouldHardlyBeThroughBeforeTheRunIs) {
  const PolicyConfig config;
  PageEvidence e = spread_over(256, 0.6);
  e.seconds = 1.5;
  e.move_seconds_per_byte = config.least_move_seconds_per_byte;
  const double footprint = static_cast<double>(decide_pages(e, config).bytes);
  ASSERT_GT(footprint, 0);
  e.moving_seconds_per_byte = 0.1 / footprint;
  EXPECT_FALSE(decide_pages(e, config).ranges.empty());
  // As long as the run goes on: half of the gain, on the way.
  e.moving_seconds_per_byte = 1.5 / footprint;
  PagePlan plan = decide_pages(e, config);
  EXPECT_TRUE(plan.ranges.empty());
  EXPECT_NE(plan.reason.find("1.50 s for that"), std::string::npos) << plan.reason;
  expect_replays_once_saved(make_page_episode(e, plan), config);
  e.moving_seconds_per_byte = 6 / footprint;
  plan = decide_pages(e, config);
  EXPECT_TRUE(plan.ranges.empty());
  // Once it has run for longer, what is left is worth it.
  e.seconds = 6;
  plan = decide_pages(e, config);
  EXPECT_FALSE(plan.ranges.empty()) << plan.reason;
  expect_replays_once_saved(make_page_episode(e, plan), config);
}

TEST(Pages, DoNotMoveWhereNothingStalledOfLate) {
  const PolicyConfig config;
  PageEvidence e = spread_over(256, 0.6);
  e.seconds_idle = config.max_page_idle_seconds / 2;
  EXPECT_FALSE(decide_pages(e, config).ranges.empty()) << "by chance";
  e.seconds_idle = 3 * config.max_page_idle_seconds;
  const PagePlan plan = decide_pages(e, config);
  EXPECT_TRUE(plan.ranges.empty());
  EXPECT_NE(plan.reason.find("none in the last 1.50 s"), std::string::npos) << plan.reason;
  e.hidden_share = 0.5;
  EXPECT_FALSE(decide_pages(e, config).ranges.empty()) << "prefetches hide them, and the program goes on";
  expect_replays_once_saved(make_page_episode(e, decide_pages(e, config)), config);
}

TEST(Pages, MayTakeAsLongToMoveAsWouldHaveBeenWorthIt) {
  const PolicyConfig config;
  const PageEvidence e = spread_over(256, 0.6);
  const PagePlan plan = decide_pages(e, config);
  EXPECT_DOUBLE_EQ(plan.most_seconds, plan.estimated_gain * e.seconds / config.min_page_return);
}

TEST(Pages, MoveWhatDecisionsHideAsIfItStalled) {
  PageEvidence e = spread_over(256, 0.1);
  e.seconds = 8;
  e.move_seconds_per_byte = 5e-10;
  EXPECT_TRUE(decide_pages(e, {}).ranges.empty());
  e.hidden_share = 0.7;
  const PagePlan plan = decide_pages(e, {});
  EXPECT_EQ(plan.ranges.size(), 1u) << plan.reason;
  EXPECT_NE(plan.reason.find("70 % with the stalls that prefetches hide"), std::string::npos) << plan.reason;
  EXPECT_DOUBLE_EQ(plan.estimated_gain, decide_pages(spread_over(256, 0.7), {}).estimated_gain);
  expect_replays_once_saved(make_page_episode(e, plan), {});
}

TEST(Pages, DoNotMoveWhatComesBackToTheSamePages) {
  PageEvidence e = spread_over(256, 0.6);
  e.distinct_pages = 20;
  EXPECT_TRUE(decide_pages(e, {}).ranges.empty());
}

TEST(Pages, DoNotJudgeByAFewAddressesOrWhenSwitchedOff) {
  PageEvidence e = spread_over(256, 0.6);
  PolicyConfig off;
  off.huge_pages = false;
  EXPECT_TRUE(decide_pages(e, off).ranges.empty());
  e.addresses = 10;
  EXPECT_TRUE(decide_pages(e, {}).ranges.empty());
}

TEST(Pages, KeepRangesFarApartApart) {
  PageEvidence e = spread_over(128, 0.6);
  for (uint64_t i = 0; i < 64; ++i) e.regions.push_back({100'000 + i, 1});
  const PagePlan plan = decide_pages(e, {});
  ASSERT_EQ(plan.ranges.size(), 2u) << plan.reason;
  EXPECT_EQ(plan.bytes,
            plan.ranges[0].end - plan.ranges[0].begin + plan.ranges[1].end - plan.ranges[1].begin);
}

TEST(Pages, StopMovingWhereWhatMovedBringsLessThanTheRestCosts) {
  const PolicyConfig config;
  const PagePlan plan = decide_pages(spread_over(256, 0.6), config);
  ASSERT_GT(plan.stall_share, 0.5);
  const PageGain nothing{.samples = 400, .saved = 0.01, .error = 0.03};
  EXPECT_EQ(judge_pages({.gain = nothing, .seconds = 4, .left_seconds = 0.5}, plan, config).verdict,
            PageVerdict::kStop);
  EXPECT_EQ(judge_pages({.gain = nothing, .seconds = 4, .left_seconds = 0}, plan, config).verdict,
            PageVerdict::kGoOn)
      << "all have moved, and they stay";
  const PageGain much{.samples = 400, .saved = 0.3, .error = 0.06};
  EXPECT_EQ(judge_pages({.gain = much, .seconds = 4, .left_seconds = 0.5}, plan, config).verdict,
            PageVerdict::kGoOn);
  const PageGain worse{.samples = 400, .saved = -0.3, .error = 0.06};
  EXPECT_EQ(judge_pages({.gain = worse, .seconds = 4, .left_seconds = 0.5}, plan, config).verdict,
            PageVerdict::kUndo);
  EXPECT_EQ(judge_pages({.gain = worse, .seconds = 4, .left_seconds = 0}, plan, config).verdict,
            PageVerdict::kUndo);
}

TEST(Pages, AreNotJudgedByAFewSamplesAndSaySo) {
  const PolicyConfig config;
  const PagePlan plan = decide_pages(spread_over(256, 0.6), config);
  const PageJudgement few =
      judge_pages({.gain = {.samples = 20, .saved = -0.3, .error = 0.1}, .seconds = 4, .left_seconds = 0.5},
                  plan, config);
  EXPECT_EQ(few.verdict, PageVerdict::kGoOn);
  EXPECT_EQ(few.words, "20 stalls were sampled while the pages moved");
  EXPECT_EQ(
      judge_pages({.gain = {.samples = 400, .saved = -0.3, .error = 0.1}, .seconds = 4, .left_seconds = 0},
                  plan, config)
          .words,
      "a stall on moved pages takes 114 to 146 % of one beside them (400 samples while they moved)");
  EXPECT_EQ(judge_pages({.gain = {}, .seconds = 4, .left_seconds = 0.5}, plan, config).words,
            "no stall was sampled while the pages moved");
}

TEST(Pages, AreNotJudgedByASmallPartBesideMuchThatDidNotMove) {
  const PolicyConfig config;
  EXPECT_FALSE(is_told({.samples = 400, .saved = 0.3, .error = 0.3}, config));
  EXPECT_TRUE(is_told({.samples = 400, .saved = 0.3, .error = 0.2}, config));
  EXPECT_TRUE(is_told({.samples = 400, .saved = -0.5, .error = 0.4}, config))
      << "the wider, the longer stalls are";
  EXPECT_FALSE(is_told({.samples = 20, .saved = 0.3, .error = 0.01}, config));
}

TEST(Pages, HoldAfterAPartUntilItsStallsAreSeenToBeShorter) {
  const PolicyConfig config;
  const PagePlan plan = decide_pages(spread_over(256, 0.6), config);
  EXPECT_EQ(bytes_before_hold(plan, config), plan.bytes / 8);
  const auto verdict = [&](PageGain gain, double held, bool timed = false) {
    return judge_pages(
               {.gain = gain, .seconds = 4, .left_seconds = 0.05, .held_seconds = held, .timed = timed}, plan,
               config)
        .verdict;
  };
  const PageGain shorter{.samples = 400, .saved = 0.3, .error = 0.14};
  const PageGain perhaps{.samples = 400, .saved = 0.2, .error = 0.14};
  const PageGain hardly{.samples = 400, .saved = 0.01, .error = 0.14};
  const PageGain longer{.samples = 400, .saved = -0.3, .error = 0.14};
  EXPECT_EQ(verdict(shorter, 0.1), PageVerdict::kHold) << "by chance, perhaps";
  EXPECT_EQ(verdict(shorter, 1), PageVerdict::kGoOn);
  EXPECT_EQ(verdict(perhaps, 1), PageVerdict::kHold);
  EXPECT_EQ(verdict(perhaps, 4), PageVerdict::kGoOn) << "more likely than not, and it will be seen";
  EXPECT_EQ(verdict(hardly, 1), PageVerdict::kHold);
  EXPECT_EQ(verdict(hardly, 4), PageVerdict::kStop);
  EXPECT_EQ(verdict(longer, 0.1), PageVerdict::kUndo);
  EXPECT_EQ(verdict(perhaps, 0), PageVerdict::kGoOn) << "it does not hold";
  EXPECT_EQ(verdict({}, 0.1), PageVerdict::kHold);
  EXPECT_EQ(verdict({}, 4), PageVerdict::kStop) << "nobody would see what the rest gives";
  EXPECT_EQ(verdict({}, 4, true), PageVerdict::kGoOn) << "the loops' time will say it";
}

TEST(Pages, GoThroughWithoutAHoldWhereThereAreFew) {
  const PolicyConfig config;
  PagePlan plan;
  plan.bytes = 15 << 20;
  EXPECT_EQ(bytes_before_hold(plan, config), 0u);
  plan.bytes = 16 << 20;
  EXPECT_EQ(bytes_before_hold(plan, config), uint64_t{8} << 20);
  plan.bytes = 256 << 20;
  plan.probe = true;
  EXPECT_EQ(bytes_before_hold(plan, config), 0u);
}

TEST(Pages, DoNotMoveAgainWhatAnEarlierRunMovedInVain) {
  PageEvidence e = spread_over(256, 0.6);
  e.vain_bytes = uint64_t{200} << 20;
  EXPECT_TRUE(decide_pages(e, {}).ranges.empty());
  EXPECT_NE(decide_pages(e, {}).reason.find("in vain"), std::string::npos);
  e.vain_bytes = uint64_t{100} << 20;
  EXPECT_FALSE(decide_pages(e, {}).ranges.empty()) << "there is more than twice as much of it now";
}

PageEpisode kept_before() {
  PageEpisode earlier;
  earlier.state = DecisionState::kKept;
  earlier.places = {{.memory = 0, .begin = 0, .end = 64 * kHugePageBytes}};
  return earlier;
}

TEST(Pages, AreAskedForAtTheStartWhereAnEarlierRunKeptThem) {
  PageEpisode earlier = kept_before();
  earlier.measured_gain = 0.3;
  const PageStart start = decide_pages_at_start(earlier, {});
  EXPECT_TRUE(start.ask);
  EXPECT_NE(start.reason.find("128 MiB"), std::string::npos) << start.reason;
  EXPECT_NE(start.reason.find("+30.0 %"), std::string::npos) << start.reason;
}

TEST(Pages, AreNotAskedForAtTheStartWhereTheyDidNotPay) {
  for (const DecisionState state : {DecisionState::kRolledBack, DecisionState::kFailed,
                                    DecisionState::kQueued, DecisionState::kMoved, DecisionState::kNone}) {
    PageEpisode earlier = kept_before();
    earlier.state = state;
    EXPECT_FALSE(decide_pages_at_start(earlier, {}).ask) << to_string(state);
  }
  for (const double gain : {-0.03, 0.0, 0.004}) {
    PageEpisode earlier = kept_before();
    earlier.measured_gain = gain;
    EXPECT_FALSE(decide_pages_at_start(earlier, {}).ask) << gain;
  }
  PageEpisode nowhere = kept_before();
  nowhere.measured_gain = 0.3;
  nowhere.places.clear();
  EXPECT_FALSE(decide_pages_at_start(nowhere, {}).ask);
  PageEpisode off = kept_before();
  off.measured_gain = 0.3;
  EXPECT_FALSE(decide_pages_at_start(off, {.huge_pages = false}).ask);
}

TEST(Pages, AreAskedForAtTheStartWhereTheyWereFilledNoSlower) {
  PageEpisode filled = kept_before();
  filled.evidence.fill = FillEvidence{.begin = 0, .end = 64 * kHugePageBytes};
  EXPECT_TRUE(decide_pages_at_start(filled, {}).ask) << "only the filling was measured";
  filled.state = DecisionState::kUnjudged;
  EXPECT_FALSE(decide_pages_at_start(filled, {}).ask);
}

TEST(Pages, AreInVainWhereTheyWereTakenBackOrGaveNothing) {
  PageEpisode earlier;
  earlier.evidence = spread_over(256, 0.6);
  earlier.ranges = make_page_episode(earlier.evidence, decide_pages(earlier.evidence, {})).ranges;
  const uint64_t bytes = decide_pages(earlier.evidence, {}).bytes;
  const auto in_vain = [&](DecisionState state, double gain) {
    earlier.state = state;
    earlier.measured_gain = gain;
    return bytes_in_vain(earlier, /*seconds=*/1000, {});
  };
  EXPECT_EQ(in_vain(DecisionState::kRolledBack, -0.2), bytes);
  EXPECT_EQ(in_vain(DecisionState::kKept, 0.004), bytes);
  EXPECT_EQ(in_vain(DecisionState::kKept, 0.2), 0u);
  EXPECT_EQ(in_vain(DecisionState::kKept, 0), 0u) << "nobody measured it";
  EXPECT_EQ(in_vain(DecisionState::kFailed, 0), 0u);
  earlier.ranges.resize(1);
  earlier.ranges[0].end = earlier.ranges[0].begin + kHugePageBytes;
  EXPECT_EQ(in_vain(DecisionState::kRolledBack, -0.2), bytes) << "a part stands for the whole";
}

TEST(Pages, OfWhichNobodyCouldTellWhatTheyGaveAreTriedAFewTimes) {
  const PolicyConfig config;
  PageEpisode earlier;
  earlier.state = DecisionState::kUnjudged;
  earlier.evidence = spread_over(256, 0.6);
  const double seconds = earlier.evidence.seconds;
  for (earlier.unjudged = 1; earlier.unjudged < config.most_unjudged_runs; ++earlier.unjudged) {
    EXPECT_EQ(bytes_in_vain(earlier, seconds, config), 0u) << earlier.unjudged;
    EXPECT_FALSE(decide_pages_at_start(earlier, config).ask);
  }
  EXPECT_EQ(bytes_in_vain(earlier, seconds, config), decide_pages(earlier.evidence, config).bytes);
  EXPECT_EQ(bytes_in_vain(earlier, 2 * seconds, config), 0u) << "this run goes on for longer than those did";
  EXPECT_NE(decide_pages_at_start(earlier, config).reason.find("not tried again"), std::string::npos);
}

TEST(Pages, ReplayFromWhatIsSaved) {
  const PolicyConfig config;
  const PageEvidence e = spread_over(256, 0.6);
  PageEpisode episode = make_page_episode(e, decide_pages(e, config));
  EXPECT_EQ(episode.alternatives.size(), 2u);
  episode.places = kept_before().places;
  episode.state = DecisionState::kUnjudged;
  episode.unjudged = 2;
  expect_replays_once_saved(episode, config);
  PolicyConfig other = config;
  other.tlb_reach_bytes *= 100;
  EXPECT_FALSE(replays(episode, other));
}

}  // namespace
}  // namespace hindsight::feedback
