// Which decision of a whole version is put on trial, and what the policy makes of the outcome.
#include "feedback/policy/versions.h"

#include <gtest/gtest.h>

#include "feedback/policy/start.h"
#include "feedback/profile/merge.h"

namespace hindsight::feedback {
namespace {

VersionEvidence hot() {
  VersionEvidence e;
  e.inline_calls = e.weigh_branches = e.split_cold = true;
  e.seconds_published = 2;
  e.share = 0.5;
  e.compile_seconds = 0.02;
  e.guest_seconds = 4;
  return e;
}

TEST(VersionTrialPolicy, TriesOneDecisionAfterTheOther) {
  const PolicyConfig config;
  VersionEvidence e = hot();
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kInlineCalls);
  EXPECT_EQ(decide_version_trial(e, config).alternatives.size(), 2u);
  e.outcomes.inline_calls = PrefetchOutcome::kKept;
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kWeighBranches);
  e.outcomes.weigh_branches = PrefetchOutcome::kRolledBack;
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kSplitCold);
  e.outcomes.split_cold = PrefetchOutcome::kInTrial;  // one that did not end
  EXPECT_EQ(decide_version_trial(e, config).without, jit::ChangeKind::kSplitCold);
  e.split_cold = false;
  EXPECT_FALSE(decide_version_trial(e, config).without);
}

TEST(VersionTrialPolicy, LeavesAloneWhatIsNewColdOrTooDearToTry) {
  const PolicyConfig config;
  VersionEvidence e = hot();
  e.seconds_published = 0.5;
  EXPECT_FALSE(decide_version_trial(e, config).without);
  e = hot();
  e.share = 0.05;
  EXPECT_FALSE(decide_version_trial(e, config).without);
  // 5 % of 2 s do not repay an eighth of a second of compiling and more.
  e = hot();
  e.compile_seconds = 4;
  EXPECT_FALSE(decide_version_trial(e, config).without);
  e = hot();
  e.guest_seconds = 1.1;
  EXPECT_FALSE(decide_version_trial(e, config).without);
  e = hot();
  e.seconds_on_trial = 0.3;
  EXPECT_FALSE(decide_version_trial(e, config).without);
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

TEST(VersionTrialPolicy, PlansWithoutWhatLostAndOtherwiseWithIt) {
  const PolicyConfig config;
  FunctionEvidence e = seen();
  for (const PrefetchOutcome outcome :
       {PrefetchOutcome::kNone, PrefetchOutcome::kKept, PrefetchOutcome::kInTrial}) {
    e.outcomes = {outcome, outcome, outcome};
    const FunctionPlan plan = decide(e, config);
    ASSERT_EQ(plan.action, Action::kOptimize) << plan.reason;
    EXPECT_EQ(plan.calls.size(), 1u);
    ASSERT_EQ(plan.branches.size(), 1u);
    EXPECT_TRUE(plan.branches[0].hint.weigh);
    EXPECT_TRUE(plan.branches[0].hint.one_sided);
    EXPECT_TRUE(plan.split_cold);
  }
  e.outcomes = {.inline_calls = PrefetchOutcome::kRolledBack};
  EXPECT_TRUE(decide(e, config).calls.empty());
  EXPECT_EQ(decide(e, config).branches.size(), 1u);
  e.outcomes = {.weigh_branches = PrefetchOutcome::kRolledBack};
  ASSERT_EQ(decide(e, config).branches.size(), 1u);
  EXPECT_FALSE(decide(e, config).branches[0].hint.weigh);
  EXPECT_TRUE(decide(e, config).branches[0].hint.one_sided);
  e.outcomes = {.split_cold = PrefetchOutcome::kRolledBack};
  EXPECT_FALSE(decide(e, config).split_cold);
  EXPECT_FALSE(decide(e, config).branches[0].hint.one_sided);
  EXPECT_TRUE(decide(e, config).branches[0].hint.weigh);
}

TEST(VersionTrialPolicy, SplitsInModulesOfMuchCodeOnlyAndNotWhereItIsSwitchedOff) {
  FunctionEvidence e = seen();
  PolicyConfig config;
  e.module_bytes = 1000;
  EXPECT_FALSE(decide(e, config).split_cold);
  e.module_bytes = 1 << 20;
  config.code_layout = false;
  EXPECT_FALSE(decide(e, config).split_cold);
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
  e.outcomes.inline_calls = PrefetchOutcome::kRolledBack;
  EXPECT_EQ(decide(e, config).action, Action::kNothing);
}

TEST(VersionTrialPolicy, SavedDecisionsReplayWithWhatWasKnownOfTrialsThen) {
  const PolicyConfig config;
  for (const PrefetchOutcome outcome : {PrefetchOutcome::kNone, PrefetchOutcome::kRolledBack}) {
    FunctionEvidence e = seen();
    e.outcomes = {outcome, outcome, outcome};
    Episode episode = make_episode(e, decide(e, config));
    EXPECT_EQ(episode.split_cold, outcome == PrefetchOutcome::kNone);
    EXPECT_TRUE(replays(episode, config));
    episode.evidence.outcomes = {};
    EXPECT_EQ(replays(episode, config), outcome == PrefetchOutcome::kNone);
  }
}

TEST(VersionTrialPolicy, AnotherStartDoesNotPlanWhatLostInAnEarlierRun) {
  const PolicyConfig config;
  Episode decided = make_episode(seen(), decide(seen(), config));
  decided.state = "compiled";
  decided.prefetches = {
      {0, PrefetchOutcome::kRolledBack, 0, -0.04, "slower with it", jit::ChangeKind::kInlineCalls},
      {0, PrefetchOutcome::kKept, 0, 0.10, "faster with it", jit::ChangeKind::kWeighBranches}};
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
  EXPECT_TRUE(start.plan.calls.empty());
  ASSERT_EQ(start.plan.branches.size(), 1u);
  EXPECT_TRUE(start.plan.branches[0].hint.weigh);
  EXPECT_TRUE(start.plan.split_cold);
  EXPECT_TRUE(replays(make_start_episode(questions[0], start), config));

  // Runs later, if nobody finds it out again, it may be tried again.
  ModuleProfile idle = run;
  idle.episodes.clear();
  ModuleProfile all = merge(run, idle);
  EXPECT_EQ(all.episodes.at(0).prefetches.size(), 2u);
  for (uint32_t i = 0; i < kRunsToForgetLosers; ++i) all = merge(all, idle);
  ASSERT_EQ(all.episodes.at(0).prefetches.size(), 1u);
  EXPECT_EQ(all.episodes[0].prefetches[0].change, jit::ChangeKind::kWeighBranches);
  const std::vector<StartQuestion> later = start_questions(all);
  EXPECT_EQ(decide_start(later[0].decision->evidence, later[0].earlier, config).plan.calls.size(), 1u);
}

TEST(VersionTrialPolicy, OutcomesComeThroughTextAndMerging) {
  FunctionEvidence e = seen();
  e.outcomes = {PrefetchOutcome::kKept, PrefetchOutcome::kRolledBack, PrefetchOutcome::kInTrial};
  ProfileFile file;
  file.modules.resize(1);
  file.modules[0].functions = {e};
  file.modules[0].episodes = {make_episode(e, decide(e, {}))};
  const auto back = parse_profile(format_profile(file), "test");
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, file);
  ModuleProfile nothing_new = file.modules[0];
  nothing_new.functions[0].outcomes = {};
  EXPECT_EQ(merge(file.modules[0], nothing_new).functions[0].outcomes, e.outcomes);
}

}  // namespace
}  // namespace hindsight::feedback
