// The trial's logic on simulated loops: time comes from a model, so every verdict is deterministic.
#include "runtime/adaptive/experiments/loop_trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "jit/code/cell_memory.h"

namespace hindsight::rt {
namespace {

constexpr double kTicksPerSecond = 2.6e9;

// Runs until the trial settles; cost(enabled, distance) = ticks an iteration, with multiplicative noise.
struct Simulation {
  std::function<double(bool, uint32_t)> cost;
  double noise = 0.02;
  uint32_t outlier_every = 0;  // every n-th strip is hit by a long interruption

  double seconds = 0;
  TrialState run(TrialLogic& trial, int max_strips = 200000) {
    std::mt19937 random(42);
    std::normal_distribution<double> spread(1.0, noise);
    for (int i = 0; i < max_strips; ++i) {
      StripSetting s = trial.setting();
      double ticks = cost(s.enabled, s.distance) * s.strip_length * std::max(0.5, spread(random));
      if (outlier_every && i % outlier_every == 0) ticks += 0.004 * kTicksPerSecond;
      seconds += ticks / kTicksPerSecond;
      trial.strip(s.strip_length, static_cast<uint64_t>(ticks));
      if (trial.state() == TrialState::kKept || trial.state() == TrialState::kRejected) break;
    }
    return trial.state();
  }
};

double best_at(uint32_t distance, uint32_t best) {
  return std::abs(std::log2(static_cast<double>(distance) / best));
}

TEST(Trial, KeepsAPrefetchThatMakesTheLoopFaster) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool on, uint32_t) { return on ? 20.0 : 40.0; }};
  EXPECT_EQ(loop.run(trial), TrialState::kKept);
  EXPECT_NEAR(trial.gain(), 1.0, 0.1);
  EXPECT_TRUE(trial.setting().enabled);
}

TEST(Trial, RejectsAPrefetchThatChangesNothing) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool, uint32_t) { return 40.0; }};
  EXPECT_EQ(loop.run(trial), TrialState::kRejected);
  EXPECT_FALSE(trial.setting().enabled);
}

TEST(Trial, LeavesThePlaceToAnotherChangeThatWaitsUnlessItGainsMuch) {
  for (const double with : {24.0, 15.0}) {
    for (const bool waits : {true, false}) {
      TrialLogic trial(kTicksPerSecond, 16, false);
      if (waits) trial.expect(1);
      Simulation loop{[with](bool on, uint32_t) { return on ? with : 40.0; }};
      const bool kept = !waits || with < 20;
      EXPECT_EQ(loop.run(trial), kept ? TrialState::kKept : TrialState::kRejected) << with << waits;
      EXPECT_EQ(trial.words().find("another change of these loads may give more") == std::string::npos, kept);
    }
  }
}

// It was better than what else there is, or was not tried against it: what it gains later is not compared with that.
TEST(Trial, KeepsWhatGainedMuchAtFirstWhereItGainsLessLater) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  trial.expect(1);
  double with = 15;
  Simulation loop{[&](bool on, uint32_t) { return on ? with : 40.0; }};
  ASSERT_EQ(loop.run(trial), TrialState::kKept);
  std::set<TrialState> states;
  const auto go_on = [&](int strips) {
    for (; strips > 0; --strips) {
      const StripSetting setting = trial.setting();
      const double ticks = loop.cost(setting.enabled, setting.distance) * setting.strip_length;
      trial.strip(setting.strip_length, static_cast<uint64_t>(ticks));
      states.insert(trial.state());
    }
  };
  go_on(100'000);
  with = 24;
  go_on(400'000);
  EXPECT_TRUE(states.contains(TrialState::kTuning)) << "it was not tuned anew";
  EXPECT_EQ(trial.state(), TrialState::kKept) << trial.words();
}

TEST(Trial, OfAChangeThatIsOnlyOnOrOffTriesNothingElse) {
  for (const bool pays : {true, false}) {
    TrialLogic trial(kTicksPerSecond, 0, false, 0, jit::Knob());
    Simulation loop{[&](bool on, uint32_t) { return on == pays ? 20.0 : 22.0; }};
    EXPECT_EQ(loop.run(trial), pays ? TrialState::kKept : TrialState::kRejected);
    EXPECT_EQ(trial.setting().enabled, pays);
    EXPECT_LE(trial.chunks(), 32u);
    EXPECT_EQ(trial.words().find("tuned"), std::string::npos) << trial.words();
    EXPECT_EQ(trial.words().find(" at "), std::string::npos) << trial.words();
  }
}

TEST(Trial, RejectsAGainBelowFivePercent) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool on, uint32_t) { return on ? 39.0 : 40.0; }, 0.005};
  EXPECT_EQ(loop.run(trial), TrialState::kRejected);
}

TEST(Trial, GivesUpEarlyOnAClearLoss) {
  TrialLogic slow(kTicksPerSecond, 16, false), equal(kTicksPerSecond, 16, false);
  Simulation losing{[](bool on, uint32_t) { return on ? 80.0 : 40.0; }};
  Simulation same{[](bool, uint32_t) { return 40.0; }};
  EXPECT_EQ(losing.run(slow), TrialState::kRejected);
  EXPECT_EQ(same.run(equal), TrialState::kRejected);
  EXPECT_LT(slow.chunks(), equal.chunks());
}

TEST(Trial, OfLongIterationsThatTakeManyTimesAsLongWithTheChangeRunsFewOfThem) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  double with = 0;  // seconds
  Simulation loop{[](bool on, uint32_t) { return on ? 200000.0 : 20000.0; }};
  while (trial.state() == TrialState::kComparing) {
    const StripSetting setting = trial.setting();
    const double ticks = loop.cost(setting.enabled, setting.distance) * setting.strip_length;
    if (setting.enabled) with += ticks / kTicksPerSecond;
    trial.strip(setting.strip_length, static_cast<uint64_t>(ticks));
  }
  EXPECT_EQ(trial.state(), TrialState::kRejected);
  EXPECT_LT(with, 10 * 64 * 200000 / kTicksPerSecond);
}

TEST(Trial, TriesNoOtherDistanceAfterALossThatNoneMakesUpFor) {
  for (const double with : {60.0, 44.0}) {
    TrialLogic trial(kTicksPerSecond, 16, false);
    Simulation loop{[with](bool on, uint32_t) { return on ? with : 40.0; }};
    EXPECT_EQ(loop.run(trial), TrialState::kRejected);
    EXPECT_EQ(trial.words().find("at distance 6") == std::string::npos, with > 50) << trial.words();
  }
}

// Rows of a graph: every other strip has a hundred times as much to do.
TEST(Trial, HasShortStripsAlsoWhereLongIterationsComeAndGo) {
  TrialLogic trial(kTicksPerSecond, 0, false, 0, jit::Knob());
  double seconds = 0;
  for (int i = 0; i < 20000 && trial.state() == TrialState::kComparing; ++i) {
    const StripSetting s = trial.setting();
    const double ticks = (i % 2 == 0 ? 100.0 : 10000.0) * s.strip_length;
    seconds += ticks / kTicksPerSecond;
    trial.strip(s.strip_length, static_cast<uint64_t>(ticks));
  }
  EXPECT_EQ(trial.state(), TrialState::kRejected);
  EXPECT_LT(seconds, 0.1) << trial.chunks() << " chunks";
}

TEST(Trial, MeasuresNoPairMoreOnceTooManyAreLost) {
  TrialLogic trial(kTicksPerSecond, 0, false, 0, jit::Knob());
  Simulation loop{[](bool on, uint32_t) { return on ? 42.0 : 40.0; }, 0.002};
  EXPECT_EQ(loop.run(trial), TrialState::kRejected);
  EXPECT_EQ(trial.chunks(), 10u) << "five of sixteen pairs";
}

TEST(Trial, NeedsLessTimeWhereStripsAgreeAndAsManyChunks) {
  double seconds[2];
  for (const bool steady : {false, true}) {
    TrialLogic trial(kTicksPerSecond, 0, false, 0, jit::Knob());
    Simulation loop{[](bool on, uint32_t) { return on ? 20.0 : 40.0; }, steady ? 0.002 : 0.1};
    EXPECT_EQ(loop.run(trial), TrialState::kKept);
    EXPECT_EQ(trial.chunks(), 32u);
    seconds[steady] = loop.seconds;
  }
  EXPECT_LT(seconds[true], 0.7 * seconds[false]);
}

// The slower one's strips would take as long as the faster one's have iterations.
TEST(Trial, HasStripsOfTheirOwnForWithAndWithout) {
  TrialLogic trial(kTicksPerSecond, 0, false, 0, jit::Knob());
  Simulation loop{[](bool on, uint32_t) { return on ? 2.0 : 40.0; }, 0.1};
  EXPECT_EQ(loop.run(trial), TrialState::kKept);
  EXPECT_LT(loop.seconds, 32 * 0.0008);
}

TEST(Trial, SettlesWithinATenthOfASecond) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool on, uint32_t) { return on ? 25.0 : 40.0; }};
  EXPECT_EQ(loop.run(trial), TrialState::kKept);
  EXPECT_LT(loop.seconds, 0.1);
}

TEST(Trial, ClimbsToTheBestDistanceUpwards) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool on, uint32_t d) { return on ? 20.0 + 3 * best_at(d, 64) : 40.0; }, 0.005};
  EXPECT_EQ(loop.run(trial), TrialState::kKept);
  EXPECT_GE(trial.distance(), 48u);
  EXPECT_LE(trial.distance(), 96u);
}

TEST(Trial, ClimbsToTheBestDistanceDownwards) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool on, uint32_t d) { return on ? 20.0 + 4 * best_at(d, 4) : 40.0; }, 0.005};
  EXPECT_EQ(loop.run(trial), TrialState::kKept);
  EXPECT_GE(trial.distance(), 2u);
  EXPECT_LE(trial.distance(), 8u);
}

TEST(Trial, ReachesNinetyFivePercentOfTheBestPointOfAFullSweep) {
  for (uint32_t best : {4u, 8u, 16u, 32u, 64u, 96u}) {
    auto cost = [&](bool on, uint32_t d) { return on ? 20.0 * (1 + 0.15 * best_at(d, best)) : 60.0; };
    TrialLogic trial(kTicksPerSecond, 16, false);
    Simulation loop{cost, 0.01};
    ASSERT_EQ(loop.run(trial), TrialState::kKept);
    EXPECT_GE(cost(true, best) / cost(true, trial.distance()), 0.95)
        << "best " << best << ", found " << trial.distance();
  }
}

TEST(Trial, TriesOtherDistancesBeforeItRejects) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool on, uint32_t d) { return on && d >= 40 ? 25.0 : 40.0; }};
  EXPECT_EQ(loop.run(trial), TrialState::kKept);
  EXPECT_GE(trial.distance(), 40u);
}

TEST(Trial, EstimatesTheFirstDistanceFromStallAndIterationTime) {
  // Little work and much stall: far ahead. Much work an iteration: close by.
  constexpr double kMiss = 150e-9;
  EXPECT_GT(estimated_distance(2e-9, 0.9, kMiss), 64u);
  EXPECT_EQ(estimated_distance(100e-9, 0.5, kMiss), 5u);  // 150 ns over a third of 100, 4.5 iterations
  EXPECT_EQ(estimated_distance(1e-6, 0.9, kMiss), 2u);
  // Less of the time stalled leaves more of it to hide the miss in.
  EXPECT_LT(estimated_distance(20e-9, 0.1, kMiss), estimated_distance(20e-9, 0.5, kMiss));
  EXPECT_EQ(estimated_distance(0, 0.5, kMiss), 128u);
  // Where memory is nearer, so is what is prefetched.
  EXPECT_EQ(estimated_distance(100e-9, 0.5, 80e-9), 3u);
}

TEST(Trial, BeginsAtTheEstimateOfTheFirstChunk) {
  TrialLogic trial(kTicksPerSecond, 16, false, 0.5);
  const double ticks = 100e-9 * kTicksPerSecond;
  uint32_t first = 0;
  Simulation loop{[&](bool on, uint32_t d) {
    if (on && first == 0) first = d;
    return on ? 0.6 * ticks : ticks;
  }};
  EXPECT_EQ(loop.run(trial), TrialState::kKept);
  EXPECT_EQ(first, 5u);
  EXPECT_NE(trial.words().find("starts at distance 5"), std::string::npos) << trial.words();
}

TEST(Trial, BeginsFurtherAheadWhereMemoryIsSlower) {
  const auto first_of = [](double miss_seconds) {
    TrialLogic trial(kTicksPerSecond, 16, false, 0.5, kDistance, miss_seconds);
    const double ticks = 100e-9 * kTicksPerSecond;
    uint32_t first = 0;
    Simulation loop{[&](bool on, uint32_t d) {
      if (on && first == 0) first = d;
      return on ? 0.6 * ticks : ticks;
    }};
    loop.run(trial);
    return first;
  };
  EXPECT_EQ(first_of(80e-9), 3u);
  EXPECT_EQ(first_of(300e-9), 9u);
}

TEST(Trial, IsNotFooledByInterruptions) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool on, uint32_t) { return on ? 25.0 : 40.0; }, 0.02, 13};
  EXPECT_EQ(loop.run(trial), TrialState::kKept);
  TrialLogic nothing(kTicksPerSecond, 16, false);
  Simulation same{[](bool, uint32_t) { return 40.0; }, 0.02, 13};
  EXPECT_EQ(same.run(nothing), TrialState::kRejected);
}

// Runs what is settled for so many seconds of the loop's time; cost(enabled, distance) as above.
void run_on(TrialLogic& trial, double seconds, const std::function<double(bool, uint32_t)>& cost,
            const std::function<bool()>& enough = {}) {
  for (double now = 0; now < seconds && !(enough && enough());) {
    const StripSetting s = trial.setting();
    const double ticks = cost(s.enabled, s.distance) * s.strip_length;
    now += ticks / kTicksPerSecond;
    trial.strip(s.strip_length, static_cast<uint64_t>(ticks));
  }
}

TEST(Trial, PausesAKeptPrefetchThatNoLongerPays) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation before{[](bool on, uint32_t) { return on ? 25.0 : 40.0; }};
  ASSERT_EQ(before.run(trial), TrialState::kKept);
  run_on(trial, 0.2, before.cost);
  run_on(trial, 0.5, [](bool on, uint32_t) { return on ? 6.0 : 4.0; });
  EXPECT_EQ(trial.state(), TrialState::kPaused) << "half a second after the program became another";
  EXPECT_FALSE(trial.setting().enabled);
  EXPECT_FALSE(trial.waiting().enabled);
}

TEST(Trial, PausesAlsoWhatLosesWithoutARateThatMoved) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation before{[](bool on, uint32_t) { return on ? 25.0 : 40.0; }};
  ASSERT_EQ(before.run(trial), TrialState::kKept);
  run_on(trial, 0.2, before.cost);
  run_on(trial, 1, [](bool on, uint32_t) { return on ? 25.0 : 22.0; });
  EXPECT_EQ(trial.state(), TrialState::kPaused);
}

// Iterations over short lists and long ones, which take turns by chance.
TEST(Trial, MeasuresMorePairsWhereIterationsDifferByFar) {
  std::mt19937 random(5);
  size_t kept = 0, kept_for_nothing = 0;
  for (int i = 0; i < 40; ++i)
    for (const double gain : {0.75, 1.0}) {
      TrialLogic trial(kTicksPerSecond, 16, false);
      std::lognormal_distribution<double> factor(0, 0.35);
      double length = 1;
      uint32_t chunk = 0;
      const auto cost = [&](bool on, uint32_t) {
        if (trial.chunks() != chunk) length = factor(random);
        chunk = trial.chunks();
        return 40.0 * length * (on ? gain : 1.0);
      };
      const bool is_kept = Simulation{cost}.run(trial) == TrialState::kKept;
      (gain < 1 ? kept : kept_for_nothing) += is_kept ? 1 : 0;
    }
  EXPECT_GE(kept, 34u);
  EXPECT_LE(kept_for_nothing, 6u);
}

// What was won in a program's first tenths of a second may lose in its next ones.
TEST(Trial, LooksSoonAtWhatWasWonAndAtWhatWasSettledBefore) {
  const auto lost = [](bool on, uint32_t) { return on ? 25.0 : 22.0; };
  for (const bool settled : {false, true}) {
    TrialLogic trial(kTicksPerSecond, 16, settled);
    Simulation before{[](bool on, uint32_t) { return on ? 25.0 : 40.0; }};
    if (!settled) before.run(trial);
    ASSERT_EQ(trial.state(), TrialState::kKept);
    double seconds = 0;
    for (; trial.state() == TrialState::kKept && seconds < 10; seconds += 0.01) run_on(trial, 0.01, lost);
    EXPECT_EQ(trial.state(), TrialState::kPaused);
    EXPECT_LT(seconds, 0.25) << settled;
  }
}

TEST(Trial, TakesAPausedPrefetchUpAgainWhenItPaysAgain) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  const auto far = [](bool on, uint32_t d) { return on ? 25.0 + best_at(d, 16) : 40.0; };
  const auto near = [](bool on, uint32_t) { return on ? 6.0 : 4.0; };
  ASSERT_EQ((Simulation{far}).run(trial), TrialState::kKept);
  run_on(trial, 0.2, far);
  for (int phase = 0; phase < 3; ++phase) {
    run_on(trial, 1, near);
    ASSERT_EQ(trial.state(), TrialState::kPaused) << phase;
    run_on(trial, 2, far);
    ASSERT_EQ(trial.state(), TrialState::kKept) << phase;
    EXPECT_TRUE(trial.setting().enabled);
  }
}

TEST(Trial, TunesTheDistanceAnewWhenTheProgramChanges) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  ASSERT_EQ((Simulation{[](bool on, uint32_t d) { return on ? 20.0 + 5 * best_at(d, 4) : 40.0; }, 0.005})
                .run(trial),
            TrialState::kKept);
  ASSERT_LE(trial.distance(), 8u);
  const auto later = [](bool on, uint32_t d) { return on ? 60.0 + 15 * best_at(d, 64) : 200.0; };
  run_on(trial, 0.2, [](bool on, uint32_t d) { return on ? 20.0 + 5 * best_at(d, 4) : 40.0; });
  run_on(trial, 1, later);
  EXPECT_EQ(trial.state(), TrialState::kKept);
  EXPECT_GE(trial.distance(), 32u);
}

// Iterations of any length, all the time: looking at every change would cost more than it finds.
TEST(Trial, LooksLessAndLessOftenAtARateThatAlwaysMoves) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  ASSERT_EQ((Simulation{[](bool on, uint32_t) { return on ? 25.0 : 40.0; }}).run(trial), TrialState::kKept);
  std::mt19937 random(7);
  double factor = 1, until = 0, now = 0, measured = 0;
  while (now < 30) {
    if (now >= until) {
      factor = std::exp2(std::uniform_real_distribution<double>(-2, 2)(random));
      until = now + 0.1;
    }
    const StripSetting s = trial.setting();
    const double seconds = (s.enabled ? 25.0 : 40.0) * factor * s.strip_length / kTicksPerSecond;
    now += seconds;
    if (trial.measuring()) measured += seconds;
    trial.strip(s.strip_length, static_cast<uint64_t>(seconds * kTicksPerSecond));
  }
  EXPECT_LT(measured / now, 0.05);
}

TEST(Trial, RollsBackAPausedPrefetchThatDoesNotPayForLong) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation before{[](bool on, uint32_t) { return on ? 25.0 : 40.0; }};
  ASSERT_EQ(before.run(trial), TrialState::kKept);
  run_on(
      trial, 300, [](bool on, uint32_t) { return on ? 50.0 : 40.0; },
      [&] { return trial.state() == TrialState::kRejected; });
  EXPECT_EQ(trial.state(), TrialState::kRejected);
  EXPECT_FALSE(trial.setting().enabled);
}

TEST(Trial, StripsGrowUntilEndingOneCostsNothing) {
  TrialLogic trial(kTicksPerSecond, 16, false);
  Simulation loop{[](bool on, uint32_t) { return on ? 2.0 : 3.0; }};
  loop.run(trial);
  EXPECT_GE(trial.setting().strip_length * 2.0 / kTicksPerSecond, 20e-6);
}

TEST(Trial, ASettledTrialStartsAsKept) {
  TrialLogic trial(kTicksPerSecond, 32, true);
  EXPECT_EQ(trial.state(), TrialState::kKept);
  EXPECT_TRUE(trial.setting().enabled);
  EXPECT_EQ(trial.setting().distance, 32u);
}

TEST(Trial, GivesUpWhateverItWasDoing) {
  for (const bool settled : {false, true}) {
    TrialLogic trial(kTicksPerSecond, 16, settled);
    trial.give_up("nothing came again");
    EXPECT_EQ(trial.state(), TrialState::kRejected);
    EXPECT_FALSE(trial.setting().enabled);
    EXPECT_FALSE(trial.measuring());
    EXPECT_NE(trial.words().find("nothing came again"), std::string::npos);
  }
}

// A strip of what the cell asks for, of which `valid` turns came where they had been.
void end_strip(LoopTrial& trial, jit::LoopCell& cell, uint32_t valid) {
  jit::history_of(cell).valid = cell.enabled != 0 ? valid : 0;
  jit::history_of(cell).period = 10'000;
  cell.countdown = -1;
  trial.strip_ended(cell);
}

TEST(Trial, OfALoopThatRemembersItsWayBeginsWhenThatComesAgain) {
  TrialGate gate;
  LoopTrial trial(kTicksPerSecond, 16, false, 0, kMissSeconds, gate),
      other(kTicksPerSecond, 16, false, 0, kMissSeconds, gate);
  const auto cell = jit::make_loop_cell_with_history();
  trial.judge_history();
  trial.arm(*cell);
  int plain = 0;
  for (int i = 0; i < 96; ++i) {
    end_strip(trial, *cell, 0);
    plain += cell->enabled == 0 ? 1 : 0;
    ASSERT_EQ(cell->distance, 0u);
  }
  EXPECT_EQ(plain, 6) << "one in sixteen tells what the others cost";
  // Meanwhile others may measure.
  EXPECT_TRUE(gate.enter(&other, 1));
  gate.leave(&other);
  EXPECT_EQ(trial.status().chunks, 0u);
  for (int i = 0; i < 20 && cell->distance == 0; ++i) end_strip(trial, *cell, cell->strip_length);
  EXPECT_EQ(cell->distance, 16u);
  EXPECT_EQ(trial.status().state, TrialState::kComparing);
  // The way is another one: it is learned, whatever was being compared.
  bool learns = false;
  for (int i = 0; i < 10'000 && !learns; ++i) {
    end_strip(trial, *cell, 0);
    learns = cell->enabled == 1 && cell->distance == 0;
  }
  EXPECT_TRUE(learns);
}

TEST(Trial, OfALoopWhoseWayNeverComesAgainIsGivenUp) {
  TrialGate gate;
  LoopTrial trial(kTicksPerSecond, 16, false, 0, kMissSeconds, gate);
  const auto cell = jit::make_loop_cell_with_history();
  trial.judge_history();
  trial.arm(*cell);
  for (int i = 0; i < 100'000 && trial.status().state != TrialState::kRejected; ++i)
    end_strip(trial, *cell, 0);
  EXPECT_EQ(trial.status().state, TrialState::kRejected);
  EXPECT_EQ(cell->enabled, 0u);
  EXPECT_NE(trial.status().words.find("no traversal repeated an earlier one"), std::string::npos)
      << trial.status().words;
}

TEST(TrialGate, LetsInOneAtATimeAndTheNextWhenTheFirstIsSeenNoMore) {
  TrialGate gate;
  const LoopTrial first(1e9, 16, false, 0, kMissSeconds, gate), second(1e9, 16, false, 0, kMissSeconds, gate);
  constexpr uint64_t kStart = 1'000'000, kPatience = TrialGate::kPatienceTicks;
  EXPECT_FALSE(gate.busy(kStart));
  EXPECT_TRUE(gate.enter(&first, kStart));
  EXPECT_FALSE(gate.enter(&second, kStart + 10));
  EXPECT_TRUE(gate.busy(kStart - 10)) << "by another thread's counter";
  EXPECT_TRUE(gate.stay(&first, kStart + kPatience - 1));
  EXPECT_FALSE(gate.enter(&second, kStart + kPatience + 1)) << "it has just been seen";
  // Its code was replaced: no strip ends any more.
  EXPECT_FALSE(gate.busy(kStart + 2 * kPatience));
  EXPECT_TRUE(gate.enter(&second, kStart + 2 * kPatience));
  EXPECT_FALSE(gate.stay(&first, kStart + 2 * kPatience + 1));
  EXPECT_FALSE(gate.enter(&first, kStart + 2 * kPatience + 1));
  gate.leave(&first);  // is nothing to the other
  EXPECT_TRUE(gate.stay(&second, kStart + 2 * kPatience + 2));
  gate.leave(&second);
  EXPECT_TRUE(gate.enter(&first, kStart + 2 * kPatience + 3));
}

}  // namespace
}  // namespace hindsight::rt
