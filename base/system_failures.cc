#include "base/system_failures.h"

#include <array>
#include <atomic>

// Failures of these are not counted, because they cannot fail or nobody could do anything.
// - munmap of a whole mapping of ours, which the kernel refuses for wrong addresses alone.
// - The ends of timers, descriptors and signal masks of ours.
// - The removal of a half-written file whose error is told.
// - Advice of which nothing depends but time (each says so where it stands).
//
// munmap that splits a mapping can fail for the number of mappings. It is counted, or keeps addresses only (jit/code/code_arena.cc).
namespace hindsight {
namespace {

struct Count {
  // Relaxed throughout: numbers that order nothing. The first error may be another than that of the first failure
  // where several happen at once.
  std::atomic<uint64_t> count{0};
  std::atomic<int> first_error{0};
};
constinit std::array<Count, kSystemFailures> g_counts;

constexpr std::array<std::string_view, kSystemFailures> kWords = {
    "making a linear memory larger",       "giving back the addresses of a linear memory",
    "giving back the pages of freed code", "a stack for the signal handlers of a thread",
    "another sampling rate for a thread",  "starting performance counters",
    "advice that memory be on huge pages", "reaching a thread that is to be interrupted",
    "a file of what is kept between runs", "measuring what the machine's loads cost",
};

}  // namespace

void count_system_failure(SystemFailure what, int error) noexcept {
  Count& count = g_counts[static_cast<size_t>(what)];
  if (count.count.fetch_add(1, std::memory_order_relaxed) == 0)
    count.first_error.store(error, std::memory_order_relaxed);
}

std::vector<SystemFailureCount> system_failures() {
  std::vector<SystemFailureCount> all;
  for (size_t i = 0; i < kSystemFailures; i++)
    if (const uint64_t count = g_counts[i].count.load(std::memory_order_relaxed); count != 0)
      all.push_back({static_cast<SystemFailure>(i), kWords[i], count,
                     g_counts[i].first_error.load(std::memory_order_relaxed)});
  return all;
}

}  // namespace hindsight
