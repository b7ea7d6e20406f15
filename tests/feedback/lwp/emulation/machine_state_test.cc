#include "feedback/lwp/emulation/machine_state.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hindsight::lwp {
namespace {

constexpr pmu::CpuidRegisters kFx8150State{0x00000000, 0x80032013, 0x00010200, 0x8000000F};

TEST(LwpConfig, HasEnablesCoreAndVectorAtTheirPlaces) {
  const LwpConfig config = decode_lwp_config(0x0000'EF05'8000'000F);
  EXPECT_EQ(
      config.enabled,
      (FeatureSet{
          .available = true, .value = true, .instructions = true, .branches = true, .interrupt = true}));
  EXPECT_EQ(config.core_id, 5);
  EXPECT_EQ(config.interrupt_vector, 0xEF);
  EXPECT_EQ(encode_lwp_config(config), 0x0000'EF05'8000'000Fu);
}

TEST(LwpConfig, SurvivesTheTripThroughTheRegisterInEveryBit) {
  constexpr uint64_t kMeaningful = 0x0000'FFFF'E000'007F;
  for (unsigned i = 0; i < 64; ++i) {
    const uint64_t msr = uint64_t{1} << i;
    EXPECT_EQ(encode_lwp_config(decode_lwp_config(msr)), msr & kMeaningful) << i;
  }
}

TEST(LwpConfig, MakesUsableWhatItEnables) {
  const Capabilities hardware = decode_capabilities(1u << 15, kFx8150State);
  LwpConfig config{.enabled = {.available = true, .value = true, .branches = true}};
  const auto seen = enable(hardware, config, true);
  ASSERT_TRUE(seen);
  EXPECT_EQ(encode_capabilities(*seen).leaf_8000001c.eax, 0x0Bu);
  EXPECT_EQ(encode_capabilities(*seen).leaf_8000001c.edx, kFx8150State.edx);
  const auto without_xcr0 = enable(hardware, config, false);
  ASSERT_TRUE(without_xcr0);
  EXPECT_EQ(encode_capabilities(*without_xcr0).leaf_8000001c.eax, 0u);
}

TEST(LwpConfig, CannotEnableWhatTheHardwareLacks) {
  const Capabilities hardware = decode_capabilities(1u << 15, kFx8150State);
  const auto seen = enable(hardware, {.enabled = {.available = true, .dcache_misses = true}}, true);
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().kind, FaultKind::kGeneralProtection);
}

TEST(LwpRegisters, HaveTheirNumbers) {
  EXPECT_EQ(kMsrLwpConfig, 0xC0000105u);
  EXPECT_EQ(kMsrLwpControlBlock, 0xC0000106u);
}

TEST(XsaveArea, HasTheBytesOfComponentSixtyTwo) {
  EXPECT_EQ(kXsaveComponent, 62u);
  EXPECT_EQ(kXsaveOffset, 832u);
  unsigned char bytes[128];
  for (unsigned i = 0; i < 128; ++i) bytes[i] = static_cast<unsigned char>(i);
  XsaveArea area;
  ASSERT_EQ(sizeof area, sizeof bytes);
  std::memcpy(static_cast<void*>(&area), bytes, sizeof area);
  EXPECT_EQ(area.block_address, 0x0706050403020100u);
  EXPECT_EQ(area.flags, 0x0B0A0908u);
  EXPECT_EQ(area.head, 0x0F0E0D0Cu);
  EXPECT_EQ(area.buffer_base, 0x1716151413121110u);
  EXPECT_EQ(area.buffer_size, 0x1B1A1918u);
  EXPECT_EQ(area.filters, 0x1F1E1D1Cu);
  EXPECT_EQ(area.pending.event_id, 0x20u);
  EXPECT_EQ(area.pending.address, 0x2F2E2D2C2B2A2928u);
  EXPECT_EQ(area.event_counters[0], 0x43424140u);
  EXPECT_EQ(area.event_counters[15], 0x7F7E7D7Cu);
}

}  // namespace
}  // namespace hindsight::lwp
