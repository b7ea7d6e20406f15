#include "feedback/lwp/format/proposal_2007.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace hindsight::lwp {
namespace {

TEST(Proposal2007, RenumbersItsThreeEventsAndKeepsTheRest) {
  // Bits 31:29 of the first word are the source, 28 says that there is an address.
  const EventRecord miss{3, 1, 2u << 13 | 1u << 12, 48, 0x10, 0x7F00, 0};
  EventRecord expected = make_dcache_miss_record(0x10, 0x7F00, 48, MissSource::kRemote);
  expected.core_id = 1;
  EXPECT_EQ(from_2007_record(miss), expected);
  const EventRecord branch{2, 0, 0xE000, 0, 0x10, 0x20, 0};
  EXPECT_EQ(from_2007_record(branch), make_branch_record(0x10, 0x20, true, true));
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

// A block of 2007 as bytes: what the text fixes by hand, and `filters` and selectors through their constants.
std::vector<std::byte> block_2007(uint32_t filters, const std::vector<std::pair<uint32_t, uint32_t>>& slots) {
  std::vector<uint32_t> words{0x8000000F,  // flags: enabled, three events, interrupt
                              0x50001010,  // 4112 bytes, which 128 records round down to, 5 random bits
                              0x1234567F, 0x00007FFF,  // base; its low five bits are ignored
                              0x00000040, 0x00000020,  // head, tail: side by side in this version
                              0x00000007, 0x00000001,  // missed, 64 bits
                              0x00000800, filters};
  for (const auto& [first, second] : slots) {
    words.push_back(first);
    words.push_back(second);
  }
  std::vector<std::byte> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}
uint32_t selecting(EventId2007 id, uint32_t interval) {
  return static_cast<uint32_t>(id) << k2007SelectorShift | interval;
}

TEST(Proposal2007, ReadsTheWordsOfItsControlBlock) {
  const auto block = decode_2007_control_block(block_2007(0, {}), 0);
  ASSERT_TRUE(block);
  EXPECT_TRUE(block->enabled());
  EXPECT_EQ(block->flags, 0x8000000Fu);
  EXPECT_EQ(block->buffer_size, 4096u);
  EXPECT_EQ(block->random_bits, 5u);
  EXPECT_EQ(block->buffer_base, 0x00007FFF12345660u);
  EXPECT_EQ(block->head, 0x40u);
  EXPECT_EQ(block->tail, 0x20u);
  EXPECT_EQ(block->missed_events, 0x100000007u);
  EXPECT_EQ(block->threshold, 0x800u);
  EXPECT_EQ(block->filters, Filters2007{});
  EXPECT_EQ(block->selected_events(), 0u);
}

TEST(Proposal2007, FindsEventsByTheSelectorsOfTheirSlots) {
  const auto block = decode_2007_control_block(
      block_2007(0, {{selecting(EventId2007::kDcacheMisses, 1000), 500},
                     {selecting(EventId2007::kInstructions, 0x3FFFFFF), 0xFC000001}}),
      2);
  ASSERT_TRUE(block);
  const EventSlot2007* misses = block->slot_for(EventId2007::kDcacheMisses);
  ASSERT_NE(misses, nullptr);
  EXPECT_EQ(*misses,
            (EventSlot2007{.interval = 1000, .selector = EventId2007::kDcacheMisses, .counter = 500}));
  const EventSlot2007* instructions = block->slot_for(EventId2007::kInstructions);
  ASSERT_NE(instructions, nullptr);
  EXPECT_EQ(instructions->interval, 0x3FFFFFFu);
  EXPECT_EQ(instructions->counter, 1u);
  EXPECT_EQ(block->slot_for(EventId2007::kBranches), nullptr);
  EXPECT_EQ(block->slot_for(EventId2007::kNone), nullptr);
  EXPECT_EQ(block->selected_events(), flag_of(EventId::kDcacheMiss) | flag_of(EventId::kInstructions));
}

TEST(Proposal2007, LetsTheEarliestOfTwoSlotsForAnEventWin) {
  const auto block = decode_2007_control_block(block_2007(0, {{selecting(EventId2007::kNone, 9), 0},
                                                              {selecting(EventId2007::kBranches, 100), 1},
                                                              {selecting(EventId2007::kBranches, 200), 2},
                                                              {selecting(EventId2007::kNone, 9), 0}}),
                                               4);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->slot_for(EventId2007::kBranches)->interval, 100u);
  EXPECT_FALSE(block->slots[1].duplicate);
  EXPECT_TRUE(block->slots[2].duplicate);
  EXPECT_EQ(block->slots[2].selector, EventId2007::kBranches);  // the word itself stays as it is
  EXPECT_FALSE(block->slots[0].duplicate || block->slots[3].duplicate);
}

TEST(Proposal2007, ReadsEachFilterByItself) {
  const auto filters = [](uint32_t word) {
    return decode_2007_control_block(block_2007(word, {}), 0)->filters;
  };
  EXPECT_EQ(filters(k2007FilterCacheLevel), Filters2007{.by_cache_level = true});
  EXPECT_EQ(filters(k2007FilterNorthbridge), Filters2007{.northbridge = true});
  EXPECT_EQ(filters(k2007FilterRemoteCache), Filters2007{.remote_cache = true});
  EXPECT_EQ(filters(k2007FilterRam), Filters2007{.ram = true});
  EXPECT_EQ(filters(k2007FilterOther), Filters2007{.other = true});
  EXPECT_EQ(filters(k2007FilterNoDirectBranches), Filters2007{.no_direct_branches = true});
  EXPECT_EQ(filters(k2007MinLatencyMask & -k2007MinLatencyMask).min_latency_cycles, 16u);
}

TEST(Proposal2007, RefusesBytesThatAreNoWholeBlock) {
  const auto bytes = block_2007(0, {{0, 0}, {0, 0}});
  EXPECT_TRUE(decode_2007_control_block(bytes, 2));
  EXPECT_FALSE(decode_2007_control_block(bytes, 3));
  EXPECT_FALSE(decode_2007_control_block(std::span(bytes).first(39), 0));
  EXPECT_FALSE(decode_2007_control_block(std::vector<std::byte>(4096), ControlBlock2007::kMaxSlots + 1));
}

}  // namespace
}  // namespace hindsight::lwp
