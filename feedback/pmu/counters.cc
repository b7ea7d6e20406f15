#include "feedback/pmu/counters.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/system_failures.h"

namespace hindsight::pmu {
namespace {

perf_event_attr attr_of(Counter counter) {
  switch (counter) {
    case Counter::kInstructions:
      return make_perf_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
    case Counter::kCycles:
      return make_perf_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    case Counter::kBranches:
      return make_perf_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
    case Counter::kBranchMisses:
      return make_perf_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
    case Counter::kCacheReferences:
      return make_perf_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES);
    case Counter::kCacheMisses:
      return make_perf_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES);
    case Counter::kTaskClock:
      return make_perf_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
    case Counter::kContextSwitches: {
      perf_event_attr attr = make_perf_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
      attr.exclude_kernel = 0;  // user-only would silently count nothing
      return attr;
    }
    case Counter::kPageFaults:
      return make_perf_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
  }
  return {};
}

}  // namespace

std::string_view to_string(Counter counter) {
  switch (counter) {
    case Counter::kInstructions:
      return "instructions";
    case Counter::kCycles:
      return "cycles";
    case Counter::kBranches:
      return "branches";
    case Counter::kBranchMisses:
      return "branch-misses";
    case Counter::kCacheReferences:
      return "cache-references";
    case Counter::kCacheMisses:
      return "cache-misses";
    case Counter::kTaskClock:
      return "task-clock";
    case Counter::kContextSwitches:
      return "context-switches";
    case Counter::kPageFaults:
      return "page-faults";
  }
  return "unknown";
}

std::optional<uint64_t> scale_count(uint64_t raw, uint64_t enabled, uint64_t running) {
  if (running == 0) return std::nullopt;
  if (running >= enabled) return raw;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(raw) * enabled / running);
}

void PmuCounters::open_into(Group& group, Counter counter, pid_t thread) {
  perf_event_attr attr = attr_of(counter);
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.disabled = group.fds.empty();  // members follow their leader
  const int leader = group.fds.empty() ? -1 : group.fds.front().get();
  int error = 0;
  Result<FileDescriptor> fd = open_perf_event(attr, to_string(counter), thread, leader, &error);
  availability_.push_back({counter, fd.has_value(), fd ? std::string() : explain_perf_errno(error)});
  if (!fd) return;
  group.fds.push_back(std::move(*fd));
  group.counters.push_back(counter);
}

PmuCounters PmuCounters::open(pid_t thread) {
  PmuCounters counters;
  // Two hardware groups, not one: a group that needs more counters than the PMU has would never be scheduled.
  // Four events (two of them fixed counters on Intel) and two fit everything made since 2008.
  constexpr std::array<std::pair<Counter, Counter>, 3> kGroups = {{
      {Counter::kInstructions, Counter::kBranchMisses},
      {Counter::kCacheReferences, Counter::kCacheMisses},
      {Counter::kTaskClock, Counter::kPageFaults},
  }};
  for (const auto& [first, last] : kGroups) {
    Group group;
    for (auto i = static_cast<unsigned>(first); i <= static_cast<unsigned>(last); ++i) {
      counters.open_into(group, static_cast<Counter>(i), thread);
    }
    if (group.fds.empty()) continue;
    // Without it they would be read as zeros.
    if (ioctl(group.fds.front().get(), PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) != 0) {
      const int error = errno;
      count_system_failure(SystemFailure::kCounters, error);
      for (CounterAvailability& a : counters.availability_)
        if (std::find(group.counters.begin(), group.counters.end(), a.counter) != group.counters.end())
          a = {a.counter, false, explain_perf_errno(error)};
      continue;
    }
    counters.groups_.push_back(std::move(group));
  }
  return counters;
}

namespace {

void fill(CounterValue& value, uint64_t raw, uint64_t enabled, uint64_t running) {
  value.present = true;
  value.raw = raw;
  value.value = scale_count(raw, enabled, running).value_or(0);
  value.coverage = 1.0;
  if (running < enabled) value.coverage = static_cast<double>(running) / static_cast<double>(enabled);
}

}  // namespace

void PmuCounters::read_group(const Group& group, Reading& reading) {
  struct {
    uint64_t count, enabled, running;
    uint64_t values[kCounterCount];
  } data{};
  const ssize_t n = ::read(group.fds.front().get(), &data, sizeof data);
  if (n < static_cast<ssize_t>(3 * sizeof(uint64_t))) return;
  for (size_t i = 0; i < group.counters.size() && i < data.count; ++i) {
    fill(reading.values[static_cast<unsigned>(group.counters[i])], data.values[i], data.enabled,
         data.running);
  }
}

bool PmuCounters::read_group_by_rdpmc(const Group& group, Reading& reading) {
  if (group.pages.size() != group.counters.size()) return false;
  std::array<UserCount, kCounterCount> counts;
  for (size_t i = 0; i < group.pages.size(); ++i) {
    const auto count = group.pages[i].read();
    if (!count) return false;
    counts[i] = *count;
  }
  for (size_t i = 0; i < group.pages.size(); ++i) {
    fill(reading.values[static_cast<unsigned>(group.counters[i])], counts[i].count, counts[i].enabled_ns,
         counts[i].running_ns);
  }
  return true;
}

Reading PmuCounters::read() const {
  Reading reading;
  for (const Group& group : groups_) read_group(group, reading);
  return reading;
}

Reading PmuCounters::read_own() {
  if (!mapped_) {
    mapped_ = true;
    for (Group& group : groups_) {
      if (!is_hardware(group.counters.front())) continue;
      for (const FileDescriptor& fd : group.fds) {
        auto page = UserCounter::map(fd);
        if (!page) break;
        group.pages.push_back(std::move(*page));
      }
    }
  }
  Reading reading;
  by_rdpmc_ = 0;
  for (const Group& group : groups_) {
    if (read_group_by_rdpmc(group, reading)) {
      ++by_rdpmc_;
    } else {
      read_group(group, reading);
    }
  }
  return reading;
}

}  // namespace hindsight::pmu
