// The sub-commands. Each takes what the user wrote and returns the process's exit status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cli/options.h"

namespace hindsight::cli {

int run_command(const RunOptions& options);
int top_command(const RunOptions& options);
int inspect_command(const std::string& path, bool json);

// A profile is a file, or a module whose profile in `directory` is meant.
int explain_command(const std::string& profile, const std::string& directory);
int profile_show_command(const std::string& profile, const std::string& directory);
int profile_diff_command(const std::string& before, const std::string& after, const std::string& directory);
int profile_merge_command(const std::vector<std::string>& profiles, const std::string& out,
                          const std::string& directory);
struct ExportOptions {
  std::string profile, directory, format = "pprof", module;
  std::string out;  // "-": stdout
};
int profile_export_command(const ExportOptions& options);
int profile_list_command(const std::string& directory);
int profile_clear_command(const std::string& directory);

int lwp_info_command(bool json, bool calibrate);

// The folder that is meant where nobody names one: $HINDSIGHT_CODE_CACHE, where "off" means none, else the library's
// default. Empty: none.
std::string code_cache_of_environment();
// The same of kept profiles: $HINDSIGHT_PROFILE_DIR.
std::string profile_directory_of_environment();
int cache_info_command(const std::string& directory, bool json);
int cache_clear_command(const std::string& directory);

struct EmulateOptions {
  bool summary = false;
  std::vector<std::string> program;  // and its arguments
};
int lwp_emulate_command(const EmulateOptions& options);

struct RecordsOptions {
  std::string path, layout = "final";
  uint64_t limit = UINT64_MAX;
  bool summary = false;
};
int lwp_records_command(const RecordsOptions& options);

struct AccuracyOptions {
  std::vector<std::string> selection;  // as of BenchOptions
  bool quick = false;
  uint32_t hz = 1000;
  uint32_t runs = 3;  // of the clock unit, put together; the model repeats itself exactly
  std::string json, manifest, model = "machine";
};
int lwp_accuracy_command(const AccuracyOptions& options);

struct BenchOptions {
  std::vector<std::string> selection;  // suites, names or module files; empty: all of the manifest
  std::vector<std::string> modes;    // empty: baseline, plain and feedback; with `lengths` plain and feedback
  std::vector<std::string> without;  // decisions, in every mode
  std::vector<double> lengths;       // seconds that a run is to take; empty: as the manifest says
  uint32_t runs = 0;                 // 0: 5, or 3 with `quick`
  uint32_t instances = 1;            // at once, in one process
  bool quick = false, list = false, pin = false, split = false;
  std::string json, html, manifest, unit = "auto", time = "wall";
};
int bench_command(const BenchOptions& options);

// One measured run in a process of its own; see bench/child.h.
struct BenchChildOptions {
  int descriptor = -1;
  std::string mode, unit = "auto";
  std::vector<std::string> without;
  bool pin = false;
  uint32_t instances = 1;
  std::vector<std::string> program;
};
int bench_child_command(const BenchChildOptions& options);

// Builds the parser, parses and dispatches. `main` and nothing else calls it.
int command_line(int argc, char** argv);

}  // namespace hindsight::cli
