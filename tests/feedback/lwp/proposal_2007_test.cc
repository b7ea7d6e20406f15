#include "feedback/lwp/proposal_2007.h"

#include <gtest/gtest.h>

namespace hindsight::lwp {
namespace {

TEST(Proposal2007, RenumbersItsThreeEventsAndKeepsTheRest) {
  EventRecord old = make_dcache_miss_record(0x10, 0x7F00, 48, MissSource::kRemote);
  old.event_id = 3;
  const auto now = from_2007_record(old);
  ASSERT_TRUE(now);
  EXPECT_EQ(*now, make_dcache_miss_record(0x10, 0x7F00, 48, MissSource::kRemote));
  EXPECT_EQ(from_2007_record({.event_id = 1})->id(), EventId::kInstructions);
  EXPECT_EQ(from_2007_record({.event_id = 2})->id(), EventId::kBranches);
}

TEST(Proposal2007, DoesNotInventEventsItNeverHad) {
  for (const uint8_t id : {0, 4, 255}) EXPECT_FALSE(from_2007_record({.event_id = id}));
}

TEST(Proposal2007, ReadsEnabledAndAvailableBitsAtTheirDifferentPlaces) {
  const Capabilities c = decode_2007_capabilities({0x80000005, 0x01032040, 0xC000002A, 0x0000001F});
  EXPECT_EQ(c.usable, (FeatureSet{.available = true, .branches = true, .interrupt = true}));
  EXPECT_EQ(c.hardware, (FeatureSet{.available = true,
                                    .instructions = true,
                                    .branches = true,
                                    .dcache_misses = true,
                                    .interrupt = true}));
  EXPECT_EQ(c.control_block_bytes, 64u);  // 40 + 3 events of 8
  EXPECT_EQ(c.record_bytes, 32u);
  EXPECT_EQ(c.max_event_id, 3u);
  EXPECT_EQ(c.version, 1u);
  EXPECT_EQ(c.latency_bits, 10u);
  EXPECT_TRUE(c.data_address && c.cache_level_filtering && c.latency_filtering);
}

TEST(Proposal2007, SaysNothingWhereItIsNotAvailable) {
  EXPECT_FALSE(decode_2007_capabilities({1, 2, 3, 0}).present);
  EXPECT_EQ(decode_2007_capabilities({1, 2, 3, 0}).record_bytes, 0u);
}

}  // namespace
}  // namespace hindsight::lwp
