#include "feedback/pmu/architectural.h"

#include <gtest/gtest.h>

namespace hindsight::pmu {
namespace {

TEST(ArchitecturalPmu, IsAbsentWhereTheVersionIsZero) {
  const ArchitecturalPmu pmu = decode_architectural_pmu({0x07300800, 0, 0, 0x603});
  EXPECT_EQ(pmu.version, 0);
  EXPECT_EQ(pmu.general_counters, 0);
  for (const bool event : pmu.events) EXPECT_FALSE(event);
}

TEST(ArchitecturalPmu, DecodesVersionOneWithoutFixedCounters) {
  // Core Duo: two counters of 40 bits, all seven events. EDX is reserved in version 1.
  const ArchitecturalPmu pmu = decode_architectural_pmu({0x07280201, 0, 0, 0xFFFF});
  EXPECT_EQ(pmu.version, 1);
  EXPECT_EQ(pmu.general_counters, 2);
  EXPECT_EQ(pmu.general_width, 40);
  EXPECT_EQ(pmu.fixed_counters, 0);
  EXPECT_FALSE(pmu.has_global_control());
  EXPECT_TRUE(pmu.has(ArchitecturalEvent::kBranchMissesRetired));
}

TEST(ArchitecturalPmu, DecodesVersionThree) {
  // Sandy Bridge: eight counters of 48 bits without hyper-threading, three fixed ones of 48 bits.
  const ArchitecturalPmu pmu = decode_architectural_pmu({0x07300803, 0, 0, 0x603});
  EXPECT_EQ(pmu.version, 3);
  EXPECT_EQ(pmu.general_counters, 8);
  EXPECT_EQ(pmu.general_width, 48);
  EXPECT_EQ(pmu.fixed_counters, 3);
  EXPECT_EQ(pmu.fixed_width, 48);
  EXPECT_EQ(pmu.fixed_mask, 7u);
  EXPECT_TRUE(pmu.has_any_thread());
  EXPECT_TRUE(pmu.has_global_control());
}

TEST(ArchitecturalPmu, DecodesVersionFiveWithAListOfFixedCounters) {
  // Ice Lake style: contiguous count 4 in EDX, mask in ECX, AnyThread gone.
  const ArchitecturalPmu pmu = decode_architectural_pmu({0x08300805, 0, 0x1F, 0x8604});
  EXPECT_EQ(pmu.version, 5);
  EXPECT_EQ(pmu.fixed_counters, 4);
  EXPECT_EQ(pmu.fixed_mask, 0x1Fu);
  EXPECT_TRUE(pmu.any_thread_deprecated);
  EXPECT_FALSE(pmu.has_any_thread());
}

TEST(ArchitecturalPmu, TakesASetBitAndAShortVectorAsMissingEvents) {
  // Nehalem's erratum-style mask: bit 5 set says that branches retired are not counted; the vector ends
  // before bit 6.
  const ArchitecturalPmu pmu = decode_architectural_pmu({0x06300403, 1u << 5, 0, 0x603});
  EXPECT_TRUE(pmu.has(ArchitecturalEvent::kLlcMisses));
  EXPECT_FALSE(pmu.has(ArchitecturalEvent::kBranchesRetired));
  EXPECT_FALSE(pmu.has(ArchitecturalEvent::kBranchMissesRetired));
}

TEST(ArchitecturalPmu, KnowsHowManyCoreCountersAmdHas) {
  EXPECT_EQ(decode_amd_core_counters(0, {}), 4);
  EXPECT_EQ(decode_amd_core_counters(1u << 23, {}), 6);
  EXPECT_EQ(decode_amd_core_counters(0, {1, 6, 0, 0}), 6);
}

TEST(EventEncoding, PutsEveryFieldOfPerfEvtSelWhereTheManualDrawsIt) {
  EventSelect s;
  s.event = 0x2E;
  s.unit_mask = 0x41;
  EXPECT_EQ(encode_perfevtsel(s), 0x0041412Eu);  // EN and USR
  s.kernel = s.edge = s.pin_control = s.interrupt = s.any_thread = s.invert = true;
  s.counter_mask = 0x12;
  EXPECT_EQ(encode_perfevtsel(s), 0x12FF412Eu);
}

TEST(EventEncoding, LeavesTheKernelsBitsOutOfRawConfigs) {
  EXPECT_EQ(encode_intel_raw(architectural_event(ArchitecturalEvent::kLlcMisses)), 0x412Eu);
  EXPECT_EQ(encode_intel_raw(architectural_event(ArchitecturalEvent::kBranchMissesRetired)), 0xC5u);
  EXPECT_EQ(encode_intel_raw(architectural_event(ArchitecturalEvent::kReferenceCycles)), 0x013Cu);
}

TEST(EventEncoding, SplitsAmdsTwelveBitEvents) {
  EventSelect s;
  s.event = 0x1C2;
  s.unit_mask = 0x03;
  EXPECT_EQ(encode_amd_raw(s), 0x1'0000'03C2u);
}

TEST(EventEncoding, GivesEachFixedCounterFourBits) {
  EXPECT_EQ(encode_fixed_control(0, false, true, false, false), 0x2u);
  EXPECT_EQ(encode_fixed_control(2, true, true, true, true), 0xF00u);
}

TEST(AmdPmu, DecodesEveryGenerationsLeaves) {
  // K10: four counters, IBS of its first form, nothing else.
  const AmdPmu k10 = decode_amd_pmu(1u << 10, 0, 0x1F, {});
  EXPECT_EQ(k10.version, 1);
  EXPECT_EQ(k10.core_counters, 4);
  EXPECT_TRUE(k10.ibs);
  EXPECT_EQ(k10.ibs_features, 0x1Fu);
  EXPECT_EQ(k10.branch_stack, 0);
  // Zen 3: six counters and branch sampling.
  const AmdPmu zen3 = decode_amd_pmu(1u << 23 | 1u << 10, 1u << 31, 0x3FF, {});
  EXPECT_EQ(zen3.core_counters, 6);
  EXPECT_TRUE(zen3.branch_sampling);
  EXPECT_EQ(zen3.branch_stack, 0);
  // Zen 4: PerfMonV2 and LBRv2; 6 core, 16 LBR entries, 12 data fabric, 8 memory counters.
  const AmdPmu zen4 =
      decode_amd_pmu(1u << 23 | 1u << 10, 0, 0xBFF, {7, 6 | 16 << 4 | 12 << 10 | 8 << 16, 0, 0});
  EXPECT_EQ(zen4.version, 2);
  EXPECT_EQ(zen4.core_counters, 6);
  EXPECT_EQ(zen4.branch_stack, 16);
  EXPECT_EQ(zen4.northbridge_counters, 12);
  EXPECT_EQ(zen4.memory_counters, 8);
  // A hypervisor that hides it all.
  const AmdPmu hidden = decode_amd_pmu(0, 0, 0xBFF, {});
  EXPECT_FALSE(hidden.ibs);
  EXPECT_EQ(hidden.ibs_features, 0u);
}

TEST(AmdPmu, HasOwnEventsWithTheirHighBitsApart) {
  EXPECT_EQ(encode_amd_raw(*amd_event(ArchitecturalEvent::kInstructionsRetired)), 0xC0u);
  EXPECT_EQ(encode_amd_raw(*amd_event(ArchitecturalEvent::kCoreCycles)), 0x76u);
  EXPECT_EQ(encode_amd_raw(*amd_event(ArchitecturalEvent::kBranchMissesRetired)), 0xC3u);
  EXPECT_EQ(encode_amd_raw(*amd_event(ArchitecturalEvent::kReferenceCycles)), 0x1'0000'0120u);
  EXPECT_FALSE(amd_event(ArchitecturalEvent::kLlcMisses));
}

TEST(ArchitecturalPmu, NamesItsFixedCounters) {
  EXPECT_EQ(fixed_counter_name(0), "instructions retired");
  EXPECT_EQ(fixed_counter_name(3), "top-down slots");
  EXPECT_EQ(fixed_counter_name(31), "");
}

}  // namespace
}  // namespace hindsight::pmu
