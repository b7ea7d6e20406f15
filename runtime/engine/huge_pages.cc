#include "runtime/engine/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "feedback/profile/evidence.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // since Linux 6.1; glibc 2.36 does not name it
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#endif

namespace hindsight::rt {
namespace {

using feedback::kHugePageBytes;
constexpr uint64_t kPage = 4096;

int advise(uint64_t begin, uint64_t bytes, int advice) {
  // A busy huge page allocator or page lock says EAGAIN: once more is enough to tell.
  for (int attempt = 0;; ++attempt) {
    if (::madvise(reinterpret_cast<void*>(begin), bytes, advice) == 0) return 0;
    if (errno != EAGAIN || attempt == 2) return errno;
  }
}

}  // namespace

HugePageResult move_to_huge_pages(uint64_t begin, uint64_t end, const std::atomic<bool>& stop,
                                  double most_seconds) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  HugePageResult result;
  result.advised =
      ::madvise(nullptr, 0, MADV_COLLAPSE) != 0;  // of nothing: whether the kernel knows the word
  // What is touched later comes in huge pages at once.
  advise(begin, end - begin, MADV_HUGEPAGE);
  const uint64_t there = bytes_on_huge_pages(begin, end);
  for (uint64_t at = begin; at < end && !result.advised && !stop.load(std::memory_order_relaxed);
       at += kHugePageBytes) {
    if (const int error = advise(at, kHugePageBytes, MADV_COLLAPSE); error == 0) {
      result.moved_bytes += kHugePageBytes;
    } else {
      result.refused_bytes += kHugePageBytes;
      if (result.first_refusal.empty()) result.first_refusal = std::strerror(error);
    }
    result.late = at + kHugePageBytes < end && seconds() > most_seconds;
    if (result.late) break;
  }
  const uint64_t behind = bytes_on_huge_pages(begin, end);
  // Nothing on huge pages behind a move: it cannot be read.
  result.copied_bytes = behind == 0 ? result.moved_bytes : std::min(result.moved_bytes, behind - std::min(there, behind));
  result.seconds = seconds();
  return result;
}

bool ask_for_huge_pages(uint64_t begin, uint64_t end) {
  begin = (begin + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  end = end / kHugePageBytes * kHugePageBytes;
  return begin < end && advise(begin, end - begin, MADV_HUGEPAGE) == 0;
}

void ask_for_small_pages(uint64_t begin, uint64_t end) {
  advise(begin, end - begin, MADV_NOHUGEPAGE);
}

void leave_huge_pages(uint64_t begin, uint64_t end) {
  ask_for_small_pages(begin, end);
  // Advice for a part of a huge page makes the kernel split it; this one changes nothing else but the page's
  // age.
  for (uint64_t at = begin; at < end; at += kHugePageBytes) advise(at, kPage, MADV_COLD);
}

uint64_t bytes_on_huge_pages(uint64_t begin, uint64_t end) {
  std::ifstream smaps("/proc/self/smaps");
  uint64_t sum = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uint64_t first = 0, last = 0, kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2)
      inside = first < end && last > begin;
    else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %lu kB", &kib) == 1)
      sum += kib * 1024;
  }
  return sum;
}

}  // namespace hindsight::rt
