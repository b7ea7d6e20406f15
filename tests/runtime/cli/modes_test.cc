#include "runtime/cli/bench/modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/cli/bench/lengths.h"

namespace hindsight::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

EngineConfig config_of(std::string_view mode) {
  EngineConfig config;
  const Status applied = apply_mode(mode, config);
  EXPECT_TRUE(applied) << mode;
  return config;
}

TEST(Families, HoldEveryDecisionButOptimizeOnce) {
  std::vector<std::string_view> in_families{"optimize"};
  for (const Family& family : kFamilies)
    for (const std::string_view decision : family.decisions)
      if (!decision.empty()) in_families.push_back(decision);
  const auto names = decision_names();
  EXPECT_THAT(in_families, UnorderedElementsAreArray(names.begin(), names.end()));
}

TEST(Modes, DifferInWhatTheEngineIsTold) {
  const EngineConfig baseline = config_of("baseline");
  EXPECT_EQ(baseline.tier, TierMode::kBaseline);
  EXPECT_FALSE(baseline.profiling);
  const EngineConfig plain = config_of("plain");
  EXPECT_EQ(plain.tier, TierMode::kAuto);
  EXPECT_FALSE(plain.feedback);
  EXPECT_TRUE(plain.profiling);
  EXPECT_EQ(plain.unit, "time");
  const EngineConfig optimized = config_of("optimized");
  EXPECT_FALSE(optimized.feedback);
  EXPECT_EQ(optimized.unit, "auto");
  const EngineConfig feedback = config_of("feedback");
  EXPECT_TRUE(feedback.feedback);
  EXPECT_THAT(feedback.disabled_decisions, testing::IsEmpty());
}

TEST(Modes, OfFamiliesGoWithoutTheOthers) {
  const auto decides = [](std::string_view mode) {
    const EngineConfig config = config_of(mode);
    EXPECT_TRUE(config.feedback) << mode;
    std::vector<std::string_view> on;
    for (const std::string_view name : decision_names())
      if (std::ranges::find(config.disabled_decisions, name) == config.disabled_decisions.end())
        on.push_back(name);
    return on;
  };
  EXPECT_THAT(decides("pages"), ElementsAre("optimize", "huge-pages", "populate"));
  EXPECT_THAT(decides("values+calls"), ElementsAre("optimize", "values", "inline-calls"));
  EXPECT_EQ(decides("pages+loads+branches+calls+values+entry").size(), decision_names().size());
  EXPECT_EQ(decides("feedback-prefetch").size(), decision_names().size() - 1);
  EXPECT_EQ(decides("feedback-loads").size(), decision_names().size() - 4);
}

TEST(Modes, AreNoOtherWords) {
  for (const char* word :
       {"", "+", "pages+", "pages+pages", "feedback-", "feedback-optimise", "warp", "feedback+pages"}) {
    EngineConfig config;
    const Status refused = apply_mode(word, config);
    ASSERT_FALSE(refused) << word;
    EXPECT_THAT(refused.error().message,
                HasSubstr("is no mode; there are baseline, plain, optimized, feedback"));
  }
}

// So their ratios, taken in one round, multiply to that of the last and the first.
TEST(Split, IsAChainOfModesFromPlainToFeedback) {
  const std::vector<std::string> modes = split_modes();
  const std::vector<report::SplitStep> steps = split_steps();
  ASSERT_EQ(steps.size() + 1, modes.size());
  EXPECT_EQ(modes.front(), "plain");
  EXPECT_EQ(modes.back(), "feedback");
  for (size_t k = 0; k < steps.size(); ++k) {
    EXPECT_EQ(steps[k].slower, modes[k]);
    EXPECT_EQ(steps[k].faster, modes[k + 1]);
    config_of(modes[k]);
  }
  EXPECT_EQ(steps.front().label, "counting");
  EXPECT_EQ(steps.back().label, "entry");
}

TEST(Answers, ThatAreTheSameAtTwoLengthsShowNoWork) {
  Answers answers;
  Workload run;
  run.name = "a";
  run.args = {"16", "100"};
  EXPECT_EQ(answers.problem_of(run, "a 1\n"), "") << "nobody chose a length";
  run.length_seconds = 1;
  EXPECT_EQ(answers.problem_of(run, "a 1\n"), "");
  EXPECT_EQ(answers.problem_of(run, "a 1\n"), "") << "the same arguments";
  run.args = {"16", "200"};
  EXPECT_EQ(answers.problem_of(run, "a 1\n"),
            "prints the same with the arguments 16 200 as with 16 100, so its answer does not show its work");
  EXPECT_EQ(answers.problem_of(run, "a 2\n"), "");
}

}  // namespace
}  // namespace hindsight::cli
