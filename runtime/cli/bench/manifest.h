// The list of bundled workloads (samples/manifest.json): what to run, with which arguments, and the output
// that a right run prints.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace hindsight::cli {

struct Workload {
  std::string name, suite, description;
  std::string wasm;  // path that can be opened
  std::vector<std::string> args, quick_args;
  // Which of the arguments says how long it runs, and little else: a number of repetitions. Unset: none is known.
  std::optional<size_t> length_argument;
  double length_seconds = 0;  // of a run whose length was chosen (lengths.h)
  // Unset (a module named on the command line): the first run's output is what the others must print.
  std::optional<std::string> expected, quick_expected;
};

// Errors: kUsage, with the file and, where known, the workload.
Result<std::vector<Workload>> parse_manifest(const std::string& json, const std::string& path);
Result<std::vector<Workload>> load_manifest(const std::string& path);

// `explicit_path`, else $HINDSIGHT_SAMPLES/manifest.json, else beside the command: share/hindsight/samples of
// an installation or samples/ of the source tree above a build folder. Errors: kUsage, naming the places
// tried.
Result<std::string> find_manifest(const std::string& explicit_path);

// Workloads of the named suites, of the names, and files; in manifest order, each once. Nothing named: all.
// Errors: kUsage for a word that is none of these.
Result<std::vector<Workload>> select_workloads(std::span<const Workload> all,
                                               std::span<const std::string> words);

}  // namespace hindsight::cli
