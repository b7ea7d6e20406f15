// The null unit stands where profiling is off, so that nobody has to ask whether there is a unit.
#include <mutex>

#include "feedback/lwp/units/clock_unit.h"

namespace hindsight::lwp {
namespace {

class NullUnit final : public Unit {
 public:
  explicit NullUnit(std::unique_ptr<Ring> ring) : Unit(std::move(ring)) {}

  std::string_view name() const override { return "null"; }
  std::span<const EventInfo> events() const override { return {}; }
  Status attach() override { return {}; }
  void detach() override {}
  Status set_frequency(uint32_t hz) override {
    if (hz > kMaxFrequency)
      return make_error(ErrorKind::kUsage, "more samples a second than any unit delivers");
    return {};
  }
  void drain(Batch&) override {
    const std::lock_guard lock(mutex_);
    thrown_away_.clear();
    counters_.discarded += drain_ring(thrown_away_);
  }
  UnitCounters counters() const override {
    const std::lock_guard lock(mutex_);
    UnitCounters now = counters_;
    now.missed = ring_->missed() + ring_->overwritten();
    return now;
  }

 private:
  mutable std::mutex mutex_;  // protects the two below: counters() may be asked while another thread drains
  std::vector<EventRecord> thrown_away_;
  UnitCounters counters_;
};

class NullFactory final : public UnitFactory {
 public:
  std::string_view name() const override { return "null"; }
  std::span<const EventInfo> events() const override { return {}; }
  Result<std::unique_ptr<Unit>> create(const UnitConfig& config) const override {
    Ring::Options small = config.ring;
    small.records = 64;  // nobody reads them
    HINDSIGHT_ASSIGN(std::unique_ptr<Ring> ring, Ring::create(small));
    return std::make_unique<NullUnit>(std::move(ring));
  }
};

}  // namespace

std::unique_ptr<UnitFactory> make_null_factory() {
  return std::make_unique<NullFactory>();
}

}  // namespace hindsight::lwp
