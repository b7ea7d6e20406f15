// The class behind make_tier_manager; see tier_manager.h for the picture.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "feedback/lwp/units/unit.h"
#include "feedback/monitor/monitor.h"
#include "feedback/policy/pages.h"
#include "feedback/policy/policy.h"
#include "feedback/policy/sampling.h"
#include "feedback/policy/start.h"
#include "feedback/profile/profile_file.h"
#include "runtime/adaptive/background_calibration.h"
#include "runtime/adaptive/code_layout.h"
#include "runtime/adaptive/huge_pages.h"
#include "runtime/adaptive/memory_fill.h"
#include "runtime/adaptive/timed_loads.h"
#include "runtime/adaptive/trial.h"
#include "runtime/adaptive/version_trials.h"
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

  // Changes that are known to pay: their trials start settled, at this distance or width.
  using Settled = std::map<jit::Site, uint32_t>;
  static jit::Site site_of(const feedback::Episode::Prefetch& p) { return {p.change, WasmOffset(p.load)}; }

  // Of an episode, from 1 on and never used again: a report's "#N".
  using EpisodeId = size_t;

  struct Job {
    std::weak_ptr<ModuleCode> code;
    feedback::FunctionPlan plan;
    EpisodeId episode = 0;
    double priority = 0;  // seconds in the function so far; known and undoing ones come before
    Settled settled;
    bool loop_exits = false;  // were asked for
    bool cached = false;      // its version is not compiled: it comes out of the code cache
  };

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
    const wasm::Module* module = nullptr;
    jit::ChangeKind decision = jit::ChangeKind::kInlineCalls;
    Job job;
    std::optional<Watch> watch = std::nullopt;  // of the version without the decision, once there is one
  };

  struct ModuleState {
    std::weak_ptr<ModuleCode> code;
    std::shared_ptr<const wasm::Module> module;
    std::map<uint32_t, Watch> watches;  // by function index
    std::vector<EpisodeId> episodes;
    std::map<uint32_t, feedback::FunctionEvidence>
        seeds;  // what profiles were seeded with, by function index
    // Moves of earlier runs that are asked for as soon as there is a memory.
    std::vector<feedback::PageEpisode> known_pages;
    ModuleCodeCounts ended;  // of a module that is gone
    bool gone = false;
    bool forgetting = false;  // a thread puts away what is kept of it
  };

  struct EpisodeState {
    feedback::Episode episode;
    const wasm::Module* module = nullptr;
  };

  // What is left of modules that ended so long ago that their decisions are no longer told of.
  struct Forgotten {
    uint64_t modules = 0, decisions = 0;
    uint64_t profiles = 0;  // of these modules: not in `profile` either
    ModuleCodeCounts counts;
    feedback::ProfileFile profile;  // merged module by module
  };

  struct PageMove {
    const wasm::Module* module = nullptr;
    feedback::PagePlan plan;
    feedback::PageEvidence evidence;
    std::vector<feedback::PageEpisode::Place> places;
    // Asked for before anything was touched, as an earlier run had decided.
    std::optional<feedback::PageEpisode> earlier;
    std::string state = "queued";  // moving, moved, kept, rolled back, failed
    std::string outcome;
    double seconds = 0, measured_gain = 0;
    std::unique_ptr<HugePageMove> under_way;
    Clock::time_point moved_at;
    std::vector<std::pair<std::shared_ptr<const LoopTrial>, double>> before;  // ticks an iteration
  };

  // on_round and its parts; monitor thread.
  void on_round();
  void watch_entries();
  void ask_policy(Clock::time_point now);
  void observe(const wasm::Module* module, const feedback::FunctionEvidence& evidence,
               const feedback::FunctionPlan& plan);
  void read_trials();
  void adapt_rate(Clock::time_point now);
  void calibrate(Clock::time_point now);
  void collect(Clock::time_point now);

  // What code_layout.h needs of this.
  void lay_out_code(bool look);
  void place_code();
  void note_moved(const wasm::Module* module, const ModuleCode::Exchange& pair);

  // auto_tiers_fill.cc; monitor thread
  struct FillWatch {
    const wasm::Module* module = nullptr;
    uint64_t base = 0, bytes = 0;
    uint32_t memory = 0;
    MemoryFill last;
    Clock::time_point next_look, changed;
    Clock::duration patience{};
    uint64_t asked_end = 0;                       // what lies below has been asked for
    uint32_t full_before = 0;                     // blocks of an earlier filling that has ended
    std::optional<feedback::FillEvidence> asked;  // under trial
    bool slower = false;                          // was asked for, and the filling got slower: not again
    // Where this filling began, or where it was asked, and what the guest had run by then.
    uint64_t touched_from = 0;  // bytes
    double seconds_from = 0;
    double rate_before = 0;  // bytes a second, until it was asked; 0: not known
    std::string said;
  };
  void watch_filling(Clock::time_point now);
  void look_at(FillWatch& watch, Clock::time_point now);
  void ask_ahead(FillWatch& watch, uint64_t begin, uint64_t end);
  void judge_filling(FillWatch& watch, Clock::time_point now);
  void end_asking(FillWatch& watch, const std::string& state, const std::string& outcome);
  void count_from_here(FillWatch& watch) const;
  // Bytes the guest filled a second of its time since touched_from; 0: too few to tell.
  double fill_rate(const FillWatch& watch) const;
  bool kept_from_earlier(const wasm::Module* module) const;

  // auto_tiers_pages.cc
  void ask_pages();
  bool already_huge(const wasm::Module* module, const feedback::PagePlan& plan);
  void move_pages();
  void judge_pages(Clock::time_point now);
  void report_pages(FeedbackReport& report) const;
  std::vector<feedback::PageEpisode> page_episodes(const wasm::Module* module) const;  // under mutex_

  void queue(Job job);
  // On a compile thread; mutex_ is held. False: there is none, which is said once.
  bool enqueue(void (AutoTiers::*task)());
  void open_optimizer();
  void refresh_priorities();
  void run_one_job();
  void task_ended();
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
  // Of what is in the queue, in a watch or in a module that is not forgotten: there is one. Under mutex_.
  feedback::Episode& episode_of(EpisodeId id) { return episodes_.at(id).episode; }
  const feedback::Episode& episode_of(EpisodeId id) const { return episodes_.at(id).episode; }
  // Ends what was in the queue, if it is still known. Under mutex_.
  void end_job(EpisodeId id, std::string state);
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
  void new_code() { new_code_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed); }
  void new_version() {
    new_version_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  double seconds_at(const std::atomic<Clock::rep>& time) const {
    const Clock::time_point at{Clock::duration(time.load(std::memory_order_relaxed))};
    return std::chrono::duration<double>(at - start_).count();
  }
  double now_seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    services_.say(level, topic, line);
  }
  ModuleState* state_of(const ModuleCode& code);      // under mutex_
  ModuleState* state_of(const wasm::Module* module);  // under mutex_
  feedback::ProfileFile profile_file() const;

  const EngineConfig config_;
  CodeServices& services_;
  const lwp::Selection selection_;
  const feedback::ProfileFile known_;
  feedback::PolicyConfig policy_;
  const Clock::time_point start_;

  // Relaxed: hints for the sampling rate, nothing is published by them.
  std::atomic<Clock::rep> new_code_{0};     // baseline code was published
  std::atomic<Clock::rep> new_version_{0};  // a compile was asked for or done
  std::atomic<bool> unit_failed_{false};    // the reason has been said
  std::atomic<bool> no_thread_said_{false};
  std::atomic<bool> no_memory_said_{false};  // the same of a task's memory
  std::atomic<bool> preopened_{false};
  std::atomic<bool> pages_measured_{
      false};                         // what moving takes is known, and the rest of the pages waits for that
  std::atomic<bool> abandon_{false};  // compilations under way; see OptimizeRequest
  const feedback::SamplingConfig sampling_;
  // Monitor thread only.
  feedback::SamplingState sampling_state_;
  Clock::rep burst_series_at_ = 0;  // new_code_ when branch bursts were last asked for
  uint32_t rate_hz_ = 0;
  bool calibration_loaded_ = false;
  struct EntryWatch {
    std::weak_ptr<ModuleCode> code;
    FuncIndex function;
  };
  std::vector<FillWatch> fill_watches_;
  Clock::time_point last_fill_look_;
  std::vector<EntryWatch> entry_watches_;  // functions not seen entered yet
  mutable std::map<std::pair<const wasm::Module*, uint32_t>, MemoryLevel> said_levels_;
  // Statistics of the monitor thread for reports; relaxed.
  std::atomic<uint64_t> rate_bursts_{0};
  std::atomic<double> rate_burst_seconds_{0}, rate_burst_cost_{0};
  Clock::time_point last_round_, last_collect_, last_slow_look_, last_flat_look_, last_save_,
      last_version_look_;

  mutable std::mutex mutex_;  // protects what follows
  std::condition_variable idle_;
  std::vector<Job> jobs_;
  size_t tasks_ = 0;  // of the compile threads: enqueued or running; each job has one
  bool stopping_ = false;
  // Of modules that there are, bounded by PolicyConfig::max_compiles a function; of those that are gone, by
  // their number (auto_tiers_forget.cc).
  std::list<ModuleState> modules_;
  std::map<EpisodeId, EpisodeState> episodes_;
  EpisodeId last_episode_ = 0;
  std::set<EpisodeId> queued_;  // of these, what is in jobs_ or being compiled for the first time
  std::list<PageMove> page_moves_;
  uint64_t page_bytes_copied_ = 0;  // by all of them, and
  double page_seconds_ = 0;         // what that cost the guest: its waiting, and our making pages beside it
  std::optional<WholeTrial> whole_trial_;  // while versions_ is busy
  Forgotten forgotten_;
  TrialGate gate_;

  std::unique_ptr<CodeLayout> layout_;
  std::unique_ptr<VersionTrials> versions_;
  std::unique_ptr<BackgroundCalibration> calibration_;
  std::unique_ptr<feedback::Monitor> monitor_;
};

}  // namespace hindsight::rt
