// Experiment: something that is changed while programs run, measured, and kept or taken back. One interface for all
// of them, so that who drives them (adaptive_tiers.h) knows none.
//
// Each owns its lock and says what that protects. What an experiment measures must not be disturbed, and what it
// changes disturbs others: both go by leases (runtime/adaptive/measurement.h).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "feedback/profile/profile_file.h"
#include "runtime/adaptive/engine_clock.h"
#include "runtime/code/module_code.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::rt {

// One round of the monitor.
struct Round {
  EngineClock::Time now = {};
  bool look =
      false;  // whether it is time to look for something to begin; else only what is under way goes on
  std::vector<std::shared_ptr<ModuleCode>> modules = {};  // that are there, where it is time to look
};

// Where decisions are told.
using DecisionSink = std::vector<DecisionReport>;

class Experiment {
 public:
  virtual ~Experiment() = default;

  // Monitor thread.
  virtual void round(const Round& round) = 0;
  // The module's code is about to go. Any thread.
  virtual void forget(const ModuleCode&) {}
  // What was decided about a module that is gone is not told any more; how many decisions that were. Any thread.
  virtual size_t forget_decisions(const wasm::Module*) { return 0; }
  // Any thread.
  virtual void report(DecisionSink&) const {}
  virtual void save(const wasm::Module*, feedback::ModuleProfile&) const {}
};

}  // namespace hindsight::rt
