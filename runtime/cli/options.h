// The words a user may write after an option, and what they mean. Every error says what was written, what is
// allowed and where it was written (`place`: the option).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::cli {

// "2", "0.5s", "500ms", "3m": at least one millisecond.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// "65536", "512K", "64M", "2G", also with B or iB after the letter; powers of 1024.
Result<uint64_t> parse_size(std::string_view text);

// "on", "off".
Result<bool> parse_switch(std::string_view text);

Result<TierMode> parse_tier(std::string_view text);
// "threads=8", "table-bytes=64M": a name of base/store_limits.h and a size.
Status parse_limit(std::string_view text, StoreLimits& limits);
// "12-40": both included, the first not above the last.
Result<std::pair<uint32_t, uint32_t>> parse_index_range(std::string_view text);
Status check_unit(std::string_view text);
// A name of decision_names(), after --without.
Status check_decision(std::string_view text);

// "HOST" or "HOST::GUEST".
Result<std::pair<std::string, std::string>> parse_directory(std::string_view text);
// "KEY=VALUE"; the value may be empty and may contain '='.
Result<std::pair<std::string, std::string>> parse_environment(std::string_view text);

// What `run` and `top` share, as the user wrote it.
struct RunOptions {
  std::string invoke;
  std::vector<std::string> directories, environment, without, limits;
  std::string timeout, max_memory, feedback = "on", unit = "auto", model, tier = "auto", optimize_only;
  std::string profile_in, profile_out, report, trace;
  uint64_t trace_limit = 1'000'000;  // records
  std::string code_cache;            // a folder; empty: nothing is kept
  std::string code_cache_size;
  bool no_code_cache = false;
  std::string profile_directory;  // empty: no profile is kept
  bool no_profile = false;
  bool no_guard_pages = false;
  int verbosity = 0;                 // number of -v
  std::vector<std::string> program;  // module's path, then the guest's arguments
};

// The same, understood.
struct RunPlan {
  EngineConfig engine;
  WasiConfig wasi;
  std::string module_path, invoke, profile_out, report, trace;
  uint64_t trace_limit = 0;
  std::vector<std::string> guest_args;   // without the program's name
  std::chrono::milliseconds timeout{0};  // zero: none
};

// Errors: kUsage.
Result<RunPlan> plan_run(const RunOptions& options);

}  // namespace hindsight::cli
