#include "feedback/lwp/units/clock_unit.h"

#include <fmt/format.h>

#include <mutex>

#include "feedback/lwp/units/perf_source.h"
#include "feedback/lwp/units/timer_source.h"

namespace hindsight::lwp {
namespace {

constexpr EventInfo kClockEvents[] = {
    {EventId::kValue, Accuracy::kExact, "recorded by instrumented baseline code; optimized code records none",
     "baseline code"},
    {EventId::kInstructions, Accuracy::kExact,
     "counted by instrumented baseline code; optimized code counts none", "baseline code"},
    {EventId::kBranches, Accuracy::kExact,
     "counted by instrumented baseline code; optimized code counts none. Whether one was predicted is an "
     "estimate: bursts of consecutive branches, run through a predictor model",
     "baseline code"},
    {EventId::kDcacheMiss, Accuracy::kEstimated,
     "a sample right after a load: weighted by stall time, address from the registers. Latency and source "
     "only of loads that were timed at the ends of strips: the level nearest to their mean",
     "clock"},
    {EventId::kCoreClocks, Accuracy::kEstimated, "samples of the thread's time; core frequency is not seen",
     "clock"},
};

// A new period needs the old one to be given up half-way: with 32 samples between two changes that costs 1.6
// % of them.
constexpr uint64_t kSamplesPerJitter = 32;

class ClockUnit final : public Unit {
 public:
  ClockUnit(std::unique_ptr<Ring> ring, ClockSource kind, const UnitConfig& config)
      : Unit(std::move(ring)), kind_(kind), guest_code_(config.guest_code), frequency_(config.frequency_hz) {}

  std::string_view name() const override {
    const std::lock_guard lock(mutex_);
    return name_;
  }
  std::span<const EventInfo> events() const override { return kClockEvents; }

  Status attach() override {
    const std::lock_guard lock(mutex_);
    if (source_) return make_error(ErrorKind::kUsage, "this unit is attached already");
    HINDSIGHT_ASSIGN(source_, open_source());
    name_ = source_->name();
    samples_since_jitter_ = 0;
    return {};
  }

  void detach() override {
    const std::lock_guard lock(mutex_);
    if (!source_) return;
    (void)source_->set_period(0);  // if this fails, the destruction below ends sampling all the same
    // Bounded by the size of the source's own buffer.
    source_->drain(left_over_, counters_);
    source_.reset();
  }

  Status set_frequency(uint32_t hz) override {
    HINDSIGHT_TRY(check_frequency(hz));
    const std::lock_guard lock(mutex_);
    frequency_ = hz;
    samples_since_jitter_ = 0;
    if (!source_) return {};
    source_->drain(left_over_, counters_);  // what was sampled at the old rate keeps its weight
    return source_->set_period(jittered_period());
  }

  void drain(Batch& batch) override {
    const std::lock_guard lock(mutex_);
    batch.samples.insert(batch.samples.end(), left_over_.begin(), left_over_.end());
    left_over_.clear();
    if (source_) {
      const uint64_t before = counters_.samples;
      source_->drain(batch.samples, counters_);
      samples_since_jitter_ += counters_.samples - before;
      if (samples_since_jitter_ >= kSamplesPerJitter) {
        samples_since_jitter_ = 0;
        (void)source_->set_period(jittered_period());  // the old period stays: less jitter, nothing else
      }
    }
    counters_.records += drain_ring(batch.records);
  }

  UnitCounters counters() const override {
    const std::lock_guard lock(mutex_);
    UnitCounters now = counters_;
    now.missed = ring_->missed() + ring_->overwritten();
    return now;
  }

 private:
  Result<std::unique_ptr<SampleSource>> open_source() {
    const uint64_t period = jittered_period();
    if (kind_ == ClockSource::kTimer) return TimerSource::open(period, guest_code_);
    auto perf = PerfSource::open(period, guest_code_);
    if (perf || kind_ == ClockSource::kPerf) return perf;
    auto timer = TimerSource::open(period, guest_code_);
    if (timer) return timer;
    return make_error(ErrorKind::kResource, fmt::format("no clock to sample with: perf: {}; timer: {}",
                                                        perf.error().message, timer.error().message));
  }

  // The nominal period, at most an eighth more or less, so that no loop of the guest stays in step. 0 for a
  // pause.
  uint64_t jittered_period() {
    if (frequency_ == 0) return 0;
    random_ ^= random_ << 13;  // xorshift64
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    const uint64_t nominal = 1'000'000'000u / frequency_;
    return nominal - nominal / 8 + random_ % (nominal / 4 + 1);
  }

  // Protects all below: attach and detach come from the guest thread, the rest from the monitor. Neither the
  // ring's producer nor the signal handler takes it.
  mutable std::mutex mutex_;
  const ClockSource kind_;
  const CodeRange guest_code_;
  uint32_t frequency_;
  std::string_view name_ = "clock";
  std::unique_ptr<SampleSource> source_;
  std::vector<RawSample> left_over_;  // sampled before detach or a change of rate, not yet drained
  uint64_t samples_since_jitter_ = 0;
  uint64_t random_ = reinterpret_cast<uint64_t>(this) | 1;
  UnitCounters counters_;
};

class ClockFactory final : public UnitFactory {
 public:
  explicit ClockFactory(ClockSource source) : source_(source) {}
  std::string_view name() const override {
    switch (source_) {
      case ClockSource::kPerf:
        return "clock/perf";
      case ClockSource::kTimer:
        return "clock/timer";
      case ClockSource::kBest:
        break;
    }
    return "clock";
  }
  std::span<const EventInfo> events() const override { return kClockEvents; }
  Result<std::unique_ptr<Unit>> create(const UnitConfig& config) const override {
    HINDSIGHT_TRY(check_frequency(config.frequency_hz));
    HINDSIGHT_ASSIGN(std::unique_ptr<Ring> ring, Ring::create(config.ring));
    return std::make_unique<ClockUnit>(std::move(ring), source_, config);
  }

 private:
  ClockSource source_;
};

}  // namespace

std::unique_ptr<UnitFactory> make_clock_factory(ClockSource source) {
  return std::make_unique<ClockFactory>(source);
}

}  // namespace hindsight::lwp
