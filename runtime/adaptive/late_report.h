// What reports tell of baseline code that ran on after it was hot, and the rule by which it was.
#pragma once

#include "feedback/policy/parameters.h"
#include "feedback/profile/late_time.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

// By the rule of the first compile, with nothing waited for. It goes by the numbers that are the default, whatever the
// policy's are, so that runs with different ones can be compared. Where nothing is to be optimized, nothing is hot.
feedback::HotRule hot_rule(const feedback::PolicyConfig& policy);

void report_late(const feedback::LateSummary& late, FeedbackReport& report);

}  // namespace hindsight::rt
