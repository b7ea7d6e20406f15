#include "feedback/lwp/format/capabilities.h"

#include <gtest/gtest.h>

namespace hindsight::lwp {
namespace {

constexpr uint32_t kLwpBit = 1u << 15;

// Register dump of an FX-8150 under an operating system that does not enable LWP.
constexpr pmu::CpuidRegisters kFx8150{0x00000000, 0x80032013, 0x00010200, 0x8000000F};

TEST(Capabilities, DecodeTheFx8150) {
  const Capabilities c = decode_capabilities(kLwpBit, kFx8150);
  EXPECT_TRUE(c.present);
  EXPECT_EQ(c.usable, FeatureSet{});
  EXPECT_EQ(
      c.hardware,
      (FeatureSet{
          .available = true, .value = true, .instructions = true, .branches = true, .interrupt = true}));
  EXPECT_EQ(c.control_block_bytes, 152u);
  EXPECT_EQ(c.record_bytes, 32u);
  EXPECT_EQ(c.max_event_id, 3u);
  EXPECT_EQ(c.event_offset, 128u);
  EXPECT_EQ(c.version, 1u);
  EXPECT_EQ(c.min_buffer_records, 32u);
  EXPECT_EQ(c.latency_bits, 0u);
  EXPECT_FALSE(c.data_address || c.branch_prediction || c.ip_filtering || c.cache_level_filtering ||
               c.latency_filtering);
}

TEST(Capabilities, SayThatTheOperatingSystemIsMissingNotTheHardware) {
  EXPECT_NE(why_not_native(decode_capabilities(kLwpBit, kFx8150)).find("operating system"),
            std::string::npos);
  EXPECT_NE(why_not_native(decode_capabilities(0, {})).find("the processor has no"), std::string::npos);
}

TEST(Capabilities, IgnoreTheLeafWithoutThePresenceBit) {
  const Capabilities c = decode_capabilities(~kLwpBit, kFx8150);
  EXPECT_FALSE(c.present);
  EXPECT_EQ(c.record_bytes, 0u);
}

TEST(Capabilities, DecodeEveryFieldOfEcx) {
  const uint32_t ecx =
      17u | 1u << 5 | 3u << 6 | 2u << 9 | 4u << 16 | 1u << 28 | 1u << 29 | 1u << 30 | 1u << 31;
  const Capabilities c = decode_capabilities(kLwpBit, {0, 0, ecx, 0});
  EXPECT_EQ(c.latency_bits, 17u);
  EXPECT_TRUE(c.data_address);
  EXPECT_EQ(c.latency_rounded_bits, 3u);
  EXPECT_EQ(c.version, 2u);
  EXPECT_EQ(c.min_buffer_records, 128u);
  EXPECT_TRUE(c.branch_prediction && c.ip_filtering && c.cache_level_filtering && c.latency_filtering);
}

TEST(Capabilities, DecodeEveryFeatureBit) {
  EXPECT_EQ(decode_features(0xE000007F),
            (FeatureSet{true, true, true, true, true, true, true, true, true, true}));
  EXPECT_EQ(decode_features(0x1FFFFF80), FeatureSet{});
}

TEST(Capabilities, EncodeToTheRegistersOfTheFx8150) {
  const EncodedCapabilities e = encode_capabilities(decode_capabilities(kLwpBit, kFx8150));
  EXPECT_EQ(e.ecx_80000001, kLwpBit);
  EXPECT_EQ(e.leaf_8000001c, kFx8150);
}

TEST(Capabilities, SurviveTheTripThroughRegistersInEveryField) {
  // Every bit that has a meaning, alone.
  const pmu::CpuidRegisters meaningful{0xE000007F, 0xFFFFFFFF, 0xF0FFFFFF, 0xE000007F};
  for (uint32_t pmu::CpuidRegisters::*reg : {&pmu::CpuidRegisters::eax, &pmu::CpuidRegisters::ebx,
                                             &pmu::CpuidRegisters::ecx, &pmu::CpuidRegisters::edx}) {
    for (unsigned i = 0; i < 32; ++i) {
      pmu::CpuidRegisters leaf;
      leaf.*reg = 1u << i;
      pmu::CpuidRegisters kept;
      kept.*reg = leaf.*reg & meaningful.*reg;
      const EncodedCapabilities e = encode_capabilities(decode_capabilities(kLwpBit, leaf));
      EXPECT_EQ(e.leaf_8000001c, kept) << "bit " << i;
    }
  }
}

TEST(Capabilities, EncodeToZerosWithoutThePresenceBit) {
  Capabilities c = decode_capabilities(kLwpBit, kFx8150);
  c.present = false;
  EXPECT_EQ(encode_capabilities(c), EncodedCapabilities{});
}

}  // namespace
}  // namespace hindsight::lwp
