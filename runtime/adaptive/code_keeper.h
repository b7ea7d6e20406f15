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

#include "runtime/adaptive/engine_parts.h"
#include "runtime/adaptive/functions/function_compiler.h"
#include "runtime/adaptive/functions/function_trials.h"

namespace hindsight::rt {

class CodeKeeper {
 public:
  // The function's version with what is compared, while two of them run in turns; null: none are.
  using Subject = std::function<std::shared_ptr<jit::CodeVersion>(const wasm::Module*, FuncIndex)>;
  // All outlive this.
  CodeKeeper(const EngineParts& engine, FunctionTrials& trials, const FunctionCompiler& compiler,
             Subject subject);

  // Code of earlier runs, before the module's first call.
  void install(const std::shared_ptr<ModuleCode>& code) const;
  void save(const ModuleCode& code) const;
  // Has all of it saved in the background, when it is time.
  void round(const Round& round);

 private:
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    engine_.services.say(level, topic, line);
  }

  const EngineParts engine_;
  FunctionTrials& trials_;
  const FunctionCompiler& compiler_;
  const Subject subject_;
  EngineClock::Time last_save_;  // monitor thread only
};

}  // namespace hindsight::rt
