// `hindsight bench`: every workload in every mode, round by round. Within a round the modes run one after
// another, in an order that rotates from round to round. So a machine that gets slower or faster over
// minutes touches all modes alike. Each ratio compares two runs that stood close together in time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "base/printable.h"
#include "runtime/cli/bench/child.h"
#include "runtime/cli/bench/machine.h"
#include "runtime/cli/bench/manifest.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/messages.h"
#include "runtime/report/bench_results.h"
#include "runtime/report/text.h"

namespace hindsight::cli {
namespace {

using report::BenchResults;
using report::ModeRuns;
using report::WorkloadResult;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kRounds = 5, kQuickRounds = 3;

std::string minutes_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::max(0.0, seconds) + 0.5);
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

// Says on stderr where the benchmark stands. Whether a terminal or a file reads it, one line a workload.
class Progress {
 public:
  Progress(size_t workloads, uint64_t runs_each) : workloads_(workloads), runs_each_(runs_each) {}

  void start(const WorkloadResult& workload) {
    ++current_;
    fmt::print(stderr, "[{:>{}}/{}] {:<28} ", current_, std::to_string(workloads_).size(), workloads_,
               printable(workload.suite + "/" + workload.name));
    std::fflush(stderr);
  }
  void run_done() {
    ++runs_;
    fmt::print(stderr, ".");
    std::fflush(stderr);
  }
  void finish(const WorkloadResult& workload) {
    const double elapsed = seconds();
    const double all = static_cast<double>(runs_each_) * static_cast<double>(workloads_);
    const double left =
        runs_ == 0 ? 0 : elapsed / static_cast<double>(runs_) * (all - static_cast<double>(runs_));
    std::string gain;
    if (!workload.speedups.empty()) {
      const auto& first = workload.speedups.front();
      gain = fmt::format(" {:.2f}x {}", report::spread_of(first.rounds).median, first.name());
    }
    fmt::print(stderr, "{}{}  {} elapsed, {} to go\n", workload.answers_ok ? " ok" : " WRONG", gain,
               minutes_text(elapsed), minutes_text(left));
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  const Clock::time_point start_ = Clock::now();
  const size_t workloads_;
  const uint64_t runs_each_;
  size_t current_ = 0;
  uint64_t runs_ = 0;
};

// What is wrong with a run's answer; empty: nothing.
std::string problem_of(const Result<ChildResult>& run, const std::optional<std::string>& expected) {
  if (!run) return run.error().describe();
  if (!run->trap.empty()) return "trapped: " + run->trap.substr(0, run->trap.find('\n'));
  if (run->exit_status != 0) return fmt::format("ended with status {}", run->exit_status);
  if (expected && run->output != *expected) {
    const auto first =
        std::mismatch(run->output.begin(), run->output.end(), expected->begin(), expected->end()).first;
    return fmt::format("printed something else: {} bytes for {}, different from byte {} on",
                       run->output.size(), expected->size(), first - run->output.begin());
  }
  return {};
}

// With short inputs the baseline is context, not the comparison people wait for: the first round is enough.
bool runs_in(const BenchOptions& options, const std::string& mode, uint32_t round) {
  return round == 0 || !options.quick || mode != "baseline" || options.modes.size() < 3;
}

uint64_t runs_of_workload(const BenchOptions& options, uint32_t rounds) {
  uint64_t runs = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (const auto& mode : options.modes) runs += runs_in(options, mode, round) ? 1 : 0;
  }
  return runs;
}

WorkloadResult measure(const Workload& workload, const BenchOptions& options, uint32_t rounds,
                       Progress& progress) {
  WorkloadResult result;
  result.name = workload.name;
  result.suite = workload.suite;
  result.description = workload.description;
  for (const auto& mode : options.modes) result.modes.push_back(ModeRuns{mode, {}, {}, {}, {}, {}, {}});
  progress.start(result);

  std::optional<std::string> expected = options.quick ? workload.quick_expected : workload.expected;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (size_t k = 0; k < options.modes.size(); ++k) {
      ModeRuns& runs = result.modes[(k + round) % options.modes.size()];
      if (!runs_in(options, runs.mode, round)) continue;
      ChildRun child;
      child.mode = runs.mode;
      child.unit = options.unit;
      child.wasm = workload.wasm;
      child.args = options.quick ? workload.quick_args : workload.args;
      child.pin = options.pin;
      child.instances = options.instances;
      const auto run = run_in_child(child);
      progress.run_done();
      if (const std::string problem = problem_of(run, expected); !problem.empty()) {
        result.answers_ok = false;
        result.problems.push_back(fmt::format("mode {}, round {}: {}", runs.mode, round + 1, problem));
      }
      if (!run) continue;
      if (!expected) expected = run->output;
      runs.seconds.push_back(options.time == "cpu" ? run->cpu_seconds : run->seconds);
      runs.kept.push_back(run->kept);
      runs.rolled_back.push_back(run->rolled_back);
      runs.unit = run->unit;
      runs.late_seconds.push_back(run->late_seconds);
      runs.late.push_back(run->late);
    }
    // A wrong answer does not get better by repetition, and its times mean nothing.
    if (!result.answers_ok) break;
  }
  report::compute_speedups(result);
  progress.finish(result);
  return result;
}

Status check_modes(const std::vector<std::string>& modes) {
  for (size_t k = 0; k < modes.size(); ++k) {
    if (modes[k] != "baseline" && modes[k] != "optimized" && modes[k] != "feedback") {
      return make_error(
          ErrorKind::kUsage,
          fmt::format("'{}' is no mode; any of baseline, optimized, feedback, separated by commas", modes[k]),
          "--modes");
    }
    if (std::find(modes.begin(), modes.begin() + static_cast<std::ptrdiff_t>(k), modes[k]) !=
        modes.begin() + static_cast<std::ptrdiff_t>(k)) {
      return make_error(ErrorKind::kUsage, fmt::format("'{}' is named twice", modes[k]), "--modes");
    }
  }
  return {};
}

Result<std::ofstream> open_output(const std::string& path, const char* option) {
  std::ofstream file;
  if (path.empty()) return file;
  file.open(path, std::ios::binary | std::ios::trunc);
  if (!file)
    return make_error(ErrorKind::kUsage, fmt::format("'{}' cannot be written; name another file", path),
                      option);
  return file;
}

std::string last_line(const BenchResults& results) {
  size_t right = 0;
  for (const auto& workload : results.workloads) right += workload.answers_ok ? 1 : 0;
  std::string gain;
  for (const char* name : {"feedback_vs_optimized", "feedback_vs_baseline", "optimized_vs_baseline"}) {
    const auto summary = report::summarize(results, name);
    if (summary.empty() || !gain.empty()) continue;
    std::string words = name;
    words.replace(words.find("_vs_"), 4, " against ");
    gain = fmt::format("; {}: {:.2f}x in geomean", words, summary.back().geomean);
  }
  return fmt::format("hindsight bench: {} of {} workloads answered right in every run{}; {}", right,
                     results.workloads.size(), gain, minutes_text(results.total_seconds));
}

int list_workloads(const std::vector<Workload>& workloads) {
  report::TextTable table("lll");
  table.add({"suite", "workload", "what it does"});
  for (const auto& workload : workloads) {
    table.add({printable(workload.suite), printable(workload.name), printable(workload.description)});
  }
  fmt::print("{}", table.text());
  return kOk;
}

}  // namespace

int bench_command(const BenchOptions& options) {
  if (const Status modes = check_modes(options.modes); !modes) return fail(modes.error());
  if (const Status unit = check_unit(options.unit); !unit) {
    return fail(Error{ErrorKind::kUsage, unit.error().message, "--unit", {}});
  }
  if (options.time != "wall" && options.time != "cpu") {
    return fail(
        Error{ErrorKind::kUsage, fmt::format("'{}' is neither wall nor cpu", options.time), "--time", {}});
  }
  // Files alone can be measured without any manifest.
  std::vector<Workload> all;
  const bool files_only =
      !options.selection.empty() && options.manifest.empty() &&
      std::all_of(options.selection.begin(), options.selection.end(),
                  [](const std::string& word) { return word.ends_with(".wasm") || word.ends_with(".wat"); });
  if (!files_only) {
    const auto path = find_manifest(options.manifest);
    if (!path) return fail(path.error());
    auto manifest = load_manifest(*path);
    if (!manifest) return fail(manifest.error());
    all = std::move(*manifest);
  }
  const auto workloads = select_workloads(all, options.selection);
  if (!workloads) return fail(workloads.error());
  if (options.list) return list_workloads(*workloads);
  if (workloads->empty()) {
    return fail(Error{ErrorKind::kUsage, "the manifest lists no workload", options.manifest, {}});
  }
  auto json = open_output(options.json, "--json");
  if (!json) return fail(json.error());
  auto html = open_output(options.html, "--html");
  if (!html) return fail(html.error());

  BenchResults results;
  results.machine = describe_machine();
  results.quick = options.quick;
  results.pinned = options.pin;
  results.instances = options.instances;
  results.time = options.time;
  results.rounds = options.runs != 0 ? options.runs : options.quick ? kQuickRounds : kRounds;
  results.modes = options.modes;
  fmt::print(stderr, "hindsight bench: {} workload{}, modes {}, {} round{}; a dot is a run\n",
             workloads->size(), workloads->size() == 1 ? "" : "s", fmt::join(options.modes, ", "),
             results.rounds, results.rounds == 1 ? "" : "s");
  Progress progress(workloads->size(), runs_of_workload(options, results.rounds));
  for (const auto& workload : *workloads) {
    results.workloads.push_back(measure(workload, options, results.rounds, progress));
    for (const auto& runs : results.workloads.back().modes) {
      if (!runs.unit.empty() && runs.mode != "baseline") results.machine.unit = runs.unit;
    }
  }
  results.total_seconds = progress.seconds();

  fmt::print("\n{}\n", report::to_table(results));
  if (json->is_open()) *json << report::to_json(results) << std::flush;
  if (html->is_open()) *html << report::to_html(results) << std::flush;
  fmt::print("{}\n", last_line(results));
  std::fflush(stdout);
  if ((json->is_open() && !*json) || (html->is_open() && !*html)) {
    return fail(Error{ErrorKind::kResource, "a result file could not be written completely", "", {}});
  }
  return results.answers_ok() ? kOk : 1;
}

}  // namespace hindsight::cli
