// CodeKeeper: the adaptive tier and the code cache. Code of an earlier run enters like a compile that has just ended,
// with its decision. Its changes are settled where trials had kept them, and on trial where these had not ended. What
// feedback sees in it may lead to a new compile, as in any other version. What is current is saved for the next run:
// when the module goes, and now and then before.
//
// Concurrency: round() on the monitor thread, the rest on any. It has no state that threads share: files are the
// cache's.
#pragma once

#include <functional>
#include <memory>

#include "runtime/adaptive/compile_queue.h"
#include "runtime/adaptive/functions/function_compiler.h"
#include "runtime/adaptive/functions/function_trials.h"

namespace hindsight::rt {

class CodeKeeper {
 public:
  // The function's version with what is compared, while two of them run in turns; null: none are.
  using Subject = std::function<std::shared_ptr<jit::CodeVersion>(const wasm::Module*, FuncIndex)>;
  // All outlive this.
  CodeKeeper(CodeServices& services, feedback::Monitor& monitor, const feedback::PolicyConfig& policy,
             const EngineClock& clock, const LoadedModules& modules, DecisionLog& decisions,
             FunctionTrials& trials, const FunctionCompiler& compiler, CompileQueue& queue, Subject subject);

  // Code of earlier runs, before the module's first call.
  void install(const std::shared_ptr<ModuleCode>& code) const;
  void save(const ModuleCode& code) const;
  // Has all of it saved in the background, when it is time.
  void round(const Round& round);

 private:
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    services_.say(level, topic, line);
  }

  CodeServices& services_;
  feedback::Monitor& monitor_;
  const feedback::PolicyConfig& policy_;
  const EngineClock& clock_;
  const LoadedModules& modules_;
  DecisionLog& decisions_;
  FunctionTrials& trials_;
  const FunctionCompiler& compiler_;
  CompileQueue& queue_;
  const Subject subject_;
  EngineClock::Time last_save_;  // monitor thread only
};

}  // namespace hindsight::rt
