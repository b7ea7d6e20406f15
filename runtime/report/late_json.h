// A place of FeedbackReport::late as it stands in the results of `hindsight bench`.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/engine/hindsight.h"

namespace hindsight::report {

nlohmann::ordered_json late_json(const LateReport& place);
// False: the text is none, and `place` may hold anything.
bool read_late_json(const nlohmann::json& json, LateReport& place);

}  // namespace hindsight::report
