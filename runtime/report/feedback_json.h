// FeedbackReport as JSON: what the C API hands out and what a benchmark's child process sends to its parent.
#pragma once

#include <string>

#include "runtime/engine/hindsight.h"

namespace hindsight::report {

// Text that is not UTF-8 is replaced by U+FFFD: the result always parses.
std::string to_json(const FeedbackReport& report);

}  // namespace hindsight::report
