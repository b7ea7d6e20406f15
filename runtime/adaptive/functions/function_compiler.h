// FunctionCompiler takes a job to a version that runs. It asks the optimizing tier for the code, says what came of
// it, gives the version its trials, publishes it, and tells the profile.
//
// On a compile thread, or on one that loads a module, several at a time: it has no state of its own.
#pragma once

#include <memory>

#include "feedback/monitor/monitor.h"
#include "runtime/adaptive/compile_queue.h"
#include "runtime/adaptive/functions/compile_scale.h"
#include "runtime/adaptive/functions/function_trials.h"

namespace hindsight::rt {

class FunctionCompiler {
 public:
  // All outlive this.
  FunctionCompiler(CodeServices& services, feedback::Monitor& monitor, const feedback::PolicyConfig& policy,
                   DecisionLog& decisions, FunctionTrials& trials, CompileScale& scale, CompileQueue& queue)
      : services_(services),
        monitor_(monitor),
        policy_(policy),
        decisions_(decisions),
        trials_(trials),
        scale_(scale),
        queue_(queue) {}

  jit::OptimizeRequest request_of(const Job& job, const ModuleCode& code) const;
  // Compiles and installs, unless nothing new came of it; its decision says what happened. A job comes back that is to be
  // compiled once more: its unit has its first code now.
  std::optional<Job> compile(Job& job, ModuleCode& code) const;
  // Publishes a version that was made for the job.
  void install(const Job& job, ModuleCode& code, std::shared_ptr<jit::CodeVersion> version) const;

 private:
  // They were to be told in a compile that ended before code generation.
  void note_no_weights(const Job& job) const;
  // What trials in other code of the function found out since the job was made, and samples of its first code.
  void take_news(Job& job, const ModuleCode& code) const;
  // The job without what makes its first compile longer; none: it is compiled as it is.
  static std::optional<Job> first_of(const Job& job, const ModuleCode& code);
  void publish(const Job& job, ModuleCode& code, Watch watch) const;
  void say_failure(const Job& job, const ModuleCode& code, const Error& error, double seconds) const;
  void say_calls(const Job& job, const ModuleCode& code, const jit::CodeVersion& version) const;
  void say_made(const Job& job, const ModuleCode& code, const ModuleCode::Optimized& made,
                double seconds) const;
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    services_.say(level, topic, line);
  }

  CodeServices& services_;
  feedback::Monitor& monitor_;
  const feedback::PolicyConfig& policy_;
  DecisionLog& decisions_;
  FunctionTrials& trials_;
  CompileScale& scale_;
  CompileQueue& queue_;
};

}  // namespace hindsight::rt
