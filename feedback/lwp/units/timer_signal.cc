#include "feedback/lwp/units/timer_signal.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cerrno>
#include <mutex>

#include "base/monotonic_clock.h"
#include "feedback/lwp/units/x86_64.h"

namespace hindsight::lwp {
namespace {

// Initial-exec: the handler must not be the first to touch it through an allocating TLS resolver. Atomic
// because the handler interrupts the thread that writes it. Both are on one thread, so relaxed order is
// program order to the handler. A signal fence in the setter keeps the compiler from moving the target's
// initialization after it.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::atomic<SignalTarget*> current_target{nullptr};

void add(std::atomic<uint64_t>& counter, uint64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

void on_sampling_signal(int, siginfo_t* info, void* context) {
  SignalTarget* target = current_target.load(std::memory_order_relaxed);
  if (!target || info->si_code != SI_TIMER) return;
  if (info->si_overrun > 0) add(target->overruns, static_cast<uint64_t>(info->si_overrun));

  const auto& interrupted = *static_cast<const ucontext_t*>(context);
  const uint64_t pc = x86_64::pc_of(interrupted);
  if (!target->guest_code.contains(pc)) return add(target->non_guest, 1);

  RawSample* sample = target->queue.claim();
  if (!sample) return;
  const int saved_errno = errno;
  sample->time_ns = monotonic_ns();
  errno = saved_errno;
  sample->pc = pc;
  sample->period_ns = target->period_ns.load(std::memory_order_relaxed);
  x86_64::copy_registers(interrupted, sample->registers);
  // Clocks count by more than single nanoseconds: their lowest bits are no choice.
  sample->vector_index = x86_64::gather_index(interrupted, static_cast<unsigned>(sample->time_ns >> 6));
  target->queue.publish();
}

}  // namespace

Status check_sampling_signal() {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  if (sigismember(&blocked, kSamplingSignal)) {
    return make_error(ErrorKind::kUsage, "SIGPROF is blocked in this thread, so a timer cannot sample it");
  }
  struct sigaction current {};
  sigaction(kSamplingSignal, nullptr, &current);
  const bool ours = (current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_sampling_signal;
  const bool free =
      !(current.sa_flags & SA_SIGINFO) && (current.sa_handler == SIG_DFL || current.sa_handler == SIG_IGN);
  if (ours || free) return {};
  return make_error(ErrorKind::kUsage, "another component of this process handles SIGPROF already");
}

Status install_sampling_signal() {
  // Two threads attaching for the first time check and install one after the other.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  HINDSIGHT_TRY(check_sampling_signal());
  struct sigaction ours {};
  ours.sa_sigaction = on_sampling_signal;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  if (sigaction(kSamplingSignal, &ours, nullptr) == 0) return {};  // again ours, where it was already
  return make_error(ErrorKind::kResource,
                    fmt::format("the SIGPROF handler cannot be installed (errno {})", errno));
}

void set_signal_target(SignalTarget* target) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current_target.store(target, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

namespace {

SignalTarget* free_if_abandoned() {
  SignalTarget* target = current_target.load(std::memory_order_relaxed);
  if (!target || !target->abandoned.load(std::memory_order_acquire)) return target;
  set_signal_target(nullptr);
  delete target;
  return nullptr;
}

// Made at the first signal_target() of a thread, never in the handler.
struct FreeAtThreadEnd {
  ~FreeAtThreadEnd() { free_if_abandoned(); }
};

}  // namespace

SignalTarget* signal_target() {
  static thread_local FreeAtThreadEnd at_thread_end;
  (void)&at_thread_end;  // its destructor is all there is to it
  return free_if_abandoned();
}

}  // namespace hindsight::lwp
