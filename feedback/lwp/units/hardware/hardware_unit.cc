#include "feedback/lwp/units/hardware/hardware_unit.h"

#include <fmt/format.h>

#include <mutex>

#include "feedback/lwp/units/hardware/hardware_session.h"

namespace hindsight::lwp {
namespace {

// The clock beside it writes no records; its ring is as small as a ring can sensibly be.
constexpr uint32_t kUnusedRecords = 64;

class HardwareUnit final : public Unit {
 public:
  HardwareUnit(std::unique_ptr<Ring> ring, PerfKernel& kernel, std::shared_ptr<const HardwareMachine> machine,
               std::unique_ptr<Unit> clock, std::shared_ptr<const EventTable> promised,
               std::shared_ptr<const std::vector<EventInfo>> clock_rows, const UnitConfig& config)
      : Unit(std::move(ring)),
        kernel_(kernel),
        machine_(std::move(machine)),
        guest_code_(config.guest_code),
        branches_(config.branches),
        clock_rows_(std::move(clock_rows)),
        frequency_(config.frequency_hz),
        clock_(std::move(clock)) {
    tables_.push_back(std::move(promised));
  }

  std::string_view name() const override { return "hardware"; }

  std::span<const EventInfo> events() const override {
    const std::lock_guard lock(mutex_);
    return tables_.back()->rows();
  }

  // Both, or one of them. Without hardware this is a clock unit, without a clock the hardware's events are
  // all.
  Status attach() override {
    const std::lock_guard lock(mutex_);
    if (session_ || clock_attached_) return make_error(ErrorKind::kUsage, "this unit is attached already");
    const Status clock = clock_->attach();
    auto session = HardwareSession::open(kernel_, *machine_, frequency_, guest_code_, branches_);
    if (!clock && !session) {
      return make_error(ErrorKind::kResource,
                        fmt::format("{}; {}", session.error().message, clock.error().message));
    }
    clock_attached_ = clock.has_value();
    HardwareOutcome outcome;
    if (session) {
      session_ = std::move(*session);
      outcome = session_->outcome();
    } else {
      for (const EventId e : {EventId::kInstructions, EventId::kBranches, EventId::kDcacheMiss}) {
        outcome.refused.push_back({e, session.error().message});
      }
    }
    if (!clock) outcome.refused.push_back({EventId::kCoreClocks, "clock: " + clock.error().message});
    // Tables are never taken away: a span that somebody holds stays valid.
    auto table = std::make_shared<EventTable>(outcome, *clock_rows_, clock_->name());
    if (!table->says_the_same_as(*tables_.back())) tables_.push_back(std::move(table));
    return {};
  }

  void detach() override {
    const std::lock_guard lock(mutex_);
    clock_->detach();
    clock_attached_ = false;
    if (!session_) return;
    (void)session_->stop();  // if this fails, closing the events ends sampling all the same
    session_->drain(left_over_, counters_);
    session_.reset();
  }

  Status set_frequency(uint32_t hz) override {
    const std::lock_guard lock(mutex_);
    HINDSIGHT_TRY(clock_->set_frequency(hz));
    frequency_ = hz;
    // The hardware's rate only tunes: an event that keeps its old one still tells the truth.
    if (session_) (void)session_->set_frequency(hz);
    return {};
  }

  void drain(Batch& batch) override {
    const std::lock_guard lock(mutex_);
    batch.hardware.insert(batch.hardware.end(), left_over_.hardware.begin(), left_over_.hardware.end());
    batch.taken_branches.insert(batch.taken_branches.end(), left_over_.taken_branches.begin(),
                                left_over_.taken_branches.end());
    left_over_.clear();
    if (session_) session_->drain(batch, counters_);
    clock_->drain(batch);
    counters_.records += drain_ring(batch.records);
  }

  UnitCounters counters() const override {
    const std::lock_guard lock(mutex_);
    UnitCounters now = counters_;
    now += clock_->counters();  // of its unused ring none is a record
    now.missed = ring_->missed() + ring_->overwritten();
    return now;
  }

 private:
  PerfKernel& kernel_;
  const std::shared_ptr<const HardwareMachine> machine_;
  const CodeRange guest_code_;
  const BranchKinds branches_;
  const std::shared_ptr<const std::vector<EventInfo>> clock_rows_;

  // Protects all below, as in the clock unit: attach and detach come from the guest thread, the rest from the
  // monitor.
  mutable std::mutex mutex_;
  uint32_t frequency_;
  std::unique_ptr<Unit> clock_;
  bool clock_attached_ = false;
  std::unique_ptr<HardwareSession> session_;
  std::vector<std::shared_ptr<const EventTable>> tables_;  // the last one holds
  Batch left_over_;                                        // sampled before detach, not yet drained
  UnitCounters counters_;
};

class HardwareFactory final : public UnitFactory {
 public:
  HardwareFactory(PerfKernel& kernel, HardwareMachine machine, std::unique_ptr<UnitFactory> clock)
      : kernel_(kernel),
        machine_(std::make_shared<HardwareMachine>(std::move(machine))),
        clock_(std::move(clock)) {
    const auto rows = clock_->events();
    clock_rows_ = std::make_shared<std::vector<EventInfo>>(rows.begin(), rows.end());
    const HardwareOutcome outcome = probe_hardware(kernel_, plan_hardware(*machine_, kDefaultFrequency));
    promised_ = std::make_shared<EventTable>(outcome, *clock_rows_, clock_->name());
  }

  std::string_view name() const override { return "hardware"; }
  std::span<const EventInfo> events() const override { return promised_->rows(); }

  Result<std::unique_ptr<Unit>> create(const UnitConfig& config) const override {
    UnitConfig behind = config;
    behind.ring.records = kUnusedRecords;
    HINDSIGHT_ASSIGN(std::unique_ptr<Unit> clock, clock_->create(behind));
    HINDSIGHT_ASSIGN(std::unique_ptr<Ring> ring, Ring::create(config.ring));
    return std::make_unique<HardwareUnit>(std::move(ring), kernel_, machine_, std::move(clock), promised_,
                                          clock_rows_, config);
  }

 private:
  PerfKernel& kernel_;
  std::shared_ptr<const HardwareMachine> machine_;  // units may outlive the factory
  std::unique_ptr<UnitFactory> clock_;
  std::shared_ptr<const std::vector<EventInfo>> clock_rows_;
  std::shared_ptr<const EventTable> promised_;
};

}  // namespace

std::unique_ptr<UnitFactory> make_hardware_factory(PerfKernel& kernel, HardwareMachine machine,
                                                   std::unique_ptr<UnitFactory> clock) {
  return std::make_unique<HardwareFactory>(kernel, std::move(machine), std::move(clock));
}

std::string hardware_refusal(PerfKernel& kernel, const HardwareMachine& machine) {
  const HardwareOutcome outcome = probe_hardware(kernel, plan_hardware(machine, kDefaultFrequency));
  return outcome.delivered.empty() ? outcome.why_nothing() : std::string();
}

}  // namespace hindsight::lwp
