#include "runtime/report/bench_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "runtime/report/late_json.h"
#include "runtime/report/text.h"

namespace hindsight::report {
namespace {

using Json = nlohmann::ordered_json;

Json spread_json(const Spread& spread, const char* suffix) {
  const std::string end = suffix;
  return Json{{"median" + end, spread.median}, {"min" + end, spread.min}, {"max" + end, spread.max}};
}

double median_of_counts(const std::vector<uint64_t>& counts) {
  const std::vector<double> values(counts.begin(), counts.end());
  return spread_of(values).median;
}

}  // namespace

const ModeRuns* WorkloadResult::mode(std::string_view wanted) const {
  const auto found =
      std::find_if(modes.begin(), modes.end(), [&](const auto& m) { return m.mode == wanted; });
  return found == modes.end() ? nullptr : &*found;
}

const Speedup* WorkloadResult::speedup(std::string_view wanted) const {
  const auto found =
      std::find_if(speedups.begin(), speedups.end(), [&](const auto& s) { return s.name() == wanted; });
  return found == speedups.end() ? nullptr : &*found;
}

bool BenchResults::answers_ok() const {
  return std::all_of(workloads.begin(), workloads.end(), [](const auto& w) { return w.answers_ok; });
}

std::vector<std::string> BenchResults::suites() const {
  std::vector<std::string> names;
  for (const auto& workload : workloads) {
    if (std::find(names.begin(), names.end(), workload.suite) == names.end()) names.push_back(workload.suite);
  }
  return names;
}

void compute_speedups(WorkloadResult& workload) {
  // In this order a later mode is meant to be the faster one, whatever order the user named them in.
  static constexpr const char* kOrder[] = {"baseline", "optimized", "feedback"};
  workload.speedups.clear();
  for (size_t fast = 2; fast > 0; --fast) {
    for (size_t slow = fast; slow-- > 0;) {
      const ModeRuns* a = workload.mode(kOrder[fast]);
      const ModeRuns* b = workload.mode(kOrder[slow]);
      if (a == nullptr || b == nullptr) continue;
      Speedup speedup{kOrder[fast], kOrder[slow], {}};
      for (size_t k = 0; k < std::min(a->seconds.size(), b->seconds.size()); ++k) {
        if (a->seconds[k] > 0 && b->seconds[k] > 0) speedup.rounds.push_back(b->seconds[k] / a->seconds[k]);
      }
      if (!speedup.rounds.empty()) workload.speedups.push_back(std::move(speedup));
    }
  }
}

std::vector<SuiteSummary> summarize(const BenchResults& results, std::string_view speedup) {
  std::vector<SuiteSummary> out;
  const auto add = [&](const std::string& name, auto&& wanted) {
    std::vector<double> medians;
    for (const auto& workload : results.workloads) {
      const Speedup* s = workload.speedup(speedup);
      if (s != nullptr && workload.answers_ok && wanted(workload))
        medians.push_back(spread_of(s->rounds).median);
    }
    if (medians.empty()) return;
    const Spread spread = spread_of(medians);
    out.push_back({name, medians.size(), geometric_mean(medians), spread.min, spread.max});
  };
  for (const auto& suite : results.suites()) {
    add(suite, [&](const WorkloadResult& workload) { return workload.suite == suite; });
  }
  add("all", [](const WorkloadResult&) { return true; });
  return out;
}

std::string to_json(const BenchResults& results) {
  Json machine{{"cpu", results.machine.cpu},
               {"cores", results.machine.cores},
               {"memory_bytes", results.machine.memory_bytes},
               {"kernel", results.machine.kernel},
               {"page_bytes", results.machine.page_bytes},
               {"unit", results.machine.unit},
               {"version", results.machine.version}};
  Json workloads = Json::array();
  for (const auto& workload : results.workloads) {
    Json modes = Json::object();
    for (const auto& runs : workload.modes) {
      Json mode = spread_json(spread_of(runs.seconds), "_s");
      mode["runs"] = runs.seconds.size();
      mode["seconds"] = runs.seconds;
      if (runs.mode == "feedback") {
        mode["unit"] = runs.unit;
        mode["decisions_kept"] = runs.kept;
        mode["decisions_rolled_back"] = runs.rolled_back;
      }
      if (runs.mode != "baseline") {
        mode["late_seconds"] = runs.late_seconds;
        mode["late"] = Json::array();
        for (const std::vector<LateReport>& places : runs.late) {
          Json& run = mode["late"].emplace_back(Json::array());
          for (const LateReport& place : places) run.push_back(late_json(place));
        }
      }
      modes[runs.mode] = std::move(mode);
    }
    Json speedups = Json::object();
    for (const auto& speedup : workload.speedups) {
      speedups[speedup.name()] = spread_json(spread_of(speedup.rounds), "");
      speedups[speedup.name()]["rounds"] = speedup.rounds;
    }
    Json entry{{"name", workload.name},
               {"suite", workload.suite},
               {"answers_ok", workload.answers_ok},
               {"modes", std::move(modes)},
               {"speedup", std::move(speedups)}};
    if (!workload.problems.empty()) entry["problems"] = workload.problems;
    workloads.push_back(std::move(entry));
  }
  Json summary = Json::object();
  for (const char* name : {"feedback_vs_optimized", "feedback_vs_baseline", "optimized_vs_baseline"}) {
    Json suites = Json::object();
    for (const auto& suite : summarize(results, name)) {
      suites[suite.suite] = Json{{"workloads", suite.workloads},
                                 {"geomean", suite.geomean},
                                 {"lowest", suite.lowest},
                                 {"highest", suite.highest}};
    }
    if (!suites.empty()) summary[name] = std::move(suites);
  }
  const Json all{{"machine", std::move(machine)},
                 {"settings", Json{{"modes", results.modes},
                                   {"rounds", results.rounds},
                                   {"quick", results.quick},
                                   {"time", results.time},
                                   {"pinned", results.pinned},
                                   {"instances", results.instances},
                                   {"total_seconds", results.total_seconds}}},
                 {"workloads", std::move(workloads)},
                 {"summary", std::move(summary)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_table(const BenchResults& results) {
  const auto has = [&](const char* mode) {
    return std::find(results.modes.begin(), results.modes.end(), mode) != results.modes.end();
  };
  // The comparison people come for, or the best one that the chosen modes allow.
  std::string ratio;
  for (const char* name : {"feedback_vs_optimized", "feedback_vs_baseline", "optimized_vs_baseline"}) {
    if (!ratio.empty()) break;
    const bool any = std::any_of(results.workloads.begin(), results.workloads.end(),
                                 [&](const auto& w) { return w.speedup(name) != nullptr; });
    if (any) ratio = name;
  }
  std::string alignment = "ll";
  std::vector<std::string> header{"workload", "suite"};
  for (const char* mode : {"baseline", "optimized", "feedback"}) {
    if (!has(mode)) continue;
    alignment += 'r';
    header.push_back(fmt::format("{} s", mode));
  }
  if (!ratio.empty()) {
    alignment += "rl";
    header.push_back("speedup");
    header.push_back("[min..max]");
  }
  if (has("feedback")) {
    alignment += 'r';
    header.push_back("kept");
  }
  alignment += 'l';
  header.push_back("answers");

  TextTable table(alignment);
  table.add(header);
  std::string last_suite;
  for (const auto& workload : results.workloads) {
    if (!last_suite.empty() && last_suite != workload.suite) table.rule();
    last_suite = workload.suite;
    std::vector<std::string> row{printable(workload.name), printable(workload.suite)};
    for (const char* mode : {"baseline", "optimized", "feedback"}) {
      if (!has(mode)) continue;
      const ModeRuns* runs = workload.mode(mode);
      row.push_back(runs == nullptr || runs->seconds.empty()
                        ? "-"
                        : fmt::format("{:.3f}", spread_of(runs->seconds).median));
    }
    if (!ratio.empty()) {
      const Speedup* speedup = workload.speedup(ratio);
      const Spread spread = speedup == nullptr ? Spread{} : spread_of(speedup->rounds);
      row.push_back(speedup == nullptr ? "-" : fmt::format("{:.2f}x", spread.median));
      row.push_back(speedup == nullptr ? "" : fmt::format("[{:.2f}..{:.2f}]", spread.min, spread.max));
    }
    if (has("feedback")) {
      const ModeRuns* runs = workload.mode("feedback");
      row.push_back(runs == nullptr ? "-" : fmt::format("{:.0f}", median_of_counts(runs->kept)));
    }
    row.push_back(workload.answers_ok ? "ok" : "WRONG");
    table.add(std::move(row));
  }
  std::string out = table.text();
  for (const auto& workload : results.workloads) {
    for (const auto& problem : workload.problems) {
      out += fmt::format("! {}: {}\n", printable(workload.name), printable(problem));
    }
  }
  if (ratio.empty()) return out;

  const size_t cut = ratio.find("_vs_");
  out += fmt::format(
      "\nspeedup = {} time {} / {} time {}, within each round; median of {} round{} [min..max]\n\n",
      results.time == "cpu" ? "CPU" : "wall", ratio.substr(cut + 4), results.time == "cpu" ? "CPU" : "wall",
      ratio.substr(0, cut), results.rounds, results.rounds == 1 ? "" : "s");
  TextTable summary("lrrrr");
  summary.add({"suite", "workloads", "geomean", "lowest", "highest"});
  for (const auto& suite : summarize(results, ratio)) {
    if (suite.suite == "all") summary.rule();
    summary.add({printable(suite.suite), std::to_string(suite.workloads),
                 fmt::format("{:.2f}x", suite.geomean), fmt::format("{:.2f}x", suite.lowest),
                 fmt::format("{:.2f}x", suite.highest)});
  }
  return out + summary.text();
}

}  // namespace hindsight::report
