// What this machine offers for profiling, which unit is used, and why not the others: everything that a
// person who wonders about missing or odd profiles should see first. One struct, two forms of output.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "feedback/lwp/capabilities.h"
#include "feedback/lwp/unit.h"
#include "feedback/pmu/architectural.h"
#include "feedback/pmu/counters.h"
#include "feedback/pmu/processor.h"

namespace hindsight::lwp {

struct Info {
  pmu::ProcessorInfo processor;
  Capabilities lwp;
  pmu::ArchitecturalPmu architectural_pmu;
  std::optional<int> perf_event_paranoid;
  std::vector<pmu::CounterAvailability> counters;
  std::vector<UnitProbe> units;
  std::string selected;           // the probe's name
  std::vector<EventInfo> events;  // of the selected unit
};

// Asks the machine, as select_unit(unit_name) would choose. Opens and closes a few descriptors and a timer.
Result<Info> info(std::string_view unit_name = "auto");

// Lines of text, each ended by a newline.
std::string to_text(const Info& info);

// {"processor":{...},"lwp":{...},"pmu":{...},"units":[...],"selected":"...","events":[...]}
nlohmann::json to_json(const Info& info);

}  // namespace hindsight::lwp
