// The trial's logic on simulated programs: calls and time come from a model.
#include "runtime/engine/layout_trial.h"

#include <gtest/gtest.h>

#include <random>

namespace hindsight::rt {
namespace {

// A program that makes `rate` calls a second, `gain` more of them where its code was moved.
LayoutTrial run(double gain, double noise, double drift = 0) {
  LayoutTrial trial;
  std::mt19937 random(5);
  std::normal_distribution<double> spread(1.0, noise);
  double rate = 1e6;
  for (int chunk = 0; chunk < 1000 && trial.state() == LayoutTrial::State::kComparing; ++chunk) {
    const double calls = 0.04 * rate * (trial.moved() ? 1 + gain : 1) * spread(random);
    trial.chunk(static_cast<uint64_t>(calls), 0.04);
    rate *= 1 + drift;
  }
  return trial;
}

TEST(LayoutTrial, KeepsWhatIsSurelyFaster) {
  const LayoutTrial trial = run(0.05, 0.01);
  EXPECT_EQ(trial.state(), LayoutTrial::State::kKept) << trial.words();
  EXPECT_NEAR(trial.gain(), 0.05, 0.015);
  EXPECT_TRUE(trial.moved());
  EXPECT_EQ(trial.chunks(), 2 * LayoutTrial::kPairs);
}

TEST(LayoutTrial, RollsBackWhatIsSlowerTheSameOrLostInNoise) {
  for (const LayoutTrial& trial : {run(-0.05, 0.01), run(0, 0.01), run(0.01, 0.2)}) {
    EXPECT_EQ(trial.state(), LayoutTrial::State::kRolledBack) << trial.words();
    EXPECT_FALSE(trial.moved());
  }
}

TEST(LayoutTrial, IsNotMisledByAProgramThatGetsSlowerOrFaster) {
  for (const double drift : {-0.03, 0.03}) {
    EXPECT_EQ(run(0, 0.001, drift).state(), LayoutTrial::State::kRolledBack);
    EXPECT_EQ(run(0.05, 0.001, drift).state(), LayoutTrial::State::kKept);
  }
}

TEST(LayoutTrial, DoesChunksAgainInWhichTheGuestHardlyRan) {
  LayoutTrial trial;
  trial.chunk(5, 0.04);
  trial.chunk(100'000, 0.001);
  EXPECT_EQ(trial.chunks(), 0u);
  EXPECT_FALSE(trial.moved());
  trial.chunk(100'000, 0.04);
  EXPECT_EQ(trial.chunks(), 1u);
  EXPECT_TRUE(trial.moved());
}

TEST(LayoutTrial, EndsWithoutAClaimWhereNothingCanBeMeasured) {
  LayoutTrial trial;
  uint32_t chunks = 0;
  for (; trial.state() == LayoutTrial::State::kComparing && chunks < 10'000; ++chunks) trial.chunk(0, 0.04);
  EXPECT_EQ(chunks, LayoutTrial::kMostIdleChunks);
  EXPECT_EQ(trial.state(), LayoutTrial::State::kRolledBack);
  EXPECT_EQ(trial.gain(), 0);
  EXPECT_FALSE(trial.moved());
}

}  // namespace
}  // namespace hindsight::rt
