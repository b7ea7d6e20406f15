// What reports tell of decisions about functions, and of the evidence beside them.
#pragma once

#include <functional>

#include "feedback/monitor/monitor.h"
#include "feedback/policy/policy.h"
#include "runtime/adaptive/decision_log.h"
#include "runtime/adaptive/experiments/experiment.h"

namespace hindsight::rt {

// Whether that change of a whole version is on trial now, as the decision asked for it.
using OnTrial = std::function<bool(DecisionLog::Id, jit::ChangeKind)>;

// One decision, and each change that it asked for. The evidence says why: the policy is pure.
void report_function(const feedback::Episode& episode, const feedback::PolicyConfig& policy,
                     const OnTrial& on_trial, DecisionSink& decisions);

// Loads that stall and branches that are mispredicted, the worst of all modules.
void report_evidence(feedback::Monitor& monitor, FeedbackReport& report);

}  // namespace hindsight::rt
