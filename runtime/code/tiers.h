// TierManager: the seam between the engine, which runs code, and whatever decides which code runs. One an
// engine. A fixed tier needs none of it (make_fixed_tiers); mode auto is make_tier_manager's.
#pragma once

#include <memory>

#include "runtime/code/code_services.h"
#include "runtime/code/module_code.h"
#include "runtime/engine/hindsight.h"
#include "runtime/exec/thread_hooks.h"

namespace hindsight::rt {

class TierManager : public ThreadHooks, public CodeObserver {
 public:
  ~TierManager() override = default;
  // The tier that compiles first calls.
  virtual jit::Tier first_tier() const = 0;
  // A module was loaded; keep it weakly (on_destroyed says when it goes).
  virtual void on_loaded(const std::shared_ptr<ModuleCode>& code) = 0;
  virtual FeedbackReport feedback_report() const = 0;
  // The model unit's report; other units have none.
  virtual std::optional<ModelReport> model_report() const { return std::nullopt; }
  virtual Status save_profile(const std::string& path) const = 0;
  virtual void wait_for_compiles() = 0;
  // Stops all threads of the manager and writes the profile if one is configured. Called once, before any of
  // the engine goes; no guest is running, but threads may still hold units (they are detached next).
  virtual void shutdown() = 0;
};

}  // namespace hindsight::rt
