// Waiting that an embedder can interrupt. Every call of the room that may block waits here first.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/wasi/errno.h"
#include "runtime/wasi/wasi_context.h"

namespace hindsight::wasi {

// The longest time, in nanoseconds, that Config::interrupted goes unseen: it is a plain flag that nobody
// announces. WasiContext::interrupt() needs no such period.
inline constexpr uint64_t kFlagPeriod = 10'000'000;

// Waits until one of `polled` is ready, the deadline (monotonic_ns()'s clock) has passed or the context is
// interrupted (kIntr). The answer is the number of ready ones, 0 at the deadline. The last element is not the
// caller's: it is there for the wait's own use. A signal alone does not end the wait.
Answer<int> wait_for(const WasiContext& context, std::span<pollfd> polled, std::optional<uint64_t> deadline);

// Waits for one descriptor; with `nonblocking` only looks, and answers kAgain where it is not ready.
Errno wait_for_one(const WasiContext& context, int fd, short events, bool nonblocking);

}  // namespace hindsight::wasi
