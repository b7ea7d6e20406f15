// What the machine offers for profiling, for people and programs.
#include <nlohmann/json.hpp>

#include "feedback/lwp/info.h"
#include "runtime/engine/hindsight.h"

namespace hindsight {

std::string lwp_info(bool json, bool calibrate) {
  const auto info = lwp::info("auto", calibrate ? lwp::Calibrate::kAnew : lwp::Calibrate::kIfUnknown);
  if (!info)
    return json ? nlohmann::json{{"error", info.error().describe()}}.dump(2) : info.error().describe();
  return json ? lwp::to_json(*info).dump(2) : lwp::to_text(*info);
}

}  // namespace hindsight
