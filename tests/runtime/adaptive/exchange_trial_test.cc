// The trial's logic on simulated programs: calls and time come from a model.
#include "runtime/adaptive/experiments/exchange_trial.h"

#include <gtest/gtest.h>

#include <random>

namespace hindsight::rt {
namespace {

// A program that makes `rate` calls a second, `gain` more of them where its code was moved.
ExchangeTrial run_trial(double gain, double noise, double drift = 0) {
  ExchangeTrial trial;
  std::mt19937 random(5);
  std::normal_distribution<double> spread(1.0, noise);
  double rate = 1e6;
  for (int chunk = 0; chunk < 1000 && trial.state() == ExchangeTrial::State::kComparing; ++chunk) {
    const double calls = 0.04 * rate * (trial.other() ? 1 + gain : 1) * spread(random);
    trial.chunk(static_cast<uint64_t>(calls), 0.04);
    rate *= 1 + drift;
  }
  return trial;
}

TEST(ExchangeTrial, KeepsWhatIsSurelyFaster) {
  const ExchangeTrial trial = run_trial(0.05, 0.01);
  EXPECT_EQ(trial.state(), ExchangeTrial::State::kKept) << trial.words();
  EXPECT_NEAR(trial.gain(), 0.05, 0.015);
  EXPECT_TRUE(trial.other());
  EXPECT_EQ(trial.chunks(), 2 * ExchangeTrial::Rule().pairs);
}

TEST(ExchangeTrial, RollsBackWhatIsSlowerTheSameOrLostInNoise) {
  for (const ExchangeTrial& trial : {run_trial(-0.05, 0.01), run_trial(0, 0.01), run_trial(0.01, 0.2)}) {
    EXPECT_EQ(trial.state(), ExchangeTrial::State::kRolledBack) << trial.words();
    EXPECT_FALSE(trial.other());
  }
}

TEST(ExchangeTrial, IsNotMisledByAProgramThatGetsSlowerOrFaster) {
  for (const double drift : {-0.03, 0.03}) {
    EXPECT_EQ(run_trial(0, 0.001, drift).state(), ExchangeTrial::State::kRolledBack);
    EXPECT_EQ(run_trial(0.05, 0.001, drift).state(), ExchangeTrial::State::kKept);
  }
}

TEST(ExchangeTrial, DoesChunksAgainInWhichTheGuestHardlyRan) {
  ExchangeTrial trial;
  trial.chunk(5, 0.04);
  trial.chunk(100'000, 0.001);
  EXPECT_EQ(trial.chunks(), 0u);
  EXPECT_FALSE(trial.other());
  trial.chunk(100'000, 0.04);
  EXPECT_EQ(trial.chunks(), 1u);
  EXPECT_TRUE(trial.other());
}

TEST(ExchangeTrial, EndsWithoutAClaimWhereNothingCanBeMeasured) {
  ExchangeTrial trial;
  uint32_t chunks = 0;
  for (; trial.state() == ExchangeTrial::State::kComparing && chunks < 10'000; ++chunks) trial.chunk(0, 0.04);
  EXPECT_EQ(chunks, ExchangeTrial::Rule().most_idle_chunks);
  EXPECT_EQ(trial.state(), ExchangeTrial::State::kRolledBack);
  EXPECT_EQ(trial.gain(), 0);
  EXPECT_FALSE(trial.other());
}

// The same of a second version, with a chunk's calls and seconds.
ExchangeTrial compare_versions(double gain, double noise, double calls) {
  ExchangeTrial trial(ExchangeTrial::for_versions());
  std::mt19937 random(7);
  std::normal_distribution<double> spread(1.0, noise);
  while (trial.state() == ExchangeTrial::State::kComparing)
    trial.chunk(static_cast<uint64_t>(calls), 0.04 / (trial.other() ? 1 + gain : 1) * spread(random));
  return trial;
}

TEST(ExchangeTrial, OfVersionsIsContentWithFewCallsAndAsksForAClearGain) {
  EXPECT_EQ(compare_versions(0.05, 0.01, 6).state(), ExchangeTrial::State::kKept);
  EXPECT_EQ(compare_versions(0.012, 0.001, 6).state(), ExchangeTrial::State::kRolledBack);
  const ExchangeTrial same = compare_versions(0, 0.02, 6);
  EXPECT_EQ(same.state(), ExchangeTrial::State::kRolledBack);
  EXPECT_TRUE(same.measured());
  EXPECT_FALSE(same.other());
}

TEST(ExchangeTrial, OfVersionsEndsAsSoonAsTheOtherOneCannotWinAnyMore) {
  const ExchangeTrial trial = compare_versions(-0.3, 0.01, 1000);
  EXPECT_EQ(trial.state(), ExchangeTrial::State::kRolledBack);
  EXPECT_EQ(trial.chunks(), 6u) << "three pairs";
  EXPECT_NEAR(trial.gain(), -0.3, 0.05);
  EXPECT_TRUE(trial.measured());
}

TEST(ExchangeTrial, OfVersionsIsNotMisledByFewTrialsInAHundred) {
  uint32_t won = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    ExchangeTrial trial(ExchangeTrial::for_versions());
    std::mt19937 random(seed);
    std::normal_distribution<double> spread(1.0, 0.05);
    while (trial.state() == ExchangeTrial::State::kComparing) trial.chunk(100, 0.04 * spread(random));
    won += trial.state() == ExchangeTrial::State::kKept;
  }
  EXPECT_LE(won, 12u);
}

// A guest of one thread that does nothing but call a function, looked at now and then.
class ChunkOfCalls : public testing::Test {
 protected:
  // The reading at a time.
  CallChunk::Reading at(double seconds) const {
    return {seconds, static_cast<uint64_t>(seconds / call_seconds_), seconds};
  }
  double call_seconds_ = 0.007;
  const CallChunk::Pace pace_{.least_seconds = 0.02, .least_calls = 4, .most_seconds = 0.4};
};

TEST_F(ChunkOfCalls, BeginsAndEndsWithACallAndLeavesOutTheOneThatWasUnderWay) {
  CallChunk chunk;
  CallChunk::Chunk found;
  chunk.begin(at(0.010));  // the second call is under way
  double now = 0.010;
  while (!chunk.look(at(now), pace_, found)) now += 0.0005;
  EXPECT_EQ(found.calls, 4u);
  EXPECT_NEAR(found.cpu_seconds, 4 * call_seconds_, 0.0006);
  EXPECT_NEAR(now, 6 * call_seconds_, 0.0006) << "from the third call's begin to the seventh's";
}

TEST_F(ChunkOfCalls, OfShortCallsEndsWhenItIsTime) {
  call_seconds_ = 1e-6;
  CallChunk chunk;
  CallChunk::Chunk found;
  chunk.begin(at(1));
  double now = 1;
  while (!chunk.look(at(now), pace_, found)) now += 0.001;
  EXPECT_NEAR(now, 1.021, 0.0011);
  EXPECT_NEAR(static_cast<double>(found.calls), 20'000, 1100);
}

TEST_F(ChunkOfCalls, EndsWithoutACallWhereThereIsNone) {
  call_seconds_ = 100;
  CallChunk chunk;
  CallChunk::Chunk found;
  chunk.begin(at(1));
  double now = 1;
  while (!chunk.look(at(now), pace_, found)) now += 0.001;
  EXPECT_NEAR(now, 1.4, 0.0011);
  EXPECT_EQ(found.calls, 0u);
}

}  // namespace
}  // namespace hindsight::rt
