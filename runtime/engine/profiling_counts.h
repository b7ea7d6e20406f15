// What a monitor counted, in the public report's terms.
#pragma once

#include "feedback/monitor/monitor.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

ProfilingCounts profiling_counts(const feedback::Monitor& monitor);

}  // namespace hindsight::rt
