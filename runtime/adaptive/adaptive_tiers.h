// AdaptiveTiers: the tier manager of mode auto; see runtime/code/tier_manager.h for the picture. Here its parts are
// wired, and a round of the monitor has its order. What each part does, and what its lock protects, its own header
// says.
//
// Lock order. No lock of a part is held while profiles are visited (Monitor::with_profiles), nor the other way round.
// With the lock on the left held, what stands on the right is called, and no other part.
//     VersionTrials, CodeLayout    ModuleCode, Measurement, and the monitor for the guests' seconds and how many they are
//     FunctionTrials               ModuleCode, LoopTrial, TimedLoads, RetireList, DecisionLog
//     PageMoves                    LoopTrial, Measurement
//     CompileQueue                 CompileThreads, DecisionLog
//     LoadedModules                ModuleCode
//     DecisionLog, Measurement, ProfileKeeper, VersionExperiment: none
// Whoever lets go of a module's code may be its last owner, and its end comes back here (on_destroyed): no lock is
// held then.
//
// Threads: the monitor's is in round(); compile threads are in tasks of the queue. Guest threads are in
// on_first_entry, strip_ended and memory_grown. Threads that load, instantiate and let go of modules are in the rest. In a child of
// fork() nothing is watched, decided or told: the engine's threads are not there, and may have gone with locks. So
// everything that locks asks for the owner first.
#pragma once

#include <string>
#include <vector>

#include "runtime/adaptive/background_calibration.h"
#include "runtime/adaptive/code_keeper.h"
#include "runtime/adaptive/compile_queue.h"
#include "runtime/adaptive/decision_log.h"
#include "runtime/adaptive/engine_parts.h"
#include "runtime/adaptive/experiments/code_layout.h"
#include "runtime/adaptive/experiments/memory_filling.h"
#include "runtime/adaptive/experiments/memory_growth.h"
#include "runtime/adaptive/experiments/page_move.h"
#include "runtime/adaptive/experiments/version_experiment.h"
#include "runtime/adaptive/functions/entry_watch.h"
#include "runtime/adaptive/functions/function_compiler.h"
#include "runtime/adaptive/functions/function_planner.h"
#include "runtime/adaptive/functions/function_trials.h"
#include "runtime/adaptive/functions/second_compiles.h"
#include "runtime/adaptive/latency_watch.h"
#include "runtime/adaptive/loaded_modules.h"
#include "runtime/adaptive/machine_costs.h"
#include "runtime/adaptive/measurement.h"
#include "runtime/adaptive/profile_keeper.h"
#include "runtime/adaptive/sampling_governor.h"
#include "runtime/adaptive/thread_watch.h"
#include "runtime/code/owner_process.h"
#include "runtime/code/tier_manager.h"

namespace hindsight::rt {

class AdaptiveTiers final : public TierManager {
 public:
  AdaptiveTiers(const EngineConfig& config, CodeServices& services, lwp::Selection selection,
                feedback::ProfileFile known, RecordFeed& feed);
  ~AdaptiveTiers() override { shutdown(); }
  // Begins to watch; once, before anything else. kResource: there is no thread for it.
  Status start();

  // TierManager
  jit::Tier first_tier() const override {
    return config_.tier == TierMode::kOptimized ? jit::Tier::kOptimized : jit::Tier::kBaseline;
  }
  void on_loaded(const std::shared_ptr<ModuleCode>& code) override;
  FeedbackReport feedback_report() const override;
  Status save_profile(const std::string& path) const override { return profiles_.save(path); }
  void wait_for_compiles() override { queue_.wait_until_idle(); }
  void shutdown() override;

  // ThreadHooks
  std::shared_ptr<LwpSink> on_first_entry(Store& store) override;
  void strip_ended(Store& store, jit::VmContext* context, jit::LoopCell* cell) override;
  void memory_grown(const wasm::Module* module, uint64_t base, uint64_t old_bytes, uint64_t bytes) override;

  // CodeObserver
  void on_published(ModuleCode& code, const std::shared_ptr<jit::CodeVersion>& version) override;
  void on_instance(ModuleCode& code, const Instance& instance) override;
  void on_destroyed(ModuleCode& code) override;

 private:
  void round();  // monitor thread
  void collect(EngineClock::Time now);
  void forget_modules();
  feedback::Monitor::Config monitor_config(const lwp::Selection& selection, RecordFeed& feed);
  CodeLayout::Hooks layout_hooks();
  ProfileKeeper::Hooks profile_hooks();
  MachineFacts known_machine();

  const EngineConfig config_;
  CodeServices& services_;
  BackgroundCalibration calibration_;
  const feedback::PolicyConfig policy_;
  const OwnerProcess owner_;
  const EngineClock clock_;

  LoadedModules modules_;
  DecisionLog decisions_;
  Measurement measurement_;
  // Before what refers to it, and stopped before any of that goes.
  mutable feedback::Monitor monitor_;
  SamplingGovernor governor_;
  ThreadWatch threads_;
  CompileQueue queue_;
  const EngineParts parts_{services_, monitor_, policy_, clock_, modules_, decisions_, queue_};
  FunctionTrials trials_;
  CompileScale scale_;
  FunctionCompiler compiler_;
  SecondCompiles seconds_;
  FunctionPlanner planner_;
  EntryWatch entries_;
  LatencyWatch latencies_;
  PageMoves pages_;
  MemoryFilling filling_;
  MemoryGrowth growth_;
  CodeLayout layout_;
  VersionExperiment versions_;
  ProfileKeeper profiles_;
  CodeKeeper code_keeper_;
  const std::vector<Experiment*> experiments_{&trials_, &seconds_, &filling_, &growth_,
                                              &pages_,  &layout_,  &versions_};
  bool started_ = false;  // else nothing has run that a profile could be saved of
  // Monitor thread only.
  EngineClock::Time last_look_, last_collect_;
};

}  // namespace hindsight::rt
