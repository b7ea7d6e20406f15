// Loads that wait for each other, and how long they take: what calibration is made of. Internal to this room.
// One object a thread.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/ticks.h"
#include "feedback/lwp/calibration/x86_64.h"

namespace hindsight::lwp::chase {

inline constexpr uint64_t kLine = 64;
inline constexpr uint64_t kHugePage = 2 << 20;

// Random but always the same.
class Random {
 public:
  uint64_t next() {
    state_ ^= state_ << 13;  // xorshift64
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  uint64_t below(uint64_t n) { return next() % n; }

 private:
  uint64_t state_ = 0x9E3779B97F4A7C15;
};

enum class Pages : uint8_t {
  kHuge,  // where the kernel has them: without, figures include misses of the TLB
  kSmall,
};

// Memory of its own, from a multiple of 2 MiB on. data() is null if there was none.
class Mapping {
 public:
  Mapping(uint64_t bytes, Pages pages) : bytes_(bytes + kHugePage) {
    void* const p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    mapped_ = p;
    const auto begin = (reinterpret_cast<uintptr_t>(p) + kHugePage - 1) & ~(kHugePage - 1);
    data_ = reinterpret_cast<std::byte*>(begin);
    // Where the kernel has no huge pages there is nothing to tell apart, and both are measured on small ones.
    (void)::madvise(data_, bytes, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  ~Mapping() {
    if (mapped_) ::munmap(mapped_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return data_; }

 private:
  uint64_t bytes_;
  void* mapped_ = nullptr;
  std::byte* data_ = nullptr;
};

// Makes a cycle through `lines` places, `stride` bytes apart, in random order (Sattolo). Each place holds the
// address of the next, so no load can start before the one before it is done. No prefetcher can guess it.
inline void* make_cycle(std::byte* data, uint64_t lines, uint64_t stride, Random& random) {
  std::vector<uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0u);
  for (uint64_t i = lines - 1; i > 0; --i) std::swap(order[i], order[random.below(i)]);
  for (uint64_t i = 0; i < lines; ++i) {
    *reinterpret_cast<void**>(data + order[i] * stride) = data + order[(i + 1) % lines] * stride;
  }
  return data + order[0] * stride;
}

// Figures of many short stretches. One that was interrupted, or came after an interruption that left the
// caches to others, is longer and never shorter. So the quicker quarter is the machine's.
class Stretches {
 public:
  void add(double figure) { figures_.push_back(figure); }
  double quick() { return at_share(4); }
  double median() { return at_share(2); }

 private:
  double at_share(size_t one_in) {
    if (figures_.empty()) return 0;
    const auto place = figures_.begin() + static_cast<ptrdiff_t>(figures_.size() / one_in);
    std::nth_element(figures_.begin(), place, figures_.end());
    return *place;
  }
  std::vector<double> figures_;
};

// Steps: long against the reading of the clock, short against a time slice.
inline constexpr uint64_t kStretch = 1024;

// Goes on along the cycle for at least `steps`; ticks of the time-stamp counter a step.
inline void walk(void*& at, uint64_t steps, Stretches& ticks) {
  void* p = at;
  for (uint64_t done = 0; done < steps; done += kStretch) {
    const uint64_t begin = read_ticks();
    for (uint64_t i = 0; i < kStretch; ++i) p = *static_cast<void* volatile*>(p);
    // The last load is done before the clock is read: its value is the next one's address.
    asm volatile("" : "+r"(p));
    x86_64::wait_for_loads();
    ticks.add(static_cast<double>(read_ticks() - begin) / kStretch);
  }
  at = p;
}

}  // namespace hindsight::lwp::chase
