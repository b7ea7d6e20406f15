// What a monitor counted, in the public report's terms.
#pragma once

#include "feedback/monitor/monitor.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

ProfilingCounts profiling_counts(const feedback::Monitor& monitor);

class ModuleCode;
struct ModuleCodeCounts;

// What was compiled, and what was not.
void report_compilations(const ModuleCodeCounts& counts, FeedbackReport& report);
// Which of the module's functions stay in baseline code, and why: as many as the report still has room for.
void report_left_in_baseline(const ModuleCode& code, FeedbackReport& report);

}  // namespace hindsight::rt
