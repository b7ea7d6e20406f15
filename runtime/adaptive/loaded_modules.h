// LoadedModules knows which modules an engine has loaded, which of them are gone, and which of those are forgotten. The
// last kTold that went stay known, since a report that is made at a program's end tells of what ran in it.
//
// Concurrency: any thread. mutex_ protects all of it; with it held only ModuleCode is called. What is handed out
// keeps a module's code alive: let go of it with no lock held, since its end comes back here
// (TierManager::on_destroyed).
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/code/module_code.h"

namespace hindsight::rt {

class LoadedModules {
 public:
  static constexpr size_t kTold = 32;  // modules that are gone

  void add(const std::shared_ptr<ModuleCode>& code);
  // Its code is about to go: what it compiled stays counted.
  void end(const ModuleCode& code);

  // Null: it is not known, or gone.
  std::shared_ptr<ModuleCode> find(const wasm::Module* module) const;
  std::vector<std::shared_ptr<ModuleCode>> alive() const;
  // Also those that are gone and not forgotten.
  std::vector<std::shared_ptr<const wasm::Module>> all() const;
  // Adds what all of these compiled.
  void add_compilations(ModuleCodeCounts& counts) const;

  // Those that went before the last kTold and are not `needed` any more. Each is handed out once, and is the caller's
  // to forget().
  std::vector<std::shared_ptr<const wasm::Module>> take_old(const std::set<const wasm::Module*>& needed);
  // What it compiled.
  ModuleCodeCounts forget(const wasm::Module* module);

 private:
  struct Entry {
    std::weak_ptr<ModuleCode> code;
    std::shared_ptr<const wasm::Module> module;
    ModuleCodeCounts ended;  // of a module that is gone
    bool gone = false;
    bool taken = false;  // by take_old()
  };

  mutable std::mutex mutex_;
  std::list<Entry> modules_;  // in the order of their loading
};

}  // namespace hindsight::rt
