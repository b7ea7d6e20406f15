// Reading a counter without a system call: RDPMC, with the page that the kernel shares for each event
// (linux/perf_event.h, perf_event_mmap_page). The kernel rewrites that page whenever it moves the event
// between counters. So it is read under a sequence lock: `lock` is the same before and after, or all is read
// again.
//
// Only the counted thread can do this: RDPMC reads the counters of the processor that it runs on.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "feedback/pmu/perf_event.h"

namespace hindsight::pmu {

struct UserCount {
  uint64_t count = 0;
  uint64_t enabled_ns = 0;  // since the event was enabled
  uint64_t running_ns = 0;  // of these, on a counter; less: multiplexed
};

// The two instructions, as an interface so that the protocol can be tested on a made-up page.
class CounterInstructions {
 public:
  virtual uint64_t rdpmc(uint32_t counter) = 0;
  virtual uint64_t rdtsc() = 0;

 protected:
  ~CounterInstructions() = default;  // not virtual: a static one has nothing that exit() would destroy
};
CounterInstructions& processor_instructions();

// One reading by the protocol. Empty if the page forbids RDPMC (cap_user_rdpmc) or if the event is on no
// counter just now (index 0). Also empty if the page never held still for long enough. Then the caller asks
// the kernel.
std::optional<UserCount> read_user_count(const perf_event_mmap_page& page, CounterInstructions& cpu);

// The nanoseconds that `cycles` of the time-stamp counter are, by the page's multiplier and shift.
uint64_t user_time_delta(uint64_t cycles, uint64_t time_offset, uint32_t time_mult, uint16_t time_shift);

// Maps the page of one opened event. The descriptor must outlive it.
class UserCounter {
 public:
  static Result<UserCounter> map(const FileDescriptor& event);

  UserCounter(UserCounter&& other) noexcept : page_(other.page_) { other.page_ = nullptr; }
  UserCounter& operator=(UserCounter&& other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~UserCounter();

  // Whether the kernel lets this process use RDPMC for the event.
  bool permitted() const { return page_->cap_user_rdpmc; }
  // The counted thread only; see read_user_count.
  std::optional<UserCount> read() const { return read_user_count(*page_, processor_instructions()); }

 private:
  explicit UserCounter(perf_event_mmap_page* page) : page_(page) {}
  perf_event_mmap_page* page_;
};

// Whether RDPMC is to be had for the calling thread, as a sentence: "permitted", or why not. Opens the
// instruction counter and closes it.
std::string rdpmc_state();

}  // namespace hindsight::pmu
