// What the policy decides, rule by rule. The words of plans are in plans/ and replays/.
#include "feedback/policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/feedback/policy/flat_function.h"
#include "tests/feedback/policy/listed.h"

namespace hindsight::feedback {
namespace {

// A function that ran `ms` in baseline code, sampled at 4 kHz, with two nested loops.
FunctionEvidence hot_function(double ms) {
  FunctionEvidence e;
  e.function = FuncIndex(7);
  e.name = "kernel";
  e.code_bytes = 200;
  e.samples_baseline = ms * 4;
  e.seconds_baseline = ms * 1e-3;
  e.total_samples = e.samples_baseline;
  e.loops.push_back({LoopIndex(0), WasmOffset(100), 0, e.samples_baseline, -1});
  e.loops.push_back({LoopIndex(1), WasmOffset(120), 1, 0.9 * e.samples_baseline, 0});
  return e;
}

// The same, with optimized code that ran 0.4 s since it was published.
FunctionEvidence optimized_function() {
  FunctionEvidence e = hot_function(100);
  e.optimized = true;
  e.optimize_count = 1;
  e.samples_optimized = 100;
  e.seconds_optimized = e.seconds_since_published = 0.4;
  return e;
}

LoadEvidence stalling_load(uint32_t offset, double samples) {
  LoadEvidence l;
  l.load = WasmOffset(offset);
  l.stall_samples = samples;
  l.addresses = static_cast<uint64_t>(samples);
  l.address_span_bytes = 64 << 20;
  l.distinct_pages = static_cast<uint64_t>(samples);
  return l;
}

// First code, without anything that is to be tried in it.
bool is_early(const FunctionPlan& plan) {
  return plan.action == Action::kOptimize && plan.early &&
         std::ranges::all_of(plan.candidates,
                             [](const Candidate& candidate) { return jit::is_of_version(candidate.kind()); });
}
bool is_complete(const FunctionPlan& plan) {
  return plan.action == Action::kOptimize && !plan.early;
}

TEST(Policy, LeavesAFunctionAloneThatHardlyRan) {
  EXPECT_EQ(decide(hot_function(1), {}).action, Action::kNothing);
}

TEST(Policy, OptimizesAFunctionWhoseFutureRepaysTheCompile) {
  FunctionPlan plan = decide(hot_function(100), {});
  EXPECT_EQ(plan.action, Action::kOptimize);
  EXPECT_TRUE(listed(plan, kPrefetch).empty());
}

TEST(Policy, DoesNotCompileALargeFunctionForASmallGain) {
  FunctionEvidence e = hot_function(20);
  e.code_bytes = 1'000'000;
  FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kNothing);
}

TEST(Policy, OptimizesAFunctionOfAFlatProfileForTheWholeRunsSake) {
  const FunctionPlan plan = decide(flat_function(4), {});
  EXPECT_EQ(plan.action, Action::kOptimize) << plan.reason;
  // So few samples say nothing of loads.
  FunctionEvidence stalls = flat_function(4);
  stalls.loads = {stalling_load(40, 3)};
  EXPECT_TRUE(listed(decide(stalls, {}), kPrefetch).empty());
}

TEST(Policy, WantsTwiceTheCostAndMoreThanOneSampleOfAFunctionInAFlatProfile) {
  EXPECT_EQ(decide(flat_function(1), {}).action, Action::kNothing);
  FunctionEvidence large = flat_function(4);
  large.code_bytes = 10'000;
  EXPECT_EQ(decide(large, {}).action, Action::kNothing);
  PolicyConfig half;
  half.min_flat_return = 0.5;
  EXPECT_EQ(decide(large, half).action, Action::kOptimize);
}

TEST(Policy, LeavesAFunctionOfAFlatProfileAloneThatIsNotEnteredAgain) {
  FunctionEvidence e = flat_function(20);
  e.entered = Entered::kNotYet;
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kNothing);
}

TEST(Policy, SaysOfABranchThatAlwaysWentTheSameWayThatItDid) {
  FunctionEvidence e = flat_function(20);
  e.branches = {{.branch = WasmOffset(30), .outcomes = 15, .taken = 0},
                {.branch = WasmOffset(40), .outcomes = 15, .taken = 15},
                {.branch = WasmOffset(50), .outcomes = 15, .taken = 3},
                {.branch = WasmOffset(60), .outcomes = 5, .taken = 0}};
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(listed(plan, kSplitCold).size(), 2u);
  EXPECT_FALSE(plan.has(kWeighBranches));
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kSplitCold, false);
  EXPECT_FALSE(decide(e, off).has(kSplitCold));
}

TEST(Policy, BelievesWhatACompileTookBefore) {
  FunctionEvidence e = hot_function(100);
  e.compile_seconds = 4;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing);
  e.compile_seconds = 0.1;
  EXPECT_EQ(decide(e, {}).action, Action::kOptimize);
}

TEST(Policy, NeverSendsAFunctionToTheOptimizerWhoseCompileCostsMoreThanItHasToGain) {
  const PolicyConfig config;
  for (const uint32_t bytes : {1u, 100u, 1'000u, 10'000u, 100'000u}) {
    for (double ms = 0.25; ms < 5'000; ms *= 1.3) {
      FunctionEvidence e = hot_function(ms);
      e.code_bytes = bytes;
      const double gain = e.seconds_baseline * (1 - 1 / config.optimized_speedup);
      const double cost =
          config.background_cost * (config.compile_fixed_seconds + config.compile_seconds_per_byte * bytes);
      const bool worth_it = gain > cost && e.samples_baseline >= config.min_samples;
      // Where it is worth it, the policy may still wait, for a call that makes an entry into a loop needless.
      EXPECT_EQ(decide(e, config).action != Action::kNothing, worth_it) << bytes << " bytes, " << ms << " ms";
    }
  }
}

TEST(Policy, MakesTheFirstCodeWhileItIsNotClearYetWhichLoadStalls) {
  FunctionEvidence e = hot_function(5);
  e.seconds_baseline = 0.05;
  e.loads.push_back(stalling_load(130, 12));
  EXPECT_TRUE(is_early(decide(e, {})));
  // It would take the place of what was won in its loops.
  e.loops[1].has_nest = true;
  EXPECT_EQ(decide(e, {}).action, Action::kWait);
}

TEST(Policy, AsksWhatToTryOnceTheFirstCodeHasShownEnough) {
  FunctionEvidence e = hot_function(20);
  e.optimized = e.early = true;
  e.optimize_count = 1;
  e.samples_optimized = 80;
  e.seconds_optimized = e.seconds_since_published = 0.02;
  e.loads.push_back(stalling_load(130, 60));
  e.price_of_trying = 0.2;
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kReoptimize);
  EXPECT_TRUE(plan.second);
  EXPECT_FALSE(listed(plan, kPrefetch).empty());
  // Not of code that came with all that was to be tried, nor where it may save too little.
  e.early = false;
  EXPECT_FALSE(decide(e, {}).second);
  e.early = true;
  e.price_of_trying = 20;
  EXPECT_FALSE(decide(e, {}).second);
}

TEST(Policy, DoesNotWaitForEverWhereSamplesAreRare) {
  FunctionEvidence e = hot_function(5);
  e.seconds_baseline = 0.08;
  e.loads.push_back(stalling_load(130, 12));
  EXPECT_EQ(decide(e, {}).action, Action::kOptimize);
}

TEST(Policy, NeitherWaitsNorAsksForAPrefetchOfALoadOutsideOfLoops) {
  FunctionEvidence e = hot_function(5);
  e.seconds_baseline = 0.05;
  e.loads.push_back(stalling_load(90, 12));
  e.loads.back().in_loop = false;
  FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kOptimize);
  EXPECT_TRUE(listed(plan, kPrefetch).empty());
}

TEST(Policy, AsksForAPrefetchAloneOfALoadOutsideOfLoopsInAFunctionThatCallsItself) {
  FunctionEvidence e = hot_function(20);
  e.optimized = e.early = true;
  e.optimize_count = 1;
  e.samples_optimized = 80;
  e.seconds_optimized = e.seconds_since_published = 0.02;
  e.price_of_trying = 0.2;
  e.loads.push_back(stalling_load(90, 60));
  e.loads.back().in_loop = false;
  e.loads.back().in_recursion = true;
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(listed(plan, kPrefetch).size(), 1u);
  EXPECT_TRUE(listed(plan, jit::ChangeKind::kInterleave).empty());
  EXPECT_TRUE(listed(plan, jit::ChangeKind::kJumpPointers).empty());
  EXPECT_TRUE(listed(plan, jit::ChangeKind::kSpeculate).empty());
}

TEST(Policy, AsksForTheLoadsOfACalleeThatStallsInTheLoopThatCallsIt) {
  // It ran twice as long as its caller, and waited half of that for a load.
  const auto calling = [](double stalled) {
    FunctionEvidence e = hot_function(100);
    const double samples = 2 * e.samples_baseline;
    e.total_samples += samples;
    e.callees = {{.function = FuncIndex(8),
                  .name = "find",
                  .called_in = LoopIndex(0),
                  .samples = samples,
                  .seconds = 0.2,
                  .stall_samples = stalled * samples}};
    e.loads.push_back(stalling_load(900, stalled * samples));
    e.loads.back().callee = FuncIndex(8);
    return e;
  };
  const FunctionPlan plan = decide(calling(0.5), {});
  ASSERT_TRUE(plan.has({kInterleave, WasmOffset(900)}));
  const Candidate& asked = *find(plan.candidates, {kInterleave, WasmOffset(900)});
  EXPECT_NE(asked.reason.find("(33 %) stall on the load at 0x384"), std::string::npos) << asked.reason;
  EXPECT_NE(asked.reason.find("in find, which is inlined for that"), std::string::npos) << asked.reason;
  EXPECT_FALSE(decide(calling(0.01), {}).has({kInterleave, WasmOffset(900)})) << "too little of the run";
  EXPECT_FALSE(plan.has(jit::ChangeKind::kJumpPointers)) << "its own loop shows whether it goes the same way";
  FunctionEvidence lost = calling(0.5);
  lost.loops[0].end = WasmOffset(300);
  lost.changes.put({kInterleave, WasmOffset(150)}, {.state = ChangeState::kRolledBack, .rejections = 1});
  EXPECT_FALSE(decide(lost, {}).has({kInterleave, WasmOffset(900)})) << "another search of the loop lost";
  FunctionEvidence unknown = calling(0.5);
  unknown.callees.clear();
  EXPECT_FALSE(decide(unknown, {}).has({kInterleave, WasmOffset(900)})) << "nobody inlines it";
}

// find, called in the first loop: it took 300 samples, of which 200 stand behind its load at 900.
void add_stalling_callee(FunctionEvidence& e) {
  e.callees = {{.function = FuncIndex(8),
                .name = "find",
                .called_in = LoopIndex(0),
                .samples = 300,
                .seconds = 1.2,
                .stall_samples = 200}};
  e.loads.push_back(stalling_load(900, 200));
  e.loads.back().stall_samples_optimized = 200;
  e.loads.back().callee = FuncIndex(8);
}

TEST(Policy, CompilesALoopAgainForACalleeThatStalls) {
  FunctionEvidence e = hot_function(100);
  e.optimized = true;
  e.optimize_count = 1;
  e.samples_baseline = e.seconds_baseline = 0;
  e.samples_optimized = 5;
  e.seconds_optimized = e.seconds_since_published = 0.02;
  e.total_samples = 305;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing);
  add_stalling_callee(e);
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kReoptimize) << plan.reason;
  EXPECT_TRUE(plan.has({kInterleave, WasmOffset(900)}));
}

// In a large function, of two samples in all. Without the callee of the others.
FunctionEvidence hardly_seen_function() {
  FunctionEvidence e = hot_function(2);
  e.code_bytes = 2000;
  e.seconds_baseline = 0.0005;
  e.total_samples = 302;
  e.entered = Entered::kNotYet;
  e.seconds_watched = 0.001;
  return e;
}
void see_in(LoopEvidence& loop) {
  loop.code_bytes = 150;
  loop.samples = loop.samples_baseline = 2;
  loop.seconds_baseline = loop.seconds_run_baseline = 0.0005;
}

TEST(Policy, CompilesALoopInBaselineCodeForACalleeThatStallsHoweverFewOfTheSamplesAreItsOwn) {
  FunctionEvidence e = hardly_seen_function();
  see_in(e.loops[0]);
  e.loops[0].end = WasmOffset(300);
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "too few to decide";
  add_stalling_callee(e);
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kOptimize) << plan.reason;
  EXPECT_EQ(plan.nest, LoopIndex(0));
  EXPECT_TRUE(plan.has({kInterleave, WasmOffset(900)}));
  EXPECT_TRUE(plan.for_callees);
  EXPECT_TRUE(plan.only_for_callees) << "code without what it asks for gains nothing";
  EXPECT_FALSE(decide(hot_function(100), {}).for_callees);
  FunctionEvidence hot = e;
  hot.samples_baseline = hot.loops[0].samples = hot.loops[0].samples_baseline = 100;
  hot.seconds_baseline = hot.loops[0].seconds_baseline = hot.loops[0].seconds_run_baseline = 0.1;
  EXPECT_TRUE(decide(hot, {}).has({kInterleave, WasmOffset(900)}));
  EXPECT_TRUE(decide(hot, {}).for_callees) << "whatever else it is compiled for";
  EXPECT_FALSE(decide(hot, {}).only_for_callees) << "it is hot itself, and gets its first code soon";
  e.changes.put({kInterleave, WasmOffset(900)}, {.state = ChangeState::kNotPossible});
  e.changes.put({kPrefetch, WasmOffset(900)}, {.state = ChangeState::kNotPossible});
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "it was looked into";
}

TEST(Policy, WaitsForWhatTheCalleesOwnCodeShowsOfMostOfItsStalls) {
  FunctionEvidence e = hot_function(100);
  add_stalling_callee(e);
  e.callees[0].stall_samples_undecided = 90;
  EXPECT_TRUE(decide(e, {}).has({kInterleave, WasmOffset(900)}));
  e.callees[0].stall_samples_undecided = 150;
  EXPECT_FALSE(decide(e, {}).has({kInterleave, WasmOffset(900)})) << "all of them are asked for together";
}

TEST(Policy, CompilesTheLoopAroundTheCallAndNotOneAroundManyPhasesForACallee) {
  FunctionEvidence e = hardly_seen_function();
  e.loops[0].code_bytes = 8000;
  e.loops[0].inner_loops = 1;
  e.loops[0].end = WasmOffset(850);
  e.loops[0].samples = 2;
  see_in(e.loops[1]);
  e.loops[1].end = WasmOffset(270);
  add_stalling_callee(e);
  e.callees[0].called_in = LoopIndex(1);
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kOptimize) << plan.reason;
  EXPECT_EQ(plan.nest, LoopIndex(1)) << plan.reason;
  e.loops[1].samples_baseline = 0;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "it does not run";
}

TEST(Policy, LeavesNoHotLoopWaitingForAnotherAroundItThatIsCompiledForACallee) {
  FunctionEvidence e = hardly_seen_function();
  LoopEvidence &around = e.loops[0], &inside = e.loops[1];
  see_in(around);
  around.inner_loops = 1;
  around.end = WasmOffset(300);
  around.has_nest = around.under_way = true;
  see_in(inside);
  inside.end = WasmOffset(270);
  e.samples_baseline = inside.samples = inside.samples_baseline = 100;
  e.seconds_baseline = inside.seconds_baseline = inside.seconds_run_baseline = 0.1;
  EXPECT_NE(decide(e, {}).action, Action::kOptimize) << "the other's code serves it soon";
  around.only_for_callees = true;
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kOptimize) << plan.reason;
  EXPECT_EQ(plan.nest, LoopIndex(1)) << plan.reason;
  inside.has_nest = inside.under_way = true;
  EXPECT_NE(decide(e, {}).action, Action::kOptimize) << "it is being compiled";
}

// Seen so often in baseline code, outside of the nest, which stalls.
void put_loop_around_a_nest(FunctionEvidence& e, double samples, double seconds) {
  e.samples_baseline = samples;
  e.seconds_baseline = seconds;
  LoopEvidence &around = e.loops[0], &nest = e.loops[1];
  around.code_bytes = 400;
  around.inner_loops = 1;
  around.end = WasmOffset(400);
  around.samples = around.samples_baseline = samples;
  around.seconds_baseline = around.seconds_run_baseline = seconds;
  nest.code_bytes = 80;
  nest.end = WasmOffset(200);
  nest.has_nest = true;
  nest.samples_optimized = 200;
  e.loads = {stalling_load(130, 150)};
}

// A nest of a short row alone lost with its prefetch. From the loop around it is fetched rows ahead.
TEST(Policy, AsksAgainInTheLoopAroundANestForWhatDidNotPayInTheNest) {
  FunctionEvidence e = hardly_seen_function();
  put_loop_around_a_nest(e, 60, 0.015);
  for (const ChangeState lost : {ChangeState::kRolledBack, ChangeState::kNotPossible}) {
    e.changes.put({kPrefetch, WasmOffset(130)}, {.state = lost, .rejections = 1});
    const FunctionPlan plan = decide(e, {});
    EXPECT_EQ(plan.nest, LoopIndex(0)) << plan.reason;
    EXPECT_TRUE(plan.has({kPrefetch, WasmOffset(130)})) << plan.reason;
  }
  e.changes.put({kPrefetch, WasmOffset(130)}, {.state = ChangeState::kKept});
  EXPECT_TRUE(decide(e, {}).has({kPrefetch, WasmOffset(130)})) << "it stays";
}

// Three phases one after the other, in a loop that is run through once: the second ones' samples do not say that it iterates.
TEST(Policy, TakesALoopThatIsDearForANestOnlyIfItIsSureToIterate) {
  FunctionEvidence e = hot_function(100);
  e.code_bytes = 4000;
  e.entered = Entered::kNotYet;
  e.seconds_watched = 0.001;
  e.loops.resize(1);
  LoopEvidence& around = e.loops[0];
  around.code_bytes = 1500;
  around.inner_loops = 2;
  around.end = WasmOffset(3000);
  around.samples = around.samples_baseline = 0;
  around.seconds_baseline = around.seconds_run_baseline = 0;
  const auto phase = [&](uint32_t at, double samples) {
    LoopEvidence inner = e.loops[0];
    inner.loop = LoopIndex(static_cast<uint32_t>(e.loops.size()));
    inner.parent = 0;
    inner.offset = WasmOffset(at);
    inner.end = WasmOffset(at + 300);
    inner.code_bytes = 300;
    inner.inner_loops = 0;
    inner.samples = inner.samples_baseline = samples;
    inner.seconds_baseline = inner.seconds_run_baseline = samples * 1e-3;
    e.loops.push_back(inner);
  };
  phase(1000, 60);
  phase(2000, 40);
  // Most of the time is waited for memory: loops around may be dear.
  e.loads.push_back(stalling_load(1010, 55));
  EXPECT_EQ(decide(e, {}).nest, LoopIndex(1)) << decide(e, {}).reason;
  FunctionEvidence iterates = e;
  iterates.loops[1].trip_records = 2;
  EXPECT_EQ(decide(iterates, {}).nest, LoopIndex(0)) << "it was seen to end twice";
  iterates = e;
  iterates.loops[0].samples_baseline = 2;
  EXPECT_EQ(decide(iterates, {}).nest, LoopIndex(0)) << "its own code was seen";
}

TEST(Policy, AsksForLoadsThatItsFirstCodeShowedBesideThoseThatItAskedFor) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 200));
  const FunctionPlan plan = decide(e, {});
  ASSERT_TRUE(plan.has({kPrefetch, WasmOffset(130)}));
  for (const Candidate& candidate : plan.candidates)
    e.changes.put(candidate.site(), {.state = ChangeState::kInTrial});
  EXPECT_TRUE(loads_since(plan, e, {}).empty());
  e.samples_optimized = 40;
  e.loads.push_back(stalling_load(140, 40));
  const std::vector<Candidate> more = loads_since(plan, e, {});
  EXPECT_TRUE(has(more, kPrefetch) && has(more, kInterleave));
  for (const Candidate& candidate : more) EXPECT_EQ(candidate.at(), WasmOffset(140));
  e.changes.put({kPrefetch, WasmOffset(140)}, {.state = ChangeState::kRolledBack, .rejections = 1});
  EXPECT_FALSE(has(loads_since(plan, e, {}), kPrefetch)) << "it was tried elsewhere, and lost";
}

TEST(Policy, AsksToInterleaveAlsoWhereThatWasNotPossibleAloneOnceAnotherLoadIsAskedFor) {
  FunctionEvidence e = hot_function(100);
  e.loads = {stalling_load(130, 80), stalling_load(140, 60)};
  e.changes.put({kInterleave, WasmOffset(140)}, {.state = ChangeState::kNotPossible});
  const auto asks = [&](uint32_t at) {
    return std::ranges::any_of(propose(kInterleave, e, {}),
                               [&](const Candidate& candidate) { return candidate.at() == WasmOffset(at); });
  };
  EXPECT_TRUE(asks(130));
  EXPECT_TRUE(asks(140)) << "iterations that run ahead wait there too";
  e.changes.put({kPrefetch, WasmOffset(140)}, {.state = ChangeState::kKept});
  EXPECT_FALSE(asks(140)) << "it waits no more";
  e.changes.put({kInterleave, WasmOffset(130)}, {.state = ChangeState::kNotPossible});
  EXPECT_FALSE(asks(130)) << "nothing is new";
}

TEST(Policy, AsksToInterleaveWithWhatHardlyStallsInTheLoopAroundASearchThatDoes) {
  FunctionEvidence e = hot_function(100);
  e.loops[0].end = WasmOffset(300);
  e.loops[1].end = WasmOffset(150);
  e.loops.push_back({LoopIndex(static_cast<uint32_t>(e.loops.size())), WasmOffset(400), 0, 20, -1});
  e.loops.back().end = WasmOffset(600);
  e.loads = {stalling_load(130, 80), stalling_load(110, 4)};
  const auto asks = [&](jit::ChangeKind kind, uint32_t at) {
    return std::ranges::any_of(propose(kind, e, {}),
                               [&](const Candidate& candidate) { return candidate.at() == WasmOffset(at); });
  };
  EXPECT_TRUE(asks(kInterleave, 110)) << "the processor may have overlapped it";
  EXPECT_FALSE(asks(kPrefetch, 110)) << "which helps no prefetch";
  e.loads[1].load = WasmOffset(410);
  EXPECT_FALSE(asks(kInterleave, 410)) << "of another loop";
  e.loads[1] = stalling_load(110, 4);
  e.loads[1].addresses = 20;
  e.loads[1].address_span_bytes = 4096;
  EXPECT_FALSE(asks(kInterleave, 110)) << "it is in a near cache";
  e.loads[1] = stalling_load(110, 4);
  e.changes.put({kInterleave, WasmOffset(110)}, {.state = ChangeState::kNotPossible});
  EXPECT_FALSE(asks(kInterleave, 110)) << "it was of no use";
}

TEST(Policy, AsksForFurtherLoadsOfItsNestAloneAndWhereItAsksForLoads) {
  FunctionEvidence e = hot_function(2);
  e.loops[0].code_bytes = 150;
  e.loops[0].end = WasmOffset(300);
  e.loops[0].samples = e.loops[0].samples_optimized = 40;
  e.loops[1] = {LoopIndex(1), WasmOffset(500), 0, 0, -1};
  e.loops[1].end = WasmOffset(600);
  FunctionPlan plan;
  plan.nest = LoopIndex(0);
  e.loads = {stalling_load(130, 20), stalling_load(550, 20)};
  EXPECT_TRUE(loads_since(plan, e, {}).empty()) << "what it asks for instead would wait for them";
  plan.candidates.push_back({.request = {.site = {kPrefetch, WasmOffset(110)}}});
  const std::vector<Candidate> more = loads_since(plan, e, {});
  EXPECT_FALSE(more.empty());
  for (const Candidate& candidate : more) EXPECT_EQ(candidate.at(), WasmOffset(130));
}

TEST(Policy, WaitsForTheTrialsOfItsLoadsBeforeItCompilesForOthers) {
  FunctionEvidence e = optimized_function();
  e.loads = {stalling_load(130, 100), stalling_load(140, 100)};
  for (LoadEvidence& load : e.loads) load.stall_samples_optimized = 100;
  e.changes.put({kInterleave, e.loads[0].load}, {.state = ChangeState::kInTrial});
  e.seconds_since_published = 0.1;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "what is found out says what is asked for";
  e.seconds_since_published = 1;
  EXPECT_EQ(decide(e, {}).action, Action::kReoptimize) << "a trial that does not end holds up nothing";
  e.seconds_since_published = 0.1;
  e.changes.put({kInterleave, e.loads[0].load}, {.state = ChangeState::kRolledBack, .rejections = 1});
  EXPECT_EQ(decide(e, {}).action, Action::kReoptimize);
}

TEST(Policy, PrefetchesAStoreThatStandsOutAndGoesUpAndDownInMemory) {
  const auto asks = [](double samples, double rising) {
    FunctionEvidence e = hot_function(100);
    e.loads.push_back(stalling_load(130, samples));
    e.loads.back().is_store = true;
    e.loads.back().rising_addresses = static_cast<uint64_t>(rising * samples);
    const FunctionPlan plan = decide(e, {});
    EXPECT_FALSE(plan.has(jit::ChangeKind::kInterleave));
    EXPECT_FALSE(plan.has(jit::ChangeKind::kJumpPointers));
    return plan.has(jit::ChangeKind::kPrefetch);
  };
  const double all = hot_function(100).samples_baseline;
  EXPECT_TRUE(asks(0.6 * all, 0.5));
  EXPECT_FALSE(asks(0.2 * all, 0.5)) << "samples stand after any store";
  EXPECT_FALSE(asks(0.6 * all, 0.97)) << "a stream";
  EXPECT_FALSE(asks(0.6 * all, 0.03)) << "a stream, downwards";
}

TEST(Policy, PrefetchesTheLoadsThatHoldTheStalls) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 250));
  e.loads.push_back(stalling_load(140, 60));
  e.loads.push_back(stalling_load(150, 4));  // 1 %: not worth it
  FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kOptimize);
  ASSERT_EQ(listed(plan, kPrefetch).size(), 2u);
  EXPECT_EQ(listed(plan, kPrefetch)[0].at(), WasmOffset(130));
  EXPECT_DOUBLE_EQ(listed(plan, kPrefetch)[0].estimate.share, 250.0 / 400);
}

TEST(Policy, DoesNotTakeTheEvenSpreadOfAHittingLoopForStalls) {
  FunctionEvidence e = hot_function(100);
  for (uint32_t offset : {130, 140}) e.loads.push_back(stalling_load(offset, 28));  // 7 % each, 14 % in all
  EXPECT_TRUE(listed(decide(e, {}), kPrefetch).empty());
}

TEST(Policy, DoesNotPrefetchWhatLiesCloseTogether) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 250));
  e.loads[0].address_span_bytes = 64 << 10;
  EXPECT_TRUE(listed(decide(e, {}), kPrefetch).empty());
}

TEST(Policy, PlansNoPrefetchWhenThatDecisionIsSwitchedOff) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 250));
  PolicyConfig config;
  config.changes.set(jit::ChangeKind::kPrefetch, false);
  FunctionPlan plan = decide(e, config);
  EXPECT_EQ(plan.action, Action::kOptimize);
  EXPECT_TRUE(listed(plan, kPrefetch).empty());
}

TEST(Policy, InlinesTheUsualTargetsOfIndirectCalls) {
  FunctionEvidence e = hot_function(40);
  e.calls.push_back({WasmOffset(130), 100, {{4, 60}, {2, 30}, {7, 2}}});
  e.calls.push_back({WasmOffset(140), 5, {{1, 5}}});                                // too few to know
  e.calls.push_back({WasmOffset(150), 100, {{1, 12}, {2, 12}, {3, 12}, {4, 12}}});  // anything goes
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(plan.action, Action::kOptimize);
  ASSERT_EQ(listed(plan, kInlineCalls).size(), 1u);
  EXPECT_EQ(listed(plan, kInlineCalls)[0].at(), WasmOffset(130));
  ASSERT_EQ(targets_of(listed(plan, kInlineCalls)[0]).size(), 2u);
  EXPECT_EQ(targets_of(listed(plan, kInlineCalls)[0])[0].element, 4u);
  EXPECT_DOUBLE_EQ(targets_of(listed(plan, kInlineCalls)[0])[1].share, 0.3);
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kInlineCalls, false);
  EXPECT_TRUE(listed(decide(e, off), kInlineCalls).empty());
  EXPECT_FALSE(replays(make_episode(e, plan), off));
}

TEST(Policy, InlinesTheCallsAnewThatGoElsewhereByNow) {
  FunctionEvidence e = optimized_function();
  e.calls.push_back({.call = WasmOffset(140), .records = 100, .targets = {{1, 60}, {2, 40}}});
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "all goes where it went";
  e.calls[0].unforeseen_records = 1000;
  e.calls[0].unforeseen = {{7, 900}, {1, 80}, {9, 20}};
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(plan.action, Action::kReoptimize) << plan.reason;
  ASSERT_EQ(listed(plan, kInlineCalls).size(), 1u);
  std::vector<uint32_t> elements;
  for (const jit::CallTargets::Target& target : targets_of(listed(plan, kInlineCalls)[0]))
    elements.push_back(target.element);
  EXPECT_EQ(elements, (std::vector<uint32_t>{7, 1, 2}));
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  e.calls[0].unforeseen_records = 20;
  e.calls[0].unforeseen = {{7, 20}};
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "a few of them are not worth a compile";
}

TEST(Policy, SeesCodeAgainWhoseCallsGoElsewhereAfterALongTime) {
  FunctionEvidence e = optimized_function();
  e.seconds_optimized = e.seconds_since_published = 1.5;
  e.calls.push_back({.call = WasmOffset(140), .records = 100, .targets = {{1, 60}, {2, 40}}});
  e.calls[0].unforeseen_records = 5000;
  e.calls[0].unforeseen = {{7, 4900}, {9, 100}};
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(plan.action, Action::kObserve) << plan.reason;
  EXPECT_TRUE(listed(plan, kInlineCalls).empty());
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  PolicyConfig stays;
  stays.follow_shifts = false;
  EXPECT_EQ(decide(e, stays).action, Action::kReoptimize);
  e.seconds_since_published = 0.5;
  EXPECT_EQ(decide(e, {}).action, Action::kReoptimize) << "what changes so soon may change back";
}

TEST(Policy, SeesCodeAgainWhoseSamplesMovedIfItWasMadeForWhatWasSeen) {
  FunctionEvidence e = optimized_function();
  e.seconds_optimized = e.seconds_since_published = 1.5;
  e.moved_share = 0.5;
  EXPECT_NE(decide(e, {}).action, Action::kObserve)
      << "no branch, call or operand was known: nothing is to be regained";
  e.branches.push_back({.branch = WasmOffset(120), .sampled = 100, .sampled_taken = 97});
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(plan.action, Action::kObserve) << plan.reason;
  ASSERT_FALSE(plan.alternatives.empty());
  EXPECT_GT(plan.alternatives.back().gain_seconds, plan.alternatives.back().cost_seconds);
  EXPECT_TRUE(replays(make_episode(e, plan), {}));

  FunctionEvidence as_it_was = e;
  as_it_was.moved_share = 0.1;
  EXPECT_NE(decide(as_it_was, {}).action, Action::kObserve);
  FunctionEvidence too_often = e;
  too_often.optimize_count = 200;
  EXPECT_NE(decide(too_often, {}).action, Action::kObserve);
  FunctionEvidence short_of_worth = e;
  short_of_worth.seconds_since_published = 0.02;  // nor was it steady
  EXPECT_NE(decide(short_of_worth, {}).action, Action::kObserve);
  PolicyConfig off;
  off.follow_shifts = false;
  EXPECT_NE(decide(e, off).action, Action::kObserve);
}

TEST(Policy, KeepsAsManyTargetsInPlaceAsMayBe) {
  FunctionEvidence e = hot_function(100);
  e.calls.push_back(
      {.call = WasmOffset(140), .records = 100, .targets = {{1, 50}, {2, 20}, {3, 15}, {4, 15}}});
  e.calls[0].unforeseen_records = 100;
  e.calls[0].unforeseen = {{8, 60}, {9, 40}};
  // 100 records in 100 ms of baseline code: twice as many a second in optimized code, half of them
  // unforeseen.
  e.seconds_since_published = 0.1;
  const std::vector<Candidate> plans = propose(kInlineCalls, e, {});
  ASSERT_EQ(plans.size(), 1u);
  std::vector<uint32_t> elements;
  for (const jit::CallTargets::Target& target : targets_of(plans[0])) elements.push_back(target.element);
  EXPECT_EQ(elements, (std::vector<uint32_t>{8, 1, 9, 2}));
}

TEST(Policy, LeavesFrequentTargetsInPlaceForRareOnes) {
  FunctionEvidence e = optimized_function();
  e.calls.push_back(
      {.call = WasmOffset(140), .records = 200, .targets = {{1, 50}, {2, 50}, {3, 50}, {4, 50}}});
  e.calls[0].unforeseen_records = 500;
  e.calls[0].unforeseen = {{5, 250}, {6, 250}};
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << decide(e, {}).reason;
}

TEST(Policy, NeverTriesALoadAgainThatLostItsTrial) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 250));
  e.changes.settle({kPrefetch, e.loads[0].load}, ChangeState::kRolledBack);
  EXPECT_TRUE(listed(decide(e, {}), kPrefetch).empty());
}

// What the last second shows counts, however long the program was another before.
TEST(Policy, SeesWithinASecondThatALoadBeganToStall) {
  FunctionEvidence e = optimized_function();
  e.samples_optimized = 700;
  e.seconds_optimized = e.seconds_since_published = 2.8;
  e.seconds_run = 3;
  e.loads.push_back(stalling_load(130, 60));
  e.loads[0].stall_samples_optimized = 60;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "9 % of its samples";
  e.samples_recent = 80;
  e.loads[0].stall_samples_recent = 55;
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(plan.action, Action::kReoptimize) << plan.reason;
  ASSERT_EQ(listed(plan, kPrefetch).size(), 1u);
  EXPECT_NEAR(listed(plan, kPrefetch)[0].request.weight, 55.0 / 80, 1e-9);
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  PolicyConfig off;
  off.follow_shifts = false;
  EXPECT_EQ(decide(e, off).action, Action::kNothing);
  e.samples_recent = 20;
  e.loads[0].stall_samples_recent = 15;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "too few to say";
}

// Its only load stalls much, and was rejected once.
FunctionEvidence function_with_a_loser() {
  FunctionEvidence e = optimized_function();
  e.seconds_run = 10;
  e.samples_recent = 100;
  e.loads.push_back(stalling_load(130, 180));
  e.loads[0].stall_samples_optimized = 80;
  e.loads[0].stall_samples_recent = 60;
  e.changes.put({kPrefetch, e.loads[0].load}, {.state = ChangeState::kRolledBack, .rejections = 1});
  return e;
}

TEST(Policy, TriesALoserAgainOnlyWhenItStallsFarMoreThanThen) {
  FunctionEvidence e = function_with_a_loser();
  LoadEvidence& load = e.loads[0];
  const jit::Site site{kPrefetch, load.load};
  load.seconds_since_rejected = 5;
  load.share_when_rejected = 0.55;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "it is as it was";
  load.share_when_rejected = 0.2;
  EXPECT_EQ(decide(e, {}).action, Action::kReoptimize);
  EXPECT_EQ(listed(decide(e, {}), kPrefetch).size(), 1u);
  load.seconds_since_rejected = 0.1;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "just now";
  load.seconds_since_rejected = 5;
  e.changes.put(site, {.state = ChangeState::kRolledBack, .rejections = 4});
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "the fourth time takes longer";
  load.seconds_since_rejected = 40;
  EXPECT_EQ(decide(e, {}).action, Action::kReoptimize);
  e.changes.put(site, {.state = ChangeState::kNotPossible, .rejections = 4});
  EXPECT_TRUE(listed(decide(e, {}), kPrefetch).empty()) << "what cannot be done cannot be done";
}

TEST(Policy, LetsWhatWaitedForALoserHaveItsTurnBeforeTheLoserIsTriedAgain) {
  FunctionEvidence e = function_with_a_loser();
  LoadEvidence& load = e.loads[0];
  load.seconds_since_rejected = 5;
  load.share_when_rejected = 0.2;
  e.changes.put({kInterleave, load.load}, {.state = ChangeState::kRolledBack, .rejections = 1});
  e.changes.put({kPrefetch, load.load}, {.state = ChangeState::kInTrial});
  FunctionPlan waited;
  waited.candidates.push_back({.request = {.site = {kPrefetch, load.load}}});
  waited.action = Action::kOptimize;
  EXPECT_TRUE(has(loads_since(waited, e, {}), kInterleave)) << "it stalls far more than then";
  waited.action = Action::kReoptimize;
  EXPECT_FALSE(has(loads_since(waited, e, {}), kInterleave));
}

TEST(Policy, TriesALoserAgainOnceItGoesThroughFarMoreMemoryThanThen) {
  FunctionEvidence e = function_with_a_loser();
  LoadEvidence& load = e.loads[0];
  load.share_when_rejected = 0.6;
  const auto after = [&](double seconds, uint64_t times) {
    load.seconds_since_rejected = seconds;
    load.span_when_rejected = load.address_span_bytes / times;
    return decide(e, {}).action;
  };
  EXPECT_EQ(after(0.2, 2), Action::kNothing) << "it is about as it was";
  EXPECT_EQ(after(0.2, 8), Action::kReoptimize);
  EXPECT_EQ(after(0.1, 8), Action::kNothing) << "just now";
  load.seconds_since_rejected = 0.4;
  const jit::Site site{kPrefetch, load.load};
  e.changes.put(site, {.state = ChangeState::kRolledBack, .rejections = 2});
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "the second time takes longer";
  // Both were tried one after the other, by what was known then: that is one time.
  e.changes.put(site, {.state = ChangeState::kRolledBack, .rejections = 1});
  e.changes.put({kInterleave, load.load}, {.state = ChangeState::kRolledBack, .rejections = 1});
  EXPECT_EQ(decide(e, {}).action, Action::kReoptimize) << "two changes that lost at a time are no two times";
  // A search cannot be prefetched.
  e.changes.put(site, {.state = ChangeState::kNotPossible});
  e.changes.put({kInterleave, load.load}, {.state = ChangeState::kRolledBack, .rejections = 1});
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kReoptimize) << plan.reason;
  EXPECT_TRUE(plan.has({kInterleave, load.load}));
  EXPECT_FALSE(plan.has(site));
}

TEST(Policy, CompilesMoreOftenTheLongerAFunctionRuns) {
  FunctionEvidence e = optimized_function();
  e.loads.push_back(stalling_load(130, 180));
  e.loads[0].stall_samples_optimized = 80;
  const PolicyConfig config;
  e.optimize_count = config.max_compiles;
  EXPECT_EQ(decide(e, config).action, Action::kNothing);
  e.seconds_run = 1.5 * config.seconds_per_compile;
  EXPECT_EQ(decide(e, config).action, Action::kReoptimize);
  ++e.optimize_count;
  EXPECT_EQ(decide(e, config).action, Action::kNothing);
  e.seconds_run = 1e9;
  EXPECT_EQ(decide(e, config).action, Action::kReoptimize);
  e.optimize_count = config.max_compiles + config.max_later_compiles;
  EXPECT_EQ(decide(e, config).action, Action::kNothing) << "not without end";
}

// A loop in optimized code enters new code where it can leave the old.
TEST(Policy, EntersNewCodeByTheLoopByWhichTheOldCanBeLeft) {
  FunctionEvidence e = optimized_function();
  e.entered = Entered::kNotYet;
  e.loads.push_back(stalling_load(130, 180));
  e.loads[0].stall_samples_optimized = 80;
  EXPECT_EQ(decide(e, {}).osr_loops, std::vector{LoopIndex(1)}) << "the hottest";
  e.exit_loops = {LoopIndex(0)};
  EXPECT_EQ(decide(e, {}).osr_loops, std::vector{LoopIndex(0)});
  e.entered = Entered::kAgain;
  EXPECT_TRUE(decide(e, {}).osr_loops.empty()) << "its next call runs the new code";
}

TEST(Policy, GivesALoopAWayOutOfCodeThatWasReplaced) {
  FunctionEvidence e = optimized_function();
  e.entered = Entered::kAgain;
  e.exit_loops = {LoopIndex(0)};
  EXPECT_EQ(decide(e, {}).action, Action::kNothing);
  e.samples_stayed = 100;
  e.seconds_stayed = 0.4;
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(plan.action, Action::kReoptimize) << plan.reason;
  EXPECT_EQ(plan.osr_loops, std::vector{LoopIndex(0)});
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  e.entry_loops = {LoopIndex(0)};
  EXPECT_EQ(decide(e, {}).action, Action::kNothing) << "it has one and did not come by";
}

TEST(Policy, OffersJumpPointersForWhatStallsInCaseItFollowsPointers) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 200));
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(listed(plan, kJumpPointers).size(), 1u);
  EXPECT_EQ(listed(plan, kJumpPointers)[0].at(), WasmOffset(130));
  EXPECT_NEAR(listed(plan, kJumpPointers)[0].estimate.share, 0.5, 1e-9);
  PolicyConfig without;
  without.changes.set(jit::ChangeKind::kJumpPointers, false);
  EXPECT_TRUE(listed(decide(e, without), kJumpPointers).empty());
  const Episode episode = make_episode(e, plan);
  EXPECT_EQ(episode.asked_for(kJumpPointers), std::vector{WasmOffset(130)});
  EXPECT_TRUE(replays(episode, {}));
  EXPECT_FALSE(replays(episode, without));
}

TEST(Policy, OffersToBranchAroundChoicesThatStallingLoadsMayWaitFor) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 200));
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(listed(plan, kSpeculate).size(), 1u);
  EXPECT_EQ(listed(plan, kSpeculate)[0].at(), WasmOffset(130));
  EXPECT_NEAR(listed(plan, kSpeculate)[0].estimate.share, 0.25, 1e-9) << "half of the guesses are right";
  PolicyConfig without;
  without.changes.set(kSpeculate, false);
  EXPECT_TRUE(listed(decide(e, without), kSpeculate).empty());
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  for (const ChangeState lost : {ChangeState::kRolledBack, ChangeState::kNotPossible}) {
    e.changes.settle({kSpeculate, e.loads[0].load}, lost);
    EXPECT_TRUE(listed(decide(e, {}), kSpeculate).empty()) << to_string(lost);
  }
  // What was won stays, and nothing is tried that would have to take its place.
  e.changes.settle({kSpeculate, e.loads[0].load}, ChangeState::kKept);
  EXPECT_EQ(listed(decide(e, {}), kSpeculate).size(), 1u);
  for (const jit::ChangeKind other : {kPrefetch, kInterleave, kJumpPointers})
    EXPECT_TRUE(listed(decide(e, {}), other).empty()) << to_string(other);
}

TEST(Policy, OffersNoJumpPointersWhereSomethingElseWasWonOrTheyLost) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 200));
  e.changes.settle({kPrefetch, e.loads[0].load}, ChangeState::kKept);
  EXPECT_TRUE(listed(decide(e, {}), kJumpPointers).empty());
  e.changes.settle({kPrefetch, e.loads[0].load}, ChangeState::kNotPossible);
  e.changes.settle({kInterleave, e.loads[0].load}, ChangeState::kKept);
  EXPECT_TRUE(listed(decide(e, {}), kJumpPointers).empty());
  e.changes.settle({kInterleave, e.loads[0].load}, ChangeState::kNone);
  for (const ChangeState lost : {ChangeState::kRolledBack, ChangeState::kNotPossible}) {
    e.changes.settle({kJumpPointers, e.loads[0].load}, lost);
    EXPECT_TRUE(listed(decide(e, {}), kJumpPointers).empty()) << to_string(lost);
  }
  // What was won stays in any new version, and no prefetch is tried beside it.
  e.changes.settle({kPrefetch, e.loads[0].load}, ChangeState::kNone);
  e.changes.settle({kJumpPointers, e.loads[0].load}, ChangeState::kKept);
  EXPECT_EQ(listed(decide(e, {}), kJumpPointers).size(), 1u);
  EXPECT_TRUE(listed(decide(e, {}), kPrefetch).empty());
}

// A search that is a nest by itself, in a small function that is called again: of the loop around it hardly anything is seen.
TEST(Policy, CompilesTheLoopAroundANestForWhatCouldNotBeHelpedInTheNestAlone) {
  FunctionEvidence e = hot_function(4);
  put_loop_around_a_nest(e, 4, 0.004);
  e.entered = Entered::kAgain;
  e.code_bytes = 500;
  e.samples_optimized = 200;
  e.loads[0].stall_samples_optimized = 150;
  e.changes.put({kPrefetch, WasmOffset(130)}, {.state = ChangeState::kNotPossible});
  e.changes.put({kInterleave, WasmOffset(130)}, {.state = ChangeState::kNotPossible});
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.nest, LoopIndex(0)) << plan.reason;
  EXPECT_TRUE(plan.has({kInterleave, WasmOffset(130)})) << plan.reason;
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  const auto without = [&](const auto& what) {
    FunctionEvidence other = e;
    what(other);
    return decide(other, {}).action;
  };
  EXPECT_EQ(without([](FunctionEvidence& o) { o.loads[0].stall_samples_optimized = 20; }), Action::kNothing)
      << "it hardly stalls";
  EXPECT_EQ(without([](FunctionEvidence& o) {
              o.changes.settle({kInterleave, WasmOffset(130)}, ChangeState::kKept);
            }),
            Action::kNothing)
      << "it was helped";
  EXPECT_EQ(without([](FunctionEvidence& o) {
              o.loops[0].samples = o.loops[0].samples_baseline = 1;
              o.loops[0].seconds_baseline = o.loops[0].seconds_run_baseline = 0.0002;
            }),
            Action::kNothing)
      << "nobody knows whether the loop around it iterates";
}

TEST(Policy, CompilesAFunctionForWhatCouldNotBeHelpedInItsNestsAlone) {
  FunctionEvidence e = hot_function(100);
  e.entered = Entered::kAgain;
  e.loops[1].has_nest = true;
  e.loads = {stalling_load(130, 150)};
  e.changes.put({kInterleave, WasmOffset(130)}, {.state = ChangeState::kNotPossible});
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kOptimize) << plan.reason;
  EXPECT_FALSE(plan.nest);
  EXPECT_TRUE(plan.has({kInterleave, WasmOffset(130)})) << plan.reason;
  e.loops[1].has_nest = false;
  EXPECT_FALSE(decide(e, {}).has({kInterleave, WasmOffset(130)})) << "it was not possible in the function";
}

TEST(Policy, OffersToInterleaveWhatStallsInCaseItIsASearch) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 250));
  FunctionPlan plan = decide(e, {});
  ASSERT_EQ(listed(plan, kInterleave).size(), 1u);
  EXPECT_EQ(listed(plan, kInterleave)[0].at(), WasmOffset(130));
  EXPECT_EQ(listed(plan, kInterleave)[0].request.setting, jit::traits_of(kInterleave).knob.first);
  EXPECT_LT(listed(plan, kInterleave)[0].estimate.share, listed(plan, kPrefetch).at(0).estimate.share);
  PolicyConfig without;
  without.changes.set(jit::ChangeKind::kInterleave, false);
  EXPECT_TRUE(listed(decide(e, without), kInterleave).empty());
  EXPECT_EQ(listed(decide(e, without), kPrefetch).size(), 1u);
}

TEST(Policy, OffersToInterleaveInANearCacheTooButNotToPrefetch) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 50));
  e.loads[0].address_span_bytes = 100 << 10;
  const double samples = e.samples_baseline + e.samples_optimized;
  e.loads[0].stall_samples = 0.4 * samples;
  EXPECT_EQ(listed(decide(e, {}), kInterleave).size(), 1u);
  EXPECT_TRUE(listed(decide(e, {}), kPrefetch).empty());
  e.loads[0].stall_samples = 0.1 * samples;  // no more than others
  EXPECT_TRUE(listed(decide(e, {}), kInterleave).empty());
}

TEST(Policy, InterleavesNothingThatHasItsPrefetchOrLostItsTrial) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 250));
  e.changes.settle({kPrefetch, e.loads[0].load}, ChangeState::kKept);
  EXPECT_TRUE(listed(decide(e, {}), kInterleave).empty());
  e.changes.settle({kPrefetch, e.loads[0].load}, ChangeState::kNone);
  for (ChangeState outcome : {ChangeState::kRolledBack, ChangeState::kNotPossible}) {
    e.changes.settle({kInterleave, e.loads[0].load}, outcome);
    EXPECT_TRUE(listed(decide(e, {}), kInterleave).empty()) << to_string(outcome);
    EXPECT_EQ(listed(decide(e, {}), kPrefetch).size(), 1u) << to_string(outcome);
  }
  // What runs interleaved stays so in any new version, and no prefetch takes its place.
  e.changes.settle({kInterleave, e.loads[0].load}, ChangeState::kKept);
  EXPECT_EQ(listed(decide(e, {}), kInterleave).size(), 1u);
  EXPECT_TRUE(listed(decide(e, {}), kPrefetch).empty());
  FunctionEvidence later = optimized_function();
  later.samples_optimized = 200;
  later.loads.push_back(e.loads[0]);
  later.changes = e.changes;
  later.loads[0].stall_samples_optimized = 150;
  EXPECT_EQ(decide(later, {}).action, Action::kNothing);
}

TEST(Policy, RecompilesOptimizedCodeInWhichAnUntriedLoadStalls) {
  FunctionEvidence e = hot_function(0);
  e.optimized = true;
  e.optimize_count = 1;
  e.samples_optimized = 200;
  e.seconds_optimized = 0.8;
  e.total_samples = 200;
  e.loads.push_back(stalling_load(130, 90));
  e.loads[0].stall_samples_optimized = 90;
  FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kReoptimize);
  ASSERT_EQ(listed(plan, kPrefetch).size(), 1u);
}

TEST(Policy, LeavesOptimizedCodeAloneWhoseStallsWereAllTried) {
  FunctionEvidence e = hot_function(0);
  e.optimized = true;
  e.optimize_count = 1;
  e.samples_optimized = 200;
  e.seconds_optimized = 0.8;
  e.loads.push_back(stalling_load(130, 90));
  e.loads[0].stall_samples_optimized = 90;
  for (ChangeState outcome : {ChangeState::kKept, ChangeState::kRolledBack, ChangeState::kNotPossible}) {
    e.changes.settle({kPrefetch, e.loads[0].load}, outcome);
    EXPECT_EQ(decide(e, {}).action, Action::kNothing) << to_string(outcome);
  }
}

TEST(Policy, StopsAfterTheAllowedNumberOfCompiles) {
  FunctionEvidence e = hot_function(0);
  e.optimized = true;
  e.optimize_count = PolicyConfig().max_compiles;
  e.samples_optimized = 200;
  e.seconds_optimized = 0.8;
  e.loads.push_back(stalling_load(130, 90));
  e.loads[0].stall_samples_optimized = 90;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing);
}

TEST(Policy, LetsRunningCodeLeaveByTheHottestLoopAndThoseAroundIt) {
  PolicyConfig config;
  EXPECT_EQ(decide(hot_function(100), config).osr_loops, std::vector<LoopIndex>{LoopIndex(1)});
  config.max_osr_loops = 4;
  EXPECT_EQ(decide(hot_function(100), config).osr_loops,
            (std::vector<LoopIndex>{LoopIndex(0), LoopIndex(1)}));
}

TEST(Policy, MakesNoLoopEntriesForAFunctionThatIsEnteredAgain) {
  FunctionEvidence e = hot_function(100);
  e.entered = Entered::kAgain;
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kOptimize);
  EXPECT_TRUE(plan.osr_loops.empty());
  e.entered = Entered::kNotYet;
  e.seconds_watched = 0.002;
  EXPECT_EQ(decide(e, {}).action, Action::kWait);
  e.seconds_watched = 0.02;
  EXPECT_EQ(decide(e, {}).osr_loops, std::vector<LoopIndex>{LoopIndex(1)});
}

TEST(Policy, CompilesTheRunningLoopAloneOfAFunctionThatIsNotEnteredAgain) {
  FunctionEvidence e = hot_function(100);
  EXPECT_FALSE(decide(e, {}).loop_entries_only) << "nobody has watched whether it is entered";
  e.entered = Entered::kNotYet;
  e.seconds_watched = 0.02;
  EXPECT_TRUE(decide(e, {}).loop_entries_only);
  e.entered = Entered::kAgain;
  EXPECT_FALSE(decide(e, {}).loop_entries_only);
}

TEST(Policy, CompilesTheWholeFunctionWhereItPrefetchesInItsLoop) {
  FunctionEvidence e = hot_function(100);
  e.entered = Entered::kNotYet;
  e.seconds_watched = 0.02;
  e.loads.push_back(stalling_load(130, 250));
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kOptimize);
  EXPECT_FALSE(listed(plan, kPrefetch).empty());
  EXPECT_FALSE(plan.loop_entries_only);
}

TEST(Policy, WaitsForTheCallOfAFunctionWithASmallShareOnlyWhileOthersRunAWhile) {
  FunctionEvidence e = hot_function(100);
  e.entered = Entered::kNotYet;
  e.seconds_watched = 0.001;
  e.all_seconds_watched = 0.009;
  EXPECT_EQ(decide(e, {}).action, Action::kWait);
  e.all_seconds_watched = 0.011;
  EXPECT_EQ(decide(e, {}).action, Action::kOptimize);
  e.seconds_watched = 0;
  EXPECT_EQ(decide(e, {}).action, Action::kWait) << "it does not run: its loop may be over";
}

TEST(Policy, LooksOnceWhetherALargeFunctionIsCalledBeforeItCompilesALoopOfItAlone) {
  FunctionEvidence e = hot_function(100);
  e.code_bytes = 4000;
  e.loops[0].code_bytes = 150;
  e.loops[0].end = WasmOffset(300);
  e.loops[0].samples = e.loops[0].samples_baseline = 30;
  e.loops[0].seconds_baseline = e.loops[0].seconds_run_baseline = 0.03;
  e.entered = Entered::kNotYet;
  e.seconds_watched = 0.0001;
  EXPECT_EQ(decide(e, {}).action, Action::kWait)
      << "its samples came in the burst in which it began to be watched";
  e.seconds_watched = 0.001;
  EXPECT_EQ(decide(e, {}).action, Action::kOptimize);
  EXPECT_EQ(decide(e, {}).nest, LoopIndex(0)) << "it is not waited for longer, as that is dear";
  e.entered = Entered::kAgain;
  e.seconds_watched = 0.0001;
  EXPECT_EQ(decide(e, {}).nest, std::nullopt) << "its next call runs all of its code";
}

TEST(Policy, CompilesAllOfAFunctionThatIsCalledAfterItsRunningLoopWasCompiled) {
  FunctionEvidence e = hot_function(100);
  e.optimized = true;
  e.optimize_count = 1;
  e.loop_entries_only = true;
  e.entered = Entered::kNotYet;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing);
  e.entered = Entered::kAgain;
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kReoptimize);
  EXPECT_TRUE(plan.osr_loops.empty());
  EXPECT_FALSE(plan.loop_entries_only);
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  e.optimize_count = PolicyConfig().max_compiles;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing);
}

TEST(Policy, LetsALoopLeaveThatStayedBehindInBaselineCode) {
  FunctionEvidence e = hot_function(100);
  e.entered = Entered::kAgain;
  e.optimized = true;
  e.optimize_count = 1;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing);
  e.samples_left_behind = 60;
  e.seconds_left_behind = 0.015;
  const FunctionPlan plan = decide(e, {});
  EXPECT_EQ(plan.action, Action::kReoptimize);
  EXPECT_EQ(plan.osr_loops, std::vector<LoopIndex>{LoopIndex(1)});
  EXPECT_TRUE(replays(make_episode(e, plan), {}));
  e.optimize_count = PolicyConfig().max_compiles;
  EXPECT_EQ(decide(e, {}).action, Action::kNothing);
}

TEST(Policy, WeighsDoingNothingAmongTheAlternatives) {
  FunctionPlan plan = decide(hot_function(100), {});
  ASSERT_GE(plan.alternatives.size(), 2u);
  EXPECT_EQ(plan.alternatives[0].name, "nothing");
  EXPECT_FALSE(plan.reason.empty());
}

TEST(Policy, ReplaysToTheSamePlanFromASavedEpisode) {
  FunctionEvidence e = hot_function(100);
  e.loads.push_back(stalling_load(130, 250));
  PolicyConfig config;
  config.min_stall_share = 0.02;
  Episode episode = make_episode(e, decide(e, config));
  EXPECT_TRUE(replays(episode, from_parameters(to_parameters(config))));
  EXPECT_EQ(episode.asked_for(kInterleave), std::vector{WasmOffset(130)});
  for (const jit::ChangeKind kind : {kInterleave, kPrefetch}) {
    Episode other = episode;
    std::erase(other.changes, jit::Site{kind, WasmOffset(130)});
    EXPECT_FALSE(replays(other, config));
  }
}

TEST(Policy, ParametersSurviveTheTripThroughTheirNames) {
  PolicyConfig config;
  config.changes.set(jit::ChangeKind::kPrefetch, false);
  config.max_compiles = 9;
  config.optimized_speedup = 3.25;
  EXPECT_EQ(from_parameters(to_parameters(config)), config);
  // Numbers of a time when nobody decided about it.
  auto old = to_parameters(config);
  old.erase("interleave");
  EXPECT_FALSE(from_parameters(old).changes[jit::ChangeKind::kInterleave]);
}

enum class Form : uint8_t { kAsItComes, kSelect, kBranch };

BranchEvidence branch_at(uint32_t offset, uint64_t outcomes, double taken, double mispredicted) {
  BranchEvidence b;
  b.branch = WasmOffset(offset);
  b.sampled = 40;
  b.sampled_taken = static_cast<uint64_t>(40 * taken);
  b.outcomes = b.judged = outcomes;
  b.taken = static_cast<uint64_t>(static_cast<double>(outcomes) * taken);
  b.mispredicted = static_cast<uint64_t>(static_cast<double>(outcomes) * mispredicted);
  return b;
}

BranchEvidence select_at(uint32_t offset, uint64_t records, double first) {
  BranchEvidence b;
  b.branch = WasmOffset(offset);
  b.chooses = true;
  b.sampled = records;
  b.sampled_taken = static_cast<uint64_t>(static_cast<double>(records) * first);
  return b;
}

Form form_asked(const BranchEvidence& branch, const PolicyConfig& config = {}, ChangeLedger changes = {}) {
  FunctionEvidence e = hot_function(100);
  e.branches = {branch};
  e.changes = std::move(changes);
  return !propose(kSelect, e, config).empty()   ? Form::kSelect
         : !propose(kBranch, e, config).empty() ? Form::kBranch
                                                : Form::kAsItComes;
}

TEST(PolicyBranches, TheCompilerIsToldHowOftenABranchGoesWhichWay) {
  FunctionEvidence e = hot_function(100);
  e.branches = {branch_at(10, 1000, 0.9, 0.0), select_at(20, 200, 0.5), branch_at(30, 10, 0.5, 0.5)};
  e.branches[2].sampled = e.branches[2].sampled_taken = 0;
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(plan.action, Action::kOptimize);
  const std::vector<Candidate> weighed = listed(plan, kWeighBranches);
  ASSERT_EQ(weighed.size(), 2u);  // the third was hardly seen
  EXPECT_EQ(weighed[0].at(), WasmOffset(10));
  EXPECT_EQ(counts_of(weighed[0]).taken, 936u);
  EXPECT_EQ(counts_of(weighed[0]).not_taken, 104u);
  EXPECT_EQ(counts_of(weighed[1]).taken, 100u);
  PolicyConfig off;
  for (const jit::ChangeKind kind :
       {jit::ChangeKind::kWeighBranches, jit::ChangeKind::kSelect, jit::ChangeKind::kBranch})
    off.changes.set(kind, false);
  EXPECT_TRUE(decide(e, off).candidates.empty());
}

TEST(PolicyBranches, ABranchThatIsMispredictedMayBecomeASelect) {
  EXPECT_EQ(form_asked(branch_at(10, 1000, 0.5, 0.4)), Form::kSelect);
  // Goes both ways, but not by chance.
  EXPECT_EQ(form_asked(branch_at(10, 1000, 0.5, 0.01)), Form::kBranch);
  // Goes one way, which the compiler leaves a branch.
  EXPECT_EQ(form_asked(branch_at(10, 1000, 0.001, 0.001)), Form::kAsItComes);
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kSelect, false);
  EXPECT_EQ(form_asked(branch_at(10, 1000, 0.5, 0.4), off), Form::kAsItComes);
}

TEST(PolicyBranches, ASelectThatNearlyAlwaysGoesOneWayMayBecomeABranch) {
  EXPECT_EQ(form_asked(select_at(20, 1000, 0.97)), Form::kBranch);
  EXPECT_EQ(form_asked(select_at(20, 1000, 0.02)), Form::kBranch);
  EXPECT_EQ(form_asked(select_at(20, 1000, 0.0)), Form::kBranch);
  // How well it would be predicted nobody knows.
  EXPECT_EQ(form_asked(select_at(20, 1000, 0.80)), Form::kAsItComes);
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kBranch, false);
  EXPECT_EQ(form_asked(select_at(20, 1000, 0.97), off), Form::kAsItComes);
}

TEST(PolicyBranches, WhatLostItsTrialIsNotTriedAgainAndWhatWonStays) {
  const BranchEvidence branch = branch_at(10, 1000, 0.5, 0.4);
  for (const ChangeState outcome : {ChangeState::kRolledBack, ChangeState::kNotPossible}) {
    for (const jit::ChangeKind form : {kSelect, kBranch})
      EXPECT_EQ(form_asked(branch, {}, {{{form, branch.branch}, {.state = outcome}}}), Form::kAsItComes);
  }
  EXPECT_EQ(form_asked(branch, {}, {{{kSelect, branch.branch}, {.state = ChangeState::kKept}}}),
            Form::kSelect);
}

TEST(PolicyBranches, AHotBranchThatGoesBothWaysIsAskedAboutLaterWhereItIsNotJudgedYet) {
  FunctionEvidence e = hot_function(10);
  e.branches = {branch_at(10, 0, 0.5, 0)};
  const FunctionPlan plan = decide(e, {});
  EXPECT_TRUE(is_early(plan));
  e.branches = {branch_at(10, 1000, 0.5, 0.4)};
  EXPECT_TRUE(is_complete(decide(e, {})));
  // Not for ever, not for one that goes one way, and not if nobody would use it.
  FunctionEvidence late = hot_function(100);
  late.branches = {branch_at(10, 0, 0.5, 0)};
  EXPECT_TRUE(is_complete(decide(late, {})));
  e.branches = {branch_at(10, 0, 0.99, 0)};
  EXPECT_TRUE(is_complete(decide(e, {})));
  e.branches = {branch_at(10, 0, 0.5, 0)};
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kSelect, false);
  EXPECT_TRUE(is_complete(decide(e, off)));
}

TEST(PolicyBranches, ASelectThatGoesOneWayIsAskedAboutLaterWhereItIsNotSeenOftenEnough) {
  FunctionEvidence e = hot_function(10);
  e.branches = {select_at(10, 1000, 1), select_at(20, 30, 1)};
  const FunctionPlan plan = decide(e, {});
  EXPECT_TRUE(is_early(plan));
  e.branches = {select_at(10, 1000, 1), select_at(20, 64, 1)};
  EXPECT_TRUE(is_complete(decide(e, {})));
  // Not for ever, not for one that goes both ways or is hardly ever seen, and not if nobody would use it.
  FunctionEvidence late = hot_function(100);
  late.branches = {select_at(20, 30, 1)};
  EXPECT_TRUE(is_complete(decide(late, {})));
  for (const BranchEvidence& other : {select_at(20, 30, 0.8), select_at(20, 4, 1)}) {
    e.branches = {other};
    EXPECT_TRUE(is_complete(decide(e, {})));
  }
  e.branches = {select_at(20, 30, 1)};
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kBranch, false);
  EXPECT_TRUE(is_complete(decide(e, off)));
}

TEST(PolicyBranches, FormsAreWeighedAsAlternativesAndReplay) {
  FunctionEvidence e = hot_function(100);
  e.branches = {branch_at(10, 1000, 0.5, 0.4), select_at(20, 1000, 0.97), branch_at(30, 1000, 0.7, 0.03)};
  PolicyConfig config;
  const FunctionPlan plan = decide(e, config);
  Episode episode = make_episode(e, plan);
  EXPECT_EQ(episode.asked_for(kWeighBranches), (std::vector{WasmOffset(10), WasmOffset(20), WasmOffset(30)}));
  EXPECT_EQ(episode.asked_for(kSelect), std::vector{WasmOffset(10)});
  EXPECT_EQ(episode.asked_for(kBranch), (std::vector{WasmOffset(20), WasmOffset(30)}));
  EXPECT_TRUE(replays(episode, from_parameters(to_parameters(config))));
  config.changes.set(jit::ChangeKind::kSelect, false);
  EXPECT_FALSE(replays(episode, config));
}

// So many records, of which `usual` are of the same value.
ValueEvidence operand_at(uint32_t offset, ValueSite site, uint64_t value, uint64_t usual, uint64_t records) {
  ValueEvidence v{.at = WasmOffset(offset), .site = site, .records = records, .values = {{value, usual}}};
  if (usual < records) v.values.push_back({value + 1, records - usual});
  return v;
}

bool asked(const ValueEvidence& operand, ChangeState known = ChangeState::kNone) {
  FunctionEvidence e = hot_function(10);
  e.changes.settle({kValue, operand.at}, known);
  e.values = {operand};
  return !propose(kValue, e, {}).empty();
}

TEST(PolicyValues, AnOperandThatIsUsuallyTheSameIsWorthATrial) {
  FunctionEvidence e = hot_function(10);
  e.values = {operand_at(20, ValueSite::kWideDivisor, 16381, 95, 100),
              operand_at(10, ValueSite::kByteCount, 24, 40, 40)};
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(plan.action, Action::kOptimize) << plan.reason;
  ASSERT_EQ(listed(plan, kValue).size(), 2u);
  EXPECT_EQ(listed(plan, kValue)[0].at(), WasmOffset(20));
  EXPECT_EQ(usual_of(listed(plan, kValue)[0]).value, 16381u);
  EXPECT_DOUBLE_EQ(usual_of(listed(plan, kValue)[0]).share, 0.95);
  EXPECT_EQ(listed(plan, kValue)[0].reason, "the wide divisor at 0x14 is 16381 in 95 of 100 records");
  EXPECT_EQ(usual_of(listed(plan, kValue)[1]).value, 24u);
  EXPECT_EQ(listed(plan, kValue)[1].reason, "the byte count at 0xa is 24 in 40 of 40 records");
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kValue, false);
  EXPECT_TRUE(listed(decide(e, off), kValue).empty());
}

TEST(PolicyValues, OneThatIsNowAndThenTheSameOrHardlyMattersIsNot) {
  EXPECT_TRUE(asked(operand_at(10, ValueSite::kDivisor, 97, 80, 100)));
  EXPECT_FALSE(asked(operand_at(10, ValueSite::kDivisor, 97, 79, 100)));
  EXPECT_FALSE(asked(operand_at(10, ValueSite::kDivisor, 97, 7, 7))) << "too few records";
  EXPECT_TRUE(asked(operand_at(10, ValueSite::kByteCount, 256, 40, 40)));
  EXPECT_FALSE(asked(operand_at(10, ValueSite::kByteCount, 257, 40, 40))) << "so many bytes take their time";
  EXPECT_TRUE(asked(operand_at(10, ValueSite::kDivisor, 257, 40, 40)));
  EXPECT_TRUE(asked(operand_at(10, ValueSite::kTripCount, 64, 40, 40)));
  EXPECT_FALSE(asked(operand_at(10, ValueSite::kTripCount, 65, 40, 40))) << "so many turns take their time";
  EXPECT_FALSE(asked(operand_at(10, ValueSite::kTripCount, 8, 31, 40))) << "it varies";
  FunctionEvidence slow = hot_function(10);
  slow.seconds_baseline = 10;
  slow.values = {operand_at(10, ValueSite::kDivisor, 97, 40, 40)};
  EXPECT_TRUE(propose(kValue, slow, {}).empty()) << "a millisecond of ten seconds";
}

TEST(PolicyValues, HowOftenALoopGoesRoundIsSaidOfTheLoop) {
  FunctionEvidence e = hot_function(10);
  e.values = {operand_at(20, ValueSite::kTripCount, 7, 90, 100)};
  const FunctionPlan plan = decide(e, {});
  ASSERT_EQ(listed(plan, kValue).size(), 1u);
  EXPECT_EQ(listed(plan, kValue)[0].at(), WasmOffset(20));
  EXPECT_EQ(usual_of(listed(plan, kValue)[0]).value, 7u);
  EXPECT_EQ(listed(plan, kValue)[0].reason, "the trip count of the loop at 0x14 is 7 in 90 of 100 records");
}

TEST(PolicyValues, WhatLostItsTrialIsNotTriedAgainAndWhatWonStays) {
  ValueEvidence operand = operand_at(10, ValueSite::kDivisor, 97, 40, 40);
  for (const ChangeState outcome : {ChangeState::kRolledBack, ChangeState::kNotPossible}) {
    EXPECT_FALSE(asked(operand, outcome));
  }
  operand = operand_at(10, ValueSite::kDivisor, 97, 1, 2);
  EXPECT_TRUE(asked(operand, ChangeState::kKept)) << "whatever is known of it by now";
}

TEST(PolicyValues, AFewRecordsOfTheSameAreAskedAboutLaterWhereTheyAreNotEnough) {
  FunctionEvidence e = hot_function(10);
  e.seconds_baseline = 0.005;
  e.values = {operand_at(10, ValueSite::kWideDivisor, 97, 3, 3)};
  const FunctionPlan plan = decide(e, {});
  EXPECT_TRUE(is_early(plan));
  e.values = {operand_at(10, ValueSite::kWideDivisor, 97, 8, 8)};
  EXPECT_TRUE(is_complete(decide(e, {})));
  // Not for ever, not for one that changes, and not if nobody would use it.
  e.values = {operand_at(10, ValueSite::kWideDivisor, 97, 3, 6)};
  EXPECT_TRUE(is_complete(decide(e, {})));
  e.values = {operand_at(10, ValueSite::kWideDivisor, 97, 3, 3)};
  PolicyConfig off;
  off.changes.set(jit::ChangeKind::kValue, false);
  EXPECT_TRUE(is_complete(decide(e, off)));
  e.seconds_baseline = 0.02;
  EXPECT_TRUE(is_complete(decide(e, {})));
}

TEST(PolicyValues, AreWeighedAsAnAlternativeAndReplay) {
  FunctionEvidence e = hot_function(10);
  e.values = {operand_at(20, ValueSite::kWideDivisor, 16381, 95, 100)};
  PolicyConfig config;
  const FunctionPlan plan = decide(e, config);
  // 95 times 16,381 divisions, of 2 ns each.
  EXPECT_NEAR(plan.alternatives.back().gain_seconds - plan.alternatives[1].gain_seconds, 3.1e-3, 0.1e-3);
  const Episode episode = make_episode(e, plan);
  EXPECT_EQ(episode.asked_for(kValue), std::vector{WasmOffset(20)});
  EXPECT_TRUE(replays(episode, from_parameters(to_parameters(config))));
  config.changes.set(jit::ChangeKind::kValue, false);
  EXPECT_FALSE(replays(episode, config));
}

}  // namespace
}  // namespace hindsight::feedback
