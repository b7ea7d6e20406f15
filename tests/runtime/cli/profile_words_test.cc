#include "runtime/tools/profile_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hindsight::rt {
namespace {

TEST(ProfileWords, GiveStallsAsAShareOfAllSamplesThatTheyMayBeOf) {
  feedback::FunctionEvidence evidence;
  evidence.samples_baseline = 200;
  feedback::LoadEvidence load{.load = WasmOffset(0x20)};
  load.stall_samples = 50;
  EXPECT_THAT(load_text(load, evidence),
              testing::StartsWith("load at 0x20: 50 of 200 (25 %) samples stall on it"));
  // Its first code was published, and those before it are settled.
  evidence.samples_baseline = 0;
  evidence.samples_optimized = 40;
  evidence.loops.emplace_back().samples = 240;
  EXPECT_THAT(load_text(load, evidence),
              testing::StartsWith("load at 0x20: 50 of 240 (21 %) samples stall on it"));
}

}  // namespace
}  // namespace hindsight::rt
