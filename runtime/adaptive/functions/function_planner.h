// FunctionPlanner asks the policy about the functions that run, and has done what it says. It queues a compile,
// or takes a function back to be seen anew.
//
// Monitor thread only, and so without a lock.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "runtime/adaptive/engine_parts.h"
#include "runtime/adaptive/functions/compile_scale.h"
#include "runtime/adaptive/functions/function_trials.h"
#include "runtime/adaptive/functions/second_compiles.h"

namespace hindsight::rt {

class FunctionPlanner {
 public:
  // All outlive this.
  FunctionPlanner(const EngineParts& engine, FunctionTrials& trials, const SecondCompiles& seconds,
                  const CompileScale& scale, SamplingGovernor& governor);

  void round(const Round& round);
  // The policy answered "wait" about some function in the last round.
  bool waits() const { return waits_; }
  // Loops that began to run in baseline code since the engine's start, and whether some that have no code were seen in the
  // last round.
  uint64_t new_places() const { return new_places_; }
  bool sees_places() const { return sees_places_; }

 private:
  struct Decided {
    const wasm::Module* module;
    feedback::FunctionEvidence evidence;
    feedback::FunctionPlan plan;
  };
  // What a round asks about, and what comes of that.
  struct Questions {
    EngineClock::Time now;
    bool look = false;
    bool compiling = false;             // something is being compiled
    size_t room = 0;                    // for compiles of functions in a flat profile
    DecisionLog::Units in_flight = {};  // about which something is decided already
    DecisionLog::Units waiting = {};    // that are compiled once more as they are
    DecisionLog::Units found_out = {};  // of which something is about to be found out
    double samples = 0;                 // of what may still be compiled
    std::vector<Decided> decided = {};
  };
  void ask_all(feedback::Monitor::Profiles& profiles, Questions& questions);
  // Until there is nothing more to decide about the function in this round.
  void ask(const wasm::Module* module, feedback::Profile& profile, FuncIndex function, Questions& questions);
  // False: nothing was decided, or something about the function as a whole.
  bool ask_once(const wasm::Module* module, feedback::Profile& profile, FuncIndex function,
                Questions& questions);
  // Whether that is about loops of what the plan compiles: it would try the same again.
  static bool is_being_found_out(const wasm::Module* module, const feedback::FunctionEvidence& evidence,
                                 const feedback::FunctionPlan& plan, const Questions& questions);
  bool is_worth_asking(const feedback::FunctionCounts& counts, bool look) const;
  // Since it was asked about last little was seen of it that is new, and it is not long ago.
  bool was_just_asked(const wasm::Module* module, uint32_t function, const feedback::FunctionCounts& counts,
                      EngineClock::Time now);
  bool calls_what_stalls(const feedback::Profile& profile, FuncIndex function,
                         const feedback::FunctionCounts& counts) const;
  void compile(Decided decided);
  void observe(const Decided& decided);
  void say_plan(const Decided& decided) const;
  void say_alternatives(const feedback::FunctionPlan& plan) const;
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    engine_.services.say(level, topic, line);
  }

  const EngineParts engine_;
  FunctionTrials& trials_;
  const SecondCompiles& seconds_;
  const CompileScale& scale_;
  SamplingGovernor& governor_;
  struct Asked {
    EngineClock::Time at;
    double samples = 0;  // of its whole run
    feedback::Entered entered = feedback::Entered::kUnknown;
    bool waits = false;  // was the answer
  };
  std::map<std::pair<const wasm::Module*, uint32_t>, Asked>
      asked_;  // those of modules that went are dropped at a look
  EngineClock::Time last_look_, last_flat_look_;
  bool waits_ = false, opened_ = false, sees_places_ = false;
  uint64_t new_places_ = 0, samples_without_code_ = 0;
};

}  // namespace hindsight::rt
