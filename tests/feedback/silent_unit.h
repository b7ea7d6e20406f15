// A unit that watches nobody: whoever wants a guest thread that the monitor knows of attaches it.
#pragma once

#include <utility>

#include "feedback/lwp/units/unit.h"

namespace hindsight {

class SilentUnit : public lwp::Unit {
 public:
  SilentUnit() : Unit(std::move(*lwp::Ring::create({}))) {}
  std::string_view name() const override { return "silent"; }
  std::span<const lwp::EventInfo> events() const override { return {}; }
  Status attach() override { return {}; }
  void detach() override {}
  Status set_frequency(uint32_t) override { return {}; }
  void drain(lwp::Batch& batch) override { drain_ring(batch.records); }
  lwp::UnitCounters counters() const override { return {}; }
};

}  // namespace hindsight
