// Clock samples where perf_event_open is refused: a POSIX timer for the thread (SIGEV_THREAD_ID) whose signal
// handler reads the interrupted registers.
//
// The timer runs on CLOCK_MONOTONIC. The thread's CPU clock would be the right one, but the kernel checks it
// only at its tick, so it never gets beyond 250 Hz. The price: it ticks while the thread sleeps. Such samples
// stand in the C library, outside the guest's code, and are counted as non-guest. A blocking system call that
// cannot be restarted (nanosleep, poll) returns EINTR, so host functions must repeat it, as they must under
// any profiler.
#pragma once

#include <memory>

#include "base/result.h"
#include "feedback/lwp/units/sample_source.h"

namespace hindsight::lwp {

class TimerSource {
 public:
  // Starts sampling the calling thread; one source per thread at a time. kResource where timers are used up
  // (EAGAIN), kUsage on a signal conflict or a second source.
  //
  // Destroy it on the same thread. Elsewhere it is safe but leaks the thread's sample queue: a signal may be
  // in flight.
  static Result<std::unique_ptr<SampleSource>> open(uint64_t period_ns, CodeRange guest_code);

  // Why open() would be refused now; empty if it would not.
  static std::string refusal();
};

}  // namespace hindsight::lwp
