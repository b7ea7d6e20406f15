// Which decision of a whole version is put on trial, and what the policy makes of the outcome.
#include "feedback/policy/versions.h"

#include <gtest/gtest.h>

#include "feedback/policy/start.h"
#include "feedback/profile/merge.h"
#include "tests/feedback/policy/listed.h"

namespace hindsight::feedback {
namespace {

VersionEvidence hot_version() {
  VersionEvidence e;
  e.there = {kInlineCalls, kWeighBranches, kSplitCold};
  e.seconds_since_tried = 2;
  e.share = 0.5;
  e.compile_seconds = 0.02;
  e.guest_seconds = 4;
  return e;
}

TEST(VersionTrialPolicy, TriesOneDecisionAfterTheOther) {
  const PolicyConfig config;
  VersionEvidence e = hot_version();
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kInlineCalls);
  EXPECT_EQ(decide_version_trial(e, config).alternatives.size(), 2u);
  e.changes.settle(version_site(kInlineCalls), ChangeState::kKept);
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kWeighBranches);
  e.changes.settle(version_site(kWeighBranches), ChangeState::kRolledBack);
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kSplitCold);
  e.changes.settle(version_site(kSplitCold), ChangeState::kInTrial);  // one that did not end
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kSplitCold);
  e.there.pop_back();
  EXPECT_FALSE(decide_version_trial(e, config).without);
}

TEST(VersionTrialPolicy, LeavesAloneWhatIsNewColdOrTooDearToTry) {
  const PolicyConfig config;
  VersionEvidence e = hot_version();
  e.seconds_since_tried = 0.2;
  EXPECT_FALSE(decide_version_trial(e, config).without);
  e = hot_version();
  e.share = 0.05;
  EXPECT_FALSE(decide_version_trial(e, config).without);
  // 5 % of 2 s do not repay an eighth of a second of compiling and more.
  e = hot_version();
  e.compile_seconds = 4;
  EXPECT_FALSE(decide_version_trial(e, config).without);
  e = hot_version();
  e.guest_seconds = 0.2;
  EXPECT_FALSE(decide_version_trial(e, config).without);
  e = hot_version();
  e.seconds_lost = 0.1;
  EXPECT_FALSE(decide_version_trial(e, config).without);
}

TEST(VersionTrialPolicy, ComparesAVersionWithOneThatHasNoChangeOnceAllElseIsDecided) {
  const PolicyConfig config;
  VersionEvidence e = hot_version();
  e.there = {kWeighBranches};
  e.at = WasmOffset(0x100);
  e.is_changed = true;
  VersionTrialPlan plan = decide_version_trial(e, config);
  EXPECT_TRUE(plan.tries);
  EXPECT_EQ(plan.without, jit::ChangeKind::kWeighBranches);
  // What was found out about another loop of the function, or about the function, says nothing of this one.
  e.changes.settle(version_site(kWeighBranches), ChangeState::kKept);
  e.changes.settle(version_site(kWeighBranches, WasmOffset(0x200)), ChangeState::kKept);
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kWeighBranches);
  e.changes.settle(version_site(kWeighBranches, e.at), ChangeState::kKept);
  plan = decide_version_trial(e, config);
  EXPECT_TRUE(plan.tries);
  EXPECT_FALSE(plan.without) << "without all of them";
  EXPECT_NE(plan.alternatives[1].name.find("without all changes"), std::string::npos);
  e.is_changed = false;
  EXPECT_FALSE(decide_version_trial(e, config).tries);
}

// All of it decided, in this run or an earlier one.
VersionEvidence decided_version() {
  VersionEvidence e = hot_version();
  e.there = {};
  e.is_changed = true;
  return e;
}
bool is_watched(const VersionEvidence& e) {
  const VersionTrialPlan plan = decide_version_trial(e, {});
  return plan.tries && !plan.without;
}

TEST(VersionTrialPolicy, ComparesWhatNothingIsKnownOfButThatItIsChanged) {
  VersionEvidence e = decided_version();
  EXPECT_TRUE(is_watched(e));
  e.share = 0.05;
  EXPECT_FALSE(is_watched(e));
  e = decided_version();
  e.seconds_since_tried = 0.2;
  EXPECT_FALSE(is_watched(e));
}

TEST(VersionTrialPolicy, ComparesAgainOnceTheVersionRanAsLongAgain) {
  VersionEvidence e = decided_version();
  e.guest_seconds = 100;
  e.seconds_tried = 4;
  e.seconds_since_tried = 3.9;
  EXPECT_FALSE(is_watched(e));
  EXPECT_NE(decide_version_trial(e, {}).reason.find("waits until it ran as long again"), std::string::npos);
  e.seconds_since_tried = 4;
  EXPECT_TRUE(is_watched(e));
}

TEST(VersionTrialPolicy, TriesWhatCouldNotBeMeasuredAgainOnceTheVersionRanAsLongAgain) {
  VersionEvidence e = hot_version();
  e.guest_seconds = 100;
  e.seconds_tried = 4;
  e.seconds_since_tried = 3.9;
  EXPECT_FALSE(decide_version_trial(e, {}).tries);
  e.seconds_since_tried = 4;
  EXPECT_EQ(decide_version_trial(e, {}).without, kInlineCalls);
}

TEST(VersionTrialPolicy, ComparesAgainAtATimeThatGrowsAndNeverWithoutEnd) {
  VersionEvidence e = decided_version();
  uint32_t comparisons = 0;
  for (int ms = 0; ms < 1'000'000; ms += 50) {
    e.guest_seconds = 1e-3 * ms;
    e.seconds_since_tried = e.guest_seconds - e.seconds_tried;
    if (!is_watched(e)) continue;
    ++comparisons;
    e.seconds_tried = e.guest_seconds;
    e.comparisons.lost += 1;
  }
  EXPECT_GE(comparisons, 8u);
  EXPECT_LE(comparisons, 13u) << "doublings of a quarter of a second in a quarter of an hour";
}

TEST(VersionTrialPolicy, ChargesAComparisonLessWhereThereIsNothingToCompileAndMoreWithEachThatWasInVain) {
  VersionEvidence e = decided_version();
  e.seconds_since_tried = 1;
  e.compile_seconds = 0.1;
  e.comparisons.taken = 0.1;
  EXPECT_TRUE(is_watched(e)) << "50 ms may be gained, and 25 are charged";
  e.comparisons.lost = 3;
  EXPECT_FALSE(is_watched(e));
  e.comparisons.won = 3;
  EXPECT_TRUE(is_watched(e));
  e.comparisons = {.taken = 1};
  EXPECT_FALSE(is_watched(e)) << "the guest loses all that the compile takes";
  e.has_plain = true;
  EXPECT_TRUE(is_watched(e));
}

TEST(VersionTrialPolicy, ChargesWhatTheOtherVersionLostWhenTheyWereComparedLast) {
  VersionEvidence e = decided_version();
  e.guest_seconds = 100;
  e.seconds_tried = e.seconds_since_tried = 1;
  e.known_gain = 0.02;
  EXPECT_TRUE(is_watched(e));
  e.known_gain = 4;
  EXPECT_FALSE(is_watched(e)) << "a tenth of a second at a fifth of the speed";
  e.seconds_tried = e.seconds_since_tried = 4;
  EXPECT_TRUE(is_watched(e));
  e.guest_seconds = 3;
  EXPECT_FALSE(is_watched(e)) << "that is more than trials may cost of three seconds";
}

// A hot function with a call that goes one way, a branch that does, in a module of much code.
FunctionEvidence seen() {
  FunctionEvidence e;
  e.function = FuncIndex(1);
  e.code_bytes = 100;
  e.samples_baseline = 200;
  e.seconds_baseline = 1;
  e.module_bytes = 1 << 20;
  e.calls = {{.call = WasmOffset(50), .records = 100, .targets = {{.element = 3, .records = 100}}}};
  e.branches = {{.branch = WasmOffset(60), .outcomes = 1000, .taken = 1000}};
  return e;
}

ChangeLedger all_of(ChangeState inline_calls, ChangeState weigh_branches, ChangeState split_cold) {
  return {{version_site(kInlineCalls), {.state = inline_calls}},
          {version_site(kWeighBranches), {.state = weigh_branches}},
          {version_site(kSplitCold), {.state = split_cold}}};
}

const jit::Site kWeighed{kWeighBranches, WasmOffset(60)}, kOneSided{kSplitCold, WasmOffset(60)};

TEST(VersionTrialPolicy, PlansWithoutWhatLostAndOtherwiseWithIt) {
  const PolicyConfig config;
  FunctionEvidence e = seen();
  for (const ChangeState outcome : {ChangeState::kNone, ChangeState::kKept, ChangeState::kInTrial}) {
    e.changes = all_of(outcome, outcome, outcome);
    const FunctionPlan plan = decide(e, config);
    ASSERT_EQ(plan.action, Action::kOptimize) << plan.reason;
    EXPECT_EQ(listed(plan, kInlineCalls).size(), 1u);
    EXPECT_TRUE(plan.has(kWeighed));
    EXPECT_TRUE(plan.has(kOneSided));
    EXPECT_TRUE(plan.has(version_site(kSplitCold)));
  }
  e.changes = {{version_site(kInlineCalls), {.state = ChangeState::kRolledBack}}};
  EXPECT_TRUE(listed(decide(e, config), kInlineCalls).empty());
  EXPECT_TRUE(decide(e, config).has(kWeighed));
  e.changes = {{version_site(kWeighBranches), {.state = ChangeState::kRolledBack}}};
  EXPECT_FALSE(decide(e, config).has(kWeighed));
  EXPECT_TRUE(decide(e, config).has(kOneSided));
  e.changes = {{version_site(kSplitCold), {.state = ChangeState::kRolledBack}}};
  EXPECT_FALSE(decide(e, config).has(version_site(kSplitCold)));
  EXPECT_FALSE(decide(e, config).has(kOneSided));
  EXPECT_TRUE(decide(e, config).has(kWeighed));
}

TEST(VersionTrialPolicy, SplitsInModulesOfMuchCodeOnlyAndNotWhereItIsSwitchedOff) {
  FunctionEvidence e = seen();
  PolicyConfig config;
  e.module_bytes = 1000;
  EXPECT_FALSE(decide(e, config).has(version_site(kSplitCold)));
  e.module_bytes = 1 << 20;
  config.changes.set(jit::ChangeKind::kSplitCold, false);
  EXPECT_FALSE(decide(e, config).has(version_site(kSplitCold)));
}

TEST(VersionTrialPolicy, DoesNotTakeCallsForUnforeseenWhoseTargetsLostTheirPlace) {
  const PolicyConfig config;
  FunctionEvidence e = seen();
  e.optimized = true;
  e.entered = Entered::kAgain;
  e.seconds_since_published = 2;
  e.seconds_run = 3;
  e.calls[0].unforeseen_records = 100'000;
  e.calls[0].unforeseen = {{.element = 3, .records = 100'000}};
  EXPECT_NE(decide(e, config).action, Action::kNothing);
  e.changes.settle(version_site(kInlineCalls), ChangeState::kRolledBack);
  EXPECT_EQ(decide(e, config).action, Action::kNothing);
}

TEST(VersionTrialPolicy, SavedDecisionsReplayWithWhatWasKnownOfTrialsThen) {
  const PolicyConfig config;
  for (const ChangeState outcome : {ChangeState::kNone, ChangeState::kRolledBack}) {
    FunctionEvidence e = seen();
    e.changes = all_of(outcome, outcome, outcome);
    Episode episode = make_episode(e, decide(e, config));
    EXPECT_EQ(!episode.asked_for(kSplitCold).empty(), outcome == ChangeState::kNone);
    EXPECT_TRUE(replays(episode, config));
    episode.evidence.changes = {};
    EXPECT_EQ(replays(episode, config), outcome == ChangeState::kNone);
  }
}

TEST(VersionTrialPolicy, AnotherStartDoesNotPlanWhatLostInAnEarlierRun) {
  const PolicyConfig config;
  Episode decided = make_episode(seen(), decide(seen(), config));
  decided.state = DecisionState::kCompiled;
  decided.outcomes = {
      {version_site(kInlineCalls),
       {.state = ChangeState::kRolledBack, .gain = -0.04, .why = "slower with it"}},
      {version_site(kWeighBranches), {.state = ChangeState::kKept, .gain = 0.10, .why = "faster with it"}}};
  ModuleProfile run;
  run.episodes = {decided};
  FunctionSamples samples;
  samples.function = FuncIndex(1);
  samples.samples = 100;
  samples.seconds_baseline = 2;
  run.samples = {samples};
  const std::vector<StartQuestion> questions = start_questions(run);
  ASSERT_EQ(questions.size(), 1u);
  const StartPlan start = decide_start(questions[0].decision->evidence, questions[0].earlier, config);
  ASSERT_EQ(start.plan.action, Action::kOptimize) << start.plan.reason;
  EXPECT_TRUE(listed(start.plan, kInlineCalls).empty());
  EXPECT_TRUE(start.plan.has(kWeighed));
  EXPECT_TRUE(start.plan.has(version_site(kSplitCold)));
  EXPECT_TRUE(replays(make_start_episode(questions[0], start), config));

  // Runs later, if nobody finds it out again, it may be tried again.
  ModuleProfile idle = run;
  idle.episodes.clear();
  ModuleProfile all = merge(run, idle);
  EXPECT_EQ(all.episodes.at(0).outcomes.size(), 2u);
  for (uint32_t i = 0; i < kRunsToForgetLosers; ++i) all = merge(all, idle);
  ASSERT_EQ(all.episodes.at(0).outcomes.size(), 1u);
  EXPECT_EQ(all.episodes[0].outcomes.begin()->site, version_site(kWeighBranches));
  const std::vector<StartQuestion> later = start_questions(all);
  const StartPlan again = decide_start(later[0].decision->evidence, later[0].earlier, config);
  EXPECT_EQ(listed(again.plan, kInlineCalls).size(), 1u);
}

TEST(VersionTrialPolicy, OutcomesComeThroughTextAndMerging) {
  FunctionEvidence e = seen();
  e.changes = all_of(ChangeState::kKept, ChangeState::kRolledBack, ChangeState::kInTrial);
  ProfileFile file;
  file.modules.resize(1);
  file.modules[0].functions = {e};
  file.modules[0].episodes = {make_episode(e, decide(e, {}))};
  const auto back = parse_profile(format_profile(file), "test");
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, file);
  ModuleProfile nothing_new = file.modules[0];
  nothing_new.functions[0].changes = {};
  EXPECT_EQ(merge(file.modules[0], nothing_new).functions[0].changes, e.changes);
}

}  // namespace
}  // namespace hindsight::feedback
