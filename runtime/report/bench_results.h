// What `hindsight bench` measured, as data: the table, the JSON file and the HTML page are views of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/hindsight.h"
#include "runtime/report/statistics.h"

namespace hindsight::report {

struct Machine {
  std::string cpu, kernel, unit, version;
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  uint32_t page_bytes = 0;
};

// The runs of one workload in one mode, in the order of their rounds.
struct ModeRuns {
  std::string mode;  // "baseline", "optimized", "feedback"
  std::vector<double>
      seconds;  // of the whole guest run, loading and compiling included; see BenchResults::time
  std::vector<uint64_t> kept;  // decisions kept, a run
  std::vector<uint64_t> rolled_back;
  std::string unit;                                // LWP unit of the last run
  std::vector<double> late_seconds = {};           // in baseline code after it was hot, a run
  std::vector<std::vector<LateReport>> late = {};  // the worst places of each run
};

// Time in `slower` divided by time in `faster`, computed within each round and only then summarized.
struct Speedup {
  std::string faster, slower;
  std::vector<double> rounds;
  std::string name() const { return faster + "_vs_" + slower; }
};

struct WorkloadResult {
  std::string name, suite, description;
  bool answers_ok = true;
  std::vector<std::string> problems;  // one a failed run: mode, round, what differed
  std::vector<ModeRuns> modes;
  std::vector<Speedup> speedups;

  const ModeRuns* mode(std::string_view name) const;
  const Speedup* speedup(std::string_view name) const;
};

struct BenchResults {
  Machine machine;
  bool quick = false;
  bool pinned = false;
  uint32_t instances = 1;     // of the workload at once, in each run
  std::string time = "wall";  // or "cpu": of the guest's thread
  uint32_t rounds = 0;
  double total_seconds = 0;
  std::vector<std::string> modes;
  std::vector<WorkloadResult> workloads;

  bool answers_ok() const;
  std::vector<std::string> suites() const;  // in order of first appearance
};

// Fills `speedups` of a workload from its modes: every pair of modes that both ran, later modes over earlier.
void compute_speedups(WorkloadResult& workload);

struct SuiteSummary {
  std::string suite;
  uint64_t workloads = 0;
  double geomean = 0, lowest = 0, highest = 0;  // of the workloads' median speedups
};
// One a suite, and a last one named "all"; `speedup` such as "feedback_vs_optimized". Workloads with wrong
// answers are left out of the figures (and make the command fail).
std::vector<SuiteSummary> summarize(const BenchResults& results, std::string_view speedup);

std::string to_json(const BenchResults& results);
std::string to_table(const BenchResults& results);
// A whole page, self-contained.
std::string to_html(const BenchResults& results);

}  // namespace hindsight::report
