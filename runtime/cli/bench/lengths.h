// Runs of chosen lengths: how the gain grows with the time that a program has to repay what was learned and compiled.
// Each workload is run twice in mode plain, with a quarter of its usual number of repetitions and with all. What a
// repetition takes follows from the difference, and so how many fill a length.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/cli/bench/manifest.h"
#include "runtime/cli/commands.h"

namespace hindsight::cli {

// The workloads at each of `options.lengths`, of which each is a suite of its own ("10 s"). A length that the workload's
// preparation alone fills is left out, and stderr says so. Errors: kUsage for a workload of which the manifest does not
// say which argument is its length; what a run ended with.
Result<std::vector<Workload>> at_lengths(std::span<const Workload> workloads, const BenchOptions& options);

// What runs of one workload printed, by their arguments. A program that prints the same however often it repeats its
// work may have skipped it.
class Answers {
 public:
  // Says whether another length of the workload printed the same; empty: no, or its length was not chosen. Keeps what
  // it is given.
  std::string problem_of(const Workload& workload, const std::optional<std::string>& answer);

 private:
  std::map<std::string, std::map<std::string, std::string>> known_;  // workload, answer, arguments
};

}  // namespace hindsight::cli
