// `hindsight lwp accuracy`: the clock unit, on this machine's processor, against the model unit, which knows
// every execution. Same modules, same arguments, baseline code on both sides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "runtime/cli/accuracy/score.h"
#include "runtime/cli/accuracy/sides.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/messages.h"
#include "runtime/report/text.h"

namespace hindsight::cli {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr DelinquencyRule kLoads;
constexpr double kHotCovered = 0.90;
// Code this far around a load is what the load's samples are compared with: a loop's body.
constexpr uint64_t kNeighbourhood = 128;
// A load stands out if it has so many times the samples of the median place around it.
constexpr double kStandsOut = 3;

// Samples after a load whose addresses keep to so little cannot be of misses. The load stays in the first
// level, and what is waited for is its latency, or what it depends on.
constexpr double kResidentBytes = 16 << 10;
constexpr size_t kLeastSightings = 32;
constexpr uint64_t kLineBytes = 64;

struct Row {
  Workload workload;
  std::string failed;
  std::string model;  // words
  double model_seconds = 0, clock_seconds = 0;
  uint64_t samples = 0, stall_records = 0, with_address = 0, right_address = 0, unattributed = 0;
  uint64_t delinquent_records = 0, delinquent_right = 0;  // of the loads that are truly delinquent
  std::set<Site> true_loads, found_loads;
  SiteWeights true_stall, found_stall;
  std::map<Site, ModelReport::Access> accesses;
  double cycles = 0;
  Match loads, functions;
  uint64_t branches = 0, mispredicted = 0;       // model: executions
  uint64_t judged = 0, judged_mispredicted = 0;  // clock: outcomes in bursts
  // Rates of single runs with the clock unit; the rate is their mean.
  double rates = 0, lowest_rate = 1, highest_rate = 0;
  uint32_t runs_judged = 0;
  double model_rate() const {
    return branches ? static_cast<double>(mispredicted) / static_cast<double>(branches) : 0;
  }
  double clock_rate() const { return runs_judged ? rates / runs_judged : 0; }
};

std::string percent(uint64_t part, uint64_t whole) {
  return whole ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole))
               : "-";
}

void add_model(Row& row, const ModelSide& model) {
  row.model = model.report.model;
  row.model_seconds = model.seconds;
  row.cycles = static_cast<double>(model.report.cycles);
  for (const ModelReport::Access& access : model.report.accesses)
    if (!access.store) row.accesses[{access.function, access.wasm_offset}] = access;
  row.true_stall = stall_cycles(model.report);
  row.true_loads = delinquent(row.true_stall, row.cycles, kLoads);
  for (const ModelReport::Branch& b : model.report.branches) {
    if (b.call) continue;  // no branch records are made of calls
    row.branches += b.executions;
    row.mispredicted += b.mispredicted;
  }
}

// One run's samples, added to those of the runs before. Code lies elsewhere in every run, so what stands out
// among its neighbours is worked out run by run.
void add_clock(Row& row, const ClockSide& clock, const ModelReport& model,
               std::map<std::string, double>& functions) {
  row.clock_seconds += clock.seconds;
  row.samples += clock.samples;
  row.stall_records += clock.records.size();
  row.unattributed += clock.unattributed;
  for (const auto& [site, weight] : stall_samples(clock)) row.found_stall[site] += weight;
  for (const auto& [name, weight] : clock.functions) functions[name] += weight;
  for (const ClockSide::Stall& stall : clock.records) {
    const bool right =
        stall.guest_address && model.loaded(stall.site.function, stall.site.offset, *stall.guest_address);
    row.with_address += stall.guest_address ? 1 : 0;
    row.right_address += right ? 1 : 0;
    if (!row.true_loads.contains(stall.site)) continue;
    ++row.delinquent_records;
    row.delinquent_right += right ? 1 : 0;
  }
  row.judged += clock.bursts.branch_judged;
  row.judged_mispredicted += clock.bursts.branch_mispredicted;
  if (clock.bursts.branch_judged > 0) {
    const double rate = clock.bursts.mispredicted_share;
    row.rates += rate;
    ++row.runs_judged;
    row.lowest_rate = std::min(row.lowest_rate, rate);
    row.highest_rate = std::max(row.highest_rate, rate);
  }
}

Row measure_sides(const Workload& workload, const SideOptions& options, uint32_t runs) {
  Row row;
  row.workload = workload;
  const auto model = run_model(workload, options);
  if (!model) {
    row.failed = model.error().describe();
    return row;
  }
  add_model(row, *model);
  std::map<std::string, double> sampled;
  for (uint32_t i = 0; i < runs; ++i) {
    const auto clock = run_clock(workload, options);
    if (!clock) {
      row.failed = clock.error().describe();
      return row;
    }
    add_clock(row, *clock, model->report, sampled);
  }
  row.found_loads = delinquent(row.found_stall, static_cast<double>(row.samples), kLoads, /*sampled=*/true);
  row.loads = compare(row.found_loads, row.true_loads);
  std::map<std::string, double> cycles;
  for (const ModelReport::Function& f : model->report.functions)
    cycles[f.function] += static_cast<double>(f.cycles);
  row.functions = compare(hottest(sampled, kHotCovered), hottest(cycles, kHotCovered));
  return row;
}

struct Sum {
  std::string name;
  size_t workloads = 0, with_loads = 0;
  Match loads{}, functions{};
  double recall = 0, precision = 0;  // of the workloads with loads on either side
  uint64_t records = 0, right = 0, delinquent_records = 0, delinquent_right = 0;
  double worst_rate = 0;
  size_t with_branches = 0;
  void add(const Row& row) {
    ++workloads;
    loads += row.loads;
    functions += row.functions;
    if (row.loads.truth() + row.loads.found() > 0) {
      ++with_loads;
      recall += row.loads.recall();
      precision += row.loads.precision();
    }
    records += row.stall_records;
    right += row.right_address;
    delinquent_records += row.delinquent_records;
    delinquent_right += row.delinquent_right;
    if (row.judged > 0) {
      ++with_branches;
      worst_rate = std::max(worst_rate, std::abs(row.model_rate() - row.clock_rate()));
    }
  }
  double mean(double sum) const { return with_loads ? sum / static_cast<double>(with_loads) : 1; }
};

// By the clock unit.
std::string judged_rate(const Row& row) {
  return row.judged ? fmt::format("{:.1f} %", 100 * row.clock_rate()) : "-";
}

// What a person who waits for the table reads meanwhile.
std::string line_of(const Row& row) {
  if (!row.failed.empty())
    return fmt::format("{}: {}", printable_name(row.workload.name), printable(row.failed));
  return fmt::format(
      "{}: {} samples in {:.1f} s (model: {:.1f} s); loads {} true, {} found, {} both; addresses {}; "
      "mispredicted {} in the model, {} by {} sampled branches",
      printable_name(row.workload.name), row.samples, row.clock_seconds, row.model_seconds, row.loads.truth(),
      row.loads.found(), row.loads.both, percent(row.right_address, row.stall_records),
      percent(row.mispredicted, row.branches), judged_rate(row), row.judged);
}

std::string table_of(const std::vector<Row>& rows) {
  report::TextTable table("llrrrrrrrrr");
  table.add({"suite", "workload", "samples", "loads true", "found", "both", "stall records", "address right",
             "mispredicted model", "clock", "hot functions"});
  std::string last;
  for (const Row& row : rows) {
    if (!last.empty() && last != row.workload.suite) table.rule();
    last = row.workload.suite;
    if (!row.failed.empty()) {
      table.add(
          {printable_name(row.workload.suite), printable_name(row.workload.name), printable(row.failed)});
      continue;
    }
    table.add({printable_name(row.workload.suite), printable_name(row.workload.name),
               std::to_string(row.samples), std::to_string(row.loads.truth()),
               std::to_string(row.loads.found()), std::to_string(row.loads.both),
               std::to_string(row.stall_records), percent(row.right_address, row.stall_records),
               percent(row.mispredicted, row.branches), judged_rate(row),
               fmt::format("{}/{}", row.functions.both, row.functions.truth())});
  }
  return table.text();
}

std::vector<Sum> sums_of(const std::vector<Row>& rows) {
  std::vector<Sum> sums;
  for (const Row& row : rows) {
    if (!row.failed.empty()) continue;
    auto sum =
        std::find_if(sums.begin(), sums.end(), [&](const Sum& s) { return s.name == row.workload.suite; });
    if (sum == sums.end()) {
      sum = sums.insert(sums.end(), Sum{});
      sum->name = row.workload.suite;
    }
    sum->add(row);
  }
  return sums;
}

std::string summary_of(const std::vector<Sum>& sums) {
  report::TextTable table("lrrrrrrrr");
  table.add({"suite", "workloads", "recall", "precision", "recall (mean)", "precision (mean)",
             "addresses right", "of delinquent loads", "worst rate error"});
  for (const Sum& s : sums) {
    table.add(
        {s.name, std::to_string(s.workloads),
         fmt::format("{:.2f} ({}/{})", s.loads.recall(), s.loads.both, s.loads.truth()),
         fmt::format("{:.2f} ({}/{})", s.loads.precision(), s.loads.both, s.loads.found()),
         fmt::format("{:.2f}", s.mean(s.recall)), fmt::format("{:.2f}", s.mean(s.precision)),
         fmt::format("{} ({}/{})", percent(s.right, s.records), s.right, s.records),
         fmt::format("{} ({}/{})", percent(s.delinquent_right, s.delinquent_records), s.delinquent_right,
                     s.delinquent_records),
         s.with_branches ? fmt::format("{:.3f} of {}", s.worst_rate, s.with_branches) : std::string("-")});
  }
  return table.text();
}

OrderedJson json_of(const Match& m) {
  return {{"both", m.both},
          {"only_found", m.only_found},
          {"only_true", m.only_true},
          {"recall", m.recall()},
          {"precision", m.precision()}};
}

OrderedJson json_of(const Row& row) {
  OrderedJson json{{"workload", row.workload.name}, {"suite", row.workload.suite}};
  if (!row.failed.empty()) {
    json["failed"] = row.failed;
    return json;
  }
  // The loads that either side names, with what each side gives them, as shares of the program's time.
  std::set<Site> sites;
  for (const auto& [site, weight] : row.true_stall)
    if (weight >= 0.01 * row.cycles) sites.insert(site);
  for (const auto& [site, weight] : row.found_stall)
    if (weight >= 0.01 * static_cast<double>(row.samples)) sites.insert(site);
  OrderedJson loads = OrderedJson::array();
  const auto share = [](const SiteWeights& weights, const Site& site, double total) {
    const auto found = weights.find(site);
    return found == weights.end() || total == 0 ? 0.0 : found->second / total;
  };
  for (const Site& site : sites) {
    loads.push_back({{"function", site.function},
                     {"wasm_offset", site.offset},
                     {"model_share", share(row.true_stall, site, row.cycles)},
                     {"clock_share", share(row.found_stall, site, static_cast<double>(row.samples))},
                     {"model", row.true_loads.contains(site)},
                     {"clock", row.found_loads.contains(site)}});
    const auto access = row.accesses.find(site);
    if (access == row.accesses.end()) continue;
    const ModelReport::Access& a = access->second;
    loads.back()["model_executions"] = a.executions;
    loads.back()["model_from_level"] = a.from_level;
    loads.back()["model_tlb_misses"] = a.tlb_misses;
    loads.back()["model_mean_latency"] =
        a.executions ? static_cast<double>(a.latency_cycles) / static_cast<double>(a.executions) : 0.0;
  }
  json["model_seconds"] = row.model_seconds;
  json["clock_seconds"] = row.clock_seconds;
  json["samples"] = row.samples;
  json["stall_records"] = row.stall_records;
  json["stall_records_with_address"] = row.with_address;
  json["stall_records_address_right"] = row.right_address;
  json["stall_records_unattributed"] = row.unattributed;
  json["delinquent_records"] = row.delinquent_records;
  json["delinquent_records_address_right"] = row.delinquent_right;
  json["loads"] = json_of(row.loads);
  json["load_shares"] = loads;
  json["functions"] = json_of(row.functions);
  json["model_branches"] = row.branches;
  json["model_mispredicted"] = row.mispredicted;
  json["clock_judged"] = row.judged;
  if (row.judged > 0) {
    json["model_rate"] = row.model_rate();
    json["clock_rate"] = row.clock_rate();
    json["clock_rate_lowest_run"] = row.lowest_rate;
    json["clock_rate_highest_run"] = row.highest_rate;
  }
  json["clock_mispredicted"] = row.judged_mispredicted;
  return json;
}

}  // namespace

// A load's samples count as stall only if they stand out. A loop in which nothing waits has its samples
// everywhere, after its loads too. A load that waits has many times the samples of the places around it. What
// the median place around a load has is what the load would have without waiting, and is taken off. The samples
// of a load whose addresses all lie in a few lines do not count either.
SiteWeights stall_samples(const ClockSide& clock) {
  struct Lines {
    size_t sightings = 0;
    std::set<uint64_t> distinct;
    bool resident() const {
      return sightings >= kLeastSightings &&
             population(sightings, distinct.size()) * kLineBytes <= kResidentBytes;
    }
  };
  std::map<Site, Lines> lines;
  for (const ClockSide::Stall& record : clock.records) {
    if (!record.guest_address) continue;
    Lines& of_load = lines[record.site];
    ++of_load.sightings;
    of_load.distinct.insert(*record.guest_address / kLineBytes);
  }
  SiteWeights stall;
  for (const auto& [site, pcs] : clock.pcs) {
    if (const auto seen = lines.find(site); seen != lines.end() && seen->second.resident()) continue;
    double outstanding = 0;
    for (const auto& [load, samples] : pcs) {
      std::vector<double> around;
      double behind = 0;  // the place right after the load is its own
      const auto from = clock.code.lower_bound(load > kNeighbourhood ? load - kNeighbourhood : 0);
      for (auto place = from; place != clock.code.end() && place->first <= load + kNeighbourhood; ++place) {
        if (place->first > load && behind == 0 && place->second >= samples) {
          behind = place->second;
          continue;
        }
        around.push_back(place->second);
      }
      double background = 0;
      if (!around.empty()) {
        const auto middle = around.begin() + static_cast<ptrdiff_t>(around.size() / 2);
        std::nth_element(around.begin(), middle, around.end());
        background = *middle;
      }
      if (samples >= kStandsOut * background) outstanding += samples - background;
    }
    if (outstanding > 0) stall[site] = outstanding;
  }
  return stall;
}

int lwp_accuracy_command(const AccuracyOptions& options) {
  auto path = find_manifest(options.manifest);
  if (!path) return fail(path.error());
  auto all = load_manifest(*path);
  if (!all) return fail(all.error());
  auto chosen = select_workloads(*all, options.selection);
  if (!chosen) return fail(chosen.error());
  std::ofstream json;
  if (!options.json.empty()) {
    json.open(options.json, std::ios::binary | std::ios::trunc);
    if (!json)
      return fail(Error{ErrorKind::kUsage, "the file cannot be written; name another", options.json, {}});
  }
  SideOptions side;
  side.quick = options.quick;
  side.hz = options.hz;
  side.model = options.model == "generic" ? "" : options.model;
  std::vector<Row> rows;
  for (const Workload& workload : *chosen) {
    rows.push_back(measure_sides(workload, side, options.runs));
    // Measured once, so that all workloads are compared with the same machine.
    if (!rows.back().model.empty()) side.model = rows.back().model;
    say(line_of(rows.back()));
  }
  const std::vector<Sum> sums = sums_of(rows);
  fmt::print("model: {}\n\n{}\n{}", side.model.empty() ? "generic" : side.model, table_of(rows),
             summary_of(sums));
  const bool failed =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.failed.empty(); });
  if (json.is_open()) {
    OrderedJson workloads = OrderedJson::array();
    for (const Row& row : rows) workloads.push_back(json_of(row));
    json << OrderedJson{{"quick", options.quick},
                        {"sampling_hz", options.hz},
                        {"clock_runs", options.runs},
                        {"model", side.model},
                        {"workloads", workloads}}
                .dump(2, ' ', false, OrderedJson::error_handler_t::replace)
         << "\n"
         << std::flush;
    if (!json) return fail(Error{ErrorKind::kResource, "the file could not be written", options.json, {}});
  }
  return failed ? kCannotLoad : kOk;
}

}  // namespace hindsight::cli
