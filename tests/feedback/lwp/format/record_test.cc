#include "feedback/lwp/format/record.h"

#include <gtest/gtest.h>

#include <cstring>

#include "feedback/lwp/format/control_block.h"

namespace hindsight::lwp {
namespace {

TEST(EventRecord, HasTheBytesOfTheFinalLayout) {
  const EventRecord record{
      0x01, 0x02, 0x0403, 0x08070605, 0x100F0E0D0C0B0A09, 0x1817161514131211, 0x201F1E1D1C1B1A19};
  unsigned char bytes[32];
  std::memcpy(bytes, &record, sizeof bytes);
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(bytes[i], i + 1) << i;
}

TEST(EventRecord, SurvivesTheTripThroughWords) {
  const EventRecord record = make_dcache_miss_record(0x401000, 0x7F00, 250, MissSource::kDram, 77);
  EXPECT_EQ(from_words(to_words(record)), record);
}

TEST(EventRecord, KeepsTheThreeBranchFlagsApart) {
  const EventRecord unknown = make_branch_record(1, 2, true);
  EXPECT_EQ(unknown.flags, 0x8000);
  EXPECT_EQ(branch_predicted_right(unknown), std::nullopt);
  const EventRecord wrong = make_branch_record(1, 2, false, false);
  EXPECT_EQ(wrong.flags, 0x2000);
  EXPECT_EQ(branch_predicted_right(wrong), false);
  EXPECT_FALSE(branch_taken(wrong));
  EXPECT_EQ(make_branch_record(1, 2, true, true).flags, 0xE000);
}

TEST(EventRecord, TellsAMissAtAddressZeroFromOneWithoutAddress) {
  EXPECT_EQ(miss_address(make_dcache_miss_record(1, 0, 5, MissSource::kLocalL3)), 0u);
  const EventRecord blind = make_dcache_miss_record(1, std::nullopt, 5, MissSource::kOther);
  EXPECT_EQ(miss_address(blind), std::nullopt);
  EXPECT_EQ(miss_source(blind), MissSource::kOther);
}

TEST(EventRecord, DescribesItselfInOneLine) {
  EXPECT_EQ(describe(make_value_record(0x10, 0x20, 0x30, 0x40)),
            "value sample at 0x10, value 0x20, data 0x30, flags 0x40");
  EXPECT_EQ(describe(make_branch_record(0x10, 0x20, true, false)),
            "branches retired at 0x10, taken to 0x20, mispredicted");
  EXPECT_EQ(describe(make_branch_record(0x10, 0x12, false)),
            "branches retired at 0x10, not taken, on to 0x12");
  EXPECT_EQ(describe(make_dcache_miss_record(0x10, 0x7F00, 250, MissSource::kDram)),
            "DCache miss at 0x10, address 0x7f00, 250 cycles, from DRAM");
  EXPECT_EQ(describe(make_clock_record(uint64_t{0x10}, uint64_t{9})), "core clocks at 0x10, time 9");
  EXPECT_EQ(describe(EventRecord{.event_id = 99, .flags = 3, .data1 = 1, .address = 0x10, .data2 = 2}),
            "event 99 at 0x10, data 0x1 0x2, flags 0x3");
}

TEST(ControlBlock, RoundsTheBufferDownToWholeRecordsAndKeepsRandomApart) {
  ControlBlock block;
  block.set_size_and_random(100, 5);
  EXPECT_EQ(block.buffer_size(), 96u);
  EXPECT_EQ(block.random_bits(), 5u);
  EXPECT_EQ(block.size_and_random, 0x50000064u);
}

TEST(ControlBlock, TreatsCountersAsTwentySixBitSignedNumbers) {
  EXPECT_EQ(decode_counter(0x03FFFFFF), -1);
  EXPECT_EQ(decode_counter(0xFC000009), 9);  // the upper bits are reserved
  EXPECT_EQ(encode_counter(-1), 0x03FFFFFFu);
  EXPECT_EQ(decode_counter(encode_counter(kCounterMax)), kCounterMax);
}

TEST(ControlBlock, GivesSlotNToEventN) {
  ControlBlock block;
  const auto* base = reinterpret_cast<const std::byte*>(&block);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(&block.slot(EventId::kValue)) - base, 128);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(&block.slot(EventId::kDcacheMiss)) - base, 152);
}

}  // namespace
}  // namespace hindsight::lwp
