// What calls go through: which targets are worth a place in the code, and whether calls go elsewhere by now.
#pragma once

#include "feedback/policy/changes/change_policy.h"

namespace hindsight::feedback {

// Records of calls whose targets a new version would have inlined and the published one has not. Those for
// which it would be the other way round are taken off.
double unforeseen_records(const FunctionEvidence& e, const PolicyConfig& config);

}  // namespace hindsight::feedback
