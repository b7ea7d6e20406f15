// LatencyWatch: from which level of memory loads come, by loads that are timed by themselves (timed_loads.h) and the
// machine's calibration (background_calibration.h).
//
// Concurrency: round() on the monitor thread; refresh() on any. It shares nothing but what these two files guard.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "feedback/monitor/monitor.h"
#include "runtime/adaptive/background_calibration.h"
#include "runtime/adaptive/functions/function_trials.h"

namespace hindsight::rt {

class LatencyWatch {
 public:
  // All outlive this. The calibration is loaded already.
  LatencyWatch(CodeServices& services, feedback::Monitor& monitor, const EngineClock& clock,
               const LoadedModules& modules, const FunctionTrials& trials,
               BackgroundCalibration& calibration);

  // Calibrates the machine when it is worth it, and says which loads' level became known or changed.
  void round(const Round& round);
  // Puts what timed loads say by now into the profiles.
  void refresh() const;

 private:
  struct Timed {
    std::shared_ptr<const wasm::Module> module;
    FuncIndex function;
    WasmOffset load;
    feedback::LoadLatency latency;
  };
  std::vector<Timed> read() const;  // into the profiles, and what that was
  void say_news();
  void calibrate(EngineClock::Time now);

  CodeServices& services_;
  feedback::Monitor& monitor_;
  const EngineClock& clock_;
  const LoadedModules& modules_;
  const FunctionTrials& trials_;
  BackgroundCalibration& calibration_;
  // Monitor thread only.
  std::map<std::pair<const wasm::Module*, uint32_t>, MemoryLevel> said_;
};

}  // namespace hindsight::rt
