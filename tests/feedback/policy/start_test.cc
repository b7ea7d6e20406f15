#include "feedback/policy/start.h"

#include <gtest/gtest.h>

namespace hindsight::feedback {
namespace {

// A module of which `runs` runs are known, in each of which function 3 ran for `seconds` in optimized code.
ModuleProfile known(double runs, double seconds) {
  Episode decision;
  decision.evidence.function = FuncIndex(3);
  decision.evidence.name = "kernel";
  decision.evidence.code_bytes = 200;
  decision.evidence.samples_baseline = 100;
  decision.evidence.loads.push_back({.load = WasmOffset(77), .stall_samples = 40});
  decision.action = "optimize";
  decision.reason = "it was hot";
  decision.state = "compiled";
  decision.compile_seconds = 0.040;
  decision.osr_loops = {1};
  decision.prefetches = {{77, PrefetchOutcome::kKept, 24, 0.5, ""},
                         {80, PrefetchOutcome::kInTrial, 0, 0, ""},
                         {90, PrefetchOutcome::kRolledBack, 0, 0, ""},
                         {95, PrefetchOutcome::kNoSlice, 0, 0, ""}};
  ModuleProfile m;
  m.runs = runs;
  m.episodes = {decision};
  FunctionSamples s;
  s.function = FuncIndex(3);
  s.seconds_optimized = runs * seconds;
  m.samples = {s};
  return m;
}

StartPlan decide(const ModuleProfile& m, const PolicyConfig& config = {}) {
  const auto questions = start_questions(m);
  EXPECT_EQ(questions.size(), 1u);
  return decide_start(questions[0].decision->evidence, questions[0].earlier, config);
}

TEST(Start, CompilesAtOnceWhatPaysInARunAsTheyAre) {
  const StartPlan start = decide(known(2, 1));
  EXPECT_EQ(start.plan.action, Action::kOptimize);
  EXPECT_EQ(start.plan.osr_loops, std::vector<LoopIndex>{LoopIndex(1)});
  EXPECT_EQ(start.plan.alternatives.size(), 2u);
}

TEST(Start, WaitsWhereRunsAreTooShortForTheCompile) {
  // 4 ms in optimized code are 8 ms of baseline code, 4 ms of them to gain; the compile costs 40 ms, at a
  // quarter.
  PolicyConfig config;
  config.background_cost = 0.25;
  const StartPlan wait = decide(known(3, 0.004), config);
  EXPECT_EQ(wait.plan.action, Action::kNothing);
  EXPECT_NE(wait.plan.reason.find("4.0 ms to gain against 10.0 ms"), std::string::npos) << wait.plan.reason;
  EXPECT_EQ(decide(known(3, 0.015), config).plan.action, Action::kOptimize);
}

TEST(Start, DoesNotTakeManyShortRunsForALongOne) {
  ModuleProfile m = known(50, 0.001);
  EXPECT_EQ(decide(m).plan.action, Action::kNothing);
}

TEST(Start, TakesOverPrefetchesThatWereKeptAndTriesAgainThoseWhoseTrialDidNotEnd) {
  const StartPlan start = decide(known(1, 1));
  ASSERT_EQ(start.plan.prefetches.size(), 2u);
  EXPECT_EQ(start.plan.prefetches[0].hint.load, WasmOffset(77));
  EXPECT_EQ(start.plan.prefetches[0].hint.initial_distance, 24u);
  EXPECT_NEAR(start.plan.prefetches[0].hint.stall_share, 0.4, 1e-9);
  EXPECT_EQ(start.plan.prefetches[1].hint.load, WasmOffset(80));
  EXPECT_EQ(start.settled, (std::map<uint32_t, uint32_t>{{77, 24}}));
}

TEST(Start, TakesOverInterleavedSearchesAsItDoesPrefetches) {
  ModuleProfile m = known(2, 1);
  m.episodes[0].prefetches = {{77, PrefetchOutcome::kRolledBack, 0, 0, ""},
                              {77, PrefetchOutcome::kKept, 12, 1.5, "", jit::ChangeKind::kInterleave},
                              {80, PrefetchOutcome::kInTrial, 0, 0, "", jit::ChangeKind::kInterleave},
                              {90, PrefetchOutcome::kNoSlice, 0, 0, "", jit::ChangeKind::kInterleave}};
  const StartQuestion question = start_questions(m)[0];
  const StartPlan start = decide_start(question.decision->evidence, question.earlier, {});
  EXPECT_TRUE(start.plan.prefetches.empty());
  ASSERT_EQ(start.plan.interleaves.size(), 2u);
  EXPECT_EQ(start.plan.interleaves[0].hint.initial_width, 12u);
  EXPECT_EQ(start.settled_widths, (std::map<uint32_t, uint32_t>{{77, 12}}));
  EXPECT_TRUE(replays(make_start_episode(question, start), {}));
  PolicyConfig off;
  off.interleave = false;
  EXPECT_TRUE(decide(m, off).plan.interleaves.empty());
  EXPECT_FALSE(replays(make_start_episode(question, start), off));
}

TEST(Start, TakesOverJumpPointersAsItDoesPrefetches) {
  ModuleProfile m = known(2, 1);
  m.episodes[0].prefetches = {{77, PrefetchOutcome::kNoSlice, 0, 0, ""},
                              {77, PrefetchOutcome::kKept, 8, 2.5, "", jit::ChangeKind::kJumpPointers},
                              {80, PrefetchOutcome::kInTrial, 0, 0, "", jit::ChangeKind::kJumpPointers},
                              {90, PrefetchOutcome::kRolledBack, 0, 0, "", jit::ChangeKind::kJumpPointers}};
  const StartQuestion question = start_questions(m)[0];
  const StartPlan start = decide_start(question.decision->evidence, question.earlier, {});
  EXPECT_TRUE(start.plan.prefetches.empty());
  ASSERT_EQ(start.plan.jumps.size(), 2u);
  EXPECT_EQ(start.plan.jumps[0].hint.initial_distance, 8u);
  EXPECT_NE(start.plan.jumps[0].reason.find("kept at distance 8, +250.0 %"), std::string::npos);
  EXPECT_EQ(start.settled_jumps, (std::map<uint32_t, uint32_t>{{77, 8}}));
  EXPECT_TRUE(replays(make_start_episode(question, start), {}));
  PolicyConfig off;
  off.jump_pointers = false;
  EXPECT_TRUE(decide(m, off).plan.jumps.empty());
  EXPECT_FALSE(replays(make_start_episode(question, start), off));
}

TEST(Start, TakesNoDistanceOnTrust) {
  ModuleProfile m = known(1, 1);
  m.episodes[0].prefetches[0].distance = 4'000'000'000;
  EXPECT_EQ(decide(m).settled.at(77), jit::traits_of(jit::ChangeKind::kPrefetch).knob.most);
  m.episodes[0].prefetches[0].distance = 0;
  EXPECT_EQ(decide(m).settled.at(77), 1u);
}

TEST(Start, PutsTheUsualTargetsOfCallsInPlace) {
  ModuleProfile m = known(1, 1);
  m.episodes[0].evidence.calls.push_back({WasmOffset(50), 40, {{3, 30}, {5, 9}}});
  const StartPlan start = decide(m);
  ASSERT_EQ(start.plan.calls.size(), 1u);
  EXPECT_EQ(start.plan.calls[0].hint.targets.size(), 2u);
}

TEST(Start, FirstCompilesWhatGainsMostForTheTimeItTakes) {
  ModuleProfile quick = known(1, 1), slow = known(1, 2);
  quick.episodes[0].compile_seconds = 0.010;
  slow.episodes[0].compile_seconds = 0.200;
  EXPECT_GT(decide(quick).priority, decide(slow).priority);
}

TEST(Start, AsksAboutTheLastDecisionOnAFunctionAndRemembersWhatEarlierOnesLost) {
  ModuleProfile m = known(1, 1);
  Episode again = m.episodes[0];
  again.action = "reoptimize";
  again.osr_loops = {};
  again.prefetches = {{60, PrefetchOutcome::kKept, 8, 0.2, ""}};
  m.episodes.push_back(again);
  const auto questions = start_questions(m);
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(questions[0].decision, &m.episodes[1]);
  EXPECT_EQ(questions[0].earlier.osr_loops, std::vector<uint32_t>{});
  std::vector<uint32_t> loads;
  for (const auto& p : questions[0].earlier.prefetches) loads.push_back(p.load);
  EXPECT_EQ(loads, (std::vector<uint32_t>{60, 90, 95}));
  const StartPlan start = decide_start(again.evidence, questions[0].earlier, {});
  ASSERT_EQ(start.plan.prefetches.size(), 1u);
}

TEST(Start, LeavesOutWhatTheCompilerRefused) {
  ModuleProfile m = known(1, 1);
  m.episodes[0].state = "failed: too large";
  EXPECT_TRUE(start_questions(m).empty());
}

TEST(Start, TakesTheDecisionWhoseCodeRanAndWhatLaterOnesFoundImpossible) {
  ModuleProfile m = known(1, 1);
  Episode later = m.episodes[0];
  later.action = "reoptimize";
  later.state = kNothingNew;
  later.osr_loops = {};
  later.prefetches = {{60, PrefetchOutcome::kNoSlice, 0, 0, ""}};
  m.episodes.push_back(later);
  const auto questions = start_questions(m);
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(questions[0].decision, &m.episodes[0]);
  EXPECT_EQ(questions[0].earlier.osr_loops, std::vector<uint32_t>{1});
  EXPECT_EQ(questions[0].earlier.prefetches.back().load, 60u);
}

TEST(Start, DecisionsThatAreSwitchedOffStayOff) {
  PolicyConfig config;
  config.prefetch = false;
  EXPECT_TRUE(decide(known(1, 1), config).plan.prefetches.empty());
  config.optimize = false;
  EXPECT_EQ(decide(known(1, 1), config).plan.action, Action::kNothing);
}

TEST(Start, ReplaysFromWhatIsSaved) {
  ModuleProfile m = known(2, 1);
  m.episodes[0].evidence.calls.push_back({WasmOffset(50), 40, {{3, 30}, {5, 9}}});
  const StartQuestion question = start_questions(m)[0];
  const PolicyConfig config;
  Episode episode =
      make_start_episode(question, decide_start(question.decision->evidence, question.earlier, config));
  EXPECT_NE(episode.reason.find("decided in an earlier run: it was hot"), std::string::npos)
      << episode.reason;
  ProfileFile file;
  file.policy = to_parameters(config);
  m.episodes = {episode};
  file.modules = {m};
  const auto back = read_profile(format_profile(file));
  ASSERT_TRUE(back) << back.error().message;
  const Episode& saved = back->modules[0].episodes[0];
  EXPECT_EQ(saved, episode);
  EXPECT_TRUE(replays(saved, from_parameters(back->policy)));
  Episode other = saved;
  other.earlier->prefetches.clear();
  EXPECT_FALSE(replays(other, config));
}

TEST(Start, SaysTheFirstReasonHoweverOftenADecisionIsTakenOver) {
  ModuleProfile m = known(2, 1);
  for (int i = 0; i < 3; ++i) {
    const StartQuestion question = start_questions(m)[0];
    m.episodes = {
        make_start_episode(question, decide_start(question.decision->evidence, question.earlier, {}))};
  }
  const std::string& reason = m.episodes[0].reason;
  EXPECT_EQ(reason.find("decided in an earlier run"), reason.rfind("decided in an earlier run"));
  EXPECT_TRUE(reason.ends_with("it was hot"));
}

TEST(Start, GivesBranchesTheFormsThatWereKeptAndNotThoseThatLost) {
  ModuleProfile m = known(2, 1);
  for (const uint32_t at : {10u, 20u, 30u})
    m.episodes[0].evidence.branches.push_back({WasmOffset(at), 40, 20, 1000, 500, 1000, 400});
  m.episodes[0].prefetches = {{10, PrefetchOutcome::kKept, 0, 1.5, "", jit::ChangeKind::kSelect},
                              {20, PrefetchOutcome::kRolledBack, 0, -0.2, "", jit::ChangeKind::kSelect},
                              {30, PrefetchOutcome::kInTrial, 0, 0, "", jit::ChangeKind::kSelect}};
  const StartPlan start = decide(m);
  ASSERT_EQ(start.plan.branches.size(), 3u);
  using Form = jit::BranchHint::Form;
  EXPECT_EQ(start.plan.branches[0].hint.form, Form::kSelect);
  EXPECT_NE(start.plan.branches[0].reason.find("kept, +150.0 %"), std::string::npos)
      << start.plan.branches[0].reason;
  EXPECT_EQ(start.plan.branches[1].hint.form, Form::kAsItComes);
  EXPECT_EQ(start.plan.branches[1].hint.taken, 520u);  // what is known of it stays
  EXPECT_EQ(start.plan.branches[2].hint.form, Form::kSelect);
  EXPECT_EQ(start.settled_forms, std::set<uint32_t>{10});
  const auto questions = start_questions(m);
  EXPECT_TRUE(replays(make_start_episode(questions[0], start), {}));
}

TEST(Start, HasCodeForTheUsualValuesThatWereKeptAndNotForThoseThatLost) {
  ModuleProfile m = known(2, 1);
  for (const uint32_t at : {10u, 20u, 30u})
    m.episodes[0].evidence.values.push_back({WasmOffset(at), ValueSite::kWideDivisor, 2000, {{97, 2000}}});
  m.episodes[0].prefetches = {{10, PrefetchOutcome::kKept, 0, 0.5, "", jit::ChangeKind::kValue},
                              {20, PrefetchOutcome::kRolledBack, 0, -0.2, "", jit::ChangeKind::kValue},
                              {30, PrefetchOutcome::kInTrial, 0, 0, "", jit::ChangeKind::kValue}};
  const StartPlan start = decide(m);
  ASSERT_EQ(start.plan.values.size(), 2u);
  EXPECT_EQ(start.plan.values[0].hint.at, WasmOffset(10));
  EXPECT_EQ(start.plan.values[0].hint.value, 97u);
  EXPECT_NE(start.plan.values[0].reason.find("kept, +50.0 %"), std::string::npos)
      << start.plan.values[0].reason;
  EXPECT_EQ(start.plan.values[1].hint.at, WasmOffset(30));
  EXPECT_EQ(start.settled_values, std::set<uint32_t>{10});
  EXPECT_TRUE(start.plan.prefetches.empty());
  const auto questions = start_questions(m);
  EXPECT_TRUE(replays(make_start_episode(questions[0], start), {}));
}

}  // namespace
}  // namespace hindsight::feedback
