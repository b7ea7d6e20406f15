#include "runtime/engine/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace hindsight::rt {
namespace {

constexpr uint64_t kHuge = uint64_t{2} << 20;

class HugePages : public testing::Test {
 protected:
  void SetUp() override {
    mapped_ = ::mmap(nullptr, 8 * kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                     -1, 0);
    ASSERT_NE(mapped_, MAP_FAILED);
    ::madvise(mapped_, 8 * kHuge, MADV_NOHUGEPAGE);
    begin_ = (reinterpret_cast<uint64_t>(mapped_) + kHuge - 1) / kHuge * kHuge;
    for (uint64_t i = 0; i < 4 * kHuge / 8; ++i) words()[i] = i * 0x9e3779b97f4a7c15u;
  }
  void TearDown() override { ::munmap(mapped_, 8 * kHuge); }
  uint64_t* words() const { return reinterpret_cast<uint64_t*>(begin_); }
  bool unchanged() const {
    for (uint64_t i = 0; i < 4 * kHuge / 8; ++i)
      if (words()[i] != i * 0x9e3779b97f4a7c15u) return false;
    return true;
  }
  void* mapped_ = nullptr;
  uint64_t begin_ = 0;
  std::atomic<bool> stop_{false};
};

TEST_F(HugePages, TakeOverARangeWithItsContentsAndGiveItBack) {
  const HugePageResult result = move_to_huge_pages(begin_, begin_ + 4 * kHuge, stop_);
  EXPECT_TRUE(unchanged());
  if (result.advised || result.moved_bytes == 0)
    GTEST_SKIP() << "no huge pages to be had here: "
                 << (result.advised ? "no MADV_COLLAPSE" : result.first_refusal);
  EXPECT_EQ(result.moved_bytes + result.refused_bytes, 4 * kHuge);
  EXPECT_EQ(bytes_on_huge_pages(begin_, begin_ + 4 * kHuge), result.moved_bytes);
  EXPECT_EQ(result.copied_bytes, result.moved_bytes);
  const HugePageResult again = move_to_huge_pages(begin_, begin_ + 4 * kHuge, stop_);
  EXPECT_EQ(again.moved_bytes, result.moved_bytes);
  EXPECT_EQ(again.copied_bytes, 0u);
  leave_huge_pages(begin_, begin_ + 4 * kHuge);
  EXPECT_EQ(bytes_on_huge_pages(begin_, begin_ + 4 * kHuge), 0u);
  EXPECT_TRUE(unchanged());
}

TEST_F(HugePages, AreRefusedWhereNothingIsMapped) {
  ::munmap(mapped_, 8 * kHuge);
  const HugePageResult result = move_to_huge_pages(begin_, begin_ + 4 * kHuge, stop_);
  EXPECT_EQ(result.moved_bytes, 0u);
  mapped_ = ::mmap(nullptr, 8 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

TEST_F(HugePages, AreNotMovedToOnceNobodyWaits) {
  stop_ = true;
  EXPECT_EQ(move_to_huge_pages(begin_, begin_ + 4 * kHuge, stop_).moved_bytes, 0u);
}

}  // namespace
}  // namespace hindsight::rt
