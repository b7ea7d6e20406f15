#include <fmt/format.h>

#include "base/printable.h"
#include "runtime/engine/hindsight.h"

namespace hindsight {
namespace {

// "main at 0x46e 0.120 s (waiting 0.030, compiling 0.090)"
std::string late_place(const LateReport& place) {
  std::string parts;
  for (const LatePart& part : kLateParts)
    if (place.*part.seconds > 0)
      parts += fmt::format("{}{} {:.3f}", parts.empty() ? "" : ", ", part.name, place.*part.seconds);
  return fmt::format("{} {} {:.3f} s ({})", printable_name(place.function),
                     place.in_loop ? fmt::format("at 0x{:x}", place.wasm_offset) : "outside of its loops",
                     place.seconds, parts);
}

}  // namespace

std::string FeedbackReport::late_text() const {
  if (late.empty()) return {};
  return fmt::format("{:.3f} s in {} place{} after {} hot; most: {}", late_seconds, late_places,
                     late_places == 1 ? "" : "s", late_places == 1 ? "it was" : "they were",
                     late_place(late.front()));
}

std::string FeedbackReport::to_string() const {
  std::string text = fmt::format("unit: {}\n", unit);
  const ProfilingCounts& c = counts;
  text += fmt::format(
      "samples: {} ({} attributed, {} outside the guest, {} unattributed; {} missed and {} lost beside "
      "them)\n"
      "records: {} stalls ({} with address), {} branches, {}{} values, {} of the guest; "
      "{} unattributed\n",
      c.samples, c.attributed, c.outside_guest, c.unattributed, c.missed, c.lost, c.stall_records,
      c.stall_addresses, c.branch_records,
      c.instruction_records > 0 ? fmt::format("{} instructions, ", c.instruction_records) : "",
      c.value_records, c.guest_records, c.records_unattributed);
  if (const GuestEventReport& g = guest; g.inserted + g.values_seen + g.calls_off != 0) {
    text += fmt::format(
        "guest: {} events inserted ({} missed), {} values seen ({} recorded, {} missed), {} calls without a "
        "unit\n",
        g.inserted, g.inserted_full, g.values_seen, g.values_stored, g.values_full, g.calls_off);
  }
  text += fmt::format(
      "code: {} functions baseline ({:.1f} ms), {} optimized ({:.1f} ms), {} from the cache, {} "
      "versions retired, {} waiting{}\n",
      functions_baseline, baseline_compile_seconds * 1e3, functions_optimized,
      optimized_compile_seconds * 1e3, functions_cached, versions_retired, versions_waiting,
      versions_over_limit == 0
          ? ""
          : fmt::format(", {} not compiled for the limit code-bytes", versions_over_limit));
  if (const CompilesWithoutCode& none = compiles_without_code; none.sum() != 0)
    text += fmt::format(
        "compiles without code: {} of {} ({} too large, {} too slow, {} without memory, {} abandoned, {} "
        "defects); so {} functions stay in baseline code\n",
        none.sum(), none.sum() + functions_optimized, none.too_large, none.too_slow, none.no_memory,
        none.abandoned, none.defects, functions_left_in_baseline);
  for (const LeftInBaseline& left : left_in_baseline)
    text += fmt::format("  {} stays in baseline code: {}\n", printable_name(left.function),
                        printable_line(left.reason));
  if (compile_threads_refused != 0)
    text += fmt::format("compile threads: {} could not be created, so {} tasks were not done\n",
                        compile_threads_refused, compile_tasks_refused);
  for (const SystemRefusal& refusal : system_refusals)
    text += fmt::format("refused by the system: {}, {} times{}\n", refusal.what, refusal.count,
                        refusal.first_error.empty() ? "" : ", first: " + refusal.first_error);
  if (const std::string line = late_text(); !line.empty()) text += "in baseline code: " + line + "\n";
  for (const LateReport& place : late)
    text += fmt::format("  {}{}\n", late_place(place),
                        place.why.empty() ? "" : ": " + std::string(printable_line(place.why)));
  for (const std::string& line : pass_table()) text += line + "\n";
  for (const PmuCount& count : pmu) {
    if (count.available && count.scale < 1)
      text += fmt::format("pmu {}: {:.0f} (scaled up: counted {:.0f} % of the time)\n", count.name,
                          count.value, 100 * count.scale);
    else if (count.available)
      text += fmt::format("pmu {}: {:.0f}\n", count.name, count.value);
    else
      text += fmt::format("pmu {}: not available, {}\n", count.name, printable_line(count.why_not));
  }
  const BurstReport& b = bursts;
  text += fmt::format(
      "bursts of samples: {} ({:.1f} s, about {:.1f} ms of the guest's time)\n"
      "bursts of branches: {}, {} refused ({} outcomes, {} judged, {} of these mispredicted; {:.1f} % of the "
      "run's branches, estimate)\n",
      b.rate_bursts, b.rate_seconds, b.rate_cost_seconds * 1e3, b.branch_bursts, b.branch_bursts_refused,
      b.branch_outcomes, b.branch_judged, b.branch_mispredicted, 100 * b.mispredicted_share);
  if (!loads.empty()) text += "loads by stall samples:\n";
  for (const LoadReport& l : loads) {
    text += fmt::format("  {} at 0x{:x}: {:.0f} of {:.0f} samples", printable_name(l.function), l.wasm_offset,
                        l.stall_samples, l.function_samples);
    if (l.timed)
      text += fmt::format(
          "; from {}{}, mean of {} timed loads {:.0f} ticks, {:.0f} % of them from memory (estimate)",
          l.level, l.latency_ns > 0 ? fmt::format(" ({:.1f} ns)", l.latency_ns) : "", l.timed, l.mean_ticks,
          l.memory_share * 100);
    text += "\n";
  }
  if (!branches.empty()) text += "branches by mispredictions seen:\n";
  for (const BranchReport& r : branches) {
    text += fmt::format("  {} at 0x{:x}: taken {} of {} seen", printable_name(r.function), r.wasm_offset,
                        r.taken + r.sampled_taken, r.outcomes + r.sampled);
    if (r.judged)
      text += fmt::format(", mispredicted {} of {} judged ({:.1f} %, estimate)", r.mispredicted, r.judged,
                          100 * static_cast<double>(r.mispredicted) / static_cast<double>(r.judged));
    text += "\n";
  }
  text += fmt::format("decisions: {}\n", decisions.size());
  if (modules_forgotten != 0)
    text += fmt::format("  not told: {} decisions of {} modules that ended before the last ones\n",
                        decisions_forgotten, modules_forgotten);
  if (page_decisions_forgotten != 0)
    text += fmt::format("  not told: {} decisions about huge pages before the last ones of their modules\n",
                        page_decisions_forgotten);
  for (const DecisionReport& d : decisions) {
    text += fmt::format("  [{}] {:.3f} s  {} {}", d.id, d.seconds, d.kind, printable_name(d.function));
    if (d.wasm_offset) text += fmt::format(" at 0x{:x}", *d.wasm_offset);
    text += fmt::format(": {}\n", printable_line(state_text(d.state, d.state_why)));
    if (!d.reason.empty()) text += fmt::format("      because {}\n", printable_line(d.reason));
    for (const std::string& alternative : d.alternatives)
      text += fmt::format("      - {}\n", printable_line(alternative));
    if (d.estimated_gain != 0 || d.measured_gain != 0)
      text += fmt::format("      estimated {:+.1f} %, measured {:+.1f} %\n", d.estimated_gain * 100,
                          d.measured_gain * 100);
    if (!d.outcome.empty()) text += fmt::format("      {}\n", printable_line(d.outcome));
  }
  return text;
}

}  // namespace hindsight
