#include "runtime/adaptive/experiments/memory_fill.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hindsight::rt {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

TEST(FillOfMemory, TellsFullBlocksFromTouchedAndUntouchedOnes) {
  void* const mapped = ::mmap(nullptr, 9 * kHugePage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  ::madvise(mapped, 9 * kHugePage, MADV_NOHUGEPAGE);
  const uint64_t begin = (reinterpret_cast<uint64_t>(mapped) + kHugePage - 1) / kHugePage * kHugePage;
  auto* const bytes = reinterpret_cast<volatile char*>(begin);
  EXPECT_EQ(look_at_fill(begin, begin + 8 * kHugePage, 64), (MemoryFill{0, 0, 8}));
  for (uint64_t at = 0; at < 3 * kHugePage; at += 4096) bytes[at] = 1;
  bytes[5 * kHugePage] = 1;
  EXPECT_EQ(look_at_fill(begin, begin + 8 * kHugePage, 64), (MemoryFill{3, 1, 4}));
  // Every second one is looked at: 0, 2, 4, 6.
  EXPECT_EQ(look_at_fill(begin, begin + 8 * kHugePage, 4), (MemoryFill{2, 0, 2}));
  ::munmap(mapped, 9 * kHugePage);
  EXPECT_EQ(look_at_fill(begin, begin + 8 * kHugePage, 64), std::nullopt);
}

TEST(FillOfMemory, KnowsWhatTheMachineHasLeft) {
  EXPECT_GT(available_memory_bytes(), uint64_t{16} << 20);
}

}  // namespace
}  // namespace hindsight::rt
