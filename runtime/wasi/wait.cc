#include "runtime/wasi/wait.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/monotonic_clock.h"

namespace hindsight::wasi {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

// How long to sleep at most, as ppoll wants it; null for ever.
const timespec* as_timeout(std::optional<uint64_t> nanoseconds, timespec& storage) {
  if (!nanoseconds) return nullptr;
  storage.tv_sec = static_cast<time_t>(*nanoseconds / kNsPerSecond);
  storage.tv_nsec = static_cast<long>(*nanoseconds % kNsPerSecond);
  return &storage;
}

}  // namespace

Answer<int> wait_for(const WasiContext& context, std::span<pollfd> polled, std::optional<uint64_t> deadline) {
  polled.back() = {.fd = context.wake_fd(), .events = POLLIN, .revents = 0};
  while (true) {
    if (context.interrupted()) {
      return std::unexpected(Errno::kIntr);
    }
    std::optional<uint64_t> remaining;
    if (deadline) {
      const uint64_t now = monotonic_ns();
      remaining = *deadline > now ? *deadline - now : 0;
    }
    std::optional<uint64_t> sleep = remaining;
    if (context.has_outside_flag()) sleep = std::min(sleep.value_or(kFlagPeriod), kFlagPeriod);

    timespec storage{};
    int ready = 0;
    int failure = 0;
    const bool others = context.unlocked([&] {
      ready = ::ppoll(polled.data(), polled.size(), as_timeout(sleep, storage), nullptr);
      if (ready < 0) failure = errno;
    });
    if (ready < 0) {
      if (failure == EINTR) continue;
      errno = failure;
      return std::unexpected(last_errno());
    }
    if (ready > 0 && others) {
      // Another thread may have taken what was there. Now nobody of ours can, until the lock is given back.
      ready = ::poll(polled.data(), polled.size(), 0);
      if (ready <= 0) continue;
    }
    const bool woken = polled.back().revents != 0;
    if (ready > (woken ? 1 : 0)) return ready - (woken ? 1 : 0);
    // The deadline, and not just a look at the flag.
    if (!woken && remaining && *remaining == *sleep) return 0;
  }
}

Errno wait_for_one(const WasiContext& context, int fd, short events, bool nonblocking) {
  if (nonblocking) {
    pollfd one{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&one, 1, 0);
    if (ready > 0) return Errno::kSuccess;
    return ready == 0 || errno == EINTR ? Errno::kAgain : last_errno();
  }
  pollfd polled[] = {{.fd = fd, .events = events, .revents = 0}, {}};
  const auto ready = wait_for(context, polled, std::nullopt);
  return ready ? Errno::kSuccess : ready.error();
}

}  // namespace hindsight::wasi
