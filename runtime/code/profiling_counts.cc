#include "runtime/code/profiling_counts.h"

#include "runtime/code/module_code.h"

namespace hindsight::rt {

ProfilingCounts profiling_counts(const feedback::Monitor& monitor) {
  const feedback::MonitorCounts counts = monitor.counts();
  const lwp::UnitCounters unit = monitor.unit_counters();
  ProfilingCounts report;
  report.samples = counts.clock_records + unit.non_guest;
  report.attributed = counts.clock_attributed;
  report.outside_guest = unit.non_guest;
  report.unattributed = counts.clock_records - counts.clock_attributed;
  report.stall_records = counts.stall_records;
  report.stall_addresses = counts.stall_addresses;
  report.branch_records = counts.branch_records;
  report.instruction_records = counts.instruction_records;
  report.value_records = counts.value_records;
  report.guest_records = counts.guest_events + counts.guest_values;
  report.records_unattributed = counts.stall_no_offset + counts.branch_unattributed +
                                counts.instruction_unattributed + counts.value_unattributed +
                                counts.guest_unattributed;
  report.emitted = monitor.emitted();
  report.missed = unit.missed;
  report.lost = unit.lost;
  return report;
}

void report_compilations(const ModuleCodeCounts& counts, FeedbackReport& report) {
  report.functions_baseline = counts.baseline_functions;
  report.functions_optimized = counts.optimized_functions;
  report.functions_cached = counts.cached_functions;
  report.versions_over_limit = counts.over_limit;
  report.baseline_compile_seconds = counts.baseline_seconds;
  report.optimized_compile_seconds = counts.optimized_seconds;
  const auto of = [&](jit::NoCode why) { return counts.no_code[static_cast<size_t>(why)]; };
  report.compiles_without_code = {.too_large = of(jit::NoCode::kTooLarge),
                                  .too_slow = of(jit::NoCode::kTooSlow),
                                  .no_memory = of(jit::NoCode::kNoMemory),
                                  .abandoned = of(jit::NoCode::kAbandoned),
                                  .defects = of(jit::NoCode::kDefect)};
  report.functions_left_in_baseline = counts.functions_left;
}

void report_left_in_baseline(const ModuleCode& code, FeedbackReport& report) {
  constexpr size_t kMost = 16;
  for (auto& [function, reason] : code.left_in_baseline()) {
    if (report.left_in_baseline.size() == kMost) return;
    report.left_in_baseline.push_back({code.module()->function_name(FuncIndex(function)), reason});
  }
}

}  // namespace hindsight::rt
