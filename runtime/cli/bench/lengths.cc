#include "runtime/cli/bench/lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/printable.h"
#include "runtime/cli/bench/child.h"

namespace hindsight::cli {
namespace {

constexpr double kMostRepetitions = 4e9;  // the programs read 32 bits

// What a workload takes: `fixed` and `each` of its repetitions.
struct Rate {
  double fixed = 0, each = 0;
};

Result<double> repetitions(const Workload& workload) {
  uint64_t number = 0;
  const std::string& word = workload.args.at(*workload.length_argument);
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size() || number == 0)
    return make_error(ErrorKind::kUsage, fmt::format("'{}' is no number of repetitions", word),
                      workload.name);
  return static_cast<double>(number);
}

std::vector<std::string> with_repetitions(const Workload& workload, double number) {
  std::vector<std::string> args = workload.args;
  args[*workload.length_argument] = fmt::format("{:.0f}", number);
  return args;
}

Result<Rate> rate_of(const Workload& workload, const BenchOptions& options) {
  if (!workload.length_argument)
    return make_error(
        ErrorKind::kUsage,
        "nothing says which argument is its length; the manifest names it by \"length_argument\"",
        workload.name);
  HINDSIGHT_ASSIGN(const double usual, repetitions(workload));
  const double few = std::max(1.0, std::floor(usual / 4)), many = std::max(few + 1, usual);
  std::array<double, 2> seconds{};
  for (size_t k = 0; k < seconds.size(); ++k) {
    ChildRun child;
    child.mode = "plain";
    child.unit = options.unit;
    child.wasm = workload.wasm;
    child.args = with_repetitions(workload, k == 0 ? few : many);
    child.pin = options.pin;
    child.instances = options.instances;
    HINDSIGHT_ASSIGN(const ChildResult run, run_in_child(child));
    if (!run.trap.empty() || run.exit_status != 0)
      return make_error(ErrorKind::kResource,
                        run.trap.empty() ? fmt::format("ended with status {}", run.exit_status) : run.trap,
                        workload.name);
    seconds[k] = run.seconds;
  }
  const double each = (seconds[1] - seconds[0]) / (many - few);
  if (!(each > 0)) return make_error(ErrorKind::kResource, "more repetitions took no longer", workload.name);
  return Rate{std::max(0.0, seconds[0] - each * few), each};
}

}  // namespace

Result<std::vector<Workload>> at_lengths(std::span<const Workload> workloads, const BenchOptions& options) {
  std::vector<Rate> rates;
  for (const Workload& workload : workloads) {
    HINDSIGHT_ASSIGN(rates.emplace_back(), rate_of(workload, options));
    fmt::print(stderr, "hindsight bench: {}: {:.2f} s, and {:.3g} ms a repetition\n",
               printable(workload.name), rates.back().fixed, 1e3 * rates.back().each);
  }
  std::vector<Workload> out;
  for (const double length : options.lengths) {
    for (size_t k = 0; k < workloads.size(); ++k) {
      const double number = std::round((length - rates[k].fixed) / rates[k].each);
      if (number < 1 || number > kMostRepetitions) {
        fmt::print(stderr, "hindsight bench: {} cannot take {:g} s and is left out there\n",
                   printable(workloads[k].name), length);
        continue;
      }
      Workload run = workloads[k];
      run.suite = fmt::format("{:g} s", length);
      run.length_seconds = length;
      run.args = with_repetitions(run, number);
      run.expected.reset();
      if (!out.empty() && out.back().name == run.name && out.back().args == run.args) continue;
      out.push_back(std::move(run));
    }
  }
  if (out.empty())
    return make_error(ErrorKind::kUsage, "no workload can take any of these lengths", "--lengths");
  return out;
}

std::string Answers::problem_of(const Workload& workload, const std::optional<std::string>& answer) {
  if (workload.length_seconds == 0 || !answer) return {};
  const std::string args = fmt::to_string(fmt::join(workload.args, " "));
  const auto [found, added] = known_[workload.name].try_emplace(*answer, args);
  if (added || found->second == args) return {};
  return fmt::format("prints the same with the arguments {} as with {}, so its answer does not show its work",
                     args, found->second);
}

}  // namespace hindsight::cli
