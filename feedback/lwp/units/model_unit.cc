#include "feedback/lwp/units/model_unit.h"

#include <algorithm>
#include <cstring>

namespace hindsight::lwp {
namespace {

constexpr size_t kBufferWords =
    16384;  // 128 KiB: stays in the second-level cache with the model's own tables

constexpr EventInfo kModelEvents[] = {
    {.id = EventId::kValue, .accuracy = Accuracy::kExact, .how = "recorded by instrumented baseline code"},
    {.id = EventId::kInstructions,
     .accuracy = Accuracy::kExact,
     .how = "every WebAssembly instruction of instrumented baseline code is counted"},
    {.id = EventId::kBranches,
     .accuracy = Accuracy::kExact,
     .how = "every branch of instrumented baseline code is counted; the prediction is the model's"},
    {.id = EventId::kDcacheMiss,
     .accuracy = Accuracy::kEstimated,
     .how = "every load of instrumented baseline code goes through a model of caches: address exact, latency "
            "and "
            "source the model's"},
    {.id = EventId::kCoreClocks,
     .accuracy = Accuracy::kEstimated,
     .how = "cycles of a model of an out-of-order core"},
};

void arm(ControlBlock& block, EventId id, int32_t every) {
  block.flags |= flag_of(id);
  block.slot(id).interval = encode_counter(every - 1);
  block.slot(id).counter = encode_counter(every - 1);
}

}  // namespace

Result<std::unique_ptr<ModelUnit>> ModelUnit::create(const ModelConfig& model, const UnitConfig& config) {
  if (!config.trace)
    return make_error(ErrorKind::kUsage, "the model unit reads a trace, and this program writes none");
  HINDSIGHT_TRY(check(model.cache));
  HINDSIGHT_ASSIGN(std::unique_ptr<Ring> ring, Ring::create(config.ring));
  ControlBlock& block = ring->block();
  arm(block, EventId::kInstructions, kModelInstructionInterval);
  arm(block, EventId::kBranches, kModelBranchInterval);
  arm(block, EventId::kDcacheMiss, kModelMissInterval);
  arm(block, EventId::kCoreClocks, kModelClockInterval);
  return std::unique_ptr<ModelUnit>(new ModelUnit(std::move(ring), model, config));
}

ModelUnit::ModelUnit(std::unique_ptr<Ring> ring, const ModelConfig& model, const UnitConfig& config)
    : Unit(std::move(ring)), config_(model), directory_(*config.trace), buffer_(kBufferWords) {}

ModelUnit::~ModelUnit() = default;

std::span<const EventInfo> ModelUnit::events() const {
  return kModelEvents;
}

Status ModelUnit::attach() {
  const std::lock_guard lock(mutex_);
  if (core_) return make_error(ErrorKind::kUsage, "this unit is attached already");
  core_ = std::make_unique<CoreModel>(config_, directory_, ring_->block(), *this);
  return {};
}

Status ModelUnit::set_frequency(uint32_t hz) {
  if (hz > kMaxFrequency)
    return make_error(ErrorKind::kUsage, "more samples a second than any unit delivers");
  return {};
}

// Called by the model inside consume(), under the mutex.
void ModelUnit::record(const EventRecord& record) {
  // Head is this thread's own; the tail is moved under the mutex that is held.
  const ControlBlock& block = ring_->block();
  const uint32_t size = block.buffer_size();
  const uint32_t used = (block.head + size - block.tail) % size;
  if (used + 2 * kRecordSize >= size) drain_ring(emptied_);
  ring_->store(record);
}

void ModelUnit::insert(const EventRecord& event) {
  const std::lock_guard lock(mutex_);
  record(event);
}

void ModelUnit::drain(Batch& batch) {
  const std::lock_guard lock(mutex_);
  counters_.records += emptied_.size();
  batch.records.insert(batch.records.end(), emptied_.begin(), emptied_.end());
  emptied_.clear();
  counters_.records += drain_ring(batch.records);
}

UnitCounters ModelUnit::counters() const {
  const std::lock_guard lock(mutex_);
  UnitCounters now = counters_;
  now.missed = ring_->missed() + ring_->overwritten();
  return now;
}

uint64_t* ModelUnit::consume(const uint64_t* at) {
  const auto words = static_cast<size_t>(at - buffer_.data());
  size_t taken = words;
  {
    const std::lock_guard lock(mutex_);
    if (core_) taken = core_->consume({buffer_.data(), words});
  }
  left_ = words - taken;
  // A run is far shorter than the buffer: what leaves no room are words of runs that never ended.
  if (left_ > buffer_.size() / 2) left_ = 0;
  std::memmove(buffer_.data(), buffer_.data() + taken, left_ * sizeof(uint64_t));
  return buffer_.data() + left_;
}

ModelTotals ModelUnit::totals() const {
  const std::lock_guard lock(mutex_);
  return core_ ? core_->totals() : ModelTotals{};
}

namespace {

class ModelFactory final : public UnitFactory {
 public:
  explicit ModelFactory(ModelConfig config) : config_(std::move(config)) {}
  std::string_view name() const override { return "model"; }
  std::span<const EventInfo> events() const override { return kModelEvents; }
  Result<std::unique_ptr<Unit>> create(const UnitConfig& config) const override {
    ModelConfig model = config_;
    if (!config.model.empty()) {
      HINDSIGHT_ASSIGN(model, parse_model(config.model));
    }
    model.remember_addresses = config.remember_addresses;
    HINDSIGHT_ASSIGN(std::unique_ptr<ModelUnit> unit, ModelUnit::create(model, config));
    return std::unique_ptr<Unit>(std::move(unit));
  }

 private:
  ModelConfig config_;
};

}  // namespace

Result<std::unique_ptr<UnitFactory>> make_model_factory(std::string_view words) {
  HINDSIGHT_ASSIGN(ModelConfig config, parse_model(words));
  return std::unique_ptr<UnitFactory>(std::make_unique<ModelFactory>(std::move(config)));
}

}  // namespace hindsight::lwp
