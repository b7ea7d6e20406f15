#include "runtime/instance/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/system_failures.h"
#include "runtime/instance/address_ranges.h"

namespace hindsight::rt {
namespace {

constexpr uint64_t kNoCap = uint64_t{4} << 30;

wasm::MemoryType type_of(uint32_t min, std::optional<uint32_t> max = {}) {
  return {.limits = {.min = min, .max = max}};
}

class MemoryOfBothModes : public testing::TestWithParam<jit::BoundsChecks> {};
INSTANTIATE_TEST_SUITE_P(Bounds, MemoryOfBothModes,
                         testing::Values(jit::BoundsChecks::kGuardPages, jit::BoundsChecks::kExplicit));

TEST_P(MemoryOfBothModes, StartsZeroAndStaysWhereItIsWhenItGrows) {
  auto memory = Memory::create(type_of(1, 10), GetParam(), kNoCap);
  ASSERT_TRUE(memory) << memory.error().describe();
  uint8_t* base = (*memory)->base();
  EXPECT_EQ((*memory)->pages(), 1u);
  base[0] = base[65535] = 1;
  EXPECT_EQ((*memory)->grow(3), 1u);
  EXPECT_EQ((*memory)->base(), base);
  EXPECT_EQ((*memory)->pages(), 4u);
  EXPECT_TRUE(std::all_of(base + 65536, base + 4 * 65536, [](uint8_t b) { return b == 0; }));
  EXPECT_EQ(base[65535], 1);
}

TEST_P(MemoryOfBothModes, GrowsToItsMaximumAndNotFurther) {
  auto memory = Memory::create(type_of(0, 3), GetParam(), kNoCap);
  ASSERT_TRUE(memory);
  EXPECT_NE((*memory)->base(), nullptr);
  EXPECT_EQ((*memory)->grow(4), std::nullopt);
  EXPECT_EQ((*memory)->grow(~0u), std::nullopt);
  EXPECT_EQ((*memory)->grow(3), 0u);
  EXPECT_EQ((*memory)->grow(1), std::nullopt);
  EXPECT_EQ((*memory)->grow(0), 3u);
}

TEST_P(MemoryOfBothModes, ObeysTheEmbeddersCap) {
  auto memory = Memory::create(type_of(1), GetParam(), 2 * wasm::kPageBytes);
  ASSERT_TRUE(memory);
  EXPECT_EQ((*memory)->grow(1), 1u);
  EXPECT_EQ((*memory)->grow(1), std::nullopt);
  auto too_large = Memory::create(type_of(3), GetParam(), 2 * wasm::kPageBytes);
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().kind, ErrorKind::kResource);
}

TEST_P(MemoryOfBothModes, IsKnownToTheFaultHandlerWhileItLives) {
  const size_t before = memory_reservations().count();
  uintptr_t base = 0;
  {
    auto memory = Memory::create(type_of(1), GetParam(), kNoCap);
    ASSERT_TRUE(memory);
    base = reinterpret_cast<uintptr_t>((*memory)->base());
    EXPECT_TRUE(memory_reservations().contains(base + 65536 + 5));
  }
  EXPECT_FALSE(memory_reservations().contains(base));
  EXPECT_EQ(memory_reservations().count(), before);
}

TEST(Memory, BoundsArithmeticDoesNotWrap) {
  auto memory = Memory::create(type_of(1), jit::BoundsChecks::kGuardPages, kNoCap);
  ASSERT_TRUE(memory);
  EXPECT_TRUE((*memory)->in_bounds(65536, 0));
  EXPECT_FALSE((*memory)->in_bounds(65537, 0));
  EXPECT_TRUE((*memory)->in_bounds(0, 65536));
  EXPECT_FALSE((*memory)->in_bounds(1, 65536));
  EXPECT_FALSE((*memory)->in_bounds(~uint64_t{0}, 2));
}

// What a process with little address space gets, as a bit set (it runs in a child).
int limited_outcome() {
  const rlimit limit{uint64_t{1500} << 20, uint64_t{1500} << 20};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 64;
  int outcome = 0;
  if (!guard_pages_available()) outcome |= 1;
  auto guarded = Memory::create(type_of(1), jit::BoundsChecks::kGuardPages, kNoCap);
  if (!guarded && guarded.error().kind == ErrorKind::kResource) outcome |= 2;
  auto checked = Memory::create(type_of(1), jit::BoundsChecks::kExplicit, kNoCap);
  if (!checked) return outcome;
  outcome |= 4;
  const uint64_t max = (*checked)->record()->max_pages;
  if (max < wasm::kMaxPages && max > 64) outcome |= 8;
  if ((*checked)->grow(max) == std::nullopt && (*checked)->grow(10) == 1u) outcome |= 16;
  return outcome;
}

TEST(Memory, FallsBackToASmallerReservationWhereAddressSpaceIsLimited) {
#ifdef HINDSIGHT_SANITIZED
  GTEST_SKIP() << "a sanitizer's shadow memory is larger than any such limit";
#endif
  const pid_t child = fork();
  if (child == 0) _exit(limited_outcome());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 31);
}

// The same with room for one memory and its guard pages, but not for two.
int outcome_with_room_for_one() {
  const rlimit limit{uint64_t{9'000'000} << 10, uint64_t{9'000'000} << 10};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 64;
  int outcome = guard_pages_available() ? 0 : 1;
  std::vector<std::unique_ptr<Memory>> memories;
  for (int i = 0; i < 4; i++) {
    auto memory = Memory::create(type_of(1), jit::BoundsChecks::kExplicit, kNoCap);
    if (!memory || !(*memory)->grow(100)) return outcome;
    memories.push_back(std::move(*memory));
  }
  outcome |= 2;
  // Others find room as well.
  void* const other = mmap(nullptr, size_t{256} << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return other != MAP_FAILED ? outcome | 4 : outcome;
}

TEST(Memory, LeavesRoomForOthersWhereAddressSpaceIsLimited) {
#ifdef HINDSIGHT_SANITIZED
  GTEST_SKIP() << "a sanitizer's shadow memory is larger than any such limit";
#endif
  const pid_t child = fork();
  if (child == 0) _exit(outcome_with_room_for_one());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Memory, GrowthThatTheSystemRefusesIsCounted) {
#ifdef HINDSIGHT_SANITIZED
  GTEST_SKIP() << "a sanitizer's own memory counts as well";
#endif
  const auto refused = [] {
    for (const SystemFailureCount& failure : system_failures())
      if (failure.what == SystemFailure::kMemoryGrowth) return failure.count;
    return uint64_t{0};
  };
  const pid_t child = fork();
  if (child == 0) {
    auto memory = Memory::create(type_of(1), jit::BoundsChecks::kExplicit, kNoCap);
    const rlimit limit{uint64_t{64} << 20, uint64_t{64} << 20};  // of what may be written, not of addresses
    if (!memory || setrlimit(RLIMIT_DATA, &limit) != 0) _exit(1);
    if ((*memory)->grow(16'000)) _exit(2);
    _exit(refused() == 1 && system_failures().front().first_error == ENOMEM ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hindsight::rt
