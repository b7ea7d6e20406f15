#include "feedback/policy/start.h"

#include <gtest/gtest.h>

#include "tests/feedback/policy/listed.h"

namespace hindsight::feedback {
namespace {

// A module of which `runs` runs are known, in each of which function 3 ran for `seconds` in optimized code.
ModuleProfile profile_of(double runs, double seconds) {
  Episode decision;
  decision.evidence.function = FuncIndex(3);
  decision.evidence.name = "kernel";
  decision.evidence.code_bytes = 200;
  decision.evidence.samples_baseline = 100;
  decision.evidence.loads.push_back({.load = WasmOffset(77), .stall_samples = 40});
  decision.action = "optimize";
  decision.reason = "it was hot";
  decision.state = DecisionState::kCompiled;
  decision.compile_seconds = 0.040;
  decision.osr_loops = {1};
  decision.outcomes = {
      {{kPrefetch, WasmOffset(77)}, {.state = ChangeState::kKept, .setting = 24, .gain = 0.5}},
      {{kPrefetch, WasmOffset(80)}, {.state = ChangeState::kInTrial}},
      {{kPrefetch, WasmOffset(90)}, {.state = ChangeState::kRolledBack}},
      {{kPrefetch, WasmOffset(95)}, {.state = ChangeState::kNotPossible}}};
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
  const StartPlan start = decide(profile_of(2, 1));
  EXPECT_EQ(start.plan.action, Action::kOptimize);
  EXPECT_EQ(start.plan.osr_loops, std::vector<LoopIndex>{LoopIndex(1)});
  EXPECT_EQ(start.plan.alternatives.size(), 2u);
}

TEST(Start, WaitsWhereRunsAreTooShortForTheCompile) {
  // 4 ms in optimized code are 8 ms of baseline code, 4 ms of them to gain; the compile costs 40 ms, at a
  // quarter.
  PolicyConfig config;
  config.background_cost = 0.25;
  const StartPlan wait = decide(profile_of(3, 0.004), config);
  EXPECT_EQ(wait.plan.action, Action::kNothing);
  EXPECT_NE(wait.plan.reason.find("gains about 4.0 ms and costs 10.0 ms"), std::string::npos)
      << wait.plan.reason;
  EXPECT_EQ(decide(profile_of(3, 0.015), config).plan.action, Action::kOptimize);
}

TEST(Start, DoesNotTakeManyShortRunsForALongOne) {
  ModuleProfile m = profile_of(50, 0.001);
  EXPECT_EQ(decide(m).plan.action, Action::kNothing);
}

TEST(Start, TakesOverPrefetchesThatWereKeptAndTriesAgainThoseWhoseTrialDidNotEnd) {
  const StartPlan start = decide(profile_of(1, 1));
  ASSERT_EQ(listed(start.plan, kPrefetch).size(), 2u);
  EXPECT_EQ(listed(start.plan, kPrefetch)[0].at(), WasmOffset(77));
  EXPECT_EQ(listed(start.plan, kPrefetch)[0].request.setting, 24u);
  EXPECT_NEAR(listed(start.plan, kPrefetch)[0].request.weight, 0.4, 1e-9);
  EXPECT_EQ(listed(start.plan, kPrefetch)[1].at(), WasmOffset(80));
  EXPECT_EQ(start.settled, (std::map<jit::Site, uint32_t>{{{kPrefetch, WasmOffset(77)}, 24}}));
}

TEST(Start, TakesOverInterleavedSearchesAsItDoesPrefetches) {
  ModuleProfile m = profile_of(2, 1);
  m.episodes[0].outcomes = {
      {{kPrefetch, WasmOffset(77)}, {.state = ChangeState::kRolledBack}},
      {{kInterleave, WasmOffset(77)}, {.state = ChangeState::kKept, .setting = 12, .gain = 1.5}},
      {{kInterleave, WasmOffset(80)}, {.state = ChangeState::kInTrial}},
      {{kInterleave, WasmOffset(90)}, {.state = ChangeState::kNotPossible}}};
  const StartQuestion question = start_questions(m)[0];
  const StartPlan start = decide_start(question.decision->evidence, question.earlier, {});
  EXPECT_TRUE(listed(start.plan, kPrefetch).empty());
  ASSERT_EQ(listed(start.plan, kInterleave).size(), 2u);
  EXPECT_EQ(listed(start.plan, kInterleave)[0].request.setting, 12u);
  EXPECT_EQ(start.settled, (std::map<jit::Site, uint32_t>{{{kInterleave, WasmOffset(77)}, 12}}));
  EXPECT_TRUE(replays(make_start_episode(question, start), {}));
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kInterleave, false);
  EXPECT_TRUE(listed(decide(m, off).plan, kInterleave).empty());
  EXPECT_FALSE(replays(make_start_episode(question, start), off));
}

TEST(Start, TakesOverJumpPointersAsItDoesPrefetches) {
  ModuleProfile m = profile_of(2, 1);
  m.episodes[0].outcomes = {
      {{kPrefetch, WasmOffset(77)}, {.state = ChangeState::kNotPossible}},
      {{kJumpPointers, WasmOffset(77)}, {.state = ChangeState::kKept, .setting = 8, .gain = 2.5}},
      {{kJumpPointers, WasmOffset(80)}, {.state = ChangeState::kInTrial}},
      {{kJumpPointers, WasmOffset(90)}, {.state = ChangeState::kRolledBack}}};
  const StartQuestion question = start_questions(m)[0];
  const StartPlan start = decide_start(question.decision->evidence, question.earlier, {});
  EXPECT_TRUE(listed(start.plan, kPrefetch).empty());
  ASSERT_EQ(listed(start.plan, kJumpPointers).size(), 2u);
  EXPECT_EQ(listed(start.plan, kJumpPointers)[0].request.setting, 8u);
  EXPECT_NE(listed(start.plan, kJumpPointers)[0].reason.find("kept at distance 8, +250.0 %"),
            std::string::npos);
  EXPECT_EQ(start.settled, (std::map<jit::Site, uint32_t>{{{kJumpPointers, WasmOffset(77)}, 8}}));
  EXPECT_TRUE(replays(make_start_episode(question, start), {}));
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kJumpPointers, false);
  EXPECT_TRUE(listed(decide(m, off).plan, kJumpPointers).empty());
  EXPECT_FALSE(replays(make_start_episode(question, start), off));
}

TEST(Start, TakesNoDistanceOnTrust) {
  ModuleProfile m = profile_of(1, 1);
  m.episodes[0].outcomes.entries()[0].outcome.setting = 4'000'000'000;
  EXPECT_EQ(decide(m).settled.at({kPrefetch, WasmOffset(77)}), jit::traits_of(kPrefetch).knob.most);
  m.episodes[0].outcomes.entries()[0].outcome.setting = 0;
  EXPECT_EQ(decide(m).settled.at({kPrefetch, WasmOffset(77)}), 1u);
}

TEST(Start, PutsTheUsualTargetsOfCallsInPlace) {
  ModuleProfile m = profile_of(1, 1);
  m.episodes[0].evidence.calls.push_back({WasmOffset(50), 40, {{3, 30}, {5, 9}}});
  const StartPlan start = decide(m);
  ASSERT_EQ(listed(start.plan, kInlineCalls).size(), 1u);
  EXPECT_EQ(targets_of(listed(start.plan, kInlineCalls)[0]).size(), 2u);
}

TEST(Start, FirstCompilesWhatGainsMostForTheTimeItTakes) {
  ModuleProfile quick = profile_of(1, 1), slow = profile_of(1, 2);
  quick.episodes[0].compile_seconds = 0.010;
  slow.episodes[0].compile_seconds = 0.200;
  EXPECT_GT(decide(quick).priority, decide(slow).priority);
}

TEST(Start, AsksAboutTheLastDecisionOnAFunctionAndRemembersWhatEarlierOnesLost) {
  ModuleProfile m = profile_of(1, 1);
  Episode again = m.episodes[0];
  again.action = "reoptimize";
  again.osr_loops = {};
  again.outcomes = {{{kPrefetch, WasmOffset(60)}, {.state = ChangeState::kKept, .setting = 8, .gain = 0.2}}};
  m.episodes.push_back(again);
  const auto questions = start_questions(m);
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(questions[0].decision, &m.episodes[1]);
  EXPECT_EQ(questions[0].earlier.osr_loops, std::vector<uint32_t>{});
  std::vector<uint32_t> loads;
  for (const auto& [site, outcome] : questions[0].earlier.outcomes) loads.push_back(site.at.value);
  EXPECT_EQ(loads, (std::vector<uint32_t>{60, 90, 95}));
  const StartPlan start = decide_start(again.evidence, questions[0].earlier, {});
  ASSERT_EQ(listed(start.plan, kPrefetch).size(), 1u);
}

TEST(Start, LeavesOutWhatTheCompilerRefused) {
  ModuleProfile m = profile_of(1, 1);
  m.episodes[0].state = DecisionState::kFailed;
  EXPECT_TRUE(start_questions(m).empty());
}

TEST(Start, TakesTheDecisionWhoseCodeRanAndWhatLaterOnesFoundImpossible) {
  ModuleProfile m = profile_of(1, 1);
  Episode later = m.episodes[0];
  later.action = "reoptimize";
  later.state = DecisionState::kRefused;
  later.osr_loops = {};
  later.outcomes = {{{kPrefetch, WasmOffset(60)}, {.state = ChangeState::kNotPossible}}};
  m.episodes.push_back(later);
  const auto questions = start_questions(m);
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(questions[0].decision, &m.episodes[0]);
  EXPECT_EQ(questions[0].earlier.osr_loops, std::vector<uint32_t>{1});
  EXPECT_EQ(questions[0].earlier.outcomes.entries().back().site.at.value, 60u);
}

TEST(Start, DecisionsThatAreSwitchedOffStayOff) {
  PolicyConfig config;
  config.changes.set(jit::ChangeKind::kPrefetch, false);
  EXPECT_TRUE(listed(decide(profile_of(1, 1), config).plan, kPrefetch).empty());
  config.optimize = false;
  EXPECT_EQ(decide(profile_of(1, 1), config).plan.action, Action::kNothing);
}

TEST(Start, ReplaysFromWhatIsSaved) {
  ModuleProfile m = profile_of(2, 1);
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
  other.earlier->outcomes = {};
  EXPECT_FALSE(replays(other, config));
}

TEST(Start, SaysTheFirstReasonHoweverOftenADecisionIsTakenOver) {
  ModuleProfile m = profile_of(2, 1);
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
  ModuleProfile m = profile_of(2, 1);
  for (const uint32_t at : {10u, 20u, 30u})
    m.episodes[0].evidence.branches.push_back({WasmOffset(at), 40, 20, 1000, 500, 1000, 400});
  m.episodes[0].outcomes = {{{kSelect, WasmOffset(10)}, {.state = ChangeState::kKept, .gain = 1.5}},
                            {{kSelect, WasmOffset(20)}, {.state = ChangeState::kRolledBack, .gain = -0.2}},
                            {{kSelect, WasmOffset(30)}, {.state = ChangeState::kInTrial}}};
  const StartPlan start = decide(m);
  const std::vector<Candidate> selects = listed(start.plan, kSelect);
  ASSERT_EQ(selects.size(), 2u);
  EXPECT_EQ(selects[0].at(), WasmOffset(10));
  EXPECT_NE(selects[0].reason.find("kept, +150.0 %"), std::string::npos) << selects[0].reason;
  EXPECT_EQ(selects[1].at(), WasmOffset(30));
  const std::vector<Candidate> weighed = listed(start.plan, kWeighBranches);
  ASSERT_EQ(weighed.size(), 3u);
  EXPECT_EQ(counts_of(weighed[1]).taken, 520u);  // what is known of it stays
  EXPECT_EQ(start.settled, (std::map<jit::Site, uint32_t>{{{kSelect, WasmOffset(10)}, 0}}));
  const auto questions = start_questions(m);
  EXPECT_TRUE(replays(make_start_episode(questions[0], start), {}));
}

TEST(Start, HasCodeForTheUsualValuesThatWereKeptAndNotForThoseThatLost) {
  ModuleProfile m = profile_of(2, 1);
  for (const uint32_t at : {10u, 20u, 30u})
    m.episodes[0].evidence.values.push_back({WasmOffset(at), ValueSite::kWideDivisor, 2000, {{97, 2000}}});
  m.episodes[0].outcomes = {{{kValue, WasmOffset(10)}, {.state = ChangeState::kKept, .gain = 0.5}},
                            {{kValue, WasmOffset(20)}, {.state = ChangeState::kRolledBack, .gain = -0.2}},
                            {{kValue, WasmOffset(30)}, {.state = ChangeState::kInTrial}}};
  const StartPlan start = decide(m);
  ASSERT_EQ(listed(start.plan, kValue).size(), 2u);
  EXPECT_EQ(listed(start.plan, kValue)[0].at(), WasmOffset(10));
  EXPECT_EQ(usual_of(listed(start.plan, kValue)[0]).value, 97u);
  EXPECT_NE(listed(start.plan, kValue)[0].reason.find("kept, +50.0 %"), std::string::npos)
      << listed(start.plan, kValue)[0].reason;
  EXPECT_EQ(listed(start.plan, kValue)[1].at(), WasmOffset(30));
  EXPECT_EQ(start.settled, (std::map<jit::Site, uint32_t>{{{kValue, WasmOffset(10)}, 0}}));
  EXPECT_TRUE(listed(start.plan, kPrefetch).empty());
  const auto questions = start_questions(m);
  EXPECT_TRUE(replays(make_start_episode(questions[0], start), {}));
}

}  // namespace
}  // namespace hindsight::feedback
