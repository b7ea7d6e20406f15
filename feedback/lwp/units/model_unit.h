// The model unit: what Lightweight Profiling would say of a guest on a processor that is fully known, because
// it is a model (core_model.h). It watches a thread whose code was instrumented to report everything it does
// (base/trace.h). It writes the records that the control block's intervals ask for into the thread's ring.
// Instructions and branches are exact counts, caches and clocks are the model's. Nothing depends on time,
// load or addresses of this machine, so the same program gives the same records again.
//
// No record is ever missed: a ring that is nearly full is emptied by the thread itself, for the next drain().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedback/lwp/model/core_model.h"
#include "feedback/lwp/units/unit.h"

namespace hindsight::lwp {

// Intervals unless the control block says otherwise: every k-th event.
inline constexpr int32_t kModelInstructionInterval = 1'000'003;
inline constexpr int32_t kModelBranchInterval = 65'521;
inline constexpr int32_t kModelMissInterval = 4'093;
inline constexpr int32_t kModelClockInterval =
    3'600'011;  // cycles: a millisecond of the core that is modelled

class ModelUnit final : public Unit, public CoreModel::Records {
 public:
  // `config.trace` must be set and outlive the unit. Errors: kUsage, kResource.
  static Result<std::unique_ptr<ModelUnit>> create(const ModelConfig& model, const UnitConfig& config);
  ~ModelUnit() override;

  std::string_view name() const override { return "model"; }
  std::span<const EventInfo> events() const override;
  // Reads the control block (flags, intervals, counters, filters): set it up before.
  Status attach() override;
  void detach() override {}
  // Accepted and ignored: the model's clock is its own, whoever asks.
  Status set_frequency(uint32_t hz) override;
  void drain(Batch& batch) override;
  UnitCounters counters() const override;

  // The buffer for the words of instrumented code; it has kTraceSlack words after trace_end(). The guest's
  // thread.
  uint64_t* trace_begin() { return buffer_.data() + left_; }
  uint64_t* trace_end() { return buffer_.data() + buffer_.size() - kTraceSlack; }
  // Takes in the words in front of `at`; returns where the next goes. The guest's thread.
  uint64_t* consume(const uint64_t* at);

  // A record that the guest's thread makes by itself; like the model's own, never missed.
  void insert(const EventRecord& event);

  // Totals over everything consumed so far. Any thread. Pointers in it live as long as the unit.
  ModelTotals totals() const;

 private:
  ModelUnit(std::unique_ptr<Ring> ring, const ModelConfig& model, const UnitConfig& config);
  void record(const EventRecord& record) override;

  const ModelConfig config_;
  const TraceDirectory& directory_;
  std::vector<uint64_t> buffer_;
  size_t left_ = 0;  // words at the buffer's begin that wait for the rest of their run

  mutable std::mutex mutex_;  // protects what follows, and the ring's reading end
  std::unique_ptr<CoreModel> core_;
  std::vector<EventRecord> emptied_;  // from the ring, in order, not yet drained
  UnitCounters counters_;
};

// `words`: see parse_model. Errors: kUsage.
Result<std::unique_ptr<UnitFactory>> make_model_factory(std::string_view words);

}  // namespace hindsight::lwp
