// VersionTrials measures what a decision gives that is part of a whole version of a function or nest, and of no single
// loop in it, or what all decisions of a nest give together. The current version, which has it, runs against one that was
// made without. There is one trial at a time in an engine.
//
//     counting    the function is called through a meter for some tens of milliseconds: whether it is called often
//                 enough for calls to be a measure of work. A nest counts its work itself (NestWork)
//     compiling   in the background, without that one decision; published by nobody
//     comparing   the function's slots lead to one and to the other, in turns (exchange_trial.h)
//     ended       the decision stays unless the version without it is surely faster; the other version is left to whoever is told
//
// The two are different code, other than where code is only moved, so what leads into and out of them is exchanged
// with the entries. Running baseline loops enter what is current. Loops in either of the two go on in the other where
// both have an exit and an entry for them. Else they stay where they are, as after any publishing
// (ModuleCode::exchange). Neither is retired while something leads to it. Nothing leads to the one that is not
// current, but it is held until the trial has ended.
//
// The subject is not compiled anew by anybody meanwhile; if it is all the same, or withdrawn, the trial ends with
// nothing.
//
// Threads: begin() and round() on the monitor thread; offer() on the compile threads; forget() by whoever lets go of a
// module; the others any. Lock order: with mutex_ held only ModuleCode and Hooks::read are called.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "feedback/profile/evidence.h"
#include "runtime/adaptive/experiments/exchange_trial.h"
#include "runtime/adaptive/trial_parameters.h"
#include "runtime/code/module_code.h"

namespace hindsight::rt {

class VersionTrials {
 public:
  struct Subject {
    const wasm::Module* module = nullptr;
    std::weak_ptr<ModuleCode> code;
    std::shared_ptr<jit::CodeVersion> with;                  // current
    std::optional<jit::ChangeKind> decision = std::nullopt;  // empty: all that is changed
  };
  struct Ending {
    Subject subject;
    std::shared_ptr<jit::CodeVersion> without = nullptr;  // null: there was none
    // The one of the two that is not current, for whoever is told: to be kept, or retired (ModuleCode::retire_copy). Null: none.
    std::shared_ptr<jit::CodeVersion> left = nullptr;
    // kKept: the decision is; kRolledBack: `without` is current; kNone: nothing was found out, and all is as it was.
    feedback::ChangeState outcome = feedback::ChangeState::kNone;
    double gain = 0;  // of the decision: rate with it / rate without - 1
    std::string words = {};
  };
  struct Hooks {
    // Arranges for one call of offer(); false: there is no thread for it.
    std::function<bool(const Subject&)> compile;
    // No lock is held.
    std::function<void(const Ending&)> on_ended;
    // Something else is being measured now, which exchanges would disturb, and the other way round.
    std::function<bool()> disturbed;
    // Calls of the function as metered, or a nest's work in both versions, and the CPU time of guests. `without`: null until
    // it is there.
    std::function<CallChunk::Reading(const ModuleCode&, const jit::CodeVersion& with,
                                     const jit::CodeVersion* without)>
        read;
  };
  struct Pace {
    double counting_seconds = kVersionCountingSeconds;
    double most_counting_seconds = kMostVersionCountingSeconds;  // of CPU time
    double most_seconds = kMostVersionSeconds;                   // for counting, and for comparing
    CallChunk::Pace chunk;
    double nest_chunk_seconds = kNestChunkSeconds;  // at least, as iterations are many
    ExchangeTrial::Rule rule = ExchangeTrial::for_versions();
    // For tests: a call in the version with the decision counts for so many in the version without it.
    double bias = 1;
  };
  VersionTrials(CodeServices& services, Hooks hooks, Pace pace)
      : services_(services), hooks_(std::move(hooks)), pace_(pace) {}

  // Precondition: none is under way.
  void begin(Subject subject);
  // Once a round of the monitor.
  void round();
  // The version without the decision, complete but for being published; null: it could not be made, for this reason.
  void offer(std::shared_ptr<jit::CodeVersion> without, const std::string& why_not = {});
  // The same with one that was current before and is held by nobody else; it is retired where it is of no use.
  void offer_again(std::shared_ptr<jit::CodeVersion> without);
  // The module's code is about to go.
  void forget(const ModuleCode& code);

  bool busy() const;
  // The function's version with the decision while one without it is on trial; null: it is not on trial. What is
  // current may be either.
  std::shared_ptr<jit::CodeVersion> subject(const wasm::Module* module, FuncIndex function) const;
  // CPU time that guests lost while versions without a decision were current, which were slower. The time itself where it
  // is not known how much slower.
  double seconds_lost() const;

 private:
  enum class Phase : uint8_t { kCounting, kCompiling, kComparing };
  struct Trial {
    Subject subject;
    Phase phase = Phase::kCounting;
    std::shared_ptr<jit::CodeVersion> without = nullptr;
    bool shown = false;  // `without` is current
    ExchangeTrial compared;
    CallChunk chunk = {};
    CallChunk::Reading begun = {};  // counting, then comparing
    double seconds_shown = 0;       // when `without` was made current, CPU time of guests
    double seconds_in_it = 0;       // while it was
    bool ended = false;
    Ending ending = {};
  };
  void count(Trial& trial, ModuleCode& code);
  void compare(Trial& trial, ModuleCode& code);
  // False: something else is current than either of them.
  bool show(Trial& trial, ModuleCode& code, bool without);
  // Under mutex_. False: the two cannot be compared.
  bool begin_with(std::shared_ptr<jit::CodeVersion> without, ModuleCode& code, bool registered);
  static bool is_alike(const jit::CodeVersion& with, const jit::CodeVersion& without);
  void end(Trial& trial, ModuleCode& code, feedback::ChangeState outcome, std::string words);
  CallChunk::Reading read(const Trial& trial, const ModuleCode& code) const {
    return hooks_.read(code, *trial.subject.with, trial.without.get());
  }

  CodeServices& services_;
  const Hooks hooks_;
  const Pace pace_;
  mutable std::mutex mutex_;  // protects what follows
  std::optional<Trial> trial_;
  double seconds_lost_ = 0;
};

}  // namespace hindsight::rt
