#include "runtime/adaptive/machine_costs.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "feedback/lwp/calibration/calibration_cache.h"
#include "feedback/profile/profile_file.h"
#include "runtime/adaptive/background_calibration.h"
#include "runtime/adaptive/engine_policy.h"
#include "runtime/adaptive/trial_parameters.h"
#include "runtime/engine/engine_for_tests.h"

namespace hindsight::rt {
namespace {

lwp::Calibration some_machine() {
  lwp::Calibration known;
  known.tsc_ghz = 2;
  known.core_ghz = 4;
  known.l1 = {.bytes = 32 << 10, .latency_ns = 1, .timed_load_ticks = 60};
  known.memory = {.bytes = 0, .latency_ns = 90, .timed_load_ticks = 300};
  known.mispredict_ns = 4;
  return known;
}

feedback::PolicyConfig policy_on(const lwp::Calibration& known) {
  return make_policy({}, {}, {.calibration = std::make_shared<const lwp::Calibration>(known)});
}

TEST(MachineCosts, AreTheCalibratedOnesWhereThereAreAny) {
  const feedback::PolicyConfig policy = policy_on(some_machine());
  EXPECT_DOUBLE_EQ(policy.cycles_mispredicted, 16);
  EXPECT_DOUBLE_EQ(policy.seconds_a_cycle, 0.25e-9);
  const lwp::Calibration known = some_machine();
  EXPECT_DOUBLE_EQ(miss_seconds(&known), 90e-9);
}

TEST(MachineCosts, AreTheConstantsWhereTheMachineIsNotKnown) {
  EXPECT_EQ(make_policy({}, {}), make_policy({}, {}, MachineFacts{}));
  EXPECT_EQ(make_policy({}, {}).cycles_mispredicted, jit::kMispredictCycles);
  EXPECT_EQ(miss_seconds(nullptr), kMissSeconds);
  const lwp::Calibration unmeasured;
  EXPECT_EQ(miss_seconds(&unmeasured), kMissSeconds);
}

TEST(MachineCosts, OfAMispredictionThatNoProcessorHasAreNotBelieved) {
  for (const double ns : {0.0, 1.0, 50.0}) {
    lwp::Calibration known = some_machine();
    known.mispredict_ns = ns;
    const feedback::PolicyConfig policy = policy_on(known);
    EXPECT_EQ(policy.cycles_mispredicted, jit::kMispredictCycles) << ns;
    EXPECT_DOUBLE_EQ(policy.seconds_a_cycle, 0.25e-9) << ns;
  }
}

TEST(MachineCosts, ThatWereKnownWhenAnEngineWasMadeAreSavedWithItsDecisions) {
  const std::string folder = testing::TempDir() + "hindsight_machine_costs";
  ASSERT_EQ(::setenv("HINDSIGHT_CACHE_DIR", folder.c_str(), 1), 0);
  const Status kept = lwp::store_calibration(folder, lwp::machine_key(), some_machine());
  ASSERT_TRUE(kept) << kept.error().describe();
  BackgroundCalibration here([](bool, const std::string&) {});
  here.load();
  ASSERT_NE(here.get(), nullptr);
  if (*here.get() != some_machine()) GTEST_SKIP() << "the process knows the machine already";

  EngineConfig config;
  config.tier = TierMode::kAuto;
  const auto engine = create_engine_for_tests(config, {});
  ASSERT_TRUE(engine) << engine.error().describe();
  const std::string path = folder + "/profile.json";
  ASSERT_TRUE((*engine)->save_profile(path));
  const auto saved = feedback::load_profile(path);
  ASSERT_TRUE(saved) << saved.error().describe();
  EXPECT_DOUBLE_EQ(saved->policy.at("cycles_mispredicted"), 16);
  EXPECT_DOUBLE_EQ(saved->policy.at("seconds_a_cycle"), 0.25e-9);
}

TEST(MachineCosts, HaveTheReachOfTheTlbFromTheProcessor) {
  const feedback::PolicyConfig policy = make_policy({}, {}, {.tlb_reach = 8 << 20});
  EXPECT_EQ(policy.tlb_reach_bytes, 8 << 20);
  EXPECT_EQ(policy.cycles_mispredicted, jit::kMispredictCycles);
}

}  // namespace
}  // namespace hindsight::rt
