// One measured run, in a fresh process of this same command. Address-space layout, page state, heap and
// compile threads of one run must not reach into the next. The child sends its result as JSON through a pipe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::cli {

struct ChildRun {
  std::string mode, unit = "auto", wasm;
  std::vector<std::string> args;
  bool pin = false;
  uint32_t instances = 1;           // that run at once, a thread each; all have to answer the same
  std::chrono::seconds limit{600};  // then the child is killed and the run has failed
};

struct ChildResult {
  double seconds = 0;      // engine creation to the guest's end
  double cpu_seconds = 0;  // of the guests' threads together, over the same span
  int exit_status = 0;
  std::string output;  // the guest's stdout, at most kMaxOutput bytes of it
  std::string trap;
  std::string unit;
  uint64_t decisions = 0, kept = 0, rolled_back = 0;
  double late_seconds = 0;  // FeedbackReport's
  std::vector<LateReport> late;
};

inline constexpr size_t kMaxOutput = size_t{1} << 20;

// Errors: the child died, timed out, or could not run the guest; the message holds what it said on stderr.
Result<ChildResult> run_in_child(const ChildRun& run);

std::string to_json(const ChildResult& result);
Result<ChildResult> parse_child_result(const std::string& json);

}  // namespace hindsight::cli
