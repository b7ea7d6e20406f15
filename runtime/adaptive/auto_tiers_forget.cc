// What AutoTiers keeps of modules that are gone. The last kTold of them stay as they were, since a report that is made
// at a program's end tells of what ran in it. Of those before them the counts stay, and what would go into a profile
// file: a host that loads modules all day long does not grow by it.
#include <algorithm>
#include <utility>

#include "feedback/profile/merge.h"
#include "runtime/adaptive/auto_tiers.h"

namespace hindsight::rt {
namespace {

constexpr size_t kTold = 32;       // modules that are gone
constexpr size_t kProfiles = 256;  // of different modules before these

}  // namespace

void AutoTiers::forget_modules() {
  // Let go of behind the lock: modules are large.
  std::vector<std::shared_ptr<const wasm::Module>> ended;
  {
    std::lock_guard lock(mutex_);
    auto gone = static_cast<size_t>(
        std::count_if(modules_.begin(), modules_.end(), [](const ModuleState& state) { return state.gone; }));
    for (ModuleState& state : modules_) {
      if (gone <= kTold) break;
      if (!state.gone) continue;
      --gone;
      // What else there is of it would lose its profile. It is asked again when that has ended.
      const bool needed =
          std::any_of(
              modules_.begin(), modules_.end(),
              [&](const ModuleState& other) { return &other != &state && other.module == state.module; }) ||
          std::any_of(page_moves_.begin(), page_moves_.end(), [&](const PageMove& move) {
            return move.module == state.module.get() && (move.state == "queued" || move.state == "moving");
          });
      if (needed || std::exchange(state.forgetting, true)) continue;
      ended.push_back(state.module);
    }
  }
  for (const auto& module : ended) {
    feedback::ProfileFile profile;
    profile.modules.push_back(module_profile(module.get()));
    const size_t moves = layout_->forget_decisions(module.get());
    monitor_->forget(module.get());
    std::lock_guard lock(mutex_);
    const auto state = std::find_if(modules_.begin(), modules_.end(),
                                    [&](const ModuleState& other) { return other.module == module; });
    forgotten_.modules += 1;
    forgotten_.counts.add_compilations(state->ended);
    const feedback::ModuleProfile& its = profile.modules.front();
    if (forgotten_.profile.modules.size() < kProfiles || forgotten_.profile.find(its.hash_hex) != nullptr)
      forgotten_.profile = feedback::merge(std::move(forgotten_.profile), profile);
    else
      forgotten_.profiles += 1;
    for (const EpisodeId id : state->episodes) {
      episodes_.erase(id);
      queued_.erase(id);
    }
    const size_t pages =
        std::erase_if(page_moves_, [&](const PageMove& move) { return move.module == module.get(); });
    forgotten_.decisions += state->episodes.size() + pages + moves;
    modules_.erase(state);
  }
}

}  // namespace hindsight::rt
