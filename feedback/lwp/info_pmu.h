// The part of `lwp info` about counters. It says what the processor promises, how its events are encoded,
// which sources the kernel offers and why some cannot be used. It also says what the hardware unit would
// get. Apart from info.h, because it is long.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "feedback/lwp/units/hardware/hardware_session.h"
#include "feedback/pmu/architectural.h"
#include "feedback/pmu/counters.h"
#include "feedback/pmu/event_sources.h"
#include "feedback/pmu/processor.h"

namespace hindsight::lwp {

struct SourceState {
  pmu::EventSource source;
  std::string refusal;  // why this process cannot count with it; empty: it can
};

struct PmuInfo {
  pmu::ArchitecturalPmu architectural;  // Intel and Zhaoxin; version 0 elsewhere
  std::optional<pmu::AmdPmu> amd;       // AMD and Hygon
  std::optional<int> perf_event_paranoid;
  std::vector<pmu::CounterAvailability> counters;
  std::string rdpmc;  // "permitted", or why not
  std::vector<SourceState> sources;
  HardwareOutcome hardware;  // event by event, what sampling by the hardware would give
};

// Asks the machine. Opens and closes a few dozen descriptors.
PmuInfo pmu_info(const pmu::ProcessorInfo& processor);

// Lines of text, each ended by a newline.
std::string to_text(const PmuInfo& info);

// {"architectural":{...},"amd":{...}|null,"encodings":[...],"counters":[...],"rdpmc":"...","sources":[...],
//  "hardware_events":{...}}
nlohmann::json to_json(const PmuInfo& info);

}  // namespace hindsight::lwp
