#include "feedback/lwp/calibration/tlb_reach.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace hindsight::lwp {
namespace {

// What a processor answers, by leaf and subleaf; zeros for all else.
using Leaves = std::map<std::pair<uint32_t, uint32_t>, pmu::CpuidRegisters>;

std::optional<uint64_t> reach_of(const Leaves& leaves) {
  return decode_tlb_reach([&](uint32_t leaf, uint32_t subleaf) {
    const auto found = leaves.find({leaf, subleaf});
    return found == leaves.end() ? pmu::CpuidRegisters{} : found->second;
  });
}

Leaves amd(pmu::CpuidRegisters second_level, uint32_t features) {
  return {{{0x8000'0006, 0}, second_level}, {{0x8000'0021, 0}, {features, 0, 0, 0}}};
}

constexpr uint64_t kPage = 4096;

// Of dumps in the InstLatX64 collection.
TEST(TlbReach, IsThatOfEachZen) {
  EXPECT_EQ(reach_of(amd({0x48006400, 0x68006400, 0x02006140, 0x08009140}, 0)), 2048 * kPage) << "Rome";
  EXPECT_EQ(reach_of(amd({0x48002200, 0x68004200, 0x02006140, 0x08009140}, 0x0000204d)), 2048 * kPage)
      << "Milan";
  EXPECT_EQ(reach_of(amd({0x5c002200, 0x6c004200, 0x04006140, 0x0c009140}, 0x00062fcf)), 3072 * kPage)
      << "Genoa";
  EXPECT_EQ(reach_of(amd({0x40802040, 0x60804040, 0x04008140, 0x08009140}, 0xd93fffcf)), 4096 * kPage)
      << "Turin, which counts by 32";
}

TEST(TlbReach, IsThatOfAXeonByItsDescriptors) {
  EXPECT_EQ(reach_of({{{2, 0}, {0x76036301, 0x00f0b5ff, 0, 0x00c30000}},
                      {{0x8000'0006, 0}, {0, 0, 0x01006040, 0}}}),
            1536 * kPage)
      << "Skylake";
  EXPECT_EQ(reach_of({{{2, 0}, {0x76036301, 0x00f0b5ff, 0, 0x80c30000}}}), std::nullopt)
      << "a register that names none";
  EXPECT_EQ(reach_of({{{2, 0}, {0x000000c3, 0, 0, 0}}}), std::nullopt) << "the lowest byte names none";
}

TEST(TlbReach, IsThatOfAXeonByItsListOfTranslationCaches) {
  const Leaves sapphire_rapids = {
      {{2, 0}, {0x00feff01, 0x000000f0, 0, 0}},   {{0x18, 0}, {8, 0, 0, 0}},
      {{0x18, 1}, {0, 0x00080001, 0x20, 0x4022}}, {{0x18, 2}, {0, 0x00080006, 0x04, 0x4022}},
      {{0x18, 3}, {0, 0x0010000f, 0x01, 0x4125}}, {{0x18, 4}, {0, 0x00040001, 0x10, 0x4024}},
      {{0x18, 5}, {0, 0x00040006, 0x08, 0x4024}}, {{0x18, 6}, {0, 0x00080008, 0x01, 0x4124}},
      {{0x18, 7}, {0, 0x00080007, 0x80, 0x4043}}, {{0x18, 8}, {0, 0x00080009, 0x80, 0x4043}},
      {{0x8000'0006, 0}, {0, 0, 0x08007040, 0}}};
  EXPECT_EQ(reach_of(sapphire_rapids), 2048 * kPage) << "two of 1,024 entries have pages of 4 KiB";
}

TEST(TlbReach, IsNotKnownWhereAHypervisorHidesItOrTellsOfAnOlderProcessor) {
  EXPECT_EQ(reach_of({}), std::nullopt);
  EXPECT_EQ(reach_of(amd({0, 0x42004200, 0x02006140, 0x00808140}, 0)), std::nullopt) << "QEMU";
  EXPECT_EQ(reach_of(amd({0x40802040, 0x60804040, 0x04008140, 0x08009140}, 0)), std::nullopt)
      << "Turin, without what says that it counts by 32";
}

TEST(TlbReach, AnEndlessListEnds) {
  EXPECT_EQ(decode_tlb_reach([](uint32_t leaf, uint32_t) {
              return leaf == 0x18 ? pmu::CpuidRegisters{~0u, ~0u, ~0u, 0x4043} : pmu::CpuidRegisters{};
            }),
            std::nullopt);
}

TEST(TlbReach, OfThisMachineIsWhatAProcessorHas) {
  const auto here = detect_tlb_reach();
  if (!here) GTEST_SKIP() << "this machine does not say";
  EXPECT_GE(*here, 1024 * kPage);
  EXPECT_EQ(*here % kPage, 0u);
}

}  // namespace
}  // namespace hindsight::lwp
