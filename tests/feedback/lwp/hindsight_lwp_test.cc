// The C interface, through its header and its shared library alone.
#include "hindsight/hindsight_lwp.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

struct Ring {
  explicit Ring(uint32_t records) : buffer(records) { hindsight_lwp_init(&block, buffer.data(), records); }
  std::vector<hindsight_lwp_record> read(uint32_t max = 1000) {
    std::vector<hindsight_lwp_record> out(max);
    out.resize(hindsight_lwp_read(&block, out.data(), max));
    return out;
  }
  std::vector<hindsight_lwp_record> buffer;
  hindsight_lwp_control_block block;
};

TEST(HindsightLwp, StoresAndReadsARecord) {
  Ring ring(8);
  ASSERT_EQ(hindsight_llwpcb(&ring.block), HINDSIGHT_LWP_OK);
  EXPECT_EQ(hindsight_slwpcb(), &ring.block);
  EXPECT_FALSE(hindsight_lwpins(1, 2, 3));
  ASSERT_EQ(hindsight_llwpcb(nullptr), HINDSIGHT_LWP_OK);
  EXPECT_EQ(hindsight_slwpcb(), nullptr);
  const auto records = ring.read();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].event_id, HINDSIGHT_LWP_PROGRAMMED);
  EXPECT_EQ(records[0].data2, 1u);
  EXPECT_EQ(records[0].data1, 2u);
  EXPECT_EQ(records[0].flags, 3u);
  EXPECT_NE(records[0].address, 0u);
  EXPECT_TRUE(ring.read().empty());
}

TEST(HindsightLwp, ReadsAcrossTheEndOfTheBufferInAnyPortions) {
  Ring ring(8);
  ASSERT_EQ(hindsight_llwpcb(&ring.block), HINDSIGHT_LWP_OK);
  uint32_t next = 0, expected = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(hindsight_lwpins(0, next++, 0));
    for (const uint32_t portion : {2u, 3u}) {
      for (const auto& r : ring.read(portion)) EXPECT_EQ(r.data1, expected++);
    }
  }
  EXPECT_EQ(expected, next);
  hindsight_llwpcb(nullptr);
}

TEST(HindsightLwp, TellsAFullRingByTheCarryFlag) {
  Ring ring(4);
  ASSERT_EQ(hindsight_llwpcb(&ring.block), HINDSIGHT_LWP_OK);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(hindsight_lwpins(0, 0, 0));
  EXPECT_TRUE(hindsight_lwpins(0, 0, 0));
  EXPECT_EQ(hindsight_lwp_missed(&ring.block), 1u);
  EXPECT_EQ(ring.read().size(), 3u);
  EXPECT_FALSE(hindsight_lwpins(0, 0, 0));
  hindsight_llwpcb(nullptr);
}

TEST(HindsightLwp, RefusesABlockWithoutBuffer) {
  Ring ring(8);
  ring.block.buffer_base = 0;
  EXPECT_EQ(hindsight_llwpcb(&ring.block), HINDSIGHT_LWP_GENERAL_PROTECTION);
  EXPECT_EQ(hindsight_slwpcb(), nullptr);
}

TEST(HindsightLwp, ReadsNothingFromOffsetsThatAreNoRecords) {
  Ring ring(8);
  ring.block.head = 8 * HINDSIGHT_LWP_RECORD_SIZE;
  EXPECT_TRUE(ring.read().empty());
  ring.block.head = 0;
  ring.block.tail = 0xFFFFFFE0;
  EXPECT_TRUE(ring.read().empty());
}

TEST(HindsightLwp, GivesEachThreadItsOwnState) {
  Ring mine(64), theirs(64);
  ASSERT_EQ(hindsight_llwpcb(&mine.block), HINDSIGHT_LWP_OK);
  std::thread([&] {
    EXPECT_EQ(hindsight_slwpcb(), nullptr);
    EXPECT_EQ(hindsight_llwpcb(&theirs.block), HINDSIGHT_LWP_OK);
    hindsight_lwpins(2, 0, 0);
  }).join();
  hindsight_lwpins(1, 0, 0);
  hindsight_llwpcb(nullptr);
  ASSERT_EQ(mine.read().size(), 1u);
  ASSERT_EQ(theirs.read().size(), 1u);
}

TEST(HindsightLwp, AnswersCpuidWithWhatItDoes) {
  uint32_t r[4];
  hindsight_lwp_cpuid(0x80000001, r);
  EXPECT_EQ(r[2], 1u << 15);
  hindsight_lwp_cpuid(0x8000001C, r);
  EXPECT_EQ(r[0], 0xE000007Fu);
  EXPECT_EQ(r[3], r[0]);
  EXPECT_EQ((r[1] & 0xFF) * 8, sizeof(hindsight_lwp_control_block));
  EXPECT_EQ(r[1] >> 8 & 0xFF, sizeof(hindsight_lwp_record));
  EXPECT_EQ(r[1] >> 24, offsetof(hindsight_lwp_control_block, events));
  hindsight_lwp_cpuid(1, r);
  EXPECT_EQ(r[0] | r[1] | r[2] | r[3], 0u);
}

}  // namespace
