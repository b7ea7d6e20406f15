// Which unit profiles here, and why not each of the others.
#include <fmt/format.h>

#include <algorithm>

#include "feedback/lwp/capabilities.h"
#include "feedback/lwp/clock_unit.h"
#include "feedback/lwp/perf_source.h"
#include "feedback/lwp/timer_source.h"
#include "feedback/lwp/unit.h"
#include "feedback/pmu/perf_event.h"

namespace hindsight::lwp {
namespace {

std::string why_not_hardware() {
  const auto fd = pmu::open_perf_event(pmu::make_perf_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS),
                                       "hardware instruction counter");
  if (!fd) return "not available: no PMU can be reached (" + fd.error().message + ")";
  return "a PMU is reachable, but this version does not sample with it and uses the clock unit";
}

UnitProbe probe(std::string name, std::string refusal) {
  const bool available = refusal.empty();
  return {std::move(name), available, false, std::move(refusal)};
}

std::vector<UnitProbe> probe_all() {
  std::vector<UnitProbe> probes;
  probes.push_back(probe("native", why_not_native(detect_capabilities())));
  probes.push_back(probe("hardware", why_not_hardware()));
  probes.push_back(probe("clock/perf", PerfSource::refusal()));
  probes.push_back(probe("clock/timer", TimerSource::refusal()));
  probes.push_back(probe("model", "the deterministic model is not part of this version"));
  probes.push_back(probe("null", {}));
  return probes;
}

std::unique_ptr<UnitFactory> make_factory(std::string_view probe_name, bool may_fall_back) {
  if (probe_name == "clock/perf") {
    return make_clock_factory(may_fall_back ? ClockSource::kBest : ClockSource::kPerf);
  }
  if (probe_name == "clock/timer") return make_clock_factory(ClockSource::kTimer);
  return make_null_factory();
}

}  // namespace

Result<Selection> select_unit(std::string_view name) {
  Selection selection{nullptr, probe_all()};
  const bool automatic = name == "auto";
  const bool any_clock = name == "clock";
  UnitProbe* chosen = nullptr;
  bool known = automatic;
  std::string refusals;
  for (UnitProbe& p : selection.probes) {
    const bool wanted = automatic || p.name == name || (any_clock && p.name.starts_with("clock/"));
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
