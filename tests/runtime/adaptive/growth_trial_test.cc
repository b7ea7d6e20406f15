// Steps of a memory's growth whose pages are made, beside steps that are left to the guest.
#include "runtime/adaptive/experiments/growth_trial.h"

#include <gtest/gtest.h>

namespace hindsight::rt {
namespace {

constexpr uint64_t kStep = GrowthTrial::kUnitBytes;

// One step that is left to the guest and then three whose pages are made. `left` and `made`: microseconds of 64 KiB.
void grow(GrowthTrial& trial, double left, double made, uint64_t bytes = kStep) {
  const double units = static_cast<double>(bytes) / kStep;
  const auto faults = [&](double a_unit) { return static_cast<uint64_t>(a_unit * units); };
  trial.add({.bytes = bytes, .seconds = left * units * 1e-6, .faults = faults(16)});
  for (int i = 0; i < 3; ++i)
    trial.add({.bytes = bytes, .seconds = made * units * 1e-6, .faults = faults(0), .made = true});
}

TEST(StepsOfGrowth, AreComparedWithTheOneThatCameNext) {
  GrowthTrial trial;
  double other = 100;  // what the guest does between two steps grows all the time
  for (int i = 0; i < 9; ++i, other *= 1.5) grow(trial, 1.4 * other, other);
  const feedback::GrowthTimes times = trial.times();
  EXPECT_EQ(times.pairs, 9u) << "the second and third of the made ones have no partner";
  EXPECT_NEAR(times.ratio, 1.4, 1e-9);
  EXPECT_EQ(times.left_faults, 16);
  EXPECT_EQ(times.made_faults, 0);
}

TEST(StepsOfGrowth, CountByTheirSize) {
  GrowthTrial trial;
  grow(trial, 30, 20);
  grow(trial, 30, 20, 8 * kStep);
  EXPECT_NEAR(trial.times().ratio, 1.5, 1e-9);
  EXPECT_NEAR(trial.times().left_seconds, 30e-6, 1e-12);
  EXPECT_EQ(trial.times().left_faults, 16);
}

TEST(StepsOfGrowth, AreNoPairWhereNobodyKnowsHowLongOneTook) {
  GrowthTrial trial;
  trial.add({.bytes = kStep, .seconds = 1e-4});
  trial.interrupt();
  trial.add({.bytes = kStep, .seconds = 1e-4, .made = true});
  trial.add({.bytes = kStep, .seconds = 1e-4});
  trial.add({.bytes = kStep, .seconds = 0, .made = true});
  trial.add({.bytes = kStep, .seconds = 1e-4, .made = true});
  EXPECT_EQ(trial.times().pairs, 0u);
  EXPECT_EQ(trial.times().ratio, 0);
}

TEST(StepsOfGrowth, ForgetWhatIsLongAgo) {
  GrowthTrial trial;
  for (int i = 0; i < 40; ++i) grow(trial, 100, 200);
  EXPECT_LT(trial.times().ratio, 1);
  for (int i = 0; i < 40; ++i) grow(trial, 200, 100);
  EXPECT_EQ(trial.times().ratio, 2);
  EXPECT_EQ(trial.times().pairs, 32u);
}

}  // namespace
}  // namespace hindsight::rt
