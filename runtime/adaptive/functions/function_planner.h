// FunctionPlanner asks the policy about the functions that run, and has done what it says. It queues a compile,
// or takes a function back to be seen anew.
//
// Monitor thread only, and so without a lock.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/adaptive/engine_parts.h"
#include "runtime/adaptive/functions/function_trials.h"

namespace hindsight::rt {

class FunctionPlanner {
 public:
  // All outlive this.
  FunctionPlanner(const EngineParts& engine, FunctionTrials& trials, SamplingGovernor& governor);

  void round(const Round& round);
  // The policy answered "wait" about some function in the last round.
  bool waits() const { return waits_; }

 private:
  struct Decided {
    const wasm::Module* module;
    feedback::FunctionEvidence evidence;
    feedback::FunctionPlan plan;
  };
  // What a round asks about, and what comes of that.
  struct Questions {
    bool look = false;
    bool compiling = false;            // something is being compiled
    size_t room = 0;                   // for compiles of functions in a flat profile
    DecisionLog::Functions in_flight;  // of which something is decided already
    double samples = 0;                // of what may still be compiled
    std::vector<Decided> decided = {};
  };
  void ask_all(feedback::Monitor::Profiles& profiles, Questions& questions);
  void ask(const wasm::Module* module, feedback::Profile& profile, FuncIndex function, Questions& questions);
  bool is_worth_asking(const feedback::FunctionCounts& counts, bool look) const;
  void compile(Decided decided);
  void observe(const Decided& decided);
  void say_plan(const Decided& decided) const;
  void say_alternatives(const feedback::FunctionPlan& plan) const;
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    engine_.services.say(level, topic, line);
  }

  const EngineParts engine_;
  FunctionTrials& trials_;
  SamplingGovernor& governor_;
  EngineClock::Time last_flat_look_;
  bool waits_ = false, opened_ = false;
};

}  // namespace hindsight::rt
