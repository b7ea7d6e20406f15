#include "feedback/lwp/calibration/machine_model.h"

#include <gtest/gtest.h>

#include "feedback/lwp/model/core_model.h"

namespace hindsight::lwp {
namespace {

Calibration some_machine() {
  Calibration c;
  c.tsc_ghz = 2.5;
  c.core_ghz = 3;
  c.l1 = {.bytes = 48 << 10, .latency_ns = 1.7, .timed_load_ticks = 90};
  c.l2 = {.bytes = 2 << 20, .latency_ns = 5, .timed_load_ticks = 100};
  c.l3 = {.bytes = 36 << 20, .latency_ns = 20, .timed_load_ticks = 130};
  c.memory = {.bytes = 0, .latency_ns = 120, .timed_load_ticks = 400};
  return c;
}

TEST(MachineModel, HasTheLatenciesInCyclesAndTheShareOfTheLastLevel) {
  const std::string words = machine_words(some_machine(), 8 << 20);
  EXPECT_EQ(words, "l1=32K/8/5,l2=2048K/8/15,l3=8192K/16/60,memory=360");
  const auto model = parse_model(words);
  ASSERT_TRUE(model) << model.error().describe();
  ASSERT_EQ(model->cache.levels.size(), 3u);
  EXPECT_EQ(model->cache.levels[2].bytes, uint64_t{8} << 20);
  EXPECT_EQ(model->cache.memory_latency, 360u);
}

TEST(MachineModel, HasNoThirdLevelWhereNothingOfItIsLeft) {
  const auto model = parse_model(machine_words(some_machine(), 0));
  ASSERT_TRUE(model);
  EXPECT_EQ(model->cache.levels.size(), 2u);
}

TEST(MachineModel, OfAnUnmeasuredMachineIsTheDefault) {
  EXPECT_EQ(machine_words(Calibration{}, 0), "l3=off");
  EXPECT_EQ(last_level_share(Calibration{}), 0u);
}

TEST(MachineModel, OnlyTheWordMachineIsMeasured) {
  EXPECT_EQ(resolve_model(""), "");
  EXPECT_EQ(resolve_model("l3=8M/16/50,memory=300"), "l3=8M/16/50,memory=300");
  EXPECT_EQ(resolve_model("machines"), "machines");
  const auto here = resolve_model("machine,window=320");
  if (!here) GTEST_SKIP() << "this machine cannot be measured now: " << here.error().describe();
  EXPECT_TRUE(here->ends_with(",window=320")) << *here;
  const auto model = parse_model(*here);
  ASSERT_TRUE(model) << *here;
  EXPECT_EQ(model->window, 320u);
}

}  // namespace
}  // namespace hindsight::lwp
