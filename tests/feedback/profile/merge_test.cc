#include "feedback/profile/merge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hindsight::feedback {
namespace {

FunctionEvidence evidence(uint32_t function, double samples) {
  FunctionEvidence e;
  e.function = FuncIndex(function);
  e.name = "f";
  e.samples_baseline = samples;
  e.seconds_baseline = samples / 1000;
  return e;
}

FunctionSamples sampled(uint32_t function, double count) {
  FunctionSamples s;
  s.function = FuncIndex(function);
  s.samples = count;
  s.seconds_baseline = count / 1000;
  s.places = {{WasmOffset(10 * function + 1), count, 0}};
  return s;
}

Episode decision(uint32_t function, Origin origin = Origin::kDecided) {
  Episode e;
  e.evidence = evidence(function, 50);
  e.action = "optimize";
  e.state = DecisionState::kCompiled;
  e.origin = origin;
  if (origin == Origin::kProfile) e.earlier.emplace();
  return e;
}

ModuleProfile run(std::vector<Episode> episodes = {}, double count = 100) {
  ModuleProfile m;
  m.hash_hex = "abcd";
  m.functions = {evidence(1, count)};
  m.samples = {sampled(1, count)};
  m.episodes = std::move(episodes);
  return m;
}

TEST(Merge, HalfOfARunIsLeftAfterAHalfLifeOfOthers) {
  ModuleProfile all = run({}, 1000);
  ModuleProfile other = run({}, 0);
  other.functions.clear();
  other.samples.clear();
  for (int i = 0; i < 8; ++i) all = merge(std::move(all), other);
  ASSERT_EQ(all.functions.size(), 1u);
  EXPECT_NEAR(all.functions[0].samples_baseline, 500, 1e-6);
  EXPECT_NEAR(all.samples[0].places[0].samples, 500, 1e-6);
  EXPECT_NEAR(all.samples[0].seconds_baseline, 0.5, 1e-9);
  EXPECT_EQ(all.runs_seen, 9u);
  // Runs fade as what they saw does: the mean of a run stays one.
  EXPECT_NEAR(all.runs, 0.5 + (1 - 0.5) / (1 - fading(1)), 1e-6);
}

TEST(Merge, EqualRunsStayWhatTheyAreOnTheAverage) {
  ModuleProfile all = run();
  for (int i = 0; i < 100; ++i) all = merge(std::move(all), run());
  EXPECT_NEAR(all.samples[0].seconds_baseline / all.runs, 0.1, 1e-9);
  EXPECT_NEAR(all.functions[0].samples_baseline / all.runs, 100, 1e-6);
}

TEST(Merge, CountsStayWithinWhatTheyAreCountedOf) {
  ModuleProfile all = run();
  all.functions[0].branches = {{WasmOffset(5), 7, 3, 101, 99, 98, 97}};
  all.functions[0].calls = {{WasmOffset(9), 13, {{1, 7}, {2, 6}}, false, 5, {{3, 5}}}};
  ProfileFile file;
  for (int i = 0; i < 200; ++i) {
    ModuleProfile other = run();
    if (i % 3 == 0) other.functions[0].branches = {{WasmOffset(5), 1, 0, 3, 2, 1, 1}};
    if (i % 5 == 0) other.functions[0].calls = {{WasmOffset(9), 3, {{2, 2}, {7, 1}}}};
    all = merge(std::move(all), other);
    file.modules = {all};
    ASSERT_TRUE(read_profile(format_profile(file))) << read_profile(format_profile(file)).error().message;
    for (const BranchEvidence& b : all.functions[0].branches) {
      ASSERT_LE(b.taken, b.outcomes);
      ASSERT_LE(b.mispredicted, b.judged);
      ASSERT_LE(b.sampled_taken, b.sampled);
    }
  }
}

TEST(Merge, KeepsADecisionThatALaterRunTookOver) {
  Episode before = decision(1);
  before.reason = "it was hot";
  before.outcomes = {{{jit::ChangeKind::kPrefetch, WasmOffset(77)},
                      {.state = ChangeState::kKept, .setting = 16, .gain = 0.5, .why = "won"}},
                     {{jit::ChangeKind::kPrefetch, WasmOffset(80)}, {.state = ChangeState::kInTrial}}};
  Episode taken_over = decision(1, Origin::kProfile);
  taken_over.evidence = evidence(1, 0);
  taken_over.outcomes = {{{jit::ChangeKind::kPrefetch, WasmOffset(77)},
                          {.state = ChangeState::kRolledBack, .setting = 32, .gain = -0.1, .why = "lost"}},
                         {{jit::ChangeKind::kPrefetch, WasmOffset(80)},
                          {.state = ChangeState::kKept, .setting = 8, .gain = 0.25, .why = "won at last"}}};
  const ModuleProfile all = merge(run({before}), run({taken_over}));
  ASSERT_EQ(all.episodes.size(), 1u);
  EXPECT_EQ(all.episodes[0].origin, Origin::kDecided);
  EXPECT_EQ(all.episodes[0].reason, "it was hot");
  EXPECT_EQ(all.episodes[0].evidence, before.evidence);
  EXPECT_EQ(all.episodes[0].runs_ago, 1u);
  EXPECT_EQ(all.episodes[0].outcomes, taken_over.outcomes);
}

TEST(Merge, ATrialThatDidNotEndSaysNothingAgainstAnEarlierVerdict) {
  Episode before = decision(1);
  before.outcomes = {{{jit::ChangeKind::kPrefetch, WasmOffset(77)},
                      {.state = ChangeState::kKept, .setting = 16, .gain = 0.5, .why = "won"}}};
  Episode taken_over = decision(1, Origin::kCodeCache);
  taken_over.outcomes = {{{jit::ChangeKind::kPrefetch, WasmOffset(77)},
                          {.state = ChangeState::kInTrial, .setting = 4, .why = "going on"}}};
  const ModuleProfile all = merge(run({before}), run({taken_over}));
  ASSERT_EQ(all.episodes.size(), 1u);
  ASSERT_EQ(all.episodes[0].outcomes.size(), 1u);
  EXPECT_EQ(all.episodes[0].outcomes.entries()[0].outcome.state, ChangeState::kKept);
  EXPECT_EQ(all.episodes[0].outcomes.entries()[0].outcome.runs_ago, 1u);
}

TEST(Merge, RemembersHowAVerdictWasReachedThatLaterRunsTakeOver) {
  Episode before = decision(1);
  before.outcomes = {{{jit::ChangeKind::kPrefetch, WasmOffset(77)},
                      {.state = ChangeState::kKept, .setting = 16, .gain = 0.5, .why = "after 68 chunks"}}};
  Episode taken_over = decision(1, Origin::kProfile);
  taken_over.outcomes = {{{jit::ChangeKind::kPrefetch, WasmOffset(77)},
                          {.state = ChangeState::kKept,
                           .setting = 16,
                           .gain = 0.5,
                           .why = "settled in an earlier version or run"}}};
  ModuleProfile all = merge(run({before}), run());
  EXPECT_EQ(all.episodes[0].outcomes.entries()[0].outcome.runs_ago, 1u);
  all = merge(std::move(all), run({taken_over}));
  EXPECT_EQ(all.episodes[0].outcomes, before.outcomes);
}

TEST(Merge, KeepsThePrefetchAndTheInterleavingOfOneLoadApart) {
  Episode before = decision(1);
  before.outcomes = {
      {{jit::ChangeKind::kPrefetch, WasmOffset(77)},
       {.state = ChangeState::kRolledBack, .setting = 16, .gain = -0.1, .why = "lost"}},
      {{jit::ChangeKind::kInterleave, WasmOffset(77)}, {.state = ChangeState::kInTrial, .setting = 16}}};
  Episode taken_over = decision(1, Origin::kProfile);
  taken_over.outcomes = {{{jit::ChangeKind::kInterleave, WasmOffset(77)},
                          {.state = ChangeState::kKept, .setting = 12, .gain = 1.5, .why = "won"}}};
  const ModuleProfile all = merge(run({before}), run({taken_over}));
  ASSERT_EQ(all.episodes[0].outcomes.size(), 2u);
  EXPECT_EQ(all.episodes[0].outcomes.entries()[0].outcome.state, ChangeState::kRolledBack);
  EXPECT_EQ(all.episodes[0].outcomes.entries()[1], taken_over.outcomes.entries()[0]);
}

TEST(Merge, AddsNewDecisionsBehindOldOnesAndKeepsTheLastFew) {
  ModuleProfile all = run({decision(1), decision(2)});
  for (int i = 0; i < 10; ++i) {
    Episode again = decision(1);
    again.action = "reoptimize";
    again.seconds = i;
    all = merge(std::move(all), run({again}));
  }
  EXPECT_EQ(all.episodes.size(), kMaxEpisodesKept + 1);
  EXPECT_EQ(all.episodes.front().evidence.function, FuncIndex(2));
  EXPECT_EQ(all.episodes.back().seconds, 9);
  EXPECT_EQ(all.episodes.back().runs_ago, 0u);
  EXPECT_EQ(all.episodes.back().id, all.episodes.size());
}

TEST(Merge, KeepsDecisionsAboutLoopsApartFromEachOtherAndFromThoseAboutTheFunction) {
  const auto about = [](std::optional<uint32_t> nest, double seconds, Origin origin = Origin::kDecided) {
    Episode e = decision(1, origin);
    if (nest) e.nest = LoopIndex(*nest);
    e.seconds = e.compile_seconds = seconds;
    return e;
  };
  ModuleProfile all = run({about(0, 1), about({}, 2), about(3, 3)});
  all = merge(std::move(all), run({about(3, 4, Origin::kProfile), about(0, 5)}));
  ASSERT_EQ(all.episodes.size(), 4u);
  EXPECT_EQ(all.episodes[0], [&] {
    Episode first = about(0, 1);
    first.id = 1;
    first.runs_ago = 1;
    return first;
  }());
  EXPECT_EQ(all.episodes[1].compile_seconds, 2);
  EXPECT_EQ(all.episodes[2].nest, LoopIndex(3));
  EXPECT_EQ(all.episodes[2].compile_seconds, 4) << "what the run found out about it";
  EXPECT_EQ(all.episodes[3].nest, LoopIndex(0));
  for (int i = 0; i < 10; ++i) all = merge(std::move(all), run({about(7, i)}));
  EXPECT_EQ(all.episodes.size(), 4 + kMaxEpisodesKept);
}

TEST(Merge, ForgetsAfterAWhileThatAPrefetchLostButNotThatOneWon) {
  Episode before = decision(1);
  before.outcomes = {{{jit::ChangeKind::kPrefetch, WasmOffset(77)}, {.state = ChangeState::kRolledBack}},
                     {{jit::ChangeKind::kPrefetch, WasmOffset(80)},
                      {.state = ChangeState::kKept, .setting = 16, .gain = 0.5}}};
  ModuleProfile all = run({before});
  for (uint32_t i = 0; i < kRunsToForgetLosers; ++i) all = merge(std::move(all), run());
  EXPECT_EQ(all.episodes[0].outcomes.size(), 2u);
  all = merge(std::move(all), run());
  ASSERT_EQ(all.episodes[0].outcomes.size(), 1u);
  EXPECT_EQ(all.episodes[0].outcomes.entries()[0].site.at, WasmOffset(80));
}

TEST(Merge, ForgetsDecisionsAboutFunctionsThatNoLongerRun) {
  ModuleProfile all = run({decision(2)});
  all.samples.push_back(sampled(2, 1e-1));
  ModuleProfile other = run();
  for (uint32_t i = 0; i < kRunsToForgetIdle; ++i) all = merge(std::move(all), other);
  EXPECT_EQ(all.episodes.size(), 1u);
  all = merge(std::move(all), other);
  EXPECT_EQ(all.episodes.size(), 0u);
}

TEST(Merge, PageDecisionsAreThoseOfTheLastRunThatMadeAny) {
  ModuleProfile with = run();
  with.page_episodes.resize(1);
  with.page_episodes[0].reason = "wide";
  ModuleProfile all = merge(with, run());
  ASSERT_EQ(all.page_episodes.size(), 1u);
  EXPECT_EQ(all.page_episodes[0].runs_ago, 1u);
  with.page_episodes[0].reason = "wider";
  all = merge(std::move(all), with);
  ASSERT_EQ(all.page_episodes.size(), 1u);
  EXPECT_EQ(all.page_episodes[0].reason, "wider");
}

TEST(Merge, WhatPagesWereTakenBackStaysBesideLaterDecisionsUntilItIsForgotten) {
  const auto episode = [](DecisionState state, double seconds) {
    PageEpisode e;
    e.state = state;
    e.evidence.seconds = seconds;
    return e;
  };
  const auto states = [](const ModuleProfile& profile) {
    std::vector<DecisionState> states;
    for (const PageEpisode& e : profile.page_episodes) states.push_back(e.state);
    return states;
  };
  using enum DecisionState;
  ModuleProfile first = run(), again = run(), later = run();
  first.page_episodes = {episode(kRolledBack, 1), episode(kUnjudged, 2), episode(kKept, 3)};
  again.page_episodes = {episode(kKept, 3)};
  ModuleProfile all = merge(first, again);
  EXPECT_EQ(states(all), (std::vector{kKept, kRolledBack, kUnjudged}));
  EXPECT_EQ(all.page_episodes[0].runs_ago, 0u) << "taken over once more";
  EXPECT_EQ(all.page_episodes[2].runs_ago, 1u);
  later.page_episodes = {episode(kKept, 4)};
  all = merge(std::move(all), later);
  EXPECT_EQ(states(all), (std::vector{kKept, kRolledBack}));
  EXPECT_EQ(all.page_episodes[0].evidence.seconds, 4);
  for (uint32_t i = all.page_episodes[1].runs_ago; i < kRunsToForgetLosers; ++i)
    all = merge(std::move(all), later);
  EXPECT_EQ(states(all), (std::vector{kKept, kRolledBack}));
  EXPECT_EQ(states(merge(std::move(all), later)), std::vector{kKept});
}

TEST(Merge, ModulesOfOtherOptionsAreOtherModules) {
  ProfileFile a, b;
  a.modules = {run()};
  b.modules = {run()};
  b.modules[0].options = "no prefetch";
  EXPECT_EQ(merge(a, b).modules.size(), 2u);
  EXPECT_EQ(merge(a, a).modules.size(), 1u);
  EXPECT_EQ(merge(a, a).modules[0].runs_seen, 2u);
}

TEST(Merge, IsBounded) {
  ModuleProfile all = run(), other = run();
  for (uint32_t f = 0; f < 2000; ++f) {
    other.functions.push_back(evidence(f + 10, 1));
    other.samples.push_back(sampled(f + 10, 1));
  }
  for (uint32_t i = 0; i < 1000; ++i) other.samples[0].places.push_back({WasmOffset(100 + i), 1, 0});
  all = merge(std::move(all), other);
  EXPECT_EQ(all.functions.size(), kMaxFunctionsKept);
  EXPECT_EQ(all.samples.size(), kMaxFunctionsSampled);
  EXPECT_EQ(all.samples[0].places.size(), kMaxPlaces);
  EXPECT_EQ(all.functions[0].function, FuncIndex(1));
}

TEST(Merge, OperandsOfRunsAddUpAndFade) {
  ModuleProfile all, run;
  all.functions = {evidence(1, 10)};
  all.functions[0].values = {{WasmOffset(7), ValueSite::kByteCount, 100, {{24, 90}, {8, 10}}}};
  const jit::Site site{jit::ChangeKind::kValue, WasmOffset(7)};
  all.functions[0].changes.settle(site, ChangeState::kKept);
  run.functions = {evidence(1, 10)};
  run.functions[0].values = {{WasmOffset(7), ValueSite::kByteCount, 50, {{24, 20}, {64, 30}}},
                             {WasmOffset(9), ValueSite::kDivisor, 4, {{3, 4}}}};
  const double left = fading(1);
  const ModuleProfile merged = merge(all, run);
  ASSERT_EQ(merged.functions[0].values.size(), 2u);
  const ValueEvidence& v = merged.functions[0].values[0];
  EXPECT_NEAR(static_cast<double>(v.records), 50 + 100 * left, 1);
  EXPECT_EQ(merged.functions[0].changes.state(site), ChangeState::kKept);
  ASSERT_EQ(v.values.size(), 3u);
  EXPECT_EQ(v.values[0].value, 24u);
  EXPECT_NEAR(static_cast<double>(v.values[0].records), 20 + 90 * left, 1);
  EXPECT_EQ(v.values[1], (ValueEvidence::Value{64, 30}));
  EXPECT_EQ(merged.functions[0].values[1].at, WasmOffset(9));
}

TEST(Merge, SamplesOfLoopsAddUpAndFadeAndWhatTheirCompilesGaveIsTheLastRuns) {
  const auto with_loop = [](double samples, uint32_t compiles, double compile_seconds) {
    ModuleProfile m = run();
    m.functions[0].loops = {{.loop = LoopIndex(0),
                             .offset = WasmOffset(7),
                             .samples = samples,
                             .code_bytes = 30,
                             .samples_baseline = samples,
                             .seconds_baseline = samples / 1000,
                             .trip_records = 100,
                             .compiles = compiles,
                             .compile_seconds = compile_seconds}};
    return m;
  };
  const ModuleProfile merged = merge(with_loop(80, 2, 0.02), with_loop(8, 1, 0));
  const LoopEvidence& loop = merged.functions[0].loops.at(0);
  const double left = fading(1);
  EXPECT_NEAR(loop.samples_baseline, 8 + 80 * left, 1e-9);
  EXPECT_NEAR(loop.seconds_baseline, (8 + 80 * left) / 1000, 1e-9);
  EXPECT_NEAR(static_cast<double>(loop.trip_records), 100 + 100 * left, 1);
  EXPECT_EQ(loop.code_bytes, 30u);
  EXPECT_EQ(loop.compiles, 1u);
  EXPECT_EQ(loop.compile_seconds, 0.02) << "the last that is known";
}

TEST(Merge, WhatARunWasSeededWithIsNotCountedAgain) {
  FunctionEvidence seed = evidence(1, 10);
  seed.branches = {{WasmOffset(5), 7, 3, 100, 90, 80, 10}, {WasmOffset(6), 1, 1, 0, 0, 0, 0}};
  seed.calls = {{WasmOffset(9), 13, {{1, 7}, {2, 6}}}};
  FunctionEvidence seen = seed;
  seen.branches[0].outcomes += 20;
  seen.branches[0].taken += 5;
  seen.calls[0].records += 4;
  seen.calls[0].targets = {{1, 10}, {3, 1}};
  seed.values = {{WasmOffset(7), ValueSite::kDivisor, 10, {{97, 10}}}};
  seen.values = {{WasmOffset(7), ValueSite::kDivisor, 14, {{97, 13}, {3, 1}}}};
  seen.loops = {{.loop = LoopIndex(0), .offset = WasmOffset(7), .trip_records = 14}};
  const FunctionEvidence news = without(seen, seed);
  ASSERT_EQ(news.branches.size(), 1u);
  EXPECT_EQ(news.branches[0], (BranchEvidence{WasmOffset(5), 0, 0, 20, 5, 0, 0}));
  ASSERT_EQ(news.calls.size(), 1u);
  EXPECT_EQ(news.calls[0].records, 4u);
  EXPECT_EQ(news.calls[0].targets, (std::vector<CallEvidence::Target>{{1, 3}, {3, 1}}));
  EXPECT_EQ(news.values,
            (std::vector<ValueEvidence>{{WasmOffset(7), ValueSite::kDivisor, 4, {{97, 3}, {3, 1}}}}));
  EXPECT_EQ(news.loops[0].trip_records, 4u);
  EXPECT_TRUE(without(seed, seed).calls.empty());
  EXPECT_TRUE(without(seed, seed).values.empty());
}

}  // namespace
}  // namespace hindsight::feedback
