#include "feedback/lwp/emulation/software_lwp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "tests/feedback/lwp/emulation/software_lwp_area.h"

namespace hindsight::lwp {
namespace {

// The vendor's published sample program: 31 iterations twice, an LWPINS in every seventh, an LWPVAL in each.
// Every tenth value is recorded, and the ring starts three records before its end. It prints 17 entries: 7
// values and 10 insertions.
TEST(SoftwareLwp, AnswersThePublishedExampleWithSevenValuesAndTenInsertions) {
  Area area(4096);
  area.block.head = area.block.tail = area.block.buffer_size() - 3 * kRecordSize;
  area.block.threshold = 2 * area.block.buffer_size();
  area.block.flags = flag_of(EventId::kValue);
  area.block.slot(EventId::kValue).interval = 9;
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  ASSERT_EQ(lwp.slwpcb(), area.address());
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < 31; ++i) {
      if (i % 7 == 0) {
        EXPECT_EQ(lwp.lwpins(0x10, 0xDEADBEEF, i, 0x4567), false);
      }
      lwp.lwpval(0x20, 0x0BADF00D, i, 0xD00D);
    }
  }
  lwp.slwpcb();
  EXPECT_EQ(area.records().size(), 17u);
  EXPECT_EQ(area.count_by_event(), (std::map<uint8_t, int>{{1, 7}, {255, 10}}));
}

TEST(SoftwareLwp, PutsTheOperandsWhereTheRecordLayoutWantsThem) {
  Area area(8);
  area.block.flags = flag_of(EventId::kValue);
  SoftwareLwp lwp(own_memory(), {.core_id = 3});
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  EXPECT_EQ(lwp.lwpval(0x20, 0x1122334455667788, 0xAABBCCDD, 0xD00D), true);
  EXPECT_EQ(lwp.lwpins(0x30, 0x99, 0x77, 0x4567), false);
  ASSERT_EQ(area.records().size(), 2u);
  EXPECT_EQ(area.records()[0], (EventRecord{.event_id = 1,
                                            .core_id = 3,
                                            .flags = 0xD00D,
                                            .data1 = 0xAABBCCDD,
                                            .address = 0x20,
                                            .data2 = 0x1122334455667788}));
  EXPECT_EQ(
      area.records()[1],
      (EventRecord{
          .event_id = 255, .core_id = 3, .flags = 0x4567, .data1 = 0x77, .address = 0x30, .data2 = 0x99}));
}

TEST(SoftwareLwp, RecordsEveryKthEventForAnIntervalOfKMinusOne) {
  Area area(64);
  area.ask(EventId::kBranches, 4);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  std::vector<int> recorded;
  for (int i = 1; i <= 15; ++i) {
    if (*lwp.retire(branch(0x10))) recorded.push_back(i);
  }
  EXPECT_EQ(recorded, (std::vector<int>{5, 10, 15}));
}

TEST(SoftwareLwp, StartsFromTheCounterAndTakesANegativeOneAsZero) {
  Area area(64);
  area.block.flags = flag_of(EventId::kInstructions);
  area.block.slot(EventId::kInstructions) = {100, encode_counter(-5)};
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  ASSERT_EQ(lwp.slwpcb(), area.address());
  EXPECT_EQ(area.block.slot(EventId::kInstructions).counter, 0u);
  EXPECT_EQ(lwp.retire(plain(0x10)), true);
  EXPECT_EQ(lwp.retire(plain(0x10)), false);
  lwp.slwpcb();
  EXPECT_EQ(decode_counter(area.block.slot(EventId::kInstructions).counter), 99);
}

TEST(SoftwareLwp, TakesOnlyTwentySixBitsOfCountersAndIntervals) {
  Area area(64);
  area.block.flags = flag_of(EventId::kInstructions);
  area.block.slot(EventId::kInstructions) = {0xFC000002, 0xFC000001};  // reserved bits set
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  std::vector<int> recorded;
  for (int i = 1; i <= 8; ++i) {
    if (*lwp.retire(plain(0x10))) recorded.push_back(i);
  }
  EXPECT_EQ(recorded, (std::vector<int>{2, 5, 8}));
}

TEST(SoftwareLwp, CountsTheLongestIntervalToItsEnd) {
  Area area(64);
  area.ask(EventId::kCoreClocks, kCounterMax);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  EXPECT_EQ(lwp.retire({.pc = 1, .core_clocks = static_cast<uint32_t>(kCounterMax)}), false);
  EXPECT_EQ(lwp.retire({.pc = 2, .core_clocks = 1}), true);
  // More clocks than 26 bits hold are one record, and the interval starts anew.
  EXPECT_EQ(lwp.retire({.pc = 3, .core_clocks = UINT32_MAX}), true);
  EXPECT_EQ(lwp.retire({.pc = 4, .core_clocks = static_cast<uint32_t>(kCounterMax)}), false);
  EXPECT_EQ(area.records()[1], make_clock_record(uint64_t{3}));
}

TEST(SoftwareLwp, FlushesCountersIntoTheOldBlockBeforeTakingTheNew) {
  Area area(64);
  area.ask(EventId::kBranches, 50);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  for (int i = 0; i < 10; ++i) lwp.retire(branch(1));
  area.block.slot(EventId::kBranches).counter = 7;  // edited while on: lost, as on the hardware
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.slwpcb();
  EXPECT_EQ(area.block.slot(EventId::kBranches).counter, 40u);
  // The way to do it: off, edit, on.
  ASSERT_TRUE(lwp.llwpcb(0));
  area.block.slot(EventId::kBranches).counter = 0;
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  EXPECT_EQ(lwp.retire(branch(1)), true);
}

TEST(SoftwareLwp, KeepsTheStatesOfTwoBlocksApart) {
  Area first(64), second(64);
  first.ask(EventId::kInstructions, 9);
  second.ask(EventId::kInstructions, 4);
  SoftwareLwp lwp(own_memory());
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(lwp.llwpcb(first.address()));
    for (int i = 0; i < 3; ++i) lwp.retire(plain(1));
    ASSERT_TRUE(lwp.llwpcb(second.address()));
    for (int i = 0; i < 2; ++i) lwp.retire(plain(2));
  }
  EXPECT_EQ(first.records(), (std::vector<EventRecord>(3, make_instructions_record(1))));
  EXPECT_EQ(second.records(), (std::vector<EventRecord>(4, make_instructions_record(2))));
  ASSERT_TRUE(lwp.llwpcb(0));
  EXPECT_EQ(lwp.slwpcb(), 0u);
}

TEST(SoftwareLwp, FlushesOnlyCountersOfEventsThatAreOn) {
  Area area(64);
  area.ask(EventId::kBranches, 50);
  area.block.slot(EventId::kInstructions) = {11, 22};
  area.block.slot(EventId::kDcacheMiss) = {33, 44};
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.retire(branch(1));
  lwp.slwpcb();
  EXPECT_EQ(area.block.slot(EventId::kInstructions).counter, 22u);
  EXPECT_EQ(area.block.slot(EventId::kBranches).counter, 49u);
  EXPECT_EQ(area.block.slot(EventId::kDcacheMiss).counter, 44u);
}

TEST(SoftwareLwp, WritesBackOnlyTheFlagsThatItCanServe) {
  Area area(64);
  area.block.flags = 0xFFFFFFFF;
  Capabilities fx8150 = decode_capabilities(1u << 15, {0x8000000F, 0x80032013, 0x00010200, 0x8000000F});
  SoftwareLwp lwp(own_memory(), {.capabilities = fx8150});
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  EXPECT_EQ(area.block.flags, flag_of(EventId::kValue) | flag_of(EventId::kInstructions) |
                                  flag_of(EventId::kBranches) | kFlagInterrupt);
  EXPECT_EQ(lwp.flags(), area.block.flags);
}

TEST(SoftwareLwp, GrantsNoEventBeyondTheHighestIdOfItsCpuid) {
  Area area(64);
  area.block.flags = 0xFFFFFFFF;
  Capabilities two = software_capabilities();
  two.max_event_id = 2;
  SoftwareLwp lwp(own_memory(), {.capabilities = two});
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  EXPECT_EQ(area.block.flags & 0x7F, flag_of(EventId::kValue) | flag_of(EventId::kInstructions));
}

TEST(SoftwareLwp, RecordsNothingForEventsThatAreNotAskedFor) {
  Area area(64);
  area.block.flags = flag_of(EventId::kValue);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  EXPECT_EQ(lwp.retire({.pc = 1,
                        .branch = RetiredBranch{},
                        .miss = RetiredMiss{},
                        .core_clocks = 9,
                        .reference_clocks = 9}),
            false);
  EXPECT_TRUE(area.records().empty());
}

TEST(SoftwareLwp, RaisesShortIntervalsButNotThoseOfValues) {
  Area area(64);
  area.block.flags = flag_of(EventId::kBranches) | flag_of(EventId::kValue);
  SoftwareLwp lwp(own_memory(), {.minimum_interval = 9});
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  int branches = 0;
  for (int i = 0; i < 20; ++i) {
    branches += *lwp.retire(branch(1));
    lwp.lwpval(1, 2, 3, 4);
  }
  EXPECT_EQ(branches, 2);
  EXPECT_EQ(area.count_by_event()[1], 20);
  EXPECT_EQ(area.block.slot(EventId::kBranches).interval, 0u);  // the program's own word stays
}

TEST(SoftwareLwp, RandomizesOnlyTheLowBitsOfAReload) {
  Area area(1024);
  area.block.set_size_and_random(1024 * kRecordSize, 3);
  area.block.flags = flag_of(EventId::kBranches);
  area.block.slot(EventId::kBranches) = {0x40, 0};
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  std::map<int, int> gaps;
  for (int i = 0, last = 0; i < 50'000; ++i) {
    if (!*lwp.retire(branch(1))) continue;
    if (i != 0) ++gaps[i - last];
    last = i;
  }
  EXPECT_EQ(gaps.size(), 8u);
  EXPECT_EQ(gaps.begin()->first, 0x41);
  EXPECT_EQ(gaps.rbegin()->first, 0x48);
}

TEST(SoftwareLwp, MakesTheSameRecordsFromTheSameSeed) {
  std::vector<EventRecord> runs[2];
  for (auto& records : runs) {
    Area area(1024);
    area.block.set_size_and_random(1024 * kRecordSize, 6);
    area.ask(EventId::kInstructions, 100);
    SoftwareLwp lwp(own_memory(), {.random_seed = 42});
    ASSERT_TRUE(lwp.llwpcb(area.address()));
    for (uint64_t pc = 0; pc < 20'000; ++pc) lwp.retire(plain(pc));
    records = area.records();
  }
  EXPECT_GT(runs[0].size(), 100u);
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(SoftwareLwp, ReportsAFullRingInTheCarryFlag) {
  Area area(4);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(lwp.lwpins(1, 2, i, 4), false);
  const uint32_t head = area.block.head;
  EXPECT_EQ(lwp.lwpins(1, 2, 3, 4), true);
  EXPECT_EQ(lwp.lwpins(1, 2, 4, 4), true);
  EXPECT_EQ(area.block.missed_events, 2u);
  EXPECT_EQ(area.block.head, head);
  EXPECT_EQ(area.buffer[head / kRecordSize].data1, 4u);  // the last slot is overwritten
  area.block.tail = kRecordSize;                         // the reader frees one slot
  EXPECT_EQ(lwp.lwpins(1, 2, 5, 4), false);
  EXPECT_EQ(area.buffer[head / kRecordSize].data1, 5u);
  EXPECT_EQ(lwp.counters().records, 6u);
  EXPECT_EQ(lwp.counters().missed, 2u);
}

TEST(SoftwareLwp, ReloadsTheCounterOfAMissedRecordToo) {
  Area area(2);
  area.ask(EventId::kInstructions, 1);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  std::vector<bool> recorded;
  for (int i = 0; i < 6; ++i) recorded.push_back(*lwp.retire(plain(1)));
  EXPECT_EQ(recorded, (std::vector<bool>{false, true, false, true, false, true}));
  EXPECT_EQ(area.block.missed_events, 2u);
}

TEST(SoftwareLwp, AdvancesTheHeadWhateverTheTailInContinuousMode) {
  Area area(4);
  area.block.flags = kFlagContinuous | kFlagInterrupt;
  area.block.threshold = kRecordSize;
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(lwp.lwpins(1, 2, i, 4), false);
  EXPECT_EQ(area.block.head, 10 % 4 * kRecordSize);
  EXPECT_EQ(area.block.missed_events, 0u);
  EXPECT_EQ(lwp.counters().interrupts, 0u);
  EXPECT_EQ(area.buffer[1].data1, 9u);
  EXPECT_EQ(area.buffer[2].data1, 6u);
}

TEST(SoftwareLwp, StampsRecordsWithTheTimeWhereTheBlockAsks) {
  Area area(8);
  uint64_t now = 100;
  SoftwareLwp lwp(own_memory(), {.time = [](void* context) { return ++*static_cast<uint64_t*>(context); },
                                 .time_context = &now});
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.lwpins(1, 2, 3, 4);
  ASSERT_TRUE(lwp.llwpcb(0));
  area.block.flags = kFlagTimestamps;
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.lwpins(1, 2, 3, 4);
  lwp.lwpins(1, 2, 3, 4);
  ASSERT_EQ(area.records().size(), 3u);
  EXPECT_EQ(area.records()[0].timestamp, 0u);
  EXPECT_EQ(area.records()[1].timestamp, 101u);
  EXPECT_EQ(area.records()[2].timestamp, 102u);
}

TEST(SoftwareLwp, TakesTheTimeStampCounterWhereNoClockIsGiven) {
  Area area(8);
  area.block.flags = kFlagTimestamps;
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.lwpins(1, 2, 3, 4);
  lwp.lwpins(1, 2, 3, 4);
  EXPECT_NE(area.records()[0].timestamp, 0u);
  EXPECT_LE(area.records()[0].timestamp, area.records()[1].timestamp);
}

TEST(SoftwareLwp, MakesOneRecordAnInstructionAndLetsTheOtherEventWait) {
  Area area(64);
  area.ask(EventId::kInstructions, 0);
  area.ask(EventId::kBranches, 0);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  for (uint64_t pc = 1; pc <= 6; ++pc) EXPECT_EQ(lwp.retire(branch(pc)), true);
  EXPECT_EQ(area.records().size(), 6u);
  EXPECT_EQ(area.count_by_event(), (std::map<uint8_t, int>{{2, 3}, {3, 3}}));  // they take turns
  EXPECT_EQ(lwp.counters().waited, 6u);
}

TEST(SoftwareLwp, GivesAWaitingEventToTheNextInstructionThatCausesIt) {
  Area area(64);
  area.ask(EventId::kInstructions, 2);
  area.ask(EventId::kBranches, 0);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.retire(plain(1));
  lwp.retire(plain(2));
  lwp.retire(branch(3));  // both: one of them waits
  lwp.retire(plain(4));
  lwp.retire(branch(5));
  ASSERT_GE(area.records().size(), 2u);
  EXPECT_EQ(area.records()[0].address, 3u);
  const bool instruction_first = area.records()[0].id() == EventId::kInstructions;
  EXPECT_EQ(area.records()[1].address, instruction_first ? 5u : 4u);
  EXPECT_NE(area.records()[0].id(), area.records()[1].id());
}

TEST(SoftwareLwp, FlushesAWaitingEventSoThatTheNextLoadRecordsAtOnce) {
  Area area(64);
  area.ask(EventId::kInstructions, 0);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.lwpins(1, 2, 3, 4);  // an instruction too, but it made its record already
  EXPECT_EQ(lwp.counters().waited, 1u);
  lwp.slwpcb();
  EXPECT_EQ(decode_counter(area.block.slot(EventId::kInstructions).counter), -1);
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  EXPECT_EQ(lwp.retire(plain(5)), true);
}

TEST(SoftwareLwp, CountsItsOwnInstructionsAsRetired) {
  Area area(64);
  area.ask(EventId::kInstructions, 3);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  lwp.lwpins(1, 0, 0, 0);
  lwp.lwpval(2, 0, 0, 0);
  lwp.lwpins(3, 0, 0, 0);
  EXPECT_EQ(lwp.lwpval(4, 0, 0, 0), true);
  EXPECT_EQ(area.records().back(), make_instructions_record(4));
}

TEST(SoftwareLwp, DoesNothingWhileOff) {
  SoftwareLwp lwp(own_memory());
  EXPECT_EQ(lwp.slwpcb(), 0u);
  EXPECT_EQ(lwp.lwpins(1, 2, 3, 4), false);
  EXPECT_EQ(lwp.lwpval(1, 2, 3, 4), false);
  EXPECT_EQ(lwp.retire(plain(1)), false);
  EXPECT_EQ(lwp.counters().records, 0u);
}

TEST(SoftwareLwp, IsOnWithoutAnyEvent) {
  Area area(4);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  EXPECT_EQ(lwp.slwpcb(), area.address());
  EXPECT_EQ(lwp.lwpins(1, 2, 3, 4), false);
  EXPECT_EQ(area.count_by_event(), (std::map<uint8_t, int>{{255, 1}}));
}

TEST(SoftwareLwp, IsAnInvalidOpcodeWhereLwpIsNotAvailable) {
  Area area(4);
  Capabilities off = software_capabilities();
  off.usable = {};
  SoftwareLwp lwp(own_memory(), {.capabilities = off});
  const Fault invalid{FaultKind::kInvalidOpcode};
  EXPECT_EQ(lwp.llwpcb(area.address()).error(), invalid);
  EXPECT_EQ(lwp.slwpcb().error(), invalid);
  EXPECT_EQ(lwp.lwpins(1, 2, 3, 4).error(), invalid);
  EXPECT_EQ(lwp.lwpval(1, 2, 3, 4).error(), invalid);
  EXPECT_EQ(to_error(lwp.llwpcb(0).error()).kind, ErrorKind::kUnsupported);
}

TEST(SoftwareLwp, RefusesBlocksThatTheHardwareWouldFaultOnAndStaysAsItWas) {
  Area good(8);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(good.address()));
  for (const auto& spoil : std::vector<void (*)(ControlBlock&)>{
           [](ControlBlock& b) { b.buffer_base = 0; },
           [](ControlBlock& b) { b.buffer_base = uint64_t{1} << 60; },
           [](ControlBlock& b) { b.set_size_and_random(kRecordSize + 31, 0); },
           [](ControlBlock& b) { b.head = 8; }, [](ControlBlock& b) { b.tail = 8 * kRecordSize; }}) {
    Area bad(8);
    spoil(bad.block);
    const auto loaded = lwp.llwpcb(bad.address());
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error(), (Fault{FaultKind::kGeneralProtection, bad.address()})) << loaded.error().reason;
    EXPECT_EQ(to_error(loaded.error()).kind, ErrorKind::kUsage);
    EXPECT_EQ(lwp.slwpcb(), good.address());
  }
  const uint64_t hole = uint64_t{0xDEAD} << 48;
  EXPECT_EQ(lwp.llwpcb(hole).error(), (Fault{FaultKind::kGeneralProtection, hole}));
}

TEST(SoftwareLwp, WantsTheMinimumBufferThatItsCpuidStates) {
  Capabilities fx8150 = decode_capabilities(1u << 15, {0x8000000F, 0x80032013, 0x00010200, 0x8000000F});
  SoftwareLwp lwp(own_memory(), {.capabilities = fx8150});
  Area small(31), enough(32);
  EXPECT_FALSE(lwp.llwpcb(small.address()));
  EXPECT_TRUE(lwp.llwpcb(enough.address()));
}

TEST(SoftwareLwp, RaisesOneInterruptWhenTheThresholdIsReached) {
  Area area(16);
  area.block.flags = kFlagInterrupt;
  area.block.threshold = 4 * kRecordSize;
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  for (int i = 0; i < 10; ++i) lwp.lwpins(1, 2, 3, 4);
  EXPECT_EQ(lwp.counters().interrupts, 1u);
  area.block.tail = area.block.head;
  for (int i = 0; i < 10; ++i) lwp.lwpins(1, 2, 3, 4);
  EXPECT_EQ(lwp.counters().interrupts, 2u);
}

TEST(SoftwareLwp, RaisesNoInterruptThatTheBlockDoesNotAskFor) {
  Area area(16);
  area.block.threshold = 4 * kRecordSize;
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  for (int i = 0; i < 10; ++i) lwp.lwpins(1, 2, 3, 4);
  EXPECT_EQ(lwp.counters().interrupts, 0u);
}

// The block of a program that knows three events ends after three slots.
TEST(SoftwareLwp, TouchesNoSlotOfAnEventThatIsNotOn) {
  struct Short {
    std::byte block[kEventOffset + 3 * sizeof(EventSlot)];
    std::byte canary[64];
  } area;
  std::memset(&area, 0xA5, sizeof area);
  std::vector<EventRecord> buffer(8);
  ControlBlock block;
  block.set_size_and_random(8 * kRecordSize, 0);
  block.buffer_base = reinterpret_cast<uint64_t>(buffer.data());
  block.flags = flag_of(EventId::kBranches);
  std::memcpy(area.block, &block, sizeof area.block);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(reinterpret_cast<uint64_t>(&area)));
  EXPECT_EQ(lwp.retire(branch(1)), true);
  ASSERT_TRUE(lwp.llwpcb(0));
  for (const std::byte b : area.canary) EXPECT_EQ(b, std::byte{0xA5});
}

// What XSAVE and XRSTOR do at a thread switch.
TEST(SoftwareLwp, GoesOnWhereItsSavedStateLeftOff) {
  Area one(64), other(64);
  one.ask(EventId::kInstructions, 9);
  one.block.filters = kFilterIpRange;
  one.block.limit_ip = 0x100;
  other.ask(EventId::kInstructions, 9);
  SoftwareLwp lwp(own_memory());
  XsaveArea saved[2];
  ASSERT_TRUE(lwp.llwpcb(one.address()));
  saved[0] = lwp.save();
  EXPECT_EQ(saved[0].block_address, one.address());
  EXPECT_EQ(saved[0].event_counters[1], 9u);
  ASSERT_TRUE(lwp.llwpcb(other.address()));
  saved[1] = lwp.save();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(lwp.restore(saved[i % 2]));
    lwp.retire(plain(0x10));
    lwp.retire(plain(0x200));  // outside the first block's range
    saved[i % 2] = lwp.save();
  }
  EXPECT_EQ(one.records(), std::vector<EventRecord>(1, make_instructions_record(0x10)));
  EXPECT_EQ(other.records().size(), 3u);
  ASSERT_TRUE(lwp.restore({}));
  EXPECT_FALSE(lwp.on());
  EXPECT_EQ(lwp.save().block_address, 0u);
}

TEST(SoftwareLwp, StoresThePendingRecordOfARestoredState) {
  Area area(64);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  XsaveArea saved = lwp.save();
  saved.pending = {.event_id = 2, .core_id = 5, .address = 0x77, .timestamp = 9};
  ASSERT_TRUE(lwp.restore(saved));
  EXPECT_EQ(area.records(), std::vector<EventRecord>{saved.pending});
  EXPECT_EQ(lwp.save().pending, EventRecord{});
}

TEST(SoftwareLwp, RestoresNoHeadOutsideTheBuffer) {
  Area area(64);
  SoftwareLwp lwp(own_memory());
  ASSERT_TRUE(lwp.llwpcb(area.address()));
  XsaveArea saved = lwp.save();
  saved.head = 64 * kRecordSize;
  EXPECT_EQ(lwp.restore(saved).error().kind, FaultKind::kGeneralProtection);
}

}  // namespace
}  // namespace hindsight::lwp
