// The class behind make_tier_manager; see tier_manager.h for the picture.
#pragma once

#include <oneapi/tbb/task_arena.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "feedback/lwp/unit.h"
#include "feedback/monitor/monitor.h"
#include "feedback/policy/policy.h"
#include "feedback/profile/profile_file.h"
#include "runtime/engine/tier_manager.h"
#include "runtime/engine/trial.h"

namespace hindsight::rt {

class AutoTiers final : public TierManager {
 public:
  AutoTiers(const EngineConfig& config, CodeServices& services, lwp::Selection selection,
            feedback::ProfileFile known);
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
  void on_destroyed(ModuleCode& code) override;

 private:
  using Clock = std::chrono::steady_clock;

  // A prefetch that is known to pay: its trial starts settled, at this distance.
  using Settled = std::map<uint32_t, uint32_t>;  // wasm offset of the load -> distance

  struct Job {
    std::weak_ptr<ModuleCode> code;
    feedback::FunctionPlan plan;
    size_t episode = 0;
    double priority = 0;
    Settled settled;
  };

  // The optimized version that runs now, if feedback has anything to watch in it.
  struct Watch {
    std::shared_ptr<jit::CodeVersion> version;
    std::vector<LoopTrial*> trials;    // one a LoopCell
    std::vector<TrialState> reported;  // the state that was last acted upon
    size_t episode = 0;
    std::vector<LoopIndex> osr_loops;
  };

  struct ModuleState {
    std::weak_ptr<ModuleCode> code;
    std::shared_ptr<const wasm::Module> module;
    std::map<uint32_t, Watch> watches;  // by function index
    std::vector<size_t> episodes;       // into episodes_
    ModuleCodeCounts ended;             // of a module that is gone
    bool gone = false;
  };

  struct EpisodeState {
    feedback::Episode episode;
    const wasm::Module* module = nullptr;
  };

  // on_round and its parts; monitor thread.
  void on_round();
  void ask_policy(Clock::time_point now);
  void read_trials();
  void adapt_rate(Clock::time_point now);
  void collect(Clock::time_point now);

  void queue(Job job);
  void run_one_job();
  void task_ended();
  void compile(Job& job, ModuleCode& code);
  void install(Job& job, ModuleCode& code, std::unique_ptr<jit::CodeVersion> version);
  void queue_known(const std::shared_ptr<ModuleCode>& code, const feedback::ModuleProfile& known);
  void set_outcome(const wasm::Module* module, FuncIndex function, uint32_t load,
                   feedback::PrefetchOutcome outcome);
  size_t add_episode(const wasm::Module* module, feedback::Episode episode);
  void activity() {
    last_activity_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
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

  // Relaxed: a hint for the sampling rate, nothing is published by it.
  std::atomic<Clock::rep> last_activity_{0};
  std::atomic<bool> unit_failed_{false};  // the reason has been said
  std::atomic<bool> preopened_{false};
  double learning_seconds_ = 0;  // monitor thread only
  Clock::time_point last_round_, last_collect_, last_slow_look_;

  mutable std::mutex mutex_;  // protects what follows
  std::condition_variable idle_;
  std::vector<Job> jobs_;
  size_t tasks_ = 0;  // in the arena: enqueued or running; each job has one
  bool stopping_ = false;
  std::deque<ModuleState> modules_;
  std::deque<EpisodeState> episodes_;
  // Never freed before the engine: a thread in retired code may still end a strip. At most
  // PolicyConfig::max_compiles a function.
  std::deque<LoopTrial> trials_;
  TrialGate gate_;

  std::unique_ptr<oneapi::tbb::task_arena> arena_;
  std::unique_ptr<feedback::Monitor> monitor_;
};

}  // namespace hindsight::rt
