#include "runtime/report/bench_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

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

// Whether a mode decides anything, so that what it kept means something.
bool decides(std::string_view mode) {
  return mode != "baseline" && mode != "plain" && mode != "optimized";
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

std::vector<Comparison> comparisons(const std::vector<std::string>& modes,
                                    const std::vector<SplitStep>& split) {
  std::vector<Comparison> out;
  const auto add = [&](const std::string& faster, const std::string& slower) {
    const Comparison pair{faster, slower};
    if (std::ranges::find(out, pair.name(), &Comparison::name) == out.end()) out.push_back(pair);
  };
  const auto has = [&](const char* mode) { return std::ranges::find(modes, mode) != modes.end(); };
  if (!split.empty()) {
    add(split.back().faster, split.front().slower);
    for (const SplitStep& step : split) add(step.faster, step.slower);
    return out;
  }
  const std::vector<std::string> compilers{"baseline", "plain", "optimized"};
  // In this order the faster modes of a reference are named: all decisions, some of them, none.
  std::vector<std::string> order;
  if (has("feedback")) order.push_back("feedback");
  for (const std::string& mode : modes)
    if (mode != "feedback" && std::ranges::find(compilers, mode) == compilers.end()) order.push_back(mode);
  const size_t some = order.size();
  for (const char* mode : {"optimized", "plain"})
    if (has(mode)) order.emplace_back(mode);
  for (const char* reference : {"plain", "optimized", "baseline"}) {
    if (!has(reference)) continue;
    for (const std::string& mode : order) {
      if (mode == reference) break;  // what follows it is no faster
      add(mode, reference);
    }
  }
  if (has("feedback"))
    for (size_t k = 1; k < some; ++k) add("feedback", order[k]);
  return out;
}

void compute_speedups(WorkloadResult& workload, const std::vector<Comparison>& pairs) {
  const auto ratios = [](const std::vector<double>& slower, const std::vector<double>& faster) {
    std::vector<double> out;
    for (size_t k = 0; k < std::min(slower.size(), faster.size()); ++k)
      if (slower[k] > 0 && faster[k] > 0) out.push_back(slower[k] / faster[k]);
    return out;
  };
  workload.speedups.clear();
  for (const Comparison& pair : pairs) {
    const ModeRuns* faster = workload.mode(pair.faster);
    const ModeRuns* slower = workload.mode(pair.slower);
    if (faster == nullptr || slower == nullptr) continue;
    Speedup speedup{pair.faster, pair.slower, ratios(slower->seconds, faster->seconds),
                    ratios(slower->process_seconds, faster->process_seconds)};
    if (!speedup.rounds.empty()) workload.speedups.push_back(std::move(speedup));
  }
}

std::vector<SuiteSummary> summarize(const BenchResults& results, std::string_view speedup) {
  std::vector<SuiteSummary> out;
  const auto add = [&](const std::string& name, auto&& wanted) {
    std::vector<double> medians, process;
    for (const auto& workload : results.workloads) {
      const Speedup* s = workload.speedup(speedup);
      if (s == nullptr || !workload.answers_ok || !wanted(workload)) continue;
      medians.push_back(spread_of(s->rounds).median);
      if (!s->process.empty()) process.push_back(spread_of(s->process).median);
    }
    if (medians.empty()) return;
    const Spread spread = spread_of(medians);
    out.push_back(
        {name, medians.size(), geometric_mean(medians), spread.min, spread.max, geometric_mean(process)});
  };
  for (const auto& suite : results.suites()) {
    add(suite, [&](const WorkloadResult& workload) { return workload.suite == suite; });
  }
  add("all", [](const WorkloadResult&) { return true; });
  return out;
}

std::string headline(const BenchResults& results) {
  for (const Comparison& pair : comparisons(results.modes, results.split)) {
    const bool any = std::ranges::any_of(results.workloads,
                                         [&](const auto& w) { return w.speedup(pair.name()) != nullptr; });
    if (any) return pair.name();
  }
  return {};
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
      mode["process_cpu_s"] = runs.process_seconds;
      if (decides(runs.mode)) {
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
      if (!speedup.process.empty())
        speedups[speedup.name()]["process_cpu_median"] = spread_of(speedup.process).median;
    }
    Json entry{{"name", workload.name},
               {"suite", workload.suite},
               {"answers_ok", workload.answers_ok},
               {"modes", std::move(modes)},
               {"speedup", std::move(speedups)}};
    if (workload.length_seconds > 0) {
      entry["length_s"] = workload.length_seconds;
      entry["args"] = workload.args;
    }
    if (!workload.problems.empty()) entry["problems"] = workload.problems;
    workloads.push_back(std::move(entry));
  }
  Json summary = Json::object();
  for (const Comparison& pair : comparisons(results.modes, results.split)) {
    Json suites = Json::object();
    for (const auto& suite : summarize(results, pair.name())) {
      suites[suite.suite] = Json{{"workloads", suite.workloads},
                                 {"geomean", suite.geomean},
                                 {"lowest", suite.lowest},
                                 {"highest", suite.highest},
                                 {"process_cpu_geomean", suite.process}};
    }
    if (!suites.empty()) summary[pair.name()] = std::move(suites);
  }
  Json split = Json::array();
  for (const SplitStep& step : results.split)
    split.push_back({{"adds", step.label}, {"speedup", Comparison{step.faster, step.slower}.name()}});
  const Json all{{"machine", std::move(machine)},
                 {"settings", Json{{"modes", results.modes},
                                   {"without", results.without},
                                   {"rounds", results.rounds},
                                   {"quick", results.quick},
                                   {"time", results.time},
                                   {"pinned", results.pinned},
                                   {"instances", results.instances},
                                   {"total_seconds", results.total_seconds}}},
                 {"split", std::move(split)},
                 {"workloads", std::move(workloads)},
                 {"summary", std::move(summary)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// The columns of one mode: the run's time, and beside it what the process took of all processors.
void add_mode(const WorkloadResult& workload, const std::string& mode, std::vector<std::string>& row) {
  const ModeRuns* runs = workload.mode(mode);
  const auto median = [](const std::vector<double>& seconds) {
    return seconds.empty() ? "-" : fmt::format("{:.3f}", spread_of(seconds).median);
  };
  row.push_back(runs == nullptr ? "-" : median(runs->seconds));
  row.push_back(runs == nullptr ? "-" : median(runs->process_seconds));
}

std::string summary_table(const BenchResults& results, const std::string& ratio) {
  TextTable summary("lrrrrr");
  summary.add({"suite", "workloads", "geomean", "lowest", "highest", "CPU geomean"});
  for (const auto& suite : summarize(results, ratio)) {
    if (suite.suite == "all") summary.rule();
    summary.add({printable(suite.suite), std::to_string(suite.workloads),
                 fmt::format("{:.2f}x", suite.geomean), fmt::format("{:.2f}x", suite.lowest),
                 fmt::format("{:.2f}x", suite.highest),
                 suite.process > 0 ? fmt::format("{:.2f}x", suite.process) : "-"});
  }
  return summary.text();
}

}  // namespace

std::string to_table(const BenchResults& results) {
  const std::string ratio = headline(results);
  // The two ends of a gain that is split: its steps have a table of their own.
  const std::vector<std::string> shown =
      results.split.empty() ? results.modes
                            : std::vector{results.split.front().slower, results.split.back().faster};
  std::string alignment = "ll";
  std::vector<std::string> header{"workload", "suite"};
  for (const std::string& mode : shown) {
    alignment += "rr";
    header.push_back(fmt::format("{} s", mode));
    header.push_back("CPU s");
  }
  if (!ratio.empty()) {
    alignment += "rl";
    header.push_back("speedup");
    header.push_back("[min..max]");
  }
  const bool feeds_back = std::ranges::find(shown, "feedback") != shown.end();
  if (feeds_back) {
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
    for (const std::string& mode : shown) add_mode(workload, mode, row);
    if (!ratio.empty()) {
      const Speedup* speedup = workload.speedup(ratio);
      const Spread spread = speedup == nullptr ? Spread{} : spread_of(speedup->rounds);
      row.push_back(speedup == nullptr ? "-" : fmt::format("{:.2f}x", spread.median));
      row.push_back(speedup == nullptr ? "" : fmt::format("[{:.2f}..{:.2f}]", spread.min, spread.max));
    }
    if (feeds_back) {
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
      "\nspeedup = {} time {} / {} time {}, within each round; median of {} round{} [min..max]\n"
      "CPU s is of the whole process, with compile threads and monitor{}{}\n\n",
      results.time == "cpu" ? "CPU" : "wall", ratio.substr(cut + 4), results.time == "cpu" ? "CPU" : "wall",
      ratio.substr(0, cut), results.rounds, results.rounds == 1 ? "" : "s",
      results.without.empty() ? "" : "; in every mode without ", fmt::join(results.without, ", "));
  out += summary_table(results, ratio);
  return results.split.empty() ? out : out + "\n" + split_table(results);
}

std::vector<SplitRow> split_rows(const BenchResults& results) {
  std::vector<SplitRow> rows;
  if (results.split.empty()) return rows;
  std::vector<std::string> columns;
  for (const SplitStep& step : results.split) columns.push_back(Comparison{step.faster, step.slower}.name());
  columns.push_back(headline(results));
  for (const auto& workload : results.workloads) {
    SplitRow row{workload.name, workload.suite, {}};
    for (const std::string& column : columns) {
      const Speedup* speedup = workload.answers_ok ? workload.speedup(column) : nullptr;
      row.factors.push_back(speedup == nullptr ? 0 : spread_of(speedup->rounds).median);
    }
    rows.push_back(std::move(row));
  }
  std::vector<std::string> suites = results.suites();
  suites.emplace_back("all");
  for (const std::string& suite : suites) {
    SplitRow row{suite, "", {}};
    for (const std::string& column : columns) {
      double factor = 0;
      for (const SuiteSummary& summary : summarize(results, column))
        if (summary.suite == suite) factor = summary.geomean;
      row.factors.push_back(factor);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string split_table(const BenchResults& results) {
  std::string alignment = "ll";
  std::vector<std::string> header{"workload", "suite"};
  for (const SplitStep& step : results.split) {
    alignment += 'r';
    header.push_back(step.label);
  }
  alignment += 'r';
  header.emplace_back("together");
  TextTable table(alignment);
  table.add(std::move(header));
  bool summarized = false;
  for (const SplitRow& split : split_rows(results)) {
    if (split.suite.empty() && !summarized) table.rule();
    summarized = split.suite.empty();
    std::vector<std::string> row{printable(split.name), summarized ? "geomean" : printable(split.suite)};
    for (const double factor : split.factors) row.push_back(factor > 0 ? fmt::format("{:.2f}", factor) : "-");
    table.add(std::move(row));
  }
  return table.text() +
         "a column is what it adds to those left of it: time before over time after, within each round; "
         "medians\n";
}

}  // namespace hindsight::report
