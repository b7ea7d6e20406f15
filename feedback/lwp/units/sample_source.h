// Where a clock unit's samples come from: the kernel's perf clock or a per-thread timer. Internal to this
// room.
//
// The clock unit calls everything with its lock held, so a source needs none. Only what a source shares with
// the kernel or with a signal handler is concurrent.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "feedback/lwp/format/sample.h"
#include "feedback/lwp/units/unit.h"

namespace hindsight::lwp {

class SampleSource {
 public:
  // Ends sampling. On the sampled thread wherever possible; see the sources for what happens elsewhere.
  virtual ~SampleSource() = default;
  virtual std::string_view name() const = 0;
  // Takes effect at once and starts a new period; 0 pauses. Drain before: what is drained later counts with
  // the new period.
  virtual Status set_period(uint64_t period_ns) = 0;
  // Appends guest samples and adds what was lost or dropped to `counters` (which holds sums of this unit).
  virtual void drain(std::vector<RawSample>& out, UnitCounters& counters) = 0;
};

}  // namespace hindsight::lwp
