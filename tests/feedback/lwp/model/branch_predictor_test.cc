// Rates on streams whose predictability is known by construction, or was measured on hardware by time.
#include "feedback/lwp/model/branch_predictor.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace hindsight::lwp {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1d;
  }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

 private:
  uint64_t state_;
};

double rate(BranchPredictor& predictor, int warm_up, int measured, const std::function<bool(int)>& outcome) {
  int wrong = 0;
  for (int i = 0; i < warm_up + measured; ++i) {
    const bool right = predictor.predicted_right(0x4000, outcome(i));
    if (i >= warm_up && !right) ++wrong;
  }
  return static_cast<double>(wrong) / measured;
}

double rate_of_random(BranchPredictor& predictor, double bias, int warm_up = 2048, int measured = 16384) {
  Random random(7);
  return rate(predictor, warm_up, measured, [&](int) { return random.chance(bias); });
}

double rate_of_periodic(BranchPredictor& predictor, int period, int warm_up, int measured) {
  Random random(11);
  std::vector<bool> pattern;
  for (int i = 0; i < period; ++i) pattern.push_back(random.chance(0.5));
  return rate(predictor, warm_up, measured, [&](int i) { return pattern[static_cast<size_t>(i % period)]; });
}

// By timing on a Zen 4: 0.01, 0.06, 0.12, 0.27, 0.50.
TEST(BranchPredictors, ComeCloseToWhatHardwareDoesOnRandomBranches) {
  const struct {
    double bias, expected;
  } rows[] = {{.99, .01}, {.95, .06}, {.90, .11}, {.75, .28}, {.50, .50}};
  for (const char* name : {"gshare", "tage"}) {
    for (const auto& row : rows) {
      auto predictor = make_branch_predictor(name);
      EXPECT_NEAR(rate_of_random(*predictor, row.bias), row.expected, 0.03) << name << " " << row.bias;
    }
  }
}

TEST(BranchPredictors, LearnPeriodsOfHundreds) {
  for (const char* name : {"gshare", "tage"}) {
    for (const int period : {2, 3, 7, 16, 50, 100, 200, 400}) {
      auto predictor = make_branch_predictor(name);
      EXPECT_LT(rate_of_periodic(*predictor, period, 20 * period + 1000, 10 * period), 0.02)
          << name << " " << period;
    }
  }
}

TEST(BranchPredictors, LearnAPeriodOfTwoThousandInSixtyFourThousandOutcomes) {
  auto tage = make_tage();
  EXPECT_LT(rate_of_periodic(*tage, 2000, 48'000, 16'000), 0.03);
}

TEST(BranchPredictors, BimodalKnowsBiasesOnly) {
  auto bimodal = make_bimodal();
  EXPECT_GT(rate(*bimodal, 100, 10'000, [](int i) { return i % 2 == 0; }), 0.45);
  EXPECT_LT(rate(*bimodal, 100, 10'000, [](int) { return true; }), 0.001);
}

TEST(BranchPredictors, UseOneBranchToPredictAnother) {
  for (const char* name : {"gshare", "tage"}) {
    auto predictor = make_branch_predictor(name);
    Random random(3);
    int wrong = 0;
    for (int i = 0; i < 20'000; ++i) {
      const bool first = random.chance(0.5);
      predictor->predicted_right(1, first);
      const bool right = predictor->predicted_right(2, !first);  // follows from the first
      if (i >= 10'000 && !right) ++wrong;
    }
    EXPECT_LT(wrong, 300) << name;
  }
}

TEST(BranchPredictors, LearnTheTargetsOfABranchThatFollowsAPattern) {
  for (const char* name : {"bimodal", "gshare", "tage"}) {
    auto predictor = make_branch_predictor(name);
    for (int i = 0; i < 100; ++i) predictor->target_predicted_right(5, 77);
    EXPECT_TRUE(predictor->target_predicted_right(5, 77)) << name;
  }
  auto tage = make_tage();
  const uint64_t pattern[] = {10, 20, 30, 20, 40};
  int wrong = 0;
  for (int i = 0; i < 10'000; ++i) {
    const bool right = tage->target_predicted_right(5, pattern[i % 5]);
    if (i > 5000 && !right) ++wrong;
  }
  EXPECT_LT(wrong, 50);
}

TEST(BranchPredictors, GiveTheSameAnswersAgain) {
  for (const char* name : {"bimodal", "gshare", "tage"}) {
    auto predictor = make_branch_predictor(name);
    const auto run = [&] {
      Random random(21);
      std::vector<bool> answers;
      for (int i = 0; i < 5000; ++i) {
        answers.push_back(predictor->predicted_right(random.next() % 7, random.chance(0.7)));
        if (i % 5 == 0) answers.push_back(predictor->target_predicted_right(9, random.next() % 4));
      }
      return answers;
    };
    const auto first = run();
    predictor->reset();
    EXPECT_EQ(first, run()) << name;
  }
}

TEST(BranchPredictors, AreMadeByName) {
  EXPECT_EQ(make_branch_predictor("tage")->name(), "tage");
  EXPECT_EQ(make_branch_predictor("gshare")->name(), "gshare");
  EXPECT_EQ(make_branch_predictor("bimodal")->name(), "bimodal");
  EXPECT_EQ(make_branch_predictor("perceptron"), nullptr);
}

}  // namespace
}  // namespace hindsight::lwp
