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

TEST(Processor, DoesNotGuessModelsThatTheTableLacks) {
  EXPECT_EQ(name_of(Vendor::kIntel, 0x000F06F0), "");
  EXPECT_EQ(name_of(Vendor::kUnknown, 0x00A10F11), "");
}

TEST(Processor, ReadsTheVendorFromItsTwelveCharacters) {
  EXPECT_EQ(decode_vendor({0, 0x756E6547, 0x6C65746E, 0x49656E69}), Vendor::kIntel);
  EXPECT_EQ(decode_vendor({0, 0x68747541, 0x444D4163, 0x69746E65}), Vendor::kAmd);
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
