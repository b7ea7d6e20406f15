#include "feedback/lwp/software_lwp.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace hindsight::lwp {
namespace {

struct Area {
  explicit Area(uint32_t records) : buffer(records) {
    block.set_size_and_random(records * kRecordSize, 0);
    block.buffer_base = reinterpret_cast<uint64_t>(buffer.data());
  }
  std::map<uint8_t, int> count_by_event() {
    std::map<uint8_t, int> counts;
    for (uint32_t at = block.tail; at != block.head; at = (at + kRecordSize) % block.buffer_size()) {
      ++counts[buffer[at / kRecordSize].event_id];
    }
    return counts;
  }
  std::vector<EventRecord> buffer;
  ControlBlock block;
};

// The vendor's published sample program: 31 iterations twice, an LWPINS in every seventh, an LWPVAL in each,
// every tenth value recorded, the ring starting three records before its end. It prints 17 entries: 7 values
// and 10 insertions.
TEST(SoftwareLwp, AnswersThePublishedExampleWithSevenValuesAndTenInsertions) {
  Area area(4096);
  area.block.head = area.block.tail = area.block.buffer_size() - 3 * kRecordSize;
  area.block.threshold = 2 * area.block.buffer_size();
  area.block.flags = flag_of(EventId::kValue);
  area.block.slot(EventId::kValue).interval = 9;
  SoftwareLwp lwp;
  ASSERT_TRUE(lwp.load(&area.block));
  ASSERT_EQ(lwp.store(), &area.block);
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < 31; ++i) {
      if (i % 7 == 0) {
        EXPECT_FALSE(lwp.insert(0x10, 0xDEADBEEF, i, 0x4567));
      }
      lwp.value(0x20, 0x0BADF00D, i, 0xD00D);
    }
  }
  lwp.store();
  EXPECT_EQ(area.count_by_event(), (std::map<uint8_t, int>{{1, 7}, {255, 10}}));
}

TEST(SoftwareLwp, RecordsEveryKthEventForAnIntervalOfKMinusOne) {
  Area area(64);
  area.block.flags = flag_of(EventId::kBranches);
  area.block.slot(EventId::kBranches) = {4, 4};
  SoftwareLwp lwp;
  ASSERT_TRUE(lwp.load(&area.block));
  std::vector<int> recorded;
  for (int i = 1; i <= 15; ++i) {
    if (lwp.retire(make_branch_record(0x10, 0x20, true))) recorded.push_back(i);
  }
  EXPECT_EQ(recorded, (std::vector<int>{5, 10, 15}));
}

TEST(SoftwareLwp, StartsFromTheCounterAndTakesANegativeOneAsZero) {
  Area area(64);
  area.block.flags = flag_of(EventId::kInstructions);
  area.block.slot(EventId::kInstructions) = {100, encode_counter(-5)};
  SoftwareLwp lwp;
  ASSERT_TRUE(lwp.load(&area.block));
  EXPECT_TRUE(lwp.retire(make_instructions_record(0x10)));
  EXPECT_FALSE(lwp.retire(make_instructions_record(0x10)));
  lwp.store();
  EXPECT_EQ(decode_counter(area.block.slot(EventId::kInstructions).counter), 99);
}

TEST(SoftwareLwp, FlushesCountersIntoTheOldBlockBeforeTakingTheNew) {
  Area area(64);
  area.block.flags = flag_of(EventId::kBranches);
  area.block.slot(EventId::kBranches) = {50, 50};
  SoftwareLwp lwp;
  ASSERT_TRUE(lwp.load(&area.block));
  for (int i = 0; i < 10; ++i) lwp.retire(make_branch_record(1, 2, true));
  area.block.slot(EventId::kBranches).counter = 7;  // edited while on: lost, as on the hardware
  ASSERT_TRUE(lwp.load(&area.block));
  lwp.store();
  EXPECT_EQ(area.block.slot(EventId::kBranches).counter, 40u);
  ASSERT_TRUE(lwp.load(nullptr));
  EXPECT_EQ(lwp.store(), nullptr);
}

TEST(SoftwareLwp, WritesBackOnlyTheFlagsThatItCanServe) {
  Area area(64);
  area.block.flags = flag_of(EventId::kBranches) | flag_of(EventId::kValue) | kFlagTimestamps;
  SoftwareLwp lwp({.events = flag_of(EventId::kValue)});
  ASSERT_TRUE(lwp.load(&area.block));
  EXPECT_EQ(area.block.flags, flag_of(EventId::kValue));
  EXPECT_FALSE(lwp.retire(make_branch_record(1, 2, true)));
}

TEST(SoftwareLwp, RaisesShortIntervalsButNotThoseOfValues) {
  Area area(64);
  area.block.flags = flag_of(EventId::kBranches) | flag_of(EventId::kValue);
  SoftwareLwp lwp({.minimum_interval = 9});
  ASSERT_TRUE(lwp.load(&area.block));
  int branches = 0;
  for (int i = 0; i < 20; ++i) {
    branches += lwp.retire(make_branch_record(1, 2, true));
    lwp.value(1, 2, 3, 4);
  }
  EXPECT_EQ(branches, 2);
  EXPECT_EQ(area.count_by_event()[1], 20);
}

TEST(SoftwareLwp, RandomizesOnlyTheLowBitsOfAReload) {
  Area area(1024);
  area.block.set_size_and_random(1024 * kRecordSize, 3);
  area.block.flags = flag_of(EventId::kBranches);
  area.block.slot(EventId::kBranches) = {0x40, 0};
  SoftwareLwp lwp;
  ASSERT_TRUE(lwp.load(&area.block));
  std::map<int, int> gaps;
  for (int i = 0, last = 0; i < 50'000; ++i) {
    if (!lwp.retire(make_branch_record(1, 2, true))) continue;
    if (i != 0) ++gaps[i - last];
    last = i;
  }
  EXPECT_EQ(gaps.size(), 8u);
  EXPECT_EQ(gaps.begin()->first, 0x41);
  EXPECT_EQ(gaps.rbegin()->first, 0x48);
}

TEST(SoftwareLwp, ReportsAFullRingInTheCarryFlag) {
  Area area(4);
  SoftwareLwp lwp;
  ASSERT_TRUE(lwp.load(&area.block));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(lwp.insert(1, 2, 3, 4));
  EXPECT_TRUE(lwp.insert(1, 2, 3, 4));
  EXPECT_EQ(area.block.missed_events, 1u);
}

TEST(SoftwareLwp, DoesNothingWhileOff) {
  SoftwareLwp lwp;
  EXPECT_EQ(lwp.store(), nullptr);
  EXPECT_FALSE(lwp.insert(1, 2, 3, 4));
  lwp.value(1, 2, 3, 4);
  EXPECT_FALSE(lwp.retire(make_clock_record(uint64_t{1})));
}

TEST(SoftwareLwp, StaysOffAfterABlockThatCannotBe) {
  Area area(4);
  area.block.buffer_base = 0;
  SoftwareLwp lwp;
  EXPECT_FALSE(lwp.load(&area.block));
  EXPECT_EQ(lwp.store(), nullptr);
}

TEST(SoftwareLwp, RaisesOneInterruptWhenTheThresholdIsReached) {
  Area area(16);
  area.block.flags = kFlagInterrupt;
  area.block.threshold = 4 * kRecordSize;
  SoftwareLwp lwp;
  ASSERT_TRUE(lwp.load(&area.block));
  for (int i = 0; i < 10; ++i) lwp.insert(1, 2, 3, 4);
  EXPECT_EQ(lwp.interrupts(), 1u);
}

}  // namespace
}  // namespace hindsight::lwp
