#include "feedback/lwp/format/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace hindsight::lwp {
namespace {

// A record whose every word says which one it is, so that a mixture of two shows.
EventRecord numbered(uint64_t n) {
  return from_words({1 | (n & 0xFFFF) << 16 | (n & 0xFFFFFFFF) << 32, n, ~n, n * 0x9E3779B97F4A7C15});
}
bool is_whole(const EventRecord& r) {
  return r == numbered(r.address);
}

std::unique_ptr<Ring> make_ring(uint32_t records, bool continuous = false, uint32_t threshold = 0) {
  auto ring = Ring::create({records, threshold, continuous});
  EXPECT_TRUE(ring) << ring.error().describe();
  return std::move(*ring);
}

std::vector<uint64_t> read_all(Ring& ring, size_t chunk = 64) {
  std::vector<uint64_t> numbers;
  std::vector<EventRecord> out(chunk);
  while (const size_t n = ring.read(out)) {
    for (size_t i = 0; i < n; ++i) {
      EXPECT_TRUE(is_whole(out[i])) << out[i].address;
      numbers.push_back(out[i].address);
    }
  }
  return numbers;
}

TEST(Ring, IsEmptyWhenHeadMeetsTail) {
  auto ring = make_ring(8);
  EXPECT_EQ(ring->block().head, ring->block().tail);
  EXPECT_TRUE(read_all(*ring).empty());
}

TEST(Ring, HandsOutRecordsInOrderAcrossTheEndOfTheBuffer) {
  auto ring = make_ring(8);
  uint64_t next = 0, expected = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(ring->store(numbered(next++)).missed);
    for (const uint64_t n : read_all(*ring, 3)) EXPECT_EQ(n, expected++);
  }
  EXPECT_EQ(expected, next);
  EXPECT_LT(ring->block().head, 8 * kRecordSize);
}

TEST(Ring, HoldsOneRecordLessThanItHasSlots) {
  auto ring = make_ring(8);
  for (uint64_t i = 0; i < 7; ++i) EXPECT_FALSE(ring->store(numbered(i)).missed);
  const uint32_t head = ring->block().head;
  EXPECT_TRUE(ring->store(numbered(7)).missed);
  EXPECT_EQ(ring->block().head, head);
  EXPECT_EQ(ring->block().missed_events, 1u);
  EXPECT_EQ(read_all(*ring), (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Ring, OverwritesTheLastSlotWhileFullAndNeverShowsIt) {
  auto ring = make_ring(4);
  for (uint64_t i = 0; i < 10; ++i) ring->store(numbered(i));
  EXPECT_EQ(ring->missed(), 7u);
  EventRecord last;
  std::memcpy(&last, reinterpret_cast<void*>(ring->block().buffer_base + ring->block().head), sizeof last);
  EXPECT_EQ(last, numbered(9));
  EXPECT_EQ(read_all(*ring), (std::vector<uint64_t>{0, 1, 2}));
  ring->store(numbered(10));
  EXPECT_EQ(read_all(*ring), (std::vector<uint64_t>{10}));
  EXPECT_EQ(ring->emitted(), 11u);
}

TEST(Ring, ReachesTheThresholdOncePerCrossing) {
  auto ring = make_ring(16, false, 3);
  std::vector<bool> crossed;
  for (uint64_t i = 0; i < 6; ++i) crossed.push_back(ring->store(numbered(i)).threshold_reached);
  EXPECT_EQ(crossed, (std::vector<bool>{false, false, true, false, false, false}));
  read_all(*ring);
  for (uint64_t i = 0; i < 3; ++i) ring->store(numbered(i));
  EXPECT_EQ(ring->thresholds(), 2u);
}

TEST(Ring, CrossesAThresholdThatIsNoMultipleOfARecord) {
  std::vector<EventRecord> buffer(8);
  ControlBlock block;
  block.flags = kFlagInterrupt;
  block.set_size_and_random(8 * kRecordSize, 0);
  block.buffer_base = reinterpret_cast<uint64_t>(buffer.data());
  block.threshold = 2 * kRecordSize + 1;
  auto writer = RingWriter::create(block);
  ASSERT_TRUE(writer);
  std::vector<bool> crossed;
  for (uint64_t i = 0; i < 5; ++i) crossed.push_back(writer->store(numbered(i)).threshold_reached);
  EXPECT_EQ(crossed, (std::vector<bool>{false, false, true, false, false}));
}

TEST(Ring, StartsWhereTheControlBlockSays) {
  std::vector<EventRecord> buffer(8);
  ControlBlock block;
  block.set_size_and_random(8 * kRecordSize, 0);
  block.buffer_base = reinterpret_cast<uint64_t>(buffer.data());
  block.head = block.tail = 5 * kRecordSize;
  auto writer = RingWriter::create(block);
  auto reader = RingReader::create(block);
  ASSERT_TRUE(writer && reader);
  for (uint64_t i = 0; i < 4; ++i) writer->store(numbered(i));
  EXPECT_EQ(block.head, 1 * kRecordSize);
  EXPECT_EQ(buffer[0], numbered(3));
  std::vector<EventRecord> out(8);
  EXPECT_EQ(reader->read(out), 4u);
  EXPECT_EQ(block.tail, block.head);
}

TEST(Ring, RefusesBlocksThatTheHardwareWouldFaultOn) {
  std::vector<EventRecord> buffer(8);
  ControlBlock good;
  good.set_size_and_random(8 * kRecordSize, 0);
  good.buffer_base = reinterpret_cast<uint64_t>(buffer.data());
  EXPECT_TRUE(RingWriter::create(good));
  for (const auto& spoil : std::vector<void (*)(ControlBlock&)>{
           [](ControlBlock& b) { b.buffer_base = 0; }, [](ControlBlock& b) { b.buffer_base += 4; },
           [](ControlBlock& b) { b.set_size_and_random(kRecordSize, 0); },
           [](ControlBlock& b) { b.head = 8; }, [](ControlBlock& b) { b.tail = 8 * kRecordSize; }}) {
    ControlBlock bad = good;
    spoil(bad);
    EXPECT_FALSE(RingWriter::create(bad));
    EXPECT_FALSE(RingReader::create(bad));
  }
  EXPECT_FALSE(Ring::create({1, 0, false}));
  EXPECT_FALSE(Ring::create({1u << 23, 0, false}));
}

TEST(Ring, ReadsNothingFromAHeadThatIsNoRecord) {
  auto ring = make_ring(8);
  ring->store(numbered(0));
  ring->block().head = 7;
  EXPECT_TRUE(read_all(*ring).empty());
  ring->block().head = 4096;
  EXPECT_TRUE(read_all(*ring).empty());
}

TEST(Ring, KeepsTheNewestRecordsInContinuousMode) {
  auto ring = make_ring(4, true);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_FALSE(ring->store(numbered(i)).missed);
  EXPECT_EQ(ring->block().head, 10 % 4 * kRecordSize);
  EXPECT_EQ(ring->missed(), 0u);
  EXPECT_EQ(read_all(*ring), (std::vector<uint64_t>{6, 7, 8, 9}));
  EXPECT_EQ(ring->overwritten(), 6u);
  ring->store(numbered(10));
  EXPECT_EQ(read_all(*ring), (std::vector<uint64_t>{10}));
}

TEST(Ring, RecordsEventsThroughTheFunctionOfGeneratedCode) {
  auto ring = make_ring(8);
  const EventRecord branch = make_branch_record(0x10, 0x20, true, true);
  hindsight_lwp_record_event(ring.get(), static_cast<uint32_t>(to_words(branch)[0]), 0, 0x10, 0x20);
  std::vector<EventRecord> out(2);
  ASSERT_EQ(ring->read(out), 1u);
  EXPECT_EQ(out[0], branch);
}

// One thread stores as fast as it can while another drains: every record is drained whole and in order, or
// counted.
void stress(bool continuous, uint32_t slots) {
  constexpr uint64_t kRecords = 2'000'000;
  auto ring = make_ring(slots, continuous);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t i = 0; i < kRecords; ++i) {
      ring->store(numbered(i));
      if (i % 4096 == 0) std::this_thread::yield();
    }
    done.store(true, std::memory_order_release);
  });
  std::vector<EventRecord> out(100);
  uint64_t drained = 0, broken = 0, disordered = 0, next = 0;
  for (bool last = false;;) {
    const size_t n = ring->read(out);
    for (size_t i = 0; i < n; ++i) {
      broken += !is_whole(out[i]);
      disordered += out[i].address < next;
      next = out[i].address + 1;
    }
    drained += n;
    if (n != 0) continue;
    if (last) break;
    last = done.load(std::memory_order_acquire);
    if (!last) std::this_thread::yield();
  }
  writer.join();
  EXPECT_EQ(broken, 0u);
  EXPECT_EQ(disordered, 0u);
  EXPECT_EQ(ring->emitted(), kRecords);
  EXPECT_EQ(drained + ring->missed() + ring->overwritten(), kRecords);
  EXPECT_GT(drained, 0u);
}

TEST(RingStress, LosesNothingUncountedWithASmallRing) {
  stress(false, 16);
}
TEST(RingStress, LosesNothingUncountedWithALargeRing) {
  stress(false, 4096);
}
TEST(RingStress, TearsNothingInContinuousMode) {
  stress(true, 64);
}

}  // namespace
}  // namespace hindsight::lwp
