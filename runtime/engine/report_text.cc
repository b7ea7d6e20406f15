#include <fmt/format.h>

#include "runtime/engine/hindsight.h"

namespace hindsight {

std::string FeedbackReport::to_string() const {
  std::string text = fmt::format("unit: {}\n", unit);
  const ProfilingCounts& c = counts;
  text += fmt::format(
      "samples: {} ({} attributed, {} outside the guest, {} unattributed; {} missed, {} lost)\n"
      "records: {} stalls ({} with address), {} branches, {} instructions, {} values\n",
      c.samples, c.attributed, c.outside_guest, c.unattributed, c.missed, c.lost, c.stall_records,
      c.stall_addresses, c.branch_records, c.instruction_records, c.value_records);
  text += fmt::format(
      "code: {} functions baseline ({:.1f} ms), {} optimized ({:.1f} ms), {} OSR entries, {} versions "
      "retired, "
      "{} waiting\n",
      functions_baseline, baseline_compile_seconds * 1e3, functions_optimized,
      optimized_compile_seconds * 1e3, osr_entries, versions_retired, versions_waiting);
  for (const PmuCount& count : pmu) {
    if (count.available)
      text += fmt::format("pmu {}: {:.0f} (scale {:.3f})\n", count.name, count.value, count.scale);
    else
      text += fmt::format("pmu {}: not available, {}\n", count.name, count.why_not);
  }
  text += fmt::format("decisions: {}\n", decisions.size());
  for (const DecisionReport& d : decisions) {
    text += fmt::format("  [{}] {:.3f} s  {} {}", d.id, d.seconds, d.kind, d.function);
    if (d.wasm_offset) text += fmt::format(" at 0x{:x}", *d.wasm_offset);
    text += fmt::format(": {}\n", d.state);
    if (!d.reason.empty()) text += fmt::format("      because {}\n", d.reason);
    for (const std::string& alternative : d.alternatives) text += fmt::format("      - {}\n", alternative);
    if (d.estimated_gain != 0 || d.measured_gain != 0)
      text += fmt::format("      estimated {:+.1f} %, measured {:+.1f} %\n", d.estimated_gain * 100,
                          d.measured_gain * 100);
    if (!d.outcome.empty()) text += fmt::format("      {}\n", d.outcome);
  }
  return text;
}

}  // namespace hindsight
