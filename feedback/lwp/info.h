// Says what this machine offers for profiling, which unit is used, and why not the others. It is what a
// person who wonders about missing or odd profiles should see first. One struct, two forms of output.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "feedback/lwp/calibration/calibration_cache.h"
#include "feedback/lwp/format/capabilities.h"
#include "feedback/lwp/info_pmu.h"
#include "feedback/lwp/units/unit.h"
#include "feedback/pmu/processor.h"

namespace hindsight::lwp {

struct Info {
  pmu::ProcessorInfo processor;
  Capabilities lwp;
  PmuInfo pmu;
  std::vector<UnitProbe> units;
  std::string selected;                        // the probe's name
  std::vector<EventInfo> events;               // of the selected unit
  std::shared_ptr<const UnitFactory> factory;  // owns the texts of `events`
  std::optional<MachineCalibration> calibration;
  std::string why_not_calibrated;  // if there is none
};

// Latencies: from the user's cache alone, or measured (50 ms) if it has none, or measured in any case.
enum class Calibrate : uint8_t { kNever, kIfUnknown, kAnew };

// Asks the machine, as select_unit(unit_name) would choose. Opens and closes a few descriptors and a timer.
Result<Info> info(std::string_view unit_name = "auto", Calibrate calibrate = Calibrate::kNever);

// Lines of text, each ended by a newline.
std::string to_text(const Info& info);

// {"processor":{...},"lwp":{...},"pmu":{...},"units":[...],"selected":"...","events":[...]}
nlohmann::json to_json(const Info& info);

}  // namespace hindsight::lwp
