#include "runtime/adaptive/latency_watch.h"

#include <fmt/format.h>

namespace hindsight::rt {
namespace {

constexpr double kCalibrateAfterSeconds = 0.2;  // programs that end sooner have no use for it

}  // namespace

LatencyWatch::LatencyWatch(CodeServices& services, feedback::Monitor& monitor, const EngineClock& clock,
                           const LoadedModules& modules, const FunctionTrials& trials,
                           BackgroundCalibration& calibration)
    : services_(services),
      monitor_(monitor),
      clock_(clock),
      modules_(modules),
      trials_(trials),
      calibration_(calibration) {}

void LatencyWatch::round(const Round& round) {
  if (round.look) say_news();
  calibrate(round.now);
}

void LatencyWatch::refresh() const {
  read();
}

std::vector<LatencyWatch::Timed> LatencyWatch::read() const {
  std::vector<Timed> all;
  const std::shared_ptr<const lwp::Calibration> calibration = calibration_.get();
  for (const auto& module : modules_.all()) {
    trials_.each(module.get(), [&](FuncIndex function, const Watch& watch) {
      for (const jit::Answer& answer : watch.version->answers) {
        if (!answer.is_applied() || !answer.timed || answer.cell >= watch.timed.size()) continue;
        const TimedSums sums = watch.timed[answer.cell]->sums(*answer.timed);
        if (sums.count() == 0) continue;
        all.push_back({module, function, answer.site.at, latency_of(sums, calibration.get())});
      }
    });
  }
  if (all.empty()) return all;
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (const Timed& timed : all) {
      const auto found = profiles.find(timed.module.get());
      if (found != profiles.end()) found->second->set_latency(timed.function, timed.load, timed.latency);
    }
  });
  return all;
}

void LatencyWatch::say_news() {
  for (const Timed& timed : read()) {
    MemoryLevel& said = said_[{timed.module.get(), timed.load.value}];
    if (timed.latency.level == said) continue;
    said = timed.latency.level;
    services_.say(
        LogLevel::kInfo, "trial",
        fmt::format(
            "load at 0x{:x} in {}: from {}, mean of {} timed loads {:.0f} ticks, {:.0f} % of them from "
            "memory (estimate)",
            timed.load.value, timed.module->function_name(timed.function), to_string(timed.latency.level),
            timed.latency.timed, timed.latency.mean_ticks, 100 * timed.latency.memory_share));
  }
}

void LatencyWatch::calibrate(EngineClock::Time now) {
  if (clock_.seconds(now) >= kCalibrateAfterSeconds && !calibration_.get()) calibration_.measure();
}

}  // namespace hindsight::rt
