#include "runtime/adaptive/profile_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "feedback/profile/merge.h"
#include "runtime/adaptive/functions/function_plans.h"
#include "runtime/storage/profile_store.h"

namespace hindsight::rt {
namespace {

constexpr size_t kForgottenProfiles = 256;  // of different modules before those that are told
constexpr size_t kSavedFunctions = 64;      // of a module, with all their evidence

constexpr size_t kSavedSamples = 256;   // of a module: functions with their places,
constexpr size_t kHottest = 16;         // the first of them with all,
constexpr size_t kPlacesOfOthers = 16;  // others with so many: the profile is written when a program ends

// What a saved decision says to do, checked against the module: a file is hostile until proven otherwise.
bool plausible(const feedback::Episode& episode, const wasm::Module& module) {
  const uint32_t f = episode.evidence.function.value;
  if (f < module.imported_functions || f >= module.function_count()) return false;
  const wasm::FunctionBody& body = module.body(episode.evidence.function);
  const auto is_loop = [&](std::optional<LoopIndex> nest) {
    return !nest || (nest->value < body.loops.size() && body.loops[nest->value].reachable);
  };
  if (!is_loop(episode.nest) || (episode.earlier && !is_loop(episode.earlier->nest))) return false;
  return std::all_of(episode.osr_loops.begin(), episode.osr_loops.end(),
                     [&](uint32_t loop) { return loop < body.loops.size(); }) &&
         (!episode.nest || episode.nest->value < body.loops.size());
}

// What a decision was made on, with what became of its prefetches since.
feedback::FunctionEvidence seed_of(const feedback::StartQuestion& question) {
  feedback::FunctionEvidence seed = question.decision->evidence;
  seed.compile_seconds = question.earlier.compile_seconds;
  // One that nobody remembers trying may be tried again; how often it was taken back is not forgotten.
  seed.changes = question.earlier.outcomes;
  for (auto& [site, outcome] : seed.changes.entries()) outcome.rejections = 0;
  for (const auto& [site, then] : question.decision->evidence.changes) {
    if (then.rejections == 0) continue;
    feedback::Outcome outcome = seed.changes.of(site);
    outcome.rejections = then.rejections;
    seed.changes.put(site, std::move(outcome));
  }
  return seed;
}

std::vector<feedback::FunctionEvidence> hottest_of(const feedback::Profile& profile) {
  std::vector<std::pair<double, uint32_t>> order;
  for (const auto& [index, counts] : profile.functions()) {
    if (counts.samples() > 0 || !counts.branches.empty() || !counts.loads.empty())
      order.emplace_back(counts.samples(), index);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (order.size() > kSavedFunctions) order.resize(kSavedFunctions);
  std::vector<feedback::FunctionEvidence> all;
  for (const auto& [samples, index] : order) all.push_back(profile.evidence(FuncIndex(index)));
  return all;
}

std::vector<feedback::FunctionSamples> samples_of(const feedback::Profile& profile) {
  std::vector<feedback::FunctionSamples> all;
  for (const auto& [index, counts] : profile.functions())
    if (!counts.places.empty()) all.push_back(profile.run_samples(FuncIndex(index)));
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.samples > b.samples; });
  if (all.size() > kSavedSamples) all.resize(kSavedSamples);
  for (size_t i = kHottest; i < all.size(); ++i) feedback::keep_dearest(all[i].places, kPlacesOfOthers);
  return all;
}

}  // namespace

ProfileKeeper::ProfileKeeper(const EngineParts& engine, feedback::ProfileFile known, Hooks hooks)
    : engine_(engine), known_(std::move(known)), hooks_(std::move(hooks)) {}

// ---------------------------------------------------------------- at a module's start

std::shared_ptr<const feedback::ModuleProfile> ProfileKeeper::find(const wasm::Module& module) const {
  // The module is hashed on demand.
  if (!known_.modules.empty())
    if (const feedback::ModuleProfile* const known = known_.find(module.content_hash_hex()))
      return {std::shared_ptr<void>(), known};
  if (engine_.services.profiles == nullptr) return nullptr;
  std::optional<feedback::ModuleProfile> kept = engine_.services.profiles->load(module);
  return kept ? std::make_shared<feedback::ModuleProfile>(std::move(*kept)) : nullptr;
}

std::vector<feedback::StartQuestion> ProfileKeeper::plausible_questions(
    const wasm::Module& module, const feedback::ModuleProfile& known) const {
  std::vector<feedback::StartQuestion> questions = feedback::start_questions(known);
  const size_t implausible = std::erase_if(questions, [&](const feedback::StartQuestion& question) {
    return !plausible(*question.decision, module);
  });
  if (implausible) {
    say(LogLevel::kWarning, "profile",
        fmt::format("ignores {} saved decisions that do not fit the module", implausible));
  }
  return questions;
}

void ProfileKeeper::seed(const std::shared_ptr<ModuleCode>& code,
                         const std::vector<feedback::StartQuestion>& questions) {
  const wasm::Module& module = *code->module();
  Seeds seeds;
  for (const feedback::StartQuestion& question : questions)
    seeds.emplace(question.decision->evidence.function.value, seed_of(question));
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    auto& profile = profiles[&module];
    if (!profile) profile = engine_.monitor.make_profile(code->module());
    for (const auto& [function, evidence] : seeds) profile->seed(evidence);
  });
  const std::lock_guard lock(mutex_);
  seeds_[&module] = std::move(seeds);
}

void ProfileKeeper::queue_known(const std::shared_ptr<ModuleCode>& code,
                                const std::vector<feedback::StartQuestion>& questions) {
  const wasm::Module& module = *code->module();
  for (const feedback::StartQuestion& question : questions) {
    const feedback::Episode& decision = *question.decision;
    const FuncIndex function = decision.evidence.function;
    if (!engine_.services.may_optimize(function)) continue;
    if (code->version(function, jit::Tier::kOptimized)) continue;  // out of the code cache
    feedback::StartPlan start = feedback::decide_start(decision.evidence, question.earlier, engine_.policy);
    const std::string name = module.function_name(function);
    if (start.plan.action != feedback::Action::kOptimize) {
      say(LogLevel::kDebug, "profile",
          fmt::format("{}: not optimized at the start: {}", name, start.plan.reason));
      continue;
    }
    Job job;
    job.module = &module;
    job.code = code;
    feedback::Episode episode = feedback::make_start_episode(question, start);
    say(LogLevel::kInfo, "profile", fmt::format("{}: {}", name, episode.reason));
    for (const std::string& line : episode.alternatives)
      say(LogLevel::kDebug, "profile", fmt::format("  alternative {}", line));
    job.episode = engine_.decisions.add(&module, std::move(episode), engine_.clock.now());
    job.settled = std::move(start.settled);
    job.priority = AtStart{start.priority};
    job.plan = std::move(start.plan);
    job.plan.reason = feedback::first_reason(decision) + "; " + job.plan.reason;
    engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      feedback::FunctionCounts& counts = profiles[&module]->counts(function);
      counts.optimized = true;
      counts.optimize_count = 1;
      mark_in_trial(counts, job.plan);
    });
    engine_.queue.add(std::move(job));
  }
}

// ---------------------------------------------------------------- at its end

feedback::ModuleProfile ProfileKeeper::module_profile(const wasm::Module* module) const {
  feedback::ModuleProfile all;
  all.hash_hex = module->content_hash_hex();
  all.name = module->name;
  if (engine_.services.profiles != nullptr) all.options = engine_.services.profiles->options();
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    all.functions = hottest_of(*found->second);
    all.samples = samples_of(*found->second);
  });
  {
    const std::lock_guard lock(mutex_);
    if (const auto seeds = seeds_.find(module); seeds != seeds_.end()) {
      for (feedback::FunctionEvidence& e : all.functions)
        if (const auto seed = seeds->second.find(e.function.value); seed != seeds->second.end())
          e = feedback::without(std::move(e), seed->second);
    }
  }
  std::erase_if(all.functions, [](const feedback::FunctionEvidence& e) {
    return e.samples_baseline + e.samples_optimized <= 0 && e.branches.empty() && e.calls.empty() &&
           e.loads.empty() && e.values.empty();
  });
  all.episodes = engine_.decisions.of(module);
  hooks_.save(module, all);
  return all;
}

void ProfileKeeper::keep(const ModuleCode& code, bool drain) {
  if (engine_.services.profiles == nullptr) return;
  const wasm::Module* const module = code.module().get();
  if (drain) engine_.monitor.round();
  hooks_.refresh();
  hooks_.fold(module);
  (void)engine_.services.profiles->add(*module, module_profile(module),
                                       feedback::to_parameters(engine_.policy));
}

void ProfileKeeper::forget(const wasm::Module* module, feedback::ModuleProfile profile,
                           const ModuleCodeCounts& counts, size_t decisions) {
  feedback::ProfileFile file;
  file.modules.push_back(std::move(profile));
  const std::lock_guard lock(mutex_);
  seeds_.erase(module);
  forgotten_.modules += 1;
  forgotten_.decisions += decisions;
  forgotten_.counts.add_compilations(counts);
  if (forgotten_.profile.modules.size() < kForgottenProfiles ||
      forgotten_.profile.find(file.modules.front().hash_hex) != nullptr)
    forgotten_.profile = feedback::merge(std::move(forgotten_.profile), file);
  else
    forgotten_.profiles += 1;
}

feedback::ProfileFile ProfileKeeper::profile_file() const {
  feedback::ProfileFile file;
  file.policy = feedback::to_parameters(engine_.policy);
  hooks_.refresh();
  std::set<const wasm::Module*> seen;
  for (const auto& module : engine_.modules.all())
    if (seen.insert(module.get()).second) file.modules.push_back(module_profile(module.get()));
  const std::lock_guard lock(mutex_);
  if (forgotten_.profiles != 0) {
    say(LogLevel::kWarning, "profile",
        fmt::format("too many different modules: {} that ended long ago are not saved", forgotten_.profiles));
  }
  // Module by module: one that was loaded several times was several runs of it.
  return feedback::merge(forgotten_.profile, file);
}

Status ProfileKeeper::save(const std::string& path) const {
  // On top of what the run started with, so that one file can be handed from run to run.
  const feedback::ProfileFile file =
      known_.modules.empty() ? profile_file() : feedback::merge(known_, profile_file());
  return feedback::save_profile(file, path);
}

void ProfileKeeper::report(FeedbackReport& report, ModuleCodeCounts& compiled) const {
  const std::lock_guard lock(mutex_);
  compiled.add_compilations(forgotten_.counts);
  report.modules_forgotten = forgotten_.modules;
  report.decisions_forgotten = forgotten_.decisions;
}

}  // namespace hindsight::rt
