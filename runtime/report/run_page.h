// The HTML page of one run: what was seen, with denominators, what was decided about it and what that gave.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/hindsight.h"

namespace hindsight::report {

struct RunSummary {
  std::string program;            // path as given
  std::vector<std::string> args;  // the guest's
  std::string mode;               // tier, feedback on or off
  double seconds = 0;             // wall time, loading and compiling included
  int exit_status = 0;
  std::string trap;  // text of the trap; empty: none
};

std::string run_page(const RunSummary& run, const FeedbackReport& report);

}  // namespace hindsight::report
