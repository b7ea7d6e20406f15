#include "runtime/adaptive/thread_watch.h"

#include <fmt/format.h>

#include <new>

#include "runtime/code/guest_unit.h"

namespace hindsight::rt {
namespace {

// Why nothing watches, if "auto" was left with the unit that only counts; empty otherwise.
std::string refusals_of(const lwp::Selection& selection) {
  std::string reasons;
  for (const lwp::UnitProbe& probe : selection.probes) {
    if (probe.selected && probe.name != "null") return {};
    // Units that no machine has any more, or that this version does not drive, are no news.
    if (!probe.available && probe.name.starts_with("clock/"))
      reasons += (reasons.empty() ? "" : "; ") + probe.name + ": " + probe.reason;
  }
  return reasons;
}

// Why the better clock was not taken, if the other one was; empty otherwise. Not a warning: the thread is
// watched, only less evenly.
std::string lesser_clock(const lwp::Selection& selection) {
  std::string perf;
  for (const lwp::UnitProbe& probe : selection.probes) {
    if (probe.name == "clock/perf" && !probe.available) perf = "; no clock/perf: " + probe.reason;
    if (probe.name == "clock/timer" && probe.selected) return perf;
  }
  return {};
}

}  // namespace

std::shared_ptr<LwpSink> ThreadWatch::attach() {
  auto give_up = [&](const Error& error) {
    // Relaxed: only keeps the line from being said twice.
    if (!failed_.exchange(true, std::memory_order_relaxed)) {
      services_.say(
          LogLevel::kWarning, "lwp",
          "this thread is not profiled: " + error.describe() + "; the guest runs on without feedback");
    }
    return nullptr;
  };
  lwp::UnitConfig unit_config;
  unit_config.frequency_hz = monitor_.frequency();
  unit_config.guest_code = {reinterpret_cast<uint64_t>(services_.arena().executable_begin()),
                            reinterpret_cast<uint64_t>(services_.arena().executable_end())};
  try {
    auto unit = selection_.factory->create(unit_config);
    if (!unit) return give_up(unit.error());
    if (Status attached = (*unit)->attach(); !attached) return give_up(attached.error());
    services_.say(LogLevel::kDebug, "lwp", fmt::format("thread attached to unit {}", (*unit)->name()));
    return std::make_shared<GuestUnit>(std::shared_ptr<lwp::Unit>(std::move(*unit)), monitor_);
  } catch (const std::bad_alloc&) {
    return give_up(Error{ErrorKind::kResource, "no memory for the thread's unit", {}, {}});
  }
}

void ThreadWatch::say_selection(bool profiling) const {
  services_.say(LogLevel::kInfo, "lwp", fmt::format("unit {}{}", unit(), lesser_clock(selection_)));
  if (const std::string refusals = refusals_of(selection_); profiling && !refusals.empty()) {
    services_.say(LogLevel::kWarning, "lwp",
                  "no unit can watch here: " + refusals + "; the guest runs on without feedback");
  }
}

}  // namespace hindsight::rt
