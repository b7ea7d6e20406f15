#include "feedback/monitor/branch_bursts.h"

#include <gtest/gtest.h>

#include <random>

#include "feedback/lwp/format/record.h"
#include "feedback/monitor/monitor.h"
#include "tests/feedback/monitor/nop_module.h"
#include "tests/feedback/silent_unit.h"

namespace hindsight::feedback {
namespace {

TEST(BurstSchedule, ASeriesIsSpreadOverMoreThanATenthOfASecond) {
  for (uint64_t seed : {1u, 2u, 3u, 99u}) {
    BurstSchedule schedule(seed);
    std::vector<double> at;
    for (double now = 0; at.size() < BurstSchedule::kSeries; now += 0.001) {
      ASSERT_LT(now, 1);
      if (schedule.due(now)) at.push_back(now);
    }
    EXPECT_EQ(at.front(), 0);
    EXPECT_GT(at.back(), 0.1);
    EXPECT_LT(at.back(), 0.25);
  }
}

TEST(BurstSchedule, BehindASeriesBurstsAreRareUntilTheNextIsWanted) {
  BurstSchedule schedule(5);
  double now = 0;
  const auto in_seconds = [&](double seconds) {
    const uint64_t before = schedule.bursts();
    for (const double until = now + seconds; now < until; now += 0.001) schedule.due(now);
    return schedule.bursts() - before;
  };
  const uint64_t first = in_seconds(0.25);
  EXPECT_GE(first, BurstSchedule::kSeries);
  EXPECT_LE(first, BurstSchedule::kSeries + 2);
  const uint64_t steady = in_seconds(4.5);
  EXPECT_GE(steady, 30u);
  EXPECT_LE(steady, 60u);
  schedule.begin_series();
  EXPECT_GE(in_seconds(0.5), BurstSchedule::kSeries);
}

TEST(BurstSchedule, ABurstThatIsWantedComesAtOnceAndTheRestOfTheSeriesAfterIt) {
  BurstSchedule schedule(5);
  ASSERT_TRUE(schedule.due(0));
  ASSERT_FALSE(schedule.due(0.001));
  schedule.want_one();
  EXPECT_TRUE(schedule.due(0.001));
  EXPECT_FALSE(schedule.due(0.002));
  EXPECT_TRUE(schedule.due(0.030));
}

TEST(BurstSchedule, ManyThreadsTogetherHaveAsManyBurstsAsOne) {
  uint64_t bursts = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    BurstSchedule schedule(seed * 7919);
    for (double now = 0; now < 5; now += 0.001) schedule.due(now, 16);
    bursts += schedule.bursts() - BurstSchedule::kSeries;
  }
  EXPECT_GE(bursts, 30u);  // 10 a second
  EXPECT_LE(bursts, 75u);
}

TEST(BurstSchedule, BurstsOfLongRunsAreOneASecondUntilASeriesIsWanted) {
  BurstSchedule schedule(5);
  double now = 0;
  const auto until = [&](double end) {
    const uint64_t before = schedule.bursts();
    for (; now < end; now += 0.001) schedule.due(now);
    return schedule.bursts() - before;
  };
  until(100);
  const uint64_t late = until(200);
  EXPECT_GE(late, 70u);
  EXPECT_LE(late, 130u);
  schedule.begin_series();
  EXPECT_GE(until(now + 0.25), BurstSchedule::kSeries);
}

TEST(BurstSchedule, NothingIsDueBeforeTheTimeThatItNames) {
  BurstSchedule schedule(5);
  EXPECT_EQ(schedule.next(), 0);
  for (double now = 0; now < 20; now += 0.001) {
    const double next = schedule.next();
    if (schedule.due(now)) {
      ASSERT_GE(now, next);
    }
  }
  schedule.want_one();
  EXPECT_EQ(schedule.next(), 0);
}

TEST(BurstSchedule, IsBoundedWhateverIsAskedFor) {
  BurstSchedule schedule(5);
  for (double now = 0; now < 20; now += 0.001) {
    schedule.begin_series();
    schedule.due(now);
    ASSERT_LE(static_cast<double>(schedule.bursts()),
              BurstSchedule::kAhead + BurstSchedule::kMostASecond * now + 1);
  }
}

class BurstsInMonitor : public ::testing::Test {
 protected:
  void SetUp() override {
    module = testing::module_with(0x01);
    arena = std::move(*jit::CodeArena::create(1 << 20));
    version = std::make_shared<jit::CodeVersion>();
    version->function = FuncIndex(0);
    version->memory = std::move(*arena->allocate(64));
    version->code_size = CodeOffset(64);
    jit::PcMapBuilder rows;
    rows.add_row({CodeOffset(0), WasmOffset(20), jit::kNoInlineSite});
    rows.add_row({CodeOffset(32), WasmOffset(24), jit::kNoInlineSite});
    version->pc_map = rows.finish();
    registry.add(module, version);
    unit = std::make_shared<SilentUnit>();
    make_monitor({});
  }
  void make_monitor(Monitor::Config config) {
    config.branch_bursts = true;
    monitor = std::make_unique<Monitor>(registry, std::move(config));
    monitor->attach(unit, std::nullopt);
  }
  uint64_t pc(uint32_t offset) const { return reinterpret_cast<uint64_t>(version->begin()) + offset; }

  // As counting code would: a coin at wasm offset 20 and the loop's branch at 24.
  void run_burst() {
    ASSERT_TRUE(unit->branch_bursts().begin());
    for (bool more = true, coin = true; more; coin = !coin) {
      const bool taken = coin ? random() % 2 == 0 : true;
      more = unit->branch_bursts().add(pc(coin ? 5 : 40), taken, pc(taken ? 0 : 60));
    }
  }

  std::shared_ptr<const wasm::Module> module;
  std::unique_ptr<jit::CodeArena> arena;
  std::shared_ptr<jit::CodeVersion> version;
  jit::CodeRegistry registry;
  std::shared_ptr<SilentUnit> unit;
  std::unique_ptr<Monitor> monitor;
  std::mt19937_64 random{1};
};

TEST_F(BurstsInMonitor, OutcomesBecomeCountsOfEachBranchWithDenominators) {
  EXPECT_FALSE(unit->branch_bursts().requested());
  monitor->round();
  ASSERT_TRUE(unit->branch_bursts().requested()) << "the first burst is asked for at once";
  run_burst();
  monitor->round();
  const MonitorCounts counts = monitor->counts();
  EXPECT_EQ(counts.branch_bursts, 1u);
  EXPECT_EQ(counts.burst_outcomes, lwp::BranchBursts::kMostOutcomes);
  EXPECT_EQ(counts.burst_unattributed, 0u);
  EXPECT_GT(counts.burst_judged, 1000u);
  EXPECT_LT(counts.burst_judged, counts.burst_outcomes) << "a warm-up is not judged";
  monitor->with_profiles([&](Monitor::Profiles& profiles) {
    const FunctionEvidence e = profiles[module.get()]->evidence(FuncIndex(0));
    ASSERT_EQ(e.branches.size(), 2u);
    EXPECT_EQ(e.branches[0].branch, WasmOffset(20)) << "the coin has the mispredictions";
    EXPECT_EQ(e.branches[0].outcomes + e.branches[1].outcomes, counts.burst_outcomes);
    EXPECT_EQ(e.branches[0].judged + e.branches[1].judged, counts.burst_judged);
    EXPECT_EQ(e.branches[0].mispredicted + e.branches[1].mispredicted, counts.burst_mispredicted);
    EXPECT_NEAR(e.branches[0].mispredict_rate(), 0.5, 0.08);
    EXPECT_NEAR(e.branches[0].taken_share(), 0.5, 0.05);
    EXPECT_EQ(e.branches[1].taken_share(), 1);
    EXPECT_LT(e.branches[1].mispredict_rate(), 0.02);
  });
}

TEST_F(BurstsInMonitor, RecordsCarryThePredictionWhereThereIsOne) {
  uint64_t valid = 0, wrong = 0, records = 0;
  Monitor::Config config;
  config.on_record = [&](const LocatedRecord& r) {
    ASSERT_EQ(r.record.id(), lwp::EventId::kBranches);
    records += 1;
    if (const auto right = lwp::branch_predicted_right(r.record)) {
      valid += 1;
      wrong += *right ? 0 : 1;
    }
    EXPECT_TRUE(r.offset == WasmOffset(20) || r.offset == WasmOffset(24));
  };
  make_monitor(config);
  monitor->round();
  run_burst();
  monitor->round();
  const MonitorCounts counts = monitor->counts();
  EXPECT_EQ(records, counts.burst_outcomes);
  EXPECT_EQ(valid, counts.burst_judged);
  EXPECT_EQ(wrong, counts.burst_mispredicted);
}

TEST_F(BurstsInMonitor, OutcomesOfCodeThatIsGoneAreCounted) {
  monitor->round();
  ASSERT_TRUE(unit->branch_bursts().begin());
  while (unit->branch_bursts().add(0x1234, true, 0x5678)) {
  }
  monitor->round();
  EXPECT_EQ(monitor->counts().burst_unattributed, monitor->counts().burst_outcomes);
}

TEST_F(BurstsInMonitor, WhatAThreadRecordedBeforeItEndedIsNotLost) {
  monitor->round();
  run_burst();
  monitor->detach(unit.get());
  EXPECT_EQ(monitor->counts().branch_bursts, 1u);
  EXPECT_EQ(monitor->counts().burst_outcomes, lwp::BranchBursts::kMostOutcomes);
}

TEST_F(BurstsInMonitor, NobodyIsAskedWithoutTheOption) {
  auto other = std::make_shared<SilentUnit>();
  Monitor quiet(registry, Monitor::Config{});
  quiet.attach(other, std::nullopt);
  quiet.round();
  EXPECT_FALSE(other->branch_bursts().requested());
}

}  // namespace
}  // namespace hindsight::feedback
