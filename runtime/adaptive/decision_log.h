// DecisionLog: what was decided about functions, and what came of it, as reports tell it and profiles keep it.
//
// Concurrency: any thread. mutex_ protects all of it and is a leaf: what is called with it held (change()) locks
// nothing.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "feedback/profile/profile_file.h"
#include "jit/code/unit.h"
#include "jit/wasm/module.h"

namespace hindsight::rt {

class DecisionLog {
 public:
  // From 1 on and never used again: a report's "#N".
  using Id = uint64_t;

  // Its compile is in the queue from now on. `seconds`: since the engine's start.
  Id add(const wasm::Module* module, feedback::Episode episode, double seconds);
  // Its compile has ended; `why`: beside the state, may be empty. Nothing happens if the decision is forgotten.
  void end(Id id, DecisionState state, std::string why = {});
  // Calls change(episode), unless the decision is forgotten.
  template <typename Change>
  void change(Id id, Change&& change) {
    const std::lock_guard lock(mutex_);
    if (const auto found = decisions_.find(id); found != decisions_.end()) change(found->second.episode);
  }
  // A copy. Precondition: the decision is not forgotten.
  feedback::Episode at(Id id) const;

  // What a decision is under way about.
  using Units = std::set<std::pair<const wasm::Module*, jit::Unit>>;
  Units under_way() const;

  // Copies, in the order of their making.
  std::vector<feedback::Episode> all() const;
  std::vector<feedback::Episode> of(const wasm::Module* module) const;
  // How many there were of the module.
  size_t forget(const wasm::Module* module);

 private:
  struct Decision {
    feedback::Episode episode;
    const wasm::Module* module = nullptr;
  };

  mutable std::mutex mutex_;
  std::map<Id, Decision> decisions_;  // bounded by what the policy lets be compiled of a function
  Id last_ = 0;
  std::set<Id> queued_;  // or being compiled for the first time
};

}  // namespace hindsight::rt
