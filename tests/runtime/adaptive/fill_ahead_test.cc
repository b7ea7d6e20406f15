// Pages that are made ahead of whoever fills a memory.
#include "runtime/adaptive/experiments/fill_ahead.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>

#include "runtime/adaptive/experiments/populate_pages.h"

namespace hindsight::rt {
namespace {

constexpr uint64_t kBlock = uint64_t{2} << 20;
constexpr uint32_t kBlocks = 16;

class PagesMadeAhead : public testing::Test {
 protected:
  void SetUp() override {
    mapped_ = ::mmap(nullptr, (kBlocks + 1) * kBlock, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(mapped_, MAP_FAILED);
    ::madvise(mapped_, (kBlocks + 1) * kBlock, MADV_NOHUGEPAGE);
    begin_ = (reinterpret_cast<uint64_t>(mapped_) + kBlock - 1) / kBlock * kBlock;
    if (populate_pages(begin_ + (kBlocks - 1) * kBlock, begin_ + kBlocks * kBlock).error != 0)
      GTEST_SKIP() << "the kernel makes no pages ahead";
    ::madvise(reinterpret_cast<void*>(begin_), kBlocks * kBlock, MADV_DONTNEED);
  }
  void TearDown() override { ::munmap(mapped_, (kBlocks + 1) * kBlock); }

  void touch(uint32_t block) {
    for (uint64_t at = 0; at < kBlock; at += 4096)
      reinterpret_cast<volatile char*>(begin_ + block * kBlock)[at] = static_cast<char>(block + 1);
  }
  uint64_t there(uint32_t block) const {
    return touched_pages(begin_ + block * kBlock, begin_ + (block + 1) * kBlock).value_or(0);
  }
  void pass(FillAhead& ahead) {
    ASSERT_TRUE(ahead.begin_pass());
    EXPECT_FALSE(ahead.begin_pass()) << "one at a time";
    ahead.pass(config_, stop_);
  }

  feedback::PolicyConfig config_;
  std::atomic<bool> stop_{false};
  void* mapped_ = nullptr;
  uint64_t begin_ = 0;
};

TEST_F(PagesMadeAhead, FollowTheGuestAndCountAsUntouchedUntilItComesBy) {
  FillAhead ahead(begin_, begin_ + kBlocks * kBlock);
  touch(0);
  touch(1);
  pass(ahead);
  EXPECT_EQ(ahead.made().bytes, 0u) << "it is not known where the guest is";
  touch(2);
  pass(ahead);
  EXPECT_EQ(there(3), 512u);
  EXPECT_EQ(there(4), 512u);
  EXPECT_EQ(there(5), 0u);
  EXPECT_EQ(ahead.made().bytes, 2 * kBlock);
  EXPECT_EQ(ahead.made().reached, 0u);
  EXPECT_EQ(ahead.fill(64), (MemoryFill{3, 0, 13}));
  touch(3);
  pass(ahead);
  EXPECT_EQ(ahead.fill(64), (MemoryFill{3, 0, 13})) << "nobody can tell";
  touch(4);
  touch(5);
  pass(ahead);
  EXPECT_EQ(ahead.made().reached, 2 * kBlock);
  EXPECT_EQ(ahead.fill(64), (MemoryFill{6, 0, 10}));
  EXPECT_EQ(there(6), 512u);
  EXPECT_EQ(there(7), 512u);
  for (uint32_t block = 0; block < 6; ++block)
    EXPECT_EQ(reinterpret_cast<char*>(begin_ + block * kBlock)[4096], static_cast<char>(block + 1));
}

TEST_F(PagesMadeAhead, AreNotMadeWhereTheGuestStandsStill) {
  FillAhead ahead(begin_, begin_ + kBlocks * kBlock);
  touch(0);
  for (int i = 0; i < 5; ++i) pass(ahead);
  EXPECT_EQ(ahead.made().bytes, 0u);
  EXPECT_EQ(there(1), 0u);
}

TEST_F(PagesMadeAhead, AreNoneWhereTheMemoryHasGone) {
  FillAhead ahead(begin_, begin_ + kBlocks * kBlock);
  pass(ahead);
  touch(0);
  ::munmap(mapped_, (kBlocks + 1) * kBlock);
  pass(ahead);
  EXPECT_EQ(ahead.made().bytes, 0u);
  mapped_ =
      ::mmap(nullptr, (kBlocks + 1) * kBlock, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

TEST_F(PagesMadeAhead, EndWhereTheEngineDoes) {
  FillAhead ahead(begin_, begin_ + kBlocks * kBlock);
  pass(ahead);
  touch(0);
  stop_ = true;
  pass(ahead);
  EXPECT_EQ(ahead.made().bytes, 0u);
}

}  // namespace
}  // namespace hindsight::rt
