// Which unit profiles here, and why not each of the others.
#include <fmt/format.h>

#include <algorithm>

#include "feedback/lwp/format/capabilities.h"
#include "feedback/lwp/units/clock_unit.h"
#include "feedback/lwp/units/hardware/hardware_unit.h"
#include "feedback/lwp/units/model_unit.h"
#include "feedback/lwp/units/native_unit.h"
#include "feedback/lwp/units/perf_source.h"
#include "feedback/lwp/units/timer_source.h"
#include "feedback/lwp/units/unit.h"

namespace hindsight::lwp {
namespace {

std::string why_not_hardware() {
  const std::string refusal = hardware_refusal(linux_perf_kernel(), detect_hardware_machine());
  return refusal.empty() ? refusal : "no event can be sampled: " + refusal;
}

UnitProbe probe(std::string name, std::string refusal) {
  const bool available = refusal.empty();
  return {std::move(name), available, false, std::move(refusal)};
}

std::unique_ptr<UnitFactory> make_factory(std::string_view probe_name, bool may_fall_back);

// Where a unit is not available, what it delivers on a processor that has all of it.
std::vector<std::pair<EventId, Accuracy>> delivered_by(const UnitProbe& p) {
  std::vector<std::pair<EventId, Accuracy>> events;
  const auto take = [&](const UnitFactory& factory) {
    for (const EventInfo& e : factory.events()) events.emplace_back(e.id, e.accuracy);
  };
  if (p.available) {
    take(*make_factory(p.name, /*may_fall_back=*/false));
  } else if (p.name == "native") {
    Capabilities all;
    all.max_event_id = kMaxEvents;
    all.usable = decode_features(~0u);
    take(*make_native_factory(all));
  } else {  // the clock, and the clock beside the hardware unit
    take(*make_factory("clock", true));
    for (auto& [id, accuracy] : events) {
      const bool sampled =
          id == EventId::kInstructions || id == EventId::kBranches || id == EventId::kDcacheMiss;
      if (p.name == "hardware" && sampled) accuracy = Accuracy::kExact;
    }
  }
  return events;
}

std::vector<UnitProbe> probe_all() {
  std::vector<UnitProbe> probes;
  probes.push_back(probe("native", why_not_native(detect_capabilities())));
  probes.push_back(probe("hardware", why_not_hardware()));
  probes.push_back(probe("clock/perf", PerfSource::refusal()));
  probes.push_back(probe("clock/timer", TimerSource::refusal()));
  probes.push_back(probe("model", {}));
  probes.push_back(probe("null", {}));
  for (UnitProbe& p : probes) p.delivers = delivered_by(p);
  return probes;
}

std::unique_ptr<UnitFactory> make_factory(std::string_view probe_name, bool may_fall_back) {
  if (probe_name == "native") return make_native_factory(detect_capabilities());
  if (probe_name == "hardware") {
    return make_hardware_factory(linux_perf_kernel(), detect_hardware_machine(),
                                 make_clock_factory(ClockSource::kBest));
  }
  if (probe_name == "clock" || probe_name == "clock/perf") {
    return make_clock_factory(may_fall_back ? ClockSource::kBest : ClockSource::kPerf);
  }
  if (probe_name == "clock/timer") return make_clock_factory(ClockSource::kTimer);
  if (probe_name == "model") return std::move(make_model_factory({}).value());
  return make_null_factory();
}

}  // namespace

Result<Selection> select_unit(std::string_view name) {
  if (name == "clock-timer") name = "clock/timer";  // as options say it
  Selection selection{nullptr, probe_all()};
  const bool automatic = name == "auto";
  const bool any_clock = name == "clock";
  UnitProbe* chosen = nullptr;
  bool known = automatic;
  std::string refusals;
  for (UnitProbe& p : selection.probes) {
    // The model is for those who ask for it: it makes a program a hundred times slower.
    // So is native LWP without DCache misses, which decisions rest on most: the clock sees their stalls.
    const bool left_out =
        p.name == "model" || (p.name == "native" && !detect_capabilities().usable.dcache_misses);
    const bool wanted =
        (automatic && !left_out) || p.name == name || (any_clock && p.name.starts_with("clock/"));
    if (!wanted) continue;
    known = true;
    if (!p.available) {
      refusals += (refusals.empty() ? "" : "; ") + p.name + ": " + p.reason;
    } else if (!chosen) {
      chosen = &p;
    }
  }
  if (!known) return make_error(ErrorKind::kUsage, fmt::format("there is no unit named '{}'", name));
  if (!chosen) return make_error(ErrorKind::kUnsupported, fmt::format("unit {}", refusals));
  chosen->selected = true;
  for (UnitProbe& p : selection.probes) {
    if (!p.available || p.selected) continue;
    p.reason = automatic || any_clock ? fmt::format("available; {} is preferred", chosen->name)
                                      : fmt::format("available; {} was asked for", chosen->name);
  }
  selection.factory = make_factory(chosen->name, automatic || any_clock);
  return selection;
}

}  // namespace hindsight::lwp
