#include "runtime/adaptive/functions/entry_watch.h"

#include <utility>

namespace hindsight::rt {
namespace {

constexpr double kSamplesToWatch = 2;  // in a function's baseline code

}  // namespace

void EntryWatch::round() {
  using Function = std::pair<const wasm::Module*, FuncIndex>;
  std::vector<Function> entered, candidates;
  std::erase_if(watched_, [&](const Watched& watched) {
    const auto code = watched.code.lock();
    if (!code) return true;
    if (!code->entered(watched.function)) return false;
    entered.emplace_back(code->module().get(), watched.function);
    return true;
  });
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (const auto& [module, function] : entered) {
      if (auto found = profiles.find(module); found != profiles.end())
        found->second->counts(function).entered = feedback::Entered::kAgain;
    }
    for (auto& [module, profile] : profiles) {
      for (const auto& [index, counts] : profile->functions()) {
        if (counts.entered != feedback::Entered::kUnknown || counts.optimized ||
            counts.run_samples_baseline < kSamplesToWatch)
          continue;
        feedback::FunctionCounts& watched = profile->counts(FuncIndex(index));
        watched.entered = feedback::Entered::kNotYet;
        watched.seconds_when_watched = watched.seconds_baseline;
        watched.all_seconds_when_watched = profile->seconds_seen();
        candidates.emplace_back(module, FuncIndex(index));
      }
    }
  });
  for (const auto& [module, function] : candidates) {
    const std::shared_ptr<ModuleCode> code = modules_.find(module);
    if (code && code->watch_entry(function)) watched_.push_back({code, function});
  }
}

}  // namespace hindsight::rt
