// CodeLayout: the decision code-layout from its evidence to its outcome, for all modules of an engine, one
// move at a time.
//
//     counting    every function that may be moved is called through a meter for some tens of
//                 milliseconds: what is called, and how often
//     placing     a task of the compile threads: the functions that were called, in the order that their
//                 calls ask for, one after the other on pages of 2 MiB, as copies
//                 (jit/code/move_code.h); published by nobody
//     comparing   entry slots lead to the copies and back, in turns, while a few meters count (exchange_trial.h)
//     ended       one placement stays; the other's versions are retired
//
// No guest waits: an exchange is one store a slot. Functions that are compiled anew meanwhile leave the move.
//
// Threads: round() on the monitor thread; place() on the compile threads; forget() by whoever lets go of a
// module; the others any. Lock order: with mutex_ held only ModuleCode, the monitor and Measurement are called.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "feedback/monitor/monitor.h"
#include "feedback/policy/layout.h"
#include "runtime/adaptive/experiments/exchange_trial.h"
#include "runtime/adaptive/experiments/experiment.h"
#include "runtime/adaptive/measurement.h"
#include "runtime/code/module_code.h"

namespace hindsight::rt {

class CodeLayout final : public Experiment {
 public:
  struct Hooks {
    std::function<bool()>
        enqueue_place;  // arranges for one call of place(); false: there is no thread for it
    // What was `from` is `to` from now on: the same code, with the same loop cells.
    std::function<void(const wasm::Module*, const ModuleCode::Exchange&)> on_moved;
    std::function<double()> now_seconds;  // since the engine's start
    std::function<double()> settled;      // seconds since a version was last asked for or made
  };
  // How long each part takes at least; what a program of a second can afford.
  struct Pace {
    std::chrono::milliseconds counting{30};
    std::chrono::milliseconds chunk{40};  // of the trial
    // At most, for counting where the guest hardly runs.
    std::chrono::milliseconds patience{2000};
  };
  // All outlive this.
  CodeLayout(CodeServices& services, feedback::Monitor& monitor, const feedback::PolicyConfig& policy,
             Measurement& measurement, Hooks hooks)
      : CodeLayout(services, monitor, policy, measurement, std::move(hooks), Pace()) {}
  CodeLayout(CodeServices& services, feedback::Monitor& monitor, const feedback::PolicyConfig& policy,
             Measurement& measurement, Hooks hooks, Pace pace);

  // Experiment
  void round(const Round& round) override;
  void forget(const ModuleCode& code) override;
  size_t forget_decisions(const wasm::Module* module) override;
  void report(DecisionSink& decisions) const override;
  void save(const wasm::Module* module, feedback::ModuleProfile& profile) const override;

  // A move is under way.
  bool busy() const;
  // Until `stop` is true.
  void place(const std::atomic<bool>& stop);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase : uint8_t { kCounting, kPlaceable, kPlacing, kComparing, kEnded };
  struct Move {
    const wasm::Module* module = nullptr;
    std::weak_ptr<ModuleCode> code;
    feedback::LayoutPlan plan;
    feedback::LayoutEvidence evidence;
    Phase phase = Phase::kCounting;
    DecisionState state = DecisionState::kCounting;
    std::string outcome;
    double seconds = 0, measured_gain = 0;
    // Counting: of which versions, what the meters said at its begin, then the difference.
    std::vector<std::shared_ptr<jit::CodeVersion>> versions;
    std::vector<uint64_t> calls;
    // Comparing.
    // What was there, and the copy; those whose function was compiled anew leave.
    std::vector<ModuleCode::Exchange> pairs;
    bool moved = false;  // the copies are current
    std::vector<FuncIndex> meters;
    ExchangeTrial trial;
    uint64_t calls_before = 0;
    double seconds_before = 0;  // of guests; negative: nothing is being measured yet
    Clock::time_point begun;
    std::optional<Measurement::Lease> lease;  // until it has ended
  };
  struct Placed {
    const wasm::Module* module;
    std::set<VersionId> versions;  // copies that stayed, and what stayed where it was
    uint32_t moves = 0;
  };

  void ask(const std::vector<std::shared_ptr<ModuleCode>>& modules);
  feedback::LayoutEvidence evidence_of(const ModuleCode& code, double settled,
                                       std::vector<std::shared_ptr<jit::CodeVersion>>& versions) const;
  void begin(const std::shared_ptr<ModuleCode>& code, feedback::LayoutPlan plan,
             feedback::LayoutEvidence evidence, std::vector<std::shared_ptr<jit::CodeVersion>> versions,
             Measurement::Lease lease);
  void end_counting(Move& move, ModuleCode& code);
  void compare(Move& move, ModuleCode& code);
  void show(Move& move, ModuleCode& code, bool moved);
  void settle(Move& move, ModuleCode& code);
  void end(Move& move, DecisionState state, std::string outcome);
  void flush();
  uint64_t metered(const Move& move, const ModuleCode& code) const;
  Placed& placed_of(const wasm::Module* module);
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    services_.say(level, topic, line);
  }

  CodeServices& services_;
  feedback::Monitor& monitor_;
  const feedback::PolicyConfig& policy_;
  Measurement& measurement_;
  const Hooks hooks_;
  const Pace pace_;
  // Monitor thread only.
  std::string last_reason_;

  mutable std::mutex mutex_;  // protects what follows
  std::list<Move> moves_;     // nothing is removed before it has ended: references stay
  std::deque<Placed> placed_;
  std::vector<std::string> lines_;  // for the log
};

}  // namespace hindsight::rt
