// FunctionTrials knows the optimized versions that run now and what of them is on trial. That is the changes of
// their loops (experiments/loop_trial.h), which trials have settled, and what becomes of those that lost.
//
// Concurrency: round() on the monitor thread, the rest on any; trials themselves measure on guest threads, under
// locks of their own that these only try. mutex_ protects the members below it. With it held only LoopTrial,
// TimedLoads, ModuleCode, the retire list and the decision log are called; visitors keep to that.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedback/monitor/monitor.h"
#include "runtime/adaptive/background_calibration.h"
#include "runtime/adaptive/experiments/experiment.h"
#include "runtime/adaptive/experiments/loop_trial.h"
#include "runtime/adaptive/functions/trial_price.h"
#include "runtime/adaptive/job.h"
#include "runtime/adaptive/loaded_modules.h"
#include "runtime/adaptive/measurement.h"
#include "runtime/adaptive/timed_loads.h"

namespace hindsight::rt {

struct Before;

// The optimized version of a function or of one of its loops that runs now.
struct Watch {
  std::shared_ptr<jit::CodeVersion> version;
  std::vector<std::shared_ptr<LoopTrial>> trials;  // one a LoopCell
  std::vector<std::shared_ptr<TimedLoads>> timed;  // the same
  std::vector<TrialState> reported;                // the state that was last acted upon
  // What was won in an earlier version, as it was tuned there. A loop's changes have one trial. Where it begins anew for a
  // change that is new, and that is rejected, these stay: they have lost nothing.
  Settled won_before;
  StallShares stall_shares;
  DecisionLog::Id episode = 0;
  std::vector<LoopIndex> osr_loops;
  std::vector<feedback::Candidate> told;  // what the compiler was told (told_by)
  bool loop_exits = false;                // were asked for
  bool short_loop_exits = false;          // these too
  // For a version out of the code cache it is not known what the compiler was told, but for which changes of the whole are in it.
  bool cached = false;
  std::vector<jit::ChangeKind> cached_changes;
  bool not_to_be_measured = false;  // as a whole: that was said
  // What is known of its trials as a whole. The time counts from the last one that leaves nothing but to try again.
  struct Tried {
    double run_seconds = 0;         // of its unit, as that began
    double seconds_in_version = 0;  // of these
    double gain = 0;  // its rate over that of one without any change - 1, as far as that is known
  };
  std::optional<Tried> tried = std::nullopt;
  // What ran before, to go back to if nothing that is new pays. Null: that is gone.
  std::shared_ptr<Before> before;
  // What it was compared with and has no change, to compare it with again. Null: that would have to be compiled.
  std::shared_ptr<Before> plain;
  bool is_replaced = false;  // a version without what has lost is on its way
  std::optional<EngineClock::Time> held_up =
      std::nullopt;  // since when what has lost waits for trials that are open
  // What made room for something that has lost in this version.
  std::vector<jit::Site> to_try_again;
  // What later compiles were asked for and did not do, of which nothing new came (stay_with).
  std::vector<jit::Answer> not_applied;

  // The answers of the version, and what was asked for later and is not in it.
  std::vector<jit::Answer> answers() const;
  bool has_lost() const;  // a trial has rejected something that is still in the code
  bool is_open(size_t trial) const {
    return reported[trial] == TrialState::kComparing || reported[trial] == TrialState::kTuning;
  }
  // The answer's change is in the code and pays, as far as is known.
  bool pays(const jit::Answer& answer) const;
};

// Code that is not current and may be again: nothing leads to it, but threads may still be in it. It is retired with its
// last owner, unless somebody took it.
struct Before {
  Before(CodeServices& the_services, std::weak_ptr<ModuleCode> its_code, Watch its_watch)
      : services(the_services), code(std::move(its_code)), watch(std::move(its_watch)) {}
  Before(const Before&) = delete;
  Before& operator=(const Before&) = delete;
  ~Before() {
    if (watch.version != nullptr) services.retired().add(std::move(watch.version));
  }
  // Whoever takes it publishes it, or has it retired.
  Watch take() { return std::exchange(watch, {}); }

  CodeServices& services;
  std::weak_ptr<ModuleCode> code;
  Watch watch;
};

// What gained in trials of a unit, and was taken back to make room for a rival (Answer::has_rival).
class MadeRoom {
 public:
  // What the trial of this cell has to gain beside what made room for it, or waits for it; 0: there is no such thing.
  double gain_to_beat(const Watch& watch, size_t cell) const;
  // What is changed in this cell was rejected, at such a gain. Returns what is to be tried again, as its rival is what lost.
  std::vector<jit::Site> note_loss(const Watch& watch, size_t cell, double gain);

 private:
  static bool is_rival(const Watch& watch, const jit::Answer& answer);

  std::vector<jit::Site> waiting_;
  double gain_ = 0;  // of what waits
};

// Which loops of a function won what in this run. One load may be in several loops: of a body that is inlined at several calls, as
// many copies. What is known to pay in one of them has not been tried in the others.
class WonChanges {
 public:
  void note(const jit::Answer& answer);
  // Not where another loop won it. What was won in an earlier run may be of any loop.
  bool may_be_of(const jit::Answer& answer) const;

 private:
  std::map<jit::Site, std::set<WasmOffset>> loops_;
};

class FunctionTrials final : public Experiment {
 public:
  using Queue = std::function<void(Job)>;
  // All outlive this. `queue`: called with no lock held.
  FunctionTrials(CodeServices& services, feedback::Monitor& monitor, const feedback::PolicyConfig& policy,
                 const LoadedModules& modules, DecisionLog& decisions, Measurement& measurement,
                 const BackgroundCalibration& calibration, Queue queue);

  // What is to be expected of a compile for further ones.
  TrialPrice& price() { return price_; }
  const TrialPrice& price() const { return price_; }

  // Gives the version's loops their trials. Before it is published.
  Watch make(const Job& job, const std::shared_ptr<jit::CodeVersion>& version);
  // Publishes the watched version. From now on it is what is watched of the unit. What it replaces is kept where one may have
  // to go back to it. On a compile thread.
  void publish(const Job& job, ModuleCode& code, Watch watch);
  // Trials of code that nobody enters any more, of the function and of its loops.
  void drop(const wasm::Module* module, FuncIndex function);
  // What was `from` is `to`: the same code, with the same loop cells.
  void move(const wasm::Module* module, const ModuleCode::Exchange& pair);

  // Calls visit(FuncIndex, Watch&), or with const Watch&, for each of the module's; which loop it is of, its version says.
  template <typename Visit>
  void each(const wasm::Module* module, Visit&& visit) {
    const std::lock_guard lock(mutex_);
    if (const auto found = watches_.find(module); found != watches_.end())
      for (auto& [unit, watch] : found->second) visit(unit.function, watch);
  }
  template <typename Visit>
  void each(const wasm::Module* module, Visit&& visit) const {
    const std::lock_guard lock(mutex_);
    if (const auto found = watches_.find(module); found != watches_.end())
      for (const auto& [unit, watch] : found->second) visit(unit.function, watch);
  }
  // Calls visit(Watch&) if the unit is watched; false: it is not.
  template <typename Visit>
  bool with(const wasm::Module* module, jit::Unit unit, Visit&& visit) {
    const std::lock_guard lock(mutex_);
    const auto found = watches_.find(module);
    if (found == watches_.end() || !found->second.contains(unit)) return false;
    visit(found->second.at(unit));
    return true;
  }

  // What was won already, as it was tuned, in whatever code of the function.
  Settled settled(const wasm::Module* module, FuncIndex function);
  // Loops whose trials are settled, and their ticks an iteration.
  std::vector<std::pair<std::shared_ptr<const LoopTrial>, double>> timed_loops(
      const wasm::Module* module) const;
  // Adds to the plan what is kept of `watch`, as settled. Where interleaving lost, adds as new the prefetches that
  // it stood in for, and returns these. What is known of branches stays, without the forms that lost.
  std::vector<jit::Site> plan_without_losers(Job& job, const Watch& watch) const;
  // Writes into the log what trials found out since the last round, and how far those came that go on.
  void fold(const wasm::Module* module);

  // Two versions of the unit run in turns: its news wait, and nothing is compiled of it meanwhile.
  void begin_comparing(const wasm::Module* module, jit::Unit unit);
  void end_comparing(const wasm::Module* module, jit::Unit unit);
  DecisionLog::Units compared() const;
  // Units of which a loop runs that has a change on trial, which is not judged yet.
  DecisionLog::Units found_out() const;

  // What was made has nothing that the version that runs has not, or is no code at all: that version stays, and its trials go on. `made`
  // was not published and is the caller's to drop. On a compile thread.
  bool keeps_running(const Job& job, const ModuleCode& code, const jit::CodeVersion& made);

  // Into the module's profile.
  void set_outcome(const wasm::Module* module, FuncIndex function, jit::Site site,
                   feedback::ChangeState outcome);

  // Experiment
  void round(const Round& round) override;
  void forget(const ModuleCode& code) override;

 private:
  struct News;
  MadeRoom room_of(const wasm::Module* module, jit::Unit unit) const;
  WonChanges won_of(const wasm::Module* module, FuncIndex function) const;
  // Nothing of what is new in the unit's version pays, and the one before it is there: that is current again.
  bool goes_back(const wasm::Module* module, jit::Unit unit, Watch& watch, News& news);  // under mutex_
  void read(const wasm::Module* module, jit::Unit unit, Watch& watch, EngineClock::Time now,
            News& news);  // under mutex_
  // Under mutex_: what is new, in words; else the decision and the watch afterwards, and what was refused.
  std::string_view news_of(const Job& job, const Watch& watch, const ModuleCode& code,
                           const jit::CodeVersion& made) const;
  std::vector<jit::Site> stay_with(const Job& job, Watch& watch, const jit::CodeVersion& made);
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    services_.say(level, topic, line);
  }

  CodeServices& services_;
  feedback::Monitor& monitor_;
  const feedback::PolicyConfig& policy_;
  const LoadedModules& modules_;
  DecisionLog& decisions_;
  TrialPrice price_;
  Measurement& measurement_;
  const BackgroundCalibration& calibration_;
  const Queue queue_;

  mutable std::mutex mutex_;
  std::map<const wasm::Module*, std::map<jit::Unit, Watch>> watches_;
  std::map<const wasm::Module*, std::map<jit::Unit, MadeRoom>> made_room_;
  std::map<const wasm::Module*, std::map<FuncIndex, WonChanges>> won_;
  DecisionLog::Units compared_;
};

}  // namespace hindsight::rt
