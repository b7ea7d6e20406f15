// Per-thread counts that confirm or refute a decision. Instructions, cycles, branches and cache traffic where a
// PMU is reachable; CPU time, context switches and page faults everywhere. Whatever cannot be opened is named,
// with the reason; a missing counter is never read as zero.
//
// Threads: open() on the thread to be counted. read() from any one thread at a time, usually the monitor, also
// after the counted thread has ended (the kernel keeps the final values). Counts user mode only, except where
// noted.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedback/pmu/perf_event.h"
#include "feedback/pmu/user_counter.h"

namespace hindsight::pmu {

enum class Counter : uint8_t {
  kInstructions,
  kCycles,
  kBranches,
  kBranchMisses,
  kCacheReferences,  // last level
  kCacheMisses,      // last level
  kTaskClock,        // nanoseconds of CPU time, kernel time included
  kContextSwitches,  // needs the right to count kernel events: a switch happens in the kernel
  kPageFaults,
};
inline constexpr unsigned kCounterCount = 9;

std::string_view to_string(Counter counter);
constexpr bool is_hardware(Counter counter) {
  return counter < Counter::kTaskClock;
}

struct CounterValue {
  bool present = false;
  uint64_t value = 0;     // scaled to the whole time, where multiplexed
  uint64_t raw = 0;       // as counted
  double coverage = 1.0;  // share of the enabled time in which the event really counted; 0: never scheduled
  bool scaled() const { return coverage < 1.0; }
};

struct Reading {
  std::array<CounterValue, kCounterCount> values;
  const CounterValue& operator[](Counter c) const { return values[static_cast<unsigned>(c)]; }
};

struct CounterAvailability {
  Counter counter;
  bool available = false;
  std::string reason;  // why not, beginning with the errno's name; empty where available
};

class PmuCounters {
 public:
  // Opens and starts all that this machine offers for a thread of this process, 0: the calling one. Never
  // fails as a whole: availability() says what is missing. Takes some 100 us, and as much again when destroyed.
  static PmuCounters open(pid_t thread = 0);

  PmuCounters(PmuCounters&&) noexcept = default;
  PmuCounters& operator=(PmuCounters&&) noexcept = default;

  // One row for each Counter, in order.
  const std::vector<CounterAvailability>& availability() const { return availability_; }
  bool has(Counter c) const { return availability_[static_cast<unsigned>(c)].available; }

  // Counts since open(). A counter whose descriptor can no longer be read is not present.
  Reading read() const;

  // The counted thread only: the same without a system call, by RDPMC. That works where the kernel permits it
  // and the whole group is on the PMU just now; elsewhere it goes through the kernel. The first call maps a
  // page a hardware counter; where that fails nothing but speed is lost.
  Reading read_own();
  // Groups that the last read_own() read without the kernel.
  unsigned groups_read_by_rdpmc() const { return by_rdpmc_; }

 private:
  // Events of one group are on the PMU together or not at all, so their ratios hold under multiplexing.
  struct Group {
    std::vector<FileDescriptor> fds;  // the first leads
    std::vector<Counter> counters;
    std::vector<UserCounter> pages;  // one a descriptor, or none
  };

  PmuCounters() = default;
  void open_into(Group& group, Counter counter, pid_t thread);
  static void read_group(const Group& group, Reading& reading);
  static bool read_group_by_rdpmc(const Group& group, Reading& reading);

  std::vector<Group> groups_;
  std::vector<CounterAvailability> availability_;
  bool mapped_ = false;
  unsigned by_rdpmc_ = 0;
};

// The scaling of a multiplexed count, apart for tests: value * enabled / running without overflow; nothing if
// the event never ran.
std::optional<uint64_t> scale_count(uint64_t raw, uint64_t enabled, uint64_t running);

}  // namespace hindsight::pmu
