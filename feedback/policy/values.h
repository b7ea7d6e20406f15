// Of decide(): which operators are to have code for what their operand usually is.
#pragma once

#include "feedback/policy/policy.h"

namespace hindsight::feedback {

// A hot operator whose operand was the same so far, of which too little was seen yet: the next compile is the
// last time that this can be seen. Null: there is none.
const ValueEvidence* not_usual_yet(const FunctionEvidence& evidence, const PolicyConfig& config);

// The alternative of a compile that has such code: `gain` without it.
void offer_values(FunctionPlan& plan, const std::vector<ValuePlan>& values, double cost, double gain);

}  // namespace hindsight::feedback
