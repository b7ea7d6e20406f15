#include "runtime/adaptive/experiments/page_costs.h"

#include <sys/mman.h>

#include <cstdint>
#include <ctime>

#include "feedback/profile/evidence.h"
#include "runtime/adaptive/experiments/memory_fill.h"

namespace hindsight::rt {
namespace {

using feedback::kHugePageBytes;

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double touch(uint64_t block) {
  const double begin = thread_seconds();
  for (uint64_t at = block; at < block + kHugePageBytes; at += 4096)
    *reinterpret_cast<volatile char*>(at) = 1;
  return thread_seconds() - begin;
}

// The lesser of two: on a busy machine one may be anything.
void keep_least(double& least, double seconds) {
  if (least == 0 || seconds < least) least = seconds;
}

constexpr uint64_t kBytes = 3 * kHugePageBytes;

// In a place that the caller gives back; null: there was none.
void* try_once(PageCosts& costs) {
  void* const place =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  const uint64_t small =
      (reinterpret_cast<uint64_t>(place) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const uint64_t huge = small + kHugePageBytes;
  ::madvise(reinterpret_cast<void*>(small), kHugePageBytes, MADV_NOHUGEPAGE);
  keep_least(costs.small_seconds, touch(small));
  if (::madvise(reinterpret_cast<void*>(huge), kHugePageBytes, MADV_HUGEPAGE) == 0) {
    const double begin = thread_seconds();
    *reinterpret_cast<volatile char*>(huge) = 1;
    const double first = thread_seconds() - begin;
    // The first touch has made all of it, or one small page.
    if (touched_pages(huge, huge + kHugePageBytes).value_or(0) == kHugePageBytes / 4096)
      keep_least(costs.huge_seconds, first + touch(huge));
  }
  return place;
}

}  // namespace

PageCosts measure_page_costs() {
  PageCosts costs;
  // Given back together: the kernel hands out first what it got last, and the second would be the same memory.
  void* const places[] = {try_once(costs), try_once(costs)};
  for (void* const place : places)
    if (place != nullptr) ::munmap(place, kBytes);
  return costs;
}

}  // namespace hindsight::rt
