#include "runtime/report/feedback_json.h"

#include <nlohmann/json.hpp>

namespace hindsight::report {

std::string to_json(const FeedbackReport& report) {
  using Json = nlohmann::ordered_json;
  const ProfilingCounts& c = report.counts;
  Json decisions = Json::array();
  for (const auto& d : report.decisions) {
    Json entry{{"id", d.id},
               {"kind", d.kind},
               {"function", d.function},
               {"reason", d.reason},
               {"alternatives", d.alternatives},
               {"state", d.state},
               {"estimated_gain", d.estimated_gain},
               {"measured_gain", d.measured_gain},
               {"outcome", d.outcome},
               {"seconds", d.seconds}};
    if (d.wasm_offset) entry["wasm_offset"] = *d.wasm_offset;
    decisions.push_back(std::move(entry));
  }
  Json pmu = Json::array();
  for (const auto& count : report.pmu) {
    Json entry{{"name", count.name}, {"available", count.available}};
    if (count.available) {
      entry["value"] = count.value;
      entry["scale"] = count.scale;
    } else {
      entry["why_not"] = count.why_not;
    }
    pmu.push_back(std::move(entry));
  }
  const Json all{{"unit", report.unit},
                 {"counts", Json{{"samples", c.samples},
                                 {"attributed", c.attributed},
                                 {"outside_guest", c.outside_guest},
                                 {"unattributed", c.unattributed},
                                 {"stall_records", c.stall_records},
                                 {"stall_addresses", c.stall_addresses},
                                 {"branch_records", c.branch_records},
                                 {"instruction_records", c.instruction_records},
                                 {"value_records", c.value_records},
                                 {"missed", c.missed},
                                 {"lost", c.lost}}},
                 {"functions_baseline", report.functions_baseline},
                 {"functions_optimized", report.functions_optimized},
                 {"baseline_compile_seconds", report.baseline_compile_seconds},
                 {"optimized_compile_seconds", report.optimized_compile_seconds},
                 {"osr_entries", report.osr_entries},
                 {"versions_retired", report.versions_retired},
                 {"versions_waiting", report.versions_waiting},
                 {"decisions", std::move(decisions)},
                 {"pmu", std::move(pmu)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hindsight::report
