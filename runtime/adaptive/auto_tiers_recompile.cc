// The automatic tier and compiles of which nothing new comes: the version that runs stays, with its trials, and what
// was asked for is remembered as tried.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/auto_tiers.h"
#include "runtime/adaptive/recompile.h"

namespace hindsight::rt {

std::vector<jit::Answer> AutoTiers::sites_of(const Watch& watch) {
  std::vector<jit::Answer> sites = watch.version->answers;
  sites.insert(sites.end(), watch.not_applied.begin(), watch.not_applied.end());
  return sites;
}

std::string_view AutoTiers::news_of(const Job& job, const Watch& watch, const ModuleCode& code,
                                    const jit::CodeVersion& made) const {
  // A version without what a trial has rejected is on its way, and does not know of what is new here.
  const bool undoing = std::any_of(watch.reported.begin(), watch.reported.end(),
                                   [](TrialState s) { return s == TrialState::kRejected; });
  if (undoing) return "what is left without what was rejected";
  if (code.version(job.plan.function, jit::Tier::kOptimized) != watch.version) return "all of it";
  const feedback::FunctionEvidence evidence = decisions_.at(job.episode).evidence;
  const bool loops_wait = evidence.samples_left_behind >= policy_.min_samples_left_behind ||
                          evidence.samples_stayed >= policy_.min_samples_left_behind;
  return what_is_new({*watch.version, watch.calls, watch.branches, watch.values},
                     {made, job.plan.calls, job.plan.branches, job.plan.values}, loops_wait);
}

std::vector<jit::Site> AutoTiers::stay_with(const Job& job, Watch& watch, const jit::CodeVersion& made) {
  decisions_.end(job.episode, std::string(feedback::kNothingNew));
  std::vector<jit::Site> refused;
  decisions_.change(job.episode, [&](feedback::Episode& episode) {
    episode.compile_seconds += made.compile_seconds;
    for (const jit::Answer& site : made.answers) {
      const auto same = [&](const jit::Answer& other) { return other.site == site.site; };
      // Also where only one of the function's copies has it: it is on trial, or kept, in the version that runs.
      if (std::any_of(made.answers.begin(), made.answers.end(),
                      [&](const jit::Answer& other) { return other.is_applied() && same(other); }))
        continue;
      const std::vector<jit::Answer> known = sites_of(watch);
      // What waits for another change of its loop has its turn if that is taken back.
      if (std::none_of(known.begin(), known.end(), [&](const jit::Answer& other) {
            return same(other) && other.waits() == site.waits();
          }))
        watch.not_applied.push_back(site);
      feedback::Episode::Prefetch p;
      p.load = site.site.at.value;
      p.change = site.site.kind;
      if (site.waits() || std::any_of(episode.prefetches.begin(), episode.prefetches.end(),
                                      [&](const auto& other) { return same_change(other, p); }))
        continue;
      p.outcome = feedback::PrefetchOutcome::kNoSlice;
      p.words = site.why;
      episode.prefetches.push_back(std::move(p));
      refused.push_back(site.site);
    }
  });
  // With what waits among them.
  watch.branches = job.plan.branches;
  watch.values = job.plan.values;
  return refused;
}

bool AutoTiers::keeps_running(const Job& job, ModuleCode& code, const jit::CodeVersion& made) {
  const FuncIndex function = job.plan.function;
  const std::string name = code.module()->function_name(function);
  std::string_view news;
  std::vector<jit::Site> refused;
  std::map<jit::Site, bool> kept;
  bool loop_entries_only = false;
  {
    const std::lock_guard lock(mutex_);
    ModuleState* const state = state_of(code.module().get());
    if (state == nullptr || !state->watches.contains(function.value)) return false;
    Watch& watch = state->watches.at(function.value);
    news = news_of(job, watch, code, made);
    if (news.empty()) {
      refused = stay_with(job, watch, made);
      loop_entries_only = watch.version->entry == nullptr;
      for (const jit::Answer& site : watch.version->answers)
        if (site.is_applied()) kept[site.site] = is_kept(watch.trials[site.cell]->status().state);
    }
  }
  if (!news.empty()) {
    say(LogLevel::kDebug, "compile", fmt::format("{}: new in it: {}", name, news));
    return false;
  }
  const wasm::Module* const module = code.module().get();
  for (const jit::Site& site : refused)
    set_outcome(module, function, site, feedback::PrefetchOutcome::kNoSlice);
  // What was planned among the rest is what it was.
  for (const auto& [site, is] : kept)
    set_outcome(module, function, site,
                is ? feedback::PrefetchOutcome::kKept : feedback::PrefetchOutcome::kInTrial);
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    counts.stay();
    counts.loop_entries_only = loop_entries_only;
  });
  say(LogLevel::kInfo, "compile", fmt::format("{}: {}", name, feedback::kNothingNew));
  return true;
}

}  // namespace hindsight::rt
