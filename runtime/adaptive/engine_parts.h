// EngineParts: what those that decide, try and keep need of the engine alike. Each outlives whoever is given it, and says
// itself which threads may call it.
#pragma once

#include "feedback/monitor/monitor.h"
#include "feedback/policy/policy.h"
#include "runtime/adaptive/compile_queue.h"
#include "runtime/adaptive/decision_log.h"
#include "runtime/adaptive/engine_clock.h"
#include "runtime/adaptive/loaded_modules.h"
#include "runtime/code/code_services.h"

namespace hindsight::rt {

struct EngineParts {
  CodeServices& services;
  feedback::Monitor& monitor;
  const feedback::PolicyConfig& policy;
  const EngineClock& clock;
  const LoadedModules& modules;
  DecisionLog& decisions;
  CompileQueue& queue;
};

}  // namespace hindsight::rt
