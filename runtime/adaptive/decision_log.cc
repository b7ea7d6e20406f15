#include "runtime/adaptive/decision_log.h"

namespace hindsight::rt {

DecisionLog::Id DecisionLog::add(const wasm::Module* module, feedback::Episode episode, double seconds) {
  const std::lock_guard lock(mutex_);
  const Id id = ++last_;
  episode.id = id;
  episode.seconds = seconds;
  episode.state = DecisionState::kQueued;
  decisions_.emplace(id, Decision{std::move(episode), module});
  queued_.insert(id);
  return id;
}

void DecisionLog::end(Id id, DecisionState state, std::string why) {
  const std::lock_guard lock(mutex_);
  queued_.erase(id);
  const auto found = decisions_.find(id);
  if (found == decisions_.end()) return;
  found->second.episode.state = state;
  found->second.episode.state_why = std::move(why);
}

feedback::Episode DecisionLog::at(Id id) const {
  const std::lock_guard lock(mutex_);
  return decisions_.at(id).episode;
}

DecisionLog::Units DecisionLog::under_way() const {
  Units units;
  const std::lock_guard lock(mutex_);
  for (const Id id : queued_) {
    const Decision& decision = decisions_.at(id);
    units.insert({decision.module, {decision.episode.evidence.function, decision.episode.nest}});
  }
  return units;
}

std::vector<feedback::Episode> DecisionLog::all() const {
  std::vector<feedback::Episode> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, decision] : decisions_) all.push_back(decision.episode);
  return all;
}

std::vector<feedback::Episode> DecisionLog::of(const wasm::Module* module) const {
  std::vector<feedback::Episode> its;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, decision] : decisions_)
    if (decision.module == module) its.push_back(decision.episode);
  return its;
}

size_t DecisionLog::forget(const wasm::Module* module) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(decisions_, [&](const auto& entry) {
    if (entry.second.module != module) return false;
    queued_.erase(entry.first);
    return true;
  });
}

}  // namespace hindsight::rt
