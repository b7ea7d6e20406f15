#include "runtime/adaptive/experiments/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/system_failures.h"
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

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

HugePageMove::HugePageMove(std::vector<feedback::PageRange> ranges, double most_waited_seconds,
                           uint64_t bytes_before_hold)
    : ranges_(std::move(ranges)), most_waited_seconds_(most_waited_seconds) {
  // By their place in memory, whatever range they are in.
  for (const uint64_t first : {0, 4, 2, 6, 1, 5, 3, 7})
    for (const feedback::PageRange& range : ranges_)
      for (uint64_t at = range.begin; at < range.end; at += kHugePageBytes)
        if (at / kHugePageBytes % 8 == first) order_.push_back(at);
  if (bytes_before_hold != 0) hold_.store(bytes_before_hold / kHugePageBytes, std::memory_order_relaxed);
  moved_.resize(order_.size());
}

HugePageMove::~HugePageMove() {
  if (place_ != nullptr) ::munmap(place_, 2 * kHugePageBytes);
}

bool HugePageMove::step(const std::atomic<bool>& stop, double seconds) {
  const auto start = Clock::now();
  if (!begun_) begin();
  while (!ended_) {
    const size_t done = done_.load(std::memory_order_relaxed);
    if (result_.advised || stop.load(std::memory_order_relaxed) || done == order_.size()) {
      end();
    } else if (stop_.load(std::memory_order_relaxed)) {
      result_.stopped = true;
      end();
    } else if (result_.waited_seconds > most_waited_seconds_) {
      result_.late = true;
      end();
    } else if (holds()) {
      break;
    } else {
      const uint64_t before = result_.moved_bytes;
      move_one(order_[done]);
      moved_[done] = result_.moved_bytes != before ? 1 : 0;
      done_.store(done + 1, std::memory_order_release);
      if (seconds_since(start) >= seconds) break;
    }
  }
  result_.seconds += seconds_since(start);
  return ended_;
}

void HugePageMove::begin() {
  begun_ = true;
  if (ranges_.empty()) {
    ended_ = true;
    return;
  }
  result_.advised =
      ::madvise(nullptr, 0, MADV_COLLAPSE) != 0;  // of nothing: whether the kernel knows the word
  // What is touched later comes in huge pages at once.
  for (const feedback::PageRange& range : ranges_) {
    const int error = advise(range.begin, range.end - range.begin, MADV_HUGEPAGE);
    if (error != 0) count_system_failure(SystemFailure::kHugePages, error);
  }
  there_ = bytes_on_huge_pages(ranges_.front().begin, ranges_.back().end);
  void* const place = ::mmap(nullptr, 2 * kHugePageBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place != MAP_FAILED) place_ = place;
}

// Whether there is a huge page to be had. It is made as the one of the move is, whatever first touches get here.
bool HugePageMove::prepare() {
  if (place_ == nullptr) return true;
  const uint64_t at =
      (reinterpret_cast<uint64_t>(place_) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  *reinterpret_cast<volatile char*>(at) = 1;
  const int error = advise(at, kHugePageBytes, MADV_COLLAPSE);
  advise(at, kHugePageBytes, MADV_DONTNEED);  // of memory of our own: it cannot fail
  if (error != 0 && result_.first_refusal.empty()) result_.first_refusal = std::strerror(error);
  return error == 0;
}

void HugePageMove::move_one(uint64_t at) {
  const auto start = Clock::now();
  const bool prepared = prepare();
  result_.prepared_seconds += seconds_since(start);
  if (!prepared) {
    result_.refused_bytes += kHugePageBytes;
    return;
  }
  const auto begin = Clock::now();
  if (const int error = advise(at, kHugePageBytes, MADV_COLLAPSE); error == 0) {
    result_.moved_bytes += kHugePageBytes;
  } else {
    result_.refused_bytes += kHugePageBytes;
    if (result_.first_refusal.empty()) result_.first_refusal = std::strerror(error);
  }
  result_.waited_seconds += seconds_since(begin);
}

void HugePageMove::end() {
  ended_ = true;
  const uint64_t behind = bytes_on_huge_pages(ranges_.front().begin, ranges_.back().end);
  // Nothing on huge pages after a move: it cannot be read.
  result_.copied_bytes =
      behind == 0 ? result_.moved_bytes : std::min(result_.moved_bytes, behind - std::min(there_, behind));
}

HugePageResult move_to_huge_pages(uint64_t begin, uint64_t end, const std::atomic<bool>& stop) {
  HugePageMove move({{begin, end}});
  (void)move.step(stop);
  return move.result();
}

bool ask_for_huge_pages(uint64_t begin, uint64_t end) {
  begin = (begin + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  end = end / kHugePageBytes * kHugePageBytes;
  return begin < end && advise(begin, end - begin, MADV_HUGEPAGE) == 0;
}

void ask_for_small_pages(uint64_t begin, uint64_t end) {
  advise(begin, end - begin, MADV_NOHUGEPAGE);  // fails where the kernel has no huge pages: small ones it is
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
