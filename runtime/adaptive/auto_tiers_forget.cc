// What AutoTiers keeps of modules that are gone. The last of them (LoadedModules::kTold) stay as they were, since a report that is made
// at a program's end tells of what ran in it. Of those before them the counts stay, and what would go into a profile
// file: a host that loads modules all day long does not grow by it.
#include "feedback/profile/merge.h"
#include "runtime/adaptive/auto_tiers.h"

namespace hindsight::rt {
namespace {

constexpr size_t kProfiles = 256;  // of different modules before those that are told

}  // namespace

void AutoTiers::forget_modules() {
  // Let go of after the locks: modules are large.
  const auto ended = loaded_.take_old(pages_->moving());
  for (const auto& module : ended) {
    feedback::ProfileFile profile;
    profile.modules.push_back(module_profile(module.get()));
    const size_t told = decisions_.forget(module.get()) + pages_->forget_decisions(module.get()) +
                        layout_->forget_decisions(module.get());
    monitor_->forget(module.get());
    const ModuleCodeCounts counts = loaded_.forget(module.get());
    const std::lock_guard lock(mutex_);
    modules_.erase(module.get());
    forgotten_.modules += 1;
    forgotten_.decisions += told;
    forgotten_.counts.add_compilations(counts);
    const feedback::ModuleProfile& its = profile.modules.front();
    if (forgotten_.profile.modules.size() < kProfiles || forgotten_.profile.find(its.hash_hex) != nullptr)
      forgotten_.profile = feedback::merge(std::move(forgotten_.profile), profile);
    else
      forgotten_.profiles += 1;
  }
}

}  // namespace hindsight::rt
