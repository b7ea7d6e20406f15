// ProfileKeeper: saved profiles. At a module's start it puts what earlier runs knew into the module's profile, and
// asks at once for what they decided (feedback/policy/start.h). At its end it adds what this run saw beyond that,
// and what became of decisions. For modules that were forgotten it keeps what would go into a profile file.
//
// Concurrency: any thread. mutex_ protects the members below it; with it held only the log is written to.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "feedback/policy/start.h"
#include "runtime/adaptive/engine_parts.h"
#include "runtime/adaptive/experiments/experiment.h"

namespace hindsight::rt {

class ProfileKeeper {
 public:
  struct Hooks {
    // What experiments add to a module's profile.
    std::function<void(const wasm::Module*, feedback::ModuleProfile&)> save;
    // Brings profiles and decisions up to date before they are read: of this module, or of all of them.
    std::function<void()> refresh;
    std::function<void(const wasm::Module*)> fold;
  };
  // All outlive this. `known`: the file that the engine began with.
  ProfileKeeper(const EngineParts& engine, feedback::ProfileFile known, Hooks hooks);

  // What earlier runs knew of the module; null: nothing. The keeper outlives it.
  std::shared_ptr<const feedback::ModuleProfile> find(const wasm::Module& module) const;
  // The decisions that fit the module; the others are counted in the log. They refer to `known`.
  std::vector<feedback::StartQuestion> plausible_questions(const wasm::Module& module,
                                                           const feedback::ModuleProfile& known) const;
  void seed(const std::shared_ptr<ModuleCode>& code, const std::vector<feedback::StartQuestion>& questions);
  // Asks for what is to be compiled at once and has no code yet.
  void queue_known(const std::shared_ptr<ModuleCode>& code,
                   const std::vector<feedback::StartQuestion>& questions);

  // The module's code is about to go: adds this run to what is kept for the next. `up_to_date`: what the threads
  // wrote up to now is to be drained first.
  void keep(const ModuleCode& code, bool drain);
  // So many decisions of the module are told no more; what would go into a file of it is kept, within limits.
  void forget(const wasm::Module* module, feedback::ModuleProfile profile, const ModuleCodeCounts& counts,
              size_t decisions);

  feedback::ModuleProfile module_profile(const wasm::Module* module) const;
  Status save(const std::string& path) const;
  // What forgotten modules compiled, and how many there were.
  void report(FeedbackReport& report, ModuleCodeCounts& compiled) const;

 private:
  // What is left of modules that ended so long ago that their decisions are no longer told of.
  struct Forgotten {
    uint64_t modules = 0, decisions = 0;
    uint64_t profiles = 0;  // of these modules: not in `profile` either
    ModuleCodeCounts counts;
    feedback::ProfileFile profile;  // merged module by module
  };
  feedback::ProfileFile profile_file() const;
  void say(LogLevel level, std::string_view topic, std::string_view line) const {
    engine_.services.say(level, topic, line);
  }

  const EngineParts engine_;
  const feedback::ProfileFile known_;
  const Hooks hooks_;

  mutable std::mutex mutex_;
  using Seeds = std::map<uint32_t, feedback::FunctionEvidence>;  // by function index
  std::map<const wasm::Module*, Seeds> seeds_;                   // what profiles were seeded with
  Forgotten forgotten_;
};

}  // namespace hindsight::rt
