#include "runtime/engine/profiling_counts.h"

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

}  // namespace hindsight::rt
