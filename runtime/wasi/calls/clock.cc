#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>

#include "runtime/wasi/calls/calls.h"
#include "runtime/wasi/calls/times.h"

namespace hindsight::wasi {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// One of the two times: left alone, set to now, or set to `value`.
timespec requested_time(uint64_t value, bool set, bool now) {
  timespec time{};
  if (now) {
    time.tv_nsec = UTIME_NOW;
  } else if (!set) {
    time.tv_nsec = UTIME_OMIT;
  } else {
    time.tv_sec = static_cast<time_t>(value / kSecond);
    time.tv_nsec = static_cast<long>(value % kSecond);
  }
  return time;
}

}  // namespace

Answer<uint64_t> to_nanoseconds(timespec time) {
  constexpr uint64_t kLastSecond = UINT64_MAX / kSecond - 1;
  if (time.tv_sec < 0 || static_cast<uint64_t>(time.tv_sec) > kLastSecond)
    return std::unexpected(Errno::kOverflow);
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

Answer<TimePair> to_time_pair(uint64_t atim, uint64_t mtim, uint32_t flags) {
  if (flags & ~uint32_t{fstflags::kAll}) return std::unexpected(Errno::kInval);
  const bool set_atim = flags & fstflags::kAtim;
  const bool now_atim = flags & fstflags::kAtimNow;
  const bool set_mtim = flags & fstflags::kMtim;
  const bool now_mtim = flags & fstflags::kMtimNow;
  if ((set_atim && now_atim) || (set_mtim && now_mtim)) return std::unexpected(Errno::kInval);
  return TimePair{{requested_time(atim, set_atim, now_atim), requested_time(mtim, set_mtim, now_mtim)}};
}

Answer<clockid_t> host_clock(uint32_t id) {
  switch (static_cast<ClockId>(id)) {
    case ClockId::kRealtime:
      return CLOCK_REALTIME;
    case ClockId::kMonotonic:
      return CLOCK_MONOTONIC;
    case ClockId::kProcessCpu:
      return CLOCK_PROCESS_CPUTIME_ID;
    case ClockId::kThreadCpu:
      return CLOCK_THREAD_CPUTIME_ID;
  }
  return std::unexpected(Errno::kInval);
}

namespace calls {

Errno clock_res_get(WasiContext&, GuestMemory memory, uint32_t id, uint32_t resolution) {
  const auto clock = host_clock(id);
  if (!clock) return clock.error();
  timespec value{};
  if (::clock_getres(*clock, &value) != 0) return last_errno();
  const auto nanoseconds = to_nanoseconds(value);
  if (!nanoseconds) return nanoseconds.error();
  return memory.store(resolution, *nanoseconds) ? Errno::kSuccess : Errno::kFault;
}

// The precision is permission to be lazy; reading the clock is as fast as it gets, so it is not used.
Errno clock_time_get(WasiContext&, GuestMemory memory, uint32_t id, uint64_t, uint32_t time) {
  const auto clock = host_clock(id);
  if (!clock) return clock.error();
  timespec value{};
  if (::clock_gettime(*clock, &value) != 0) return last_errno();
  const auto nanoseconds = to_nanoseconds(value);
  if (!nanoseconds) return nanoseconds.error();
  return memory.store(time, *nanoseconds) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace calls
}  // namespace hindsight::wasi
