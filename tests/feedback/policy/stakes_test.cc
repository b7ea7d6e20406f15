// What compiles for trials have to save, and what they may.
#include "feedback/policy/stakes.h"

#include <gtest/gtest.h>

namespace hindsight::feedback {
namespace {

const PolicyConfig kConfig;

TEST(Stakes, AreDearWhereCompilesTakeTheGuestsProcessor) {
  EXPECT_DOUBLE_EQ(price_of_trying({0, 0, 0}, kConfig), 2 * kConfig.min_taken_by_compiles);
  EXPECT_DOUBLE_EQ(price_of_trying({1, 0, 0}, kConfig), 2);
  EXPECT_DOUBLE_EQ(price_of_trying({5, 0, 0}, kConfig), 2) << "no more than all of it";
}

TEST(Stakes, GrowWithEachTrialThatIsLost) {
  double last = 0;
  for (uint32_t lost = 0; lost < 20; ++lost) {
    const double price = price_of_trying({1, 0, lost}, kConfig);
    EXPECT_GT(price, last);
    last = price;
  }
  EXPECT_DOUBLE_EQ(last, 21);
  EXPECT_LT(price_of_trying({1, 8, 2}, kConfig), 1.5) << "most were won";
}

Candidate candidate(jit::ChangeKind kind, uint32_t at, Estimate estimate) {
  return {.request = {.site = {kind, WasmOffset(at)}}, .estimate = estimate};
}

TEST(Stakes, CountALoadOnceHoweverMuchIsToBeTriedOfIt) {
  FunctionEvidence evidence;
  evidence.seconds_baseline = 0.02;
  FunctionPlan plan;
  EXPECT_EQ(may_save(plan, evidence), 0);
  plan.candidates = {candidate(jit::ChangeKind::kPrefetch, 40, {.share = 0.3}),
                     candidate(jit::ChangeKind::kInterleave, 40, {.share = 0.25}),
                     candidate(jit::ChangeKind::kPrefetch, 60, {.share = 0.1}),
                     candidate(jit::ChangeKind::kWeighBranches, 50, {.seconds = 5}),
                     candidate(jit::ChangeKind::kSelect, 50, {.seconds = 0.002})};
  EXPECT_DOUBLE_EQ(may_save(plan, evidence), 0.3 + 0.1 + 0.1)
      << "weights of branches are tried in another way";
  plan.candidates.push_back(candidate(jit::ChangeKind::kSelect, 52, {.seconds = 1}));
  EXPECT_EQ(may_save(plan, evidence), 1);
}

TEST(Stakes, AreThoseOfTheNestWhereOneIsCompiled) {
  FunctionEvidence evidence;
  evidence.seconds_baseline = 10;
  evidence.loops.resize(4);
  for (uint32_t i = 0; i < 4; ++i) {  // each in the one before
    evidence.loops[i].loop = LoopIndex(i);
    evidence.loops[i].offset = WasmOffset(10 + i);
    evidence.loops[i].end = WasmOffset(90 - i);
  }
  evidence.loops[0].seconds_baseline = 4;
  evidence.loops[1].parent = 0;
  evidence.loops[2].parent = 1;  // all that runs is in an inner loop
  evidence.loops[2].seconds_baseline = 0.006;
  evidence.loops[3].parent = 2;
  evidence.loops[3].seconds_optimized = 0.004;
  FunctionPlan plan;
  plan.candidates = {candidate(jit::ChangeKind::kSelect, 50, {.seconds = 0.002})};
  plan.nest = LoopIndex(1);
  EXPECT_DOUBLE_EQ(may_save(plan, evidence), 0.2);
}

TEST(Stakes, OfJumpPointersAreAllThatTheirLoopStallsOn) {
  FunctionEvidence evidence;
  evidence.seconds_baseline = 0.02;
  evidence.loops.resize(3);  // an outer loop, a traversal in it, and what is done at each of its nodes
  for (uint32_t i = 0; i < 3; ++i) {
    evidence.loops[i].loop = LoopIndex(i);
    evidence.loops[i].offset = WasmOffset(10 + 10 * i);
    evidence.loops[i].end = WasmOffset(90 - 10 * i);
    evidence.loops[i].parent = static_cast<int32_t>(i) - 1;
  }
  evidence.loads.resize(3);
  const uint32_t at[] = {15, 25, 35};
  for (size_t i = 0; i < 3; ++i) evidence.loads[i].load = WasmOffset(at[i]);
  evidence.loads[0].stall_samples = 40;
  evidence.loads[1].stall_samples = 2;
  evidence.loads[2].stall_samples = 10;
  FunctionPlan plan;
  plan.candidates = {candidate(jit::ChangeKind::kJumpPointers, 25, {.share = 0.05})};
  EXPECT_DOUBLE_EQ(may_save(plan, evidence), 0.05 * 12 / 2);
  plan.candidates = {candidate(jit::ChangeKind::kPrefetch, 25, {.share = 0.05})};
  EXPECT_DOUBLE_EQ(may_save(plan, evidence), 0.05);
}

}  // namespace
}  // namespace hindsight::feedback
