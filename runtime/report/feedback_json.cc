#include "runtime/report/feedback_json.h"

#include "runtime/report/json_value.h"

namespace hindsight::report {

std::string to_json(const FeedbackReport& report) {
  const ProfilingCounts& c = report.counts;
  Json decisions = Json::array();
  for (const auto& d : report.decisions) {
    Json entry{{"id", d.id},
               {"kind", d.kind},
               {"function", d.function},
               {"reason", d.reason},
               {"alternatives", d.alternatives},
               {"state", to_string(d.state)},
               {"estimated_gain", d.estimated_gain},
               {"measured_gain", d.measured_gain},
               {"outcome", d.outcome},
               {"seconds", d.seconds}};
    if (!d.state_why.empty()) entry["state_why"] = d.state_why;
    if (d.wasm_offset) entry["wasm_offset"] = *d.wasm_offset;
    decisions.push_back(std::move(entry));
  }
  const BurstReport& b = report.bursts;
  Json loads = Json::array();
  for (const LoadReport& l : report.loads) {
    loads.push_back({{"function", l.function},
                     {"wasm_offset", l.wasm_offset},
                     {"stall_samples", l.stall_samples},
                     {"function_samples", l.function_samples}});
    if (l.timed == 0) continue;
    loads.back()["timed"] = Json{{"accuracy", "estimated"},
                                 {"level", l.level},
                                 {"count", l.timed},
                                 {"mean_ticks", l.mean_ticks},
                                 {"memory_share", l.memory_share},
                                 {"latency_ns", l.latency_ns}};
  }
  Json branches = Json::array();
  for (const BranchReport& r : report.branches) {
    branches.push_back({{"function", r.function},
                        {"wasm_offset", r.wasm_offset},
                        {"sampled", r.sampled},
                        {"sampled_taken", r.sampled_taken},
                        {"outcomes", r.outcomes},
                        {"taken", r.taken},
                        {"judged", r.judged},
                        {"mispredicted", r.mispredicted}});
  }
  Json late = Json::array();
  for (const LateReport& place : report.late) {
    Json entry{{"function", place.function},
               {"wasm_offset", place.wasm_offset},
               {"in_loop", place.in_loop},
               {"seconds", place.seconds}};
    for (const LatePart& part : kLateParts) entry[part.name] = place.*part.seconds;
    if (!place.why.empty()) entry["why"] = place.why;
    late.push_back(std::move(entry));
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
  Json passes = Json::array();
  for (const auto& pass : report.optimizer_passes)
    passes.push_back(Json{{"name", pass.name}, {"runs", pass.runs}, {"seconds", pass.seconds}});
  Json refusals = Json::array();
  Json left = Json::array();
  for (const auto& function : report.left_in_baseline)
    left.push_back({{"function", function.function}, {"reason", function.reason}});
  for (const auto& refusal : report.system_refusals)
    refusals.push_back(
        Json{{"what", refusal.what}, {"count", refusal.count}, {"first_error", refusal.first_error}});
  const GuestEventReport& g = report.guest;
  Json kinds = Json::array();
  for (const auto& kind : g.kinds) {
    Json data1 = Json::array();
    for (const auto& d : kind.data1) data1.push_back(Json{{"value", d.value}, {"count", d.count}});
    Json entry{{"event", kind.value ? "value" : "programmed"},
               {"flags", kind.flags},
               {"name", kind.name},
               {"count", kind.count},
               {"first_seconds", kind.first_seconds},
               {"last_seconds", kind.last_seconds},
               {"function", kind.function},
               {"more_sites", kind.more_sites},
               {"least", kind.least},
               {"greatest", kind.greatest},
               {"mean", kind.mean},
               {"data1", std::move(data1)},
               {"data1_others", kind.data1_others}};
    if (kind.wasm_offset) entry["wasm_offset"] = *kind.wasm_offset;
    kinds.push_back(std::move(entry));
  }
  const Json guest{{"inserted", g.inserted},       {"inserted_full", g.inserted_full},
                   {"values_seen", g.values_seen}, {"values_stored", g.values_stored},
                   {"values_full", g.values_full}, {"calls_off", g.calls_off},
                   {"kinds", std::move(kinds)},    {"left_out", g.left_out}};
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
                                 {"guest_records", c.guest_records},
                                 {"records_unattributed", c.records_unattributed},
                                 {"emitted", c.emitted},
                                 {"missed", c.missed},
                                 {"lost", c.lost}}},
                 {"guest", guest},
                 {"functions_baseline", report.functions_baseline},
                 {"functions_optimized", report.functions_optimized},
                 {"functions_cached", report.functions_cached},
                 {"versions_over_limit", report.versions_over_limit},
                 {"compiles_without_code", Json{{"too_large", report.compiles_without_code.too_large},
                                                {"too_slow", report.compiles_without_code.too_slow},
                                                {"no_memory", report.compiles_without_code.no_memory},
                                                {"abandoned", report.compiles_without_code.abandoned},
                                                {"defects", report.compiles_without_code.defects}}},
                 {"functions_left_in_baseline", report.functions_left_in_baseline},
                 {"left_in_baseline", std::move(left)},
                 {"compile_threads_refused", report.compile_threads_refused},
                 {"compile_tasks_refused", report.compile_tasks_refused},
                 {"baseline_compile_seconds", report.baseline_compile_seconds},
                 {"optimized_compile_seconds", report.optimized_compile_seconds},
                 {"versions_retired", report.versions_retired},
                 {"versions_waiting", report.versions_waiting},
                 {"system_refusals", std::move(refusals)},
                 {"bursts", Json{{"rate_bursts", b.rate_bursts},
                                 {"rate_seconds", b.rate_seconds},
                                 {"rate_cost_seconds", b.rate_cost_seconds},
                                 {"branch_bursts", b.branch_bursts},
                                 {"branch_bursts_refused", b.branch_bursts_refused},
                                 {"branch_outcomes", b.branch_outcomes},
                                 {"branch_judged", b.branch_judged},
                                 {"branch_mispredicted", b.branch_mispredicted},
                                 {"mispredicted_share", b.mispredicted_share}}},
                 {"loads", std::move(loads)},
                 {"branches", std::move(branches)},
                 {"late_seconds", report.late_seconds},
                 {"late_places", report.late_places},
                 {"late", std::move(late)},
                 {"decisions", std::move(decisions)},
                 {"decisions_forgotten", report.decisions_forgotten},
                 {"modules_forgotten", report.modules_forgotten},
                 {"page_decisions_forgotten", report.page_decisions_forgotten},
                 {"optimizer_passes", std::move(passes)},
                 {"pmu", std::move(pmu)}};
  return all.text();
}

}  // namespace hindsight::report
