// VersionExperiment: trials of decisions that are part of a whole version of a function or nest, and of all that is changed
// in it, also in an earlier run, and again and again. Says which of them is put on trial, what it is compared with, and the way back. What runs when, version_trials.h says.
//
// Concurrency: round() on the monitor thread; the second version is compiled on a compile thread; the rest on any.
// mutex_ protects `whole_`, and with it held nothing is called but what ends a lease.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "feedback/policy/versions.h"
#include "runtime/adaptive/engine_parts.h"
#include "runtime/adaptive/experiments/experiment.h"
#include "runtime/adaptive/experiments/version_trials.h"
#include "runtime/adaptive/functions/function_compiler.h"
#include "runtime/adaptive/functions/function_trials.h"
#include "runtime/adaptive/measurement.h"

namespace hindsight::rt {

class VersionExperiment final : public Experiment {
 public:
  // All outlive this. `bias`: TestKnobs::trial_bias; 0: none.
  VersionExperiment(const EngineParts& engine, Measurement& measurement, FunctionTrials& trials,
                    const FunctionCompiler& compiler, double bias);

  // Experiment
  void round(const Round& round) override;
  void forget(const ModuleCode& code) override;

  // The version with the decision that is on trial; null: the function is not on trial.
  std::shared_ptr<jit::CodeVersion> subject(const wasm::Module* module, FuncIndex function) const {
    return versions_.subject(module, function);
  }
  // The decision of that episode is on trial now.
  bool is_on_trial(DecisionLog::Id episode, jit::ChangeKind decision) const;

 private:
  // Which decision a version on trial is without, and what is compiled for it.
  struct Whole {
    std::optional<jit::ChangeKind> decision;  // empty: all that is changed
    Job job;
    Measurement::Lease lease;
    Watch::Tried begun = {};
    std::vector<FuncIndex> inlined = {};        // in the version with the decision
    std::optional<Watch> watch = std::nullopt;  // of the version without the decision, once there is one
  };
  struct Candidate {
    VersionTrials::Subject subject;
    feedback::VersionEvidence evidence;
    std::optional<Watch::Tried> tried = std::nullopt;
    double run_seconds = 0;  // of the unit
  };

  VersionTrials::Hooks hooks();
  std::vector<Candidate> candidates();
  void find_evidence(std::vector<Candidate>& candidates) const;
  // Nothing: the function has another version by now.
  std::optional<Job> job_without(const Candidate& candidate, std::optional<jit::ChangeKind> decision);
  void begin(Candidate candidate, Job job, const feedback::VersionTrialPlan& plan, Measurement::Lease lease);
  void ended(const VersionTrials::Ending& ending);
  // What came of the trial, for the decision that it was about, or for all that the version has.
  std::vector<std::pair<jit::Site, feedback::Outcome>> outcomes_of(const VersionTrials::Ending& ending,
                                                                   const Watch& watch) const;
  void compile_without();
  // Code of the unit without any change, where that is still there. False: it is to be compiled.
  bool offer_plain(const Job& job);
  std::optional<Whole> take();
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    engine_.services.say(level, topic, line);
  }

  const EngineParts engine_;
  Measurement& measurement_;
  FunctionTrials& trials_;
  const FunctionCompiler& compiler_;
  const EngineClock::Clock::duration period_;  // between looks for something to try
  VersionTrials versions_;
  // Monitor thread only.
  EngineClock::Time last_look_;
  // Comparisons with a version without any change: that this won, and that it lost.
  uint32_t plain_won_ = 0, plain_lost_ = 0;

  mutable std::mutex mutex_;
  std::optional<Whole> whole_;  // while versions_ is busy
};

}  // namespace hindsight::rt
