#include "feedback/pmu/processor.h"

#include <gtest/gtest.h>

namespace hindsight::pmu {
namespace {

std::string_view name_of(Vendor vendor, uint32_t leaf1_eax) {
  return microarchitecture(vendor, decode_signature(leaf1_eax));
}

TEST(Processor, AddsTheExtendedFamilyOnlyToBaseFamilyFifteen) {
  EXPECT_EQ(decode_signature(0x00A10F11), (ProcessorSignature{0x19, 0x11, 1}));  // Genoa
  EXPECT_EQ(decode_signature(0x000306A9), (ProcessorSignature{0x06, 0x3A, 9}));  // Ivy Bridge
  EXPECT_EQ(decode_signature(0x00600F12), (ProcessorSignature{0x15, 0x01, 2}));  // FX-8150
  EXPECT_EQ(decode_signature(0x00000F34), (ProcessorSignature{0x0F, 0x03, 4}));  // Prescott
}

TEST(Processor, IgnoresTheExtendedModelWhereTheManualSaysSo) {
  EXPECT_EQ(decode_signature(0x000F0543).model, 0x4u);  // family 5 has no extended model
}

TEST(Processor, NamesIntelMicroarchitecturesFromPrescottOn) {
  EXPECT_EQ(name_of(Vendor::kIntel, 0x00000F34), "Prescott");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000006D8), "Dothan");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000006FB), "Merom");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x00010676), "Penryn");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000106A5), "Nehalem");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000206C2), "Westmere");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000206A7), "Sandy Bridge");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000306A9), "Ivy Bridge");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000C06F2), "Emerald Rapids");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000B06F2), "Raptor Lake");
}

TEST(Processor, TellsGenerationsThatShareAModelBySteppping) {
  EXPECT_EQ(name_of(Vendor::kIntel, 0x00050654), "Skylake");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x00050657), "Cascade Lake");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x0005065B), "Cooper Lake");
}

TEST(Processor, NamesAmdMicroarchitecturesFromK8ToZen5) {
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00020F32), "K8");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00100F42), "K10");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00600F12), "Bulldozer");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00600F20), "Piledriver");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00800F11), "Zen");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00800F82), "Zen+");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00830F10), "Zen 2");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00A20F10), "Zen 3");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00A10F11), "Zen 4");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00B40F40), "Zen 5");
}

TEST(Processor, NamesTodaysProcessors) {
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000A06A4), "Meteor Lake");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000B06D1), "Lunar Lake");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000C0662), "Arrow Lake");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000A06D1), "Granite Rapids");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000A06F3), "Sierra Forest");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000C06C1), "Panther Lake");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000D06D0), "Clearwater Forest");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00B00F21), "Zen 5");
  EXPECT_EQ(name_of(Vendor::kAmd, 0x00B50F00), "Zen 6");
  EXPECT_EQ(name_of(Vendor::kHygon, 0x00900F01), "Dhyana (Zen)");
  EXPECT_EQ(name_of(Vendor::kZhaoxin, 0x000307B1), "LuJiaZui");
  EXPECT_EQ(name_of(Vendor::kZhaoxin, 0x000006FE), "Isaiah");
}

TEST(Processor, NamesTheSeedsOldestOnes) {
  EXPECT_EQ(name_of(Vendor::kIntel, 0x00000F41), "Prescott");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x00000F62), "Cedar Mill");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000006D8), "Dothan");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000006FB), "Merom");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x00010661), "Merom");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x0001067A), "Penryn");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000106D1), "Penryn");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000106E5), "Nehalem");
  EXPECT_EQ(name_of(Vendor::kIntel, 0x00020655), "Westmere");
}

TEST(CoreType, IsReadFromLeaf1AhWhereTheProcessorIsHybrid) {
  EXPECT_EQ(decode_core_type(0, 0x40000001), CoreType::kUniform);
  EXPECT_EQ(decode_core_type(1u << 15, 0x40000001), CoreType::kPerformance);
  EXPECT_EQ(decode_core_type(1u << 15, 0x20000001), CoreType::kEfficiency);
  EXPECT_EQ(decode_core_type(1u << 15, 0x10000001), CoreType::kUnknown);
}

TEST(CoreType, NamesTheCoreInsideTheProduct) {
  EXPECT_EQ(core_microarchitecture("Alder Lake", CoreType::kPerformance), "Golden Cove");
  EXPECT_EQ(core_microarchitecture("Alder Lake", CoreType::kEfficiency), "Gracemont");
  EXPECT_EQ(core_microarchitecture("Lunar Lake", CoreType::kEfficiency), "Skymont");
  EXPECT_EQ(core_microarchitecture("Skylake", CoreType::kUniform), "Skylake");
  EXPECT_EQ(core_microarchitecture("Skylake", CoreType::kPerformance), "");
  EXPECT_EQ(core_microarchitecture("Alder Lake", CoreType::kUnknown), "");
}

TEST(Processor, DoesNotGuessModelsThatTheTableLacks) {
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000F06F0), "");
  EXPECT_EQ(name_of(Vendor::kUnknown, 0x00A10F11), "");
}

TEST(Processor, ReadsTheVendorFromItsTwelveCharacters) {
  EXPECT_EQ(decode_vendor({0, 0x756E6547, 0x6C65746E, 0x49656E69}), Vendor::kIntel);
  EXPECT_EQ(decode_vendor({0, 0x68747541, 0x444D4163, 0x69746E65}), Vendor::kAmd);
  EXPECT_EQ(decode_vendor({0, 0x746E6543, 0x736C7561, 0x48727561}), Vendor::kZhaoxin);  // CentaurHauls
  EXPECT_EQ(decode_vendor({0, 0x68532020, 0x20206961, 0x68676E61}), Vendor::kZhaoxin);  // "  Shanghai  "
  EXPECT_EQ(decode_vendor({}), Vendor::kUnknown);
}

TEST(Processor, IdentifiesTheRunningMachineConsistently) {
  const ProcessorInfo info = identify_processor();
  EXPECT_EQ(info.signature, decode_signature(cpuid(1).eax));
  EXPECT_EQ(info.hypervisor.empty(), !info.virtualized);
}

TEST(Processor, ReadsLeavesThatDoNotExistAsZeros) {
  EXPECT_EQ(cpuid(0x7FFF0000), CpuidRegisters{});
}

}  // namespace
}  // namespace hindsight::pmu
