#include "feedback/lwp/units/native_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "feedback/lwp/emulation/instructions.h"

namespace hindsight::lwp {
namespace {

constexpr EventInfo kAllEvents[] = {
    {EventId::kValue, Accuracy::kExact, "the processor, at each LWPVAL"},
    {EventId::kInstructions, Accuracy::kExact, "counted by the processor"},
    {EventId::kBranches, Accuracy::kExact, "counted by the processor, with its predictor's verdict"},
    {EventId::kDcacheMiss, Accuracy::kExact,
     "counted by the processor, with latency, source and address as it has them"},
    {EventId::kCoreClocks, Accuracy::kExact, "counted by the processor"},
    {EventId::kReferenceClocks, Accuracy::kExact, "counted by the processor"},
    {EventId::kProgrammed, Accuracy::kExact, "the processor, at each LWPINS"},
};

bool offers(const Capabilities& c, EventId id) {
  if (id == EventId::kProgrammed) return true;  // LWPINS needs no flag
  return (encode_features(c.usable) & flag_of(id)) &&
         static_cast<unsigned>(id) <= std::min(c.max_event_id, kMaxEvents);
}

std::vector<EventInfo> events_of(const Capabilities& capabilities) {
  std::vector<EventInfo> out;
  for (const EventInfo& event : kAllEvents) {
    if (offers(capabilities, event.id)) out.push_back(event);
  }
  return out;
}

// k - 1 records every k-th event.
uint32_t interval_for(EventId id, uint32_t frequency_hz) {
  const uint64_t rate = nominal_rate(id);
  if (rate == 0) return 0;
  if (frequency_hz == 0) return encode_counter(kCounterMax);
  // Every k-th event with an odd k: most loops repeat in powers of two. (Not Random: it holds for all events
  // of the block, and of value samples none is to be left out.)
  const uint64_t interval = std::clamp<uint64_t>(rate / frequency_hz, 2, kCounterMax - 1) & ~uint64_t{1};
  return encode_counter(static_cast<int32_t>(interval));
}

class NativeUnit final : public Unit {
 public:
  NativeUnit(std::unique_ptr<Ring> own, std::unique_ptr<Ring> processors, std::vector<EventInfo> events,
             uint32_t frequency)
      : Unit(std::move(own)),
        processors_(std::move(processors)),
        events_(std::move(events)),
        frequency_(frequency) {}

  std::string_view name() const override { return "native"; }
  std::span<const EventInfo> events() const override { return events_; }

  Status attach() override {
    const std::lock_guard lock(mutex_);
    if (attached_) return make_error(ErrorKind::kUsage, "this unit is attached already");
    if (instruction::slwpcb() != nullptr) {
      return make_error(ErrorKind::kUsage, "Lightweight Profiling is in use on this thread already");
    }
    ControlBlock& block = processors_->block();
    uint32_t flags = 0;
    for (const EventInfo& event : events_) {
      if (event.id == EventId::kProgrammed) continue;
      flags |= flag_of(event.id);
      block.slot(event.id).interval = interval_for(event.id, frequency_);
      block.slot(event.id).counter = block.slot(event.id).interval;
    }
    block.flags = flags;  // the processor left there what was on the last time
    instruction::llwpcb(&block);
    attached_ = true;
    return {};
  }

  void detach() override {
    const std::lock_guard lock(mutex_);
    if (!attached_) return;
    // Off, if it is still ours: the thread may have loaded a block of its own meanwhile, which stays on.
    if (instruction::slwpcb() == &processors_->block()) instruction::llwpcb(nullptr);
    attached_ = false;
  }

  Status set_frequency(uint32_t hz) override {
    HINDSIGHT_TRY(check_frequency(hz));
    const std::lock_guard lock(mutex_);
    frequency_ = hz;
    if (!attached_) return {};
    for (const EventInfo& event : events_) {
      if (event.id == EventId::kProgrammed) continue;
      // Relaxed: the interval is a number of its own, read by the processor whenever it reloads.
      std::atomic_ref(processors_->block().slot(event.id).interval)
          .store(interval_for(event.id, hz), std::memory_order_relaxed);
    }
    return {};
  }

  void drain(Batch& batch) override {
    const std::lock_guard lock(mutex_);
    records_ += drain_ring(batch.records);
    // What comes in meanwhile waits for the next drain.
    const size_t slots = processors_->block().buffer_size() / kRecordSize;
    for (size_t taken = 0; taken < slots;) {
      const size_t n = processors_->read(chunk_);
      for (const EventRecord& record : std::span(chunk_).first(n)) {
        const EventId id = record.id();
        const bool sampled =
            id == EventId::kInstructions || id == EventId::kBranches || id == EventId::kDcacheMiss;
        (sampled ? batch.hardware : batch.records).push_back(record);
      }
      records_ += n;
      taken += n;
      if (n < chunk_.size()) break;
    }
  }

  UnitCounters counters() const override {
    const std::lock_guard lock(mutex_);
    UnitCounters now;
    now.records = records_;
    now.missed = ring_->missed() + ring_->overwritten() + processors_->missed();
    return now;
  }

 private:
  // Protects all below, the processor's own writes into the block apart: attach and detach come from the
  // guest thread, the rest from the monitor.
  mutable std::mutex mutex_;
  const std::unique_ptr<Ring> processors_;  // its writer end is the processor
  const std::vector<EventInfo> events_;
  uint32_t frequency_;
  std::array<EventRecord, 256> chunk_;
  uint64_t records_ = 0;
  bool attached_ = false;
};

class NativeFactory final : public UnitFactory {
 public:
  explicit NativeFactory(const Capabilities& capabilities)
      : capabilities_(capabilities), events_(events_of(capabilities)) {}

  std::string_view name() const override { return "native"; }
  std::span<const EventInfo> events() const override { return events_; }

  Result<std::unique_ptr<Unit>> create(const UnitConfig& config) const override {
    HINDSIGHT_TRY(check_frequency(config.frequency_hz));
    HINDSIGHT_ASSIGN(std::unique_ptr<Ring> own, Ring::create(config.ring));
    // Always synchronised: how far a processor has run ahead in continuous mode nobody could tell. Without a
    // threshold, since no system delivers its interrupt: the monitor looks from time to time.
    Ring::Options options;
    options.records = std::max(config.ring.records, capabilities_.min_buffer_records);
    HINDSIGHT_ASSIGN(std::unique_ptr<Ring> processors, Ring::create(options));
    return std::make_unique<NativeUnit>(std::move(own), std::move(processors), events_, config.frequency_hz);
  }

 private:
  const Capabilities capabilities_;
  const std::vector<EventInfo> events_;
};

}  // namespace

uint64_t nominal_rate(EventId id) {
  switch (id) {
    case EventId::kInstructions:
    case EventId::kCoreClocks:
    case EventId::kReferenceClocks:
      return 3'000'000'000;
    case EventId::kBranches:
      return 500'000'000;
    case EventId::kDcacheMiss:
      return 20'000'000;
    case EventId::kNone:
    case EventId::kValue:
    case EventId::kProgrammed:
      break;
  }
  return 0;
}

std::unique_ptr<UnitFactory> make_native_factory(const Capabilities& capabilities) {
  return std::make_unique<NativeFactory>(capabilities);
}

}  // namespace hindsight::lwp
