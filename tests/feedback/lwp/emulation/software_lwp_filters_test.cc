// Filters by name: no test here knows a bit's place, and none of a latency's unit.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "feedback/lwp/emulation/software_lwp.h"
#include "tests/feedback/lwp/emulation/software_lwp_area.h"

namespace hindsight::lwp {
namespace {

// The pcs of `instructions` that are recorded with these filters, if every event asked for is.
std::vector<uint64_t> recorded(uint32_t filters, EventId id,
                               const std::vector<RetiredInstruction>& instructions,
                               const Capabilities& capabilities = software_capabilities()) {
  Area area(64);
  area.ask(id, 0);
  area.block.filters = filters;
  area.block.base_ip = 0x100;
  area.block.limit_ip = 0x200;
  SoftwareLwp lwp(own_memory(), {.capabilities = capabilities});
  EXPECT_TRUE(lwp.llwpcb(area.address()));
  for (const RetiredInstruction& i : instructions) lwp.retire(i);
  std::vector<uint64_t> pcs;
  for (const EventRecord& r : area.records()) pcs.push_back(r.address);
  EXPECT_EQ(lwp.counters().filtered + pcs.size(), instructions.size());
  return pcs;
}
using Pcs = std::vector<uint64_t>;

const std::vector<RetiredInstruction> kAround{plain(0x0FF), plain(0x100), plain(0x1FF), plain(0x201)};

TEST(AddressFilter, CountsOnlyInsideTheRange) {
  EXPECT_EQ(recorded(kFilterIpRange, EventId::kInstructions, kAround), (Pcs{0x100, 0x1FF}));
}

TEST(AddressFilter, CountsOnlyOutsideWhenInverted) {
  EXPECT_EQ(recorded(kFilterIpRange | kFilterInvertIpRange, EventId::kInstructions, kAround),
            (Pcs{0x0FF, 0x201}));
}

TEST(AddressFilter, PutsTheLimitItselfOnOneSideOnly) {
  const std::vector<RetiredInstruction> limit{plain(0x200)};
  const Pcs inside = recorded(kFilterIpRange, EventId::kInstructions, limit);
  const Pcs outside = recorded(kFilterIpRange | kFilterInvertIpRange, EventId::kInstructions, limit);
  EXPECT_EQ(inside.size() + outside.size(), 1u);
  EXPECT_EQ(inside.size() == 1, kLimitIpIsInside);
}

TEST(AddressFilter, DoesNothingUntilSwitchedOn) {
  EXPECT_EQ(recorded(0, EventId::kInstructions, kAround).size(), 4u);
  EXPECT_EQ(recorded(kFilterInvertIpRange, EventId::kInstructions, kAround).size(), 4u);
}

TEST(AddressFilter, IsIgnoredByAProcessorWithoutIt) {
  Capabilities without = software_capabilities();
  without.ip_filtering = false;
  EXPECT_EQ(recorded(kFilterIpRange, EventId::kInstructions, kAround, without).size(), 4u);
}

TEST(AddressFilter, LeavesProgrammedEventsAlone) {
  Area area(8);
  area.block.flags = flag_of(EventId::kValue);
  area.block.filters = kFilterIpRange;
  area.block.base_ip = 0x100;
  area.block.limit_ip = 0x200;
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.lwpins(0x50, 1, 2, 3);
  EXPECT_EQ(lwp.lwpval(0x50, 1, 2, 3), false);
  EXPECT_EQ(lwp.lwpval(0x150, 1, 2, 3), true);
  EXPECT_EQ(area.count_by_event(), (std::map<uint8_t, int>{{1, 1}, {255, 1}}));
}

TEST(AddressFilter, CountsAnInsertingInstructionByItsAddress) {
  Area area(8);
  area.ask(EventId::kInstructions, 10);
  area.block.filters = kFilterIpRange;
  area.block.base_ip = 0x100;
  area.block.limit_ip = 0x200;
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.lwpins(0x50, 1, 2, 3);
  lwp.lwpins(0x150, 1, 2, 3);
  lwp.slwpcb();
  EXPECT_EQ(area.block.slot(EventId::kInstructions).counter, 9u);
}

TEST(AddressFilter, KeepsFilteredEventsOutOfTheCount) {
  Area area(8);
  area.ask(EventId::kInstructions, 1);
  area.block.filters = kFilterIpRange;
  area.block.base_ip = 0x100;
  area.block.limit_ip = 0x200;
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(lwp.retire(plain(0x50)), false);
  EXPECT_EQ(lwp.retire(plain(0x150)), false);
  EXPECT_EQ(lwp.retire(plain(0x151)), true);
}

// One branch of each kind and prediction; the pc says which.
const std::vector<RetiredInstruction> kBranches{
    branch(1, {.predicted_right = true, .kind = BranchKind::kConditional}),
    branch(2, {.predicted_right = false, .kind = BranchKind::kConditional}),
    branch(3, {.predicted_right = true, .kind = BranchKind::kRelative}),
    branch(4, {.predicted_right = true, .kind = BranchKind::kAbsolute}),
    branch(5, {.predicted_right = false, .kind = BranchKind::kAbsolute}),
    branch(6, {.predicted_right = std::nullopt, .kind = BranchKind::kConditional}),
};

TEST(BranchFilter, CountsAllWithoutFilters) {
  EXPECT_EQ(recorded(0, EventId::kBranches, kBranches), (Pcs{1, 2, 3, 4, 5, 6}));
}
TEST(BranchFilter, LeavesOutMispredictedOnes) {
  EXPECT_EQ(recorded(kFilterNoMispredicted, EventId::kBranches, kBranches), (Pcs{1, 3, 4, 6}));
}
TEST(BranchFilter, LeavesOutPredictedOnes) {
  EXPECT_EQ(recorded(kFilterNoPredicted, EventId::kBranches, kBranches), (Pcs{2, 5, 6}));
}
TEST(BranchFilter, LeavesOutAbsoluteOnes) {
  EXPECT_EQ(recorded(kFilterNoAbsolute, EventId::kBranches, kBranches), (Pcs{1, 2, 3, 6}));
}
TEST(BranchFilter, LeavesOutConditionalOnes) {
  EXPECT_EQ(recorded(kFilterNoConditional, EventId::kBranches, kBranches), (Pcs{3, 4, 5}));
}
TEST(BranchFilter, LeavesOutUnconditionalRelativeOnes) {
  EXPECT_EQ(recorded(kFilterNoRelative, EventId::kBranches, kBranches), (Pcs{1, 2, 4, 5, 6}));
}
TEST(BranchFilter, CombinesWhatIsLeftOut) {
  EXPECT_EQ(recorded(kFilterNoPredicted | kFilterNoConditional, EventId::kBranches, kBranches), (Pcs{5}));
}
TEST(BranchFilter, IgnoresPredictionsAProcessorDoesNotTellAbout) {
  Capabilities without = software_capabilities();
  without.branch_prediction = false;
  EXPECT_EQ(
      recorded(kFilterNoPredicted | kFilterNoMispredicted, EventId::kBranches, kBranches, without).size(),
      6u);
}
TEST(BranchFilter, LeavesTheOtherEventsOfABranchAlone) {
  EXPECT_EQ(recorded(kFilterNoConditional | kFilterNoAbsolute | kFilterNoRelative, EventId::kInstructions,
                     kBranches)
                .size(),
            6u);
}

TEST(BranchRecord, TellsThePredictionOnlyWhereTheProcessorCan) {
  for (const bool can : {true, false}) {
    Area area(8);
    area.ask(EventId::kBranches, 0);
    Capabilities capabilities = software_capabilities();
    capabilities.branch_prediction = can;
    SoftwareLwp lwp(own_memory(), {.capabilities = capabilities});
    ASSERT_TRUE(lwp.llwpcb(area.address()));
    lwp.retire(branch(1, {.next = 9, .taken = false, .predicted_right = false}));
    EXPECT_EQ(area.records()[0], make_branch_record(1, 9, false, can ? std::optional(false) : std::nullopt));
  }
}

const std::vector<RetiredInstruction> kMisses{
    miss(1, {.latency = 40, .source = MissSource::kLocalL3}),
    miss(2, {.latency = 120, .source = MissSource::kRemote}),
    miss(3, {.latency = 250, .source = MissSource::kDram}),
    miss(4, {.latency = 900, .source = MissSource::kOther}),
    miss(5, {.latency = 60, .source = MissSource::kNone}),
};

TEST(CacheFilter, CountsAllWithoutFilters) {
  EXPECT_EQ(recorded(0, EventId::kDcacheMiss, kMisses), (Pcs{1, 2, 3, 4, 5}));
}
TEST(CacheFilter, CountsOnlyChosenLevels) {
  EXPECT_EQ(recorded(kFilterCacheLevel | kFilterNorthbridge, EventId::kDcacheMiss, kMisses), (Pcs{1}));
  EXPECT_EQ(recorded(kFilterCacheLevel | kFilterRemoteCache, EventId::kDcacheMiss, kMisses), (Pcs{2}));
  EXPECT_EQ(recorded(kFilterCacheLevel | kFilterRam, EventId::kDcacheMiss, kMisses), (Pcs{3}));
  EXPECT_EQ(recorded(kFilterCacheLevel | kFilterOther | kFilterRam, EventId::kDcacheMiss, kMisses),
            (Pcs{3, 4}));
}
TEST(CacheFilter, IgnoresTheLevelsUntilFilteringByLevelIsOn) {
  EXPECT_EQ(recorded(kFilterRam, EventId::kDcacheMiss, kMisses).size(), 5u);
}
TEST(CacheFilter, CountsFromTheMinimumLatencyOn) {
  for (const uint32_t minimum : {1u, 5u, 20u}) {
    const uint32_t cycles = minimum * kFilterLatencyUnitCycles;
    EXPECT_EQ(recorded(filter_min_latency(minimum), EventId::kDcacheMiss,
                       {miss(1, {.latency = cycles - 1}), miss(2, {.latency = cycles}),
                        miss(3, {.latency = cycles + 1})}),
              (Pcs{2, 3}));
  }
}
TEST(CacheFilter, TakesAMinimumBeyondTheLatencyCounterForItsMaximum) {
  Capabilities narrow = software_capabilities();
  narrow.latency_bits = 3;
  EXPECT_EQ(recorded(kFilterMinLatencyMask, EventId::kDcacheMiss,
                     {miss(1, {.latency = 6}), miss(2, {.latency = 7}), miss(3, {.latency = 5000})}, narrow),
            (Pcs{2, 3}));
}
TEST(CacheFilter, IsIgnoredByAProcessorWithoutIt) {
  Capabilities without = software_capabilities();
  without.latency_filtering = without.cache_level_filtering = false;
  EXPECT_EQ(
      recorded(kFilterCacheLevel | kFilterMinLatencyMask, EventId::kDcacheMiss, kMisses, without).size(), 5u);
}

TEST(MissRecord, HasTheLatencyAndAddressThatTheProcessorCanTell) {
  Area area(8);
  area.ask(EventId::kDcacheMiss, 0);
  Capabilities coarse = software_capabilities();
  coarse.latency_bits = 10;
  coarse.latency_rounded_bits = 4;
  SoftwareLwp lwp(own_memory(), {.capabilities = coarse});
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.retire(miss(1, {.address = 0x7000, .latency = 250, .source = MissSource::kDram}));
  lwp.retire(miss(2, {.address = 0x7040, .latency = 5000, .source = MissSource::kDram}));
  EXPECT_EQ(area.records()[0], make_dcache_miss_record(1, 0x7000, 240, MissSource::kDram));
  EXPECT_EQ(area.records()[1].data1, 1008u);

  Capabilities blind = software_capabilities();
  blind.data_address = false;
  SoftwareLwp other(own_memory(), {.capabilities = blind});
  ASSERT_TRUE(other.llwpcb(area.address()));
  other.retire(miss(3, {.address = 0x7000, .latency = 250, .source = MissSource::kDram}));
  EXPECT_EQ(miss_address(area.records().back()), std::nullopt);
}

}  // namespace
}  // namespace hindsight::lwp
