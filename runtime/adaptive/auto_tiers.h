// The class behind make_tier_manager; see tier_manager.h for the picture.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "feedback/lwp/units/unit.h"
#include "feedback/monitor/monitor.h"
#include "feedback/policy/policy.h"
#include "feedback/policy/start.h"
#include "feedback/profile/profile_file.h"
#include "runtime/adaptive/background_calibration.h"
#include "runtime/adaptive/compile_queue.h"
#include "runtime/adaptive/decision_log.h"
#include "runtime/adaptive/entry_watch.h"
#include "runtime/adaptive/experiments/code_layout.h"
#include "runtime/adaptive/experiments/loop_trial.h"
#include "runtime/adaptive/experiments/memory_filling.h"
#include "runtime/adaptive/experiments/page_move.h"
#include "runtime/adaptive/experiments/version_trials.h"
#include "runtime/adaptive/job.h"
#include "runtime/adaptive/loaded_modules.h"
#include "runtime/adaptive/measurement.h"
#include "runtime/adaptive/sampling_governor.h"
#include "runtime/adaptive/timed_loads.h"
#include "runtime/code/owner_process.h"
#include "runtime/code/tier_manager.h"

namespace hindsight::rt {

class AutoTiers final : public TierManager {
 public:
  AutoTiers(const EngineConfig& config, CodeServices& services, lwp::Selection selection,
            feedback::ProfileFile known, RecordFeed& feed);
  ~AutoTiers() override;

  // TierManager
  jit::Tier first_tier() const override;
  void on_loaded(const std::shared_ptr<ModuleCode>& code) override;
  FeedbackReport feedback_report() const override;
  Status save_profile(const std::string& path) const override;
  void wait_for_compiles() override;
  void shutdown() override;

  // ThreadHooks
  std::shared_ptr<LwpSink> on_first_entry(Store& store) override;
  void strip_ended(Store& store, jit::VmContext* context, jit::LoopCell* cell) override;

  // CodeObserver
  void on_published(ModuleCode& code, const std::shared_ptr<jit::CodeVersion>& version) override;
  void on_instance(ModuleCode& code, const Instance& instance) override;  // auto_tiers_pages.cc
  void on_destroyed(ModuleCode& code) override;

 private:
  using Clock = std::chrono::steady_clock;

  // In a child of fork() nothing is watched, decided or told: its threads are not there, and may have gone with locks.
  const OwnerProcess owner_;

  static jit::Site site_of(const feedback::Episode::Prefetch& p) { return {p.change, WasmOffset(p.load)}; }

  using EpisodeId = DecisionLog::Id;

  // The optimized version that runs now, if feedback has anything to watch in it.
  struct Watch {
    std::shared_ptr<jit::CodeVersion> version;
    std::vector<std::shared_ptr<LoopTrial>> trials;  // one a LoopCell
    std::vector<std::shared_ptr<TimedLoads>> timed;  // the same
    std::vector<TrialState> reported;                // the state that was last acted upon
    EpisodeId episode = 0;
    std::vector<LoopIndex> osr_loops;
    std::vector<feedback::CallPlan> calls;
    std::vector<feedback::BranchPlan> branches;
    std::vector<feedback::ValuePlan> values;
    bool split_cold = false, loop_exits = false;  // were asked for
    // Of a version out of the code cache it is not known what the compiler was told.
    bool cached = false;
    bool not_to_be_measured = false;  // as a whole: that was said
    // What later compiles were asked for and did not do, of which nothing new came (keeps_running).
    std::vector<jit::Answer> not_applied;
  };
  // A version on trial: of which decision it is without, and what is compiled for it.
  struct WholeTrial {
    jit::ChangeKind decision = jit::ChangeKind::kInlineCalls;
    Job job;
    Measurement::Lease lease;
    std::optional<Watch> watch = std::nullopt;  // of the version without the decision, once there is one
  };

  struct ModuleState {
    std::map<uint32_t, Watch> watches;  // by function index
    std::map<uint32_t, feedback::FunctionEvidence>
        seeds;  // what profiles were seeded with, by function index
  };

  // What is left of modules that ended so long ago that their decisions are no longer told of.
  struct Forgotten {
    uint64_t modules = 0, decisions = 0;
    uint64_t profiles = 0;  // of these modules: not in `profile` either
    ModuleCodeCounts counts;
    feedback::ProfileFile profile;  // merged module by module
  };

  // on_round and its parts; monitor thread.
  void on_round();
  void ask_policy(Clock::time_point now, bool look);
  void observe(const wasm::Module* module, const feedback::FunctionEvidence& evidence,
               const feedback::FunctionPlan& plan);
  void read_trials();
  void calibrate(Clock::time_point now);
  void collect(Clock::time_point now);

  // What code_layout.h and page_move.h need of this.
  void note_moved(const wasm::Module* module, const ModuleCode::Exchange& pair);
  std::vector<PageMoves::TimedLoop> timed_loops(const wasm::Module* module) const;

  void compile(Job& job, ModuleCode& code);
  jit::OptimizeRequest request_of(const Job& job, const ModuleCode& code) const;
  // Gives the version's loops their trials.
  Watch watch_of(const Job& job, const std::shared_ptr<jit::CodeVersion>& version);
  static void note_published(feedback::FunctionCounts& counts, const jit::CodeVersion& version);
  void install(Job& job, ModuleCode& code, std::shared_ptr<jit::CodeVersion> version);
  // auto_tiers_recompile.cc. What was made has nothing that the version that runs has not: that stays, and its trials go
  // on. `made` was not published and is the caller's to drop.
  bool keeps_running(const Job& job, ModuleCode& code, const jit::CodeVersion& made);
  // Its parts, under mutex_: what is new, in words; else the episode and the watch afterwards, and what was refused.
  std::string_view news_of(const Job& job, const Watch& watch, const ModuleCode& code,
                           const jit::CodeVersion& made) const;
  std::vector<jit::Site> stay_with(const Job& job, Watch& watch, const jit::CodeVersion& made);
  // Of the version, and what was asked for later and is not in it.
  static std::vector<jit::Answer> sites_of(const Watch& watch);
  // auto_tiers_profile.cc. What earlier runs decided, at a module's start; what this one did, for the next.
  // Of decisions that fit the module; the others are counted in the log.
  std::vector<feedback::StartQuestion> plausible_questions(const wasm::Module& module,
                                                           const feedback::ModuleProfile& known) const;
  void seed(const std::shared_ptr<ModuleCode>& code, const std::vector<feedback::StartQuestion>& questions);
  void queue_known(const std::shared_ptr<ModuleCode>& code,
                   const std::vector<feedback::StartQuestion>& questions);
  feedback::ModuleProfile module_profile(const wasm::Module* module) const;
  void keep_profile(const ModuleCode& code);
  void fold_trials(const wasm::Module* module);
  void set_outcome(const wasm::Module* module, FuncIndex function, jit::Site site,
                   feedback::PrefetchOutcome outcome);
  // Adds to the plan what is kept of `watch`, as settled, and, where interleaving lost, the prefetches that
  // it stood in for, as new. Their keys. What is known of branches stays, without the forms that lost.
  std::vector<jit::Site> plan_without_losers(Job& job, const Watch& watch) const;  // under mutex_
  // What is known to pay: `best` is the prefetch's distance or the width of the interleaved searches.
  static void plan_settled(Job& job, jit::Site site, uint32_t best, double gain, const char* reason);
  static void mark_in_trial(feedback::FunctionCounts& counts, const feedback::FunctionPlan& plan);
  static feedback::PrefetchOutcome& outcome_in(feedback::FunctionCounts& counts, jit::Site site);
  // auto_tiers_versions.cc: decisions that are part of a whole version, on trial.
  std::unique_ptr<VersionTrials> make_version_trials();
  void try_versions(Clock::time_point now);
  void compile_without();
  void version_trial_ended(const VersionTrials::Ending& ending);
  void report_version(const feedback::Episode& episode, jit::ChangeKind change,
                      DecisionReport& decision) const;
  void report_split(const feedback::Episode& episode, FeedbackReport& report) const;
  // auto_tiers_branches.cc
  void say_branches(const std::string& function, const feedback::FunctionPlan& plan) const;
  void report_branches(const feedback::Episode& episode, FeedbackReport& report) const;
  void explain_form(const feedback::FunctionEvidence& evidence, DecisionReport& decision) const;
  // auto_tiers_values.cc
  void say_values(const std::string& function, const feedback::FunctionPlan& plan) const;
  void explain_value(const feedback::FunctionEvidence& evidence, DecisionReport& decision) const;
  // Of plans for usual values: those that are kept in `watch`, as settled, and those that the code had to do without for
  // another change of their loop.
  static void plan_kept_values(Job& job, const Watch& watch,
                               std::vector<jit::Site>& instead);  // under mutex_
  EpisodeId add_episode(const wasm::Module* module, feedback::Episode episode);
  // auto_tiers_forget.cc
  void forget_modules();
  // auto_tiers_cache.cc. Code of earlier runs, before a module's first call; what is current, for the next
  // run.
  void install_cached(const std::shared_ptr<ModuleCode>& code);
  void save_code(const ModuleCode& code);
  void save_code_at_times(Clock::time_point now);  // monitor thread
  void save_all_code();                            // on a compile thread
  // auto_tiers_evidence.cc. What timed loads say by now, into the profiles. `news` (monitor thread only):
  // lines about loads whose level became known or changed.
  void read_timed_loads(std::vector<std::string>* news) const;
  static std::vector<feedback::FunctionEvidence> hottest_of(const feedback::Profile& profile);
  static std::vector<feedback::FunctionSamples> samples_of(const feedback::Profile& profile);
  void report_evidence(FeedbackReport& report) const;
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    services_.say(level, topic, line);
  }
  // Under mutex_. Null: nothing is known of it; the second, of a module that is there, makes it.
  ModuleState* state_of(const wasm::Module* module);
  const ModuleState* state_of(const wasm::Module* module) const;
  feedback::ProfileFile profile_file() const;

  const EngineConfig config_;
  CodeServices& services_;
  const lwp::Selection selection_;
  const feedback::ProfileFile known_;
  feedback::PolicyConfig policy_;
  const EngineClock clock_;

  std::atomic<bool> unit_failed_{false};  // the reason has been said
  std::atomic<bool> preopened_{false};
  // Monitor thread only.
  bool calibration_loaded_ = false;
  bool policy_waits_ = false;  // the policy answered "wait" about some function
  mutable std::map<std::pair<const wasm::Module*, uint32_t>, MemoryLevel> said_levels_;
  Clock::time_point last_collect_, last_look_, last_flat_look_, last_save_, last_version_look_;

  mutable std::mutex mutex_;                            // protects what follows
  std::map<const wasm::Module*, ModuleState> modules_;  // that are not forgotten
  std::optional<WholeTrial> whole_trial_;               // while versions_ is busy
  Forgotten forgotten_;

  LoadedModules loaded_;
  DecisionLog decisions_;
  Measurement measurement_;
  SamplingGovernor governor_;
  std::unique_ptr<feedback::Monitor> monitor_;
  std::unique_ptr<CompileQueue> queue_;
  std::unique_ptr<PageMoves> pages_;
  std::unique_ptr<MemoryFilling> filling_;
  std::unique_ptr<CodeLayout> layout_;
  std::unique_ptr<VersionTrials> versions_;
  std::unique_ptr<EntryWatch> entries_;
  std::unique_ptr<BackgroundCalibration> calibration_;
};

}  // namespace hindsight::rt
