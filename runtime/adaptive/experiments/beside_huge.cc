#include "runtime/adaptive/experiments/beside_huge.h"

#include <sys/mman.h>

#include "feedback/profile/evidence.h"
#include "runtime/adaptive/experiments/memory_fill.h"

namespace hindsight::rt {
namespace {

using feedback::kHugePageBytes;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kHuge = 16, kSmall = 512;  // pages
// Longer than a miss of all caches and of the TLB. That often an access is not interrupted by chance.
constexpr auto kSlow = 2us;
constexpr uint64_t kLeastSlow = kSmall / 8;
constexpr auto kBetweenLooks = 20ms;
// What the host does twice a second is seen within the first of these mostly, and within the second nearly always.
constexpr auto kWaitedFor = 1100ms, kLookedAt = 3000ms;

}  // namespace

BesideHuge::~BesideHuge() {
  end();
}

void BesideHuge::end() {
  if (place_ != nullptr) ::munmap(place_, 2 * kGiB);
  place_ = nullptr;
  known_ = true;
  awaited_ = false;
}

void BesideHuge::begin(Time now) {
  begun_ = now;
  void* const place =
      ::mmap(nullptr, 2 * kGiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return end();
  place_ = place;
  awaited_ = true;
  const uint64_t huge = (reinterpret_cast<uint64_t>(place) + kGiB - 1) / kGiB * kGiB;
  small_ = huge + 2 * kHuge * kHugePageBytes;
  ::madvise(reinterpret_cast<void*>(huge), kHuge * kHugePageBytes, MADV_HUGEPAGE);
  ::madvise(reinterpret_cast<void*>(small_), kHugePageBytes, MADV_NOHUGEPAGE);
  for (uint64_t page = 0; page < kHuge; ++page)
    *reinterpret_cast<volatile char*>(huge + page * kHugePageBytes) = 1;
  for (uint64_t page = 0; page < kSmall; ++page) *reinterpret_cast<volatile char*>(small_ + page * kPage) = 1;
  // Without a huge page to be had none is asked for elsewhere with success.
  if (touched_pages(huge, huge + kHugePageBytes).value_or(0) != kHugePageBytes / kPage) end();
}

void BesideHuge::look(Time now) {
  if (known_) return;
  if (place_ == nullptr) return begin(now);
  if (now - last_ < kBetweenLooks) return;
  last_ = now;
  awaited_ = now - begun_ <= kWaitedFor;
  uint64_t slow = 0;
  for (uint64_t page = 0; page < kSmall; ++page) {
    const auto before = Clock::now();
    (void)*reinterpret_cast<volatile char*>(small_ + page * kPage);
    slow += Clock::now() - before > kSlow ? 1 : 0;
  }
  slower_ = slow >= kLeastSlow;
  if (slower_ || now - begun_ > kLookedAt) end();
}

}  // namespace hindsight::rt
