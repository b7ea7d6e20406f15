// The signal handler of the timer source, and what it shares with the rest. It is alone in its file so that
// it can be read at a glance. The handler is async-signal-safe, bounded and allocation-free. It looks at one
// thread-local pointer, compares the pc with a range, copies some words into a queue slot, and calls nothing but
// clock_gettime. Of the code it reads the last bytes in front of the pc, to see whether a gather may stand there.
//
// It stays installed once installed. A signal of a timer that was just deleted may still be pending, and the
// default action of SIGPROF ends the process. It runs on the alternate stack where the thread has one (guest
// stacks are small and guarded), with all signals blocked. System calls that can be restarted are.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "base/result.h"
#include "feedback/lwp/format/sample.h"
#include "feedback/lwp/units/unit.h"

namespace hindsight::lwp {

inline constexpr int kSamplingSignal = SIGPROF;

// What the handler fills for one thread.
struct SignalTarget {
  // Null where there is no memory for one.
  static std::unique_ptr<SignalTarget> create() {
    std::unique_ptr<SignalTarget> target(new (std::nothrow) SignalTarget);
    if (target && !target->queue.usable()) target.reset();
    return target;
  }

  SampleQueue queue;
  CodeRange guest_code;
  // Set by the monitor, read by the handler as the weight of a sample. Relaxed: around a change of rate a
  // sample may carry either period.
  std::atomic<uint64_t> period_ns{0};
  // Statistics: written by the handler only, read by the monitor. Relaxed, they order nothing.
  std::atomic<uint64_t> non_guest{0};
  std::atomic<uint64_t> overruns{0};
  // Its owner is gone. It is set with release by another thread after that one deleted the timer. It is
  // loaded with acquire on the sampled thread, which alone can know that no handler is running and then frees
  // the target.
  std::atomic<bool> abandoned{false};
};

// Installs the handler for the process if it is not there. kUsage if somebody else handles the signal, or the
// calling thread blocks it.
Status install_sampling_signal();

// The same checks, installing nothing.
Status check_sampling_signal();

// Makes `target` what the handler fills on the calling thread; null: nothing. When this returns no handler on
// this thread will touch the previous target: handlers run on this very thread, and find the new pointer.
void set_signal_target(SignalTarget* target);

// The calling thread's target, or null. Frees an abandoned one first; a thread that ends does the same.
SignalTarget* signal_target();

}  // namespace hindsight::lwp
