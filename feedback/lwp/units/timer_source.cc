#include "feedback/lwp/units/timer_source.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "feedback/lwp/units/timer_signal.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace hindsight::lwp {
namespace {

Result<timer_t> create_timer() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSamplingSignal;
  event.sigev_notify_thread_id = gettid();
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) return timer;
  if (errno == EAGAIN) {
    return make_error(ErrorKind::kResource,
                      "EAGAIN: this user's timers are used up (ulimit -i, pending signals, bounds them)");
  }
  return make_error(ErrorKind::kResource, fmt::format("timer_create: {}", strerror(errno)));
}

class TimerSampleSource final : public SampleSource {
 public:
  TimerSampleSource(timer_t timer, std::unique_ptr<SignalTarget> target)
      : timer_(timer), target_(std::move(target)), thread_(gettid()) {}

  ~TimerSampleSource() override {
    timer_delete(timer_);
    if (gettid() == thread_) {
      // A signal may still be pending; it will find no target.
      set_signal_target(nullptr);
    } else {
      // The thread's pointer cannot be reached from here, and its handler may be running. So the thread
      // frees the target when it next opens a source or ends.
      target_.release()->abandoned.store(true, std::memory_order_release);
    }
  }

  std::string_view name() const override { return "clock/timer"; }

  Status set_period(uint64_t period_ns) override {
    itimerspec spec{};
    spec.it_interval.tv_sec = static_cast<time_t>(period_ns / 1'000'000'000u);
    spec.it_interval.tv_nsec = static_cast<long>(period_ns % 1'000'000'000u);
    spec.it_value = spec.it_interval;
    target_->period_ns.store(period_ns, std::memory_order_relaxed);
    if (timer_settime(timer_, 0, &spec, nullptr) == 0) return {};
    return make_error(ErrorKind::kResource, fmt::format("timer_settime: {}", strerror(errno)));
  }

  void drain(std::vector<RawSample>& out, UnitCounters& counters) override {
    RawSample sample;
    // At most one queueful: what comes in meanwhile waits for the next drain.
    for (uint32_t i = 0; i < SampleQueue::kCapacity && target_->queue.pop(sample); ++i) {
      out.push_back(sample);
      ++counters.samples;
    }
    take(target_->queue.dropped(), seen_dropped_, counters.lost);
    take(target_->non_guest.load(std::memory_order_relaxed), seen_non_guest_, counters.non_guest);
    take(target_->overruns.load(std::memory_order_relaxed), seen_overruns_, counters.overruns);
  }

 private:
  // Adds what a growing statistic gained since the last look.
  static void take(uint64_t now, uint64_t& seen, uint64_t& sum) {
    sum += now - seen;
    seen = now;
  }

  timer_t timer_;
  std::unique_ptr<SignalTarget> target_;
  pid_t thread_;
  uint64_t seen_dropped_ = 0;
  uint64_t seen_non_guest_ = 0;
  uint64_t seen_overruns_ = 0;
};

}  // namespace

Result<std::unique_ptr<SampleSource>> TimerSource::open(uint64_t period_ns, CodeRange guest_code) {
  HINDSIGHT_TRY(install_sampling_signal());
  if (signal_target()) {
    return make_error(ErrorKind::kUsage, "this thread is being sampled by a timer already");
  }
  HINDSIGHT_ASSIGN(timer_t timer, create_timer());
  std::unique_ptr<SignalTarget> target = SignalTarget::create();
  if (!target) {
    timer_delete(timer);
    return make_error(ErrorKind::kResource, "no memory for this thread's samples");
  }
  target->guest_code = guest_code;
  set_signal_target(target.get());
  std::unique_ptr<SampleSource> source = std::make_unique<TimerSampleSource>(timer, std::move(target));
  HINDSIGHT_TRY(source->set_period(period_ns));
  return source;
}

std::string TimerSource::refusal() {
  if (const Status status = check_sampling_signal(); !status) return status.error().message;
  const Result<timer_t> timer = create_timer();
  if (!timer) return timer.error().message;
  timer_delete(*timer);
  return {};
}

}  // namespace hindsight::lwp
