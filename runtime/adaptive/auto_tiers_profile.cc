// The automatic tier and saved profiles. At a module's start what earlier runs knew is put into its profile
// and what they decided is asked for at once (feedback/policy/start.h); at its end what this run saw beyond
// that, and what became of decisions, is what it adds.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "feedback/profile/merge.h"
#include "runtime/adaptive/auto_tiers.h"
#include "runtime/storage/profile_store.h"

namespace hindsight::rt {
namespace {

// What a saved decision says to do, checked against the module: a file is hostile until proven otherwise.
bool plausible(const feedback::Episode& episode, const wasm::Module& module) {
  const uint32_t f = episode.evidence.function.value;
  if (f < module.imported_functions || f >= module.function_count()) return false;
  const wasm::FunctionBody& body = module.body(episode.evidence.function);
  return std::all_of(episode.osr_loops.begin(), episode.osr_loops.end(),
                     [&](uint32_t loop) { return loop < body.loops.size(); });
}

// What a decision was made on, with what became of its prefetches since.
feedback::FunctionEvidence seed_of(const feedback::StartQuestion& question) {
  feedback::FunctionEvidence seed = question.decision->evidence;
  seed.compile_seconds = question.earlier.compile_seconds;
  for (feedback::BranchEvidence& branch : seed.branches) branch.outcome = feedback::PrefetchOutcome::kNone;
  for (feedback::ValueEvidence& value : seed.values) value.outcome = feedback::PrefetchOutcome::kNone;
  seed.outcomes = {};
  for (const feedback::Episode::Prefetch& p : question.earlier.prefetches) {
    if (jit::is_of_version(p.change)) {
      seed.outcomes.of(p.change) = p.outcome;
      continue;
    }
    if (p.change == jit::ChangeKind::kValue) {
      for (feedback::ValueEvidence& value : seed.values)
        if (value.at.value == p.load) value.outcome = p.outcome;
      continue;
    }
    if (jit::is_of_branch(p.change)) {
      for (feedback::BranchEvidence& branch : seed.branches)
        if (branch.branch.value == p.load) branch.outcome = p.outcome;
      continue;
    }
    auto load = std::find_if(seed.loads.begin(), seed.loads.end(),
                             [&](const feedback::LoadEvidence& l) { return l.load.value == p.load; });
    if (load == seed.loads.end()) load = seed.loads.insert(load, {.load = WasmOffset(p.load)});
    feedback::PrefetchOutcome& outcome = p.change == jit::ChangeKind::kInterleave     ? load->interleave
                                         : p.change == jit::ChangeKind::kJumpPointers ? load->jump
                                                                                      : load->outcome;
    outcome = p.outcome;
  }
  // One that nobody remembers trying may be tried again.
  const auto remembered = [&](const feedback::LoadEvidence& load, jit::ChangeKind change) {
    return std::any_of(question.earlier.prefetches.begin(), question.earlier.prefetches.end(),
                       [&](const feedback::Episode::Prefetch& p) {
                         return p.load == load.load.value && p.change == change;
                       });
  };
  for (feedback::LoadEvidence& load : seed.loads) {
    if (!remembered(load, jit::ChangeKind::kPrefetch)) load.outcome = feedback::PrefetchOutcome::kNone;
    if (!remembered(load, jit::ChangeKind::kInterleave)) load.interleave = feedback::PrefetchOutcome::kNone;
    if (!remembered(load, jit::ChangeKind::kJumpPointers)) load.jump = feedback::PrefetchOutcome::kNone;
  }
  return seed;
}

}  // namespace

std::vector<feedback::StartQuestion> AutoTiers::plausible_questions(
    const wasm::Module& module, const feedback::ModuleProfile& known) const {
  std::vector<feedback::StartQuestion> questions = feedback::start_questions(known);
  const size_t implausible = std::erase_if(questions, [&](const feedback::StartQuestion& question) {
    return !plausible(*question.decision, module);
  });
  if (implausible) {
    say(LogLevel::kWarning, "profile",
        fmt::format("{} saved decisions do not fit the module and are ignored", implausible));
  }
  return questions;
}

void AutoTiers::seed(const std::shared_ptr<ModuleCode>& code,
                     const std::vector<feedback::StartQuestion>& questions) {
  const wasm::Module& module = *code->module();
  std::map<uint32_t, feedback::FunctionEvidence> seeds;
  for (const feedback::StartQuestion& question : questions)
    seeds.emplace(question.decision->evidence.function.value, seed_of(question));
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    auto& profile = profiles[&module];
    if (!profile) profile = std::make_unique<feedback::Profile>(code->module());
    for (const auto& [function, evidence] : seeds) profile->seed(evidence);
  });
  std::lock_guard lock(mutex_);
  if (ModuleState* state = state_of(code->module().get())) state->seeds = std::move(seeds);
}

void AutoTiers::queue_known(const std::shared_ptr<ModuleCode>& code,
                            const std::vector<feedback::StartQuestion>& questions) {
  const wasm::Module& module = *code->module();
  for (const feedback::StartQuestion& question : questions) {
    const feedback::Episode& decision = *question.decision;
    const FuncIndex function = decision.evidence.function;
    if (!services_.may_optimize(function)) continue;
    if (code->version(function, jit::Tier::kOptimized)) continue;  // out of the code cache
    feedback::StartPlan start = feedback::decide_start(decision.evidence, question.earlier, policy_);
    const std::string name = module.function_name(function);
    if (start.plan.action != feedback::Action::kOptimize) {
      say(LogLevel::kDebug, "profile", fmt::format("{}: not at the start: {}", name, start.plan.reason));
      continue;
    }
    Job job;
    job.module = &module;
    job.code = code;
    feedback::Episode episode = feedback::make_start_episode(question, start);
    say(LogLevel::kInfo, "profile", fmt::format("{}: {}", name, episode.reason));
    for (const std::string& line : episode.alternatives)
      say(LogLevel::kDebug, "profile", fmt::format("  alternative {}", line));
    job.episode = add_episode(&module, std::move(episode));
    for (const auto& [load, distance] : start.settled)
      job.settled[{jit::ChangeKind::kPrefetch, WasmOffset(load)}] = distance;
    for (const auto& [load, width] : start.settled_widths)
      job.settled[{jit::ChangeKind::kInterleave, WasmOffset(load)}] = width;
    for (const auto& [load, distance] : start.settled_jumps)
      job.settled[{jit::ChangeKind::kJumpPointers, WasmOffset(load)}] = distance;
    for (const feedback::BranchPlan& p : start.plan.branches) {
      const bool select = p.hint.form == jit::BranchHint::Form::kSelect;
      if (start.settled_forms.contains(p.hint.branch.value))
        job.settled[{select ? jit::ChangeKind::kSelect : jit::ChangeKind::kBranch, p.hint.branch}] = 0;
    }
    for (const uint32_t at : start.settled_values) job.settled[{jit::ChangeKind::kValue, WasmOffset(at)}] = 0;
    job.priority = AtStart{start.priority};
    job.plan = std::move(start.plan);
    job.plan.reason = feedback::first_reason(decision) + "; " + job.plan.reason;
    monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
      feedback::FunctionCounts& counts = profiles[&module]->counts(function);
      counts.optimized = true;
      counts.optimize_count = 1;
      mark_in_trial(counts, job.plan);
    });
    queue_->add(std::move(job));
  }
}

feedback::ModuleProfile AutoTiers::module_profile(const wasm::Module* module) const {
  feedback::ModuleProfile all;
  all.hash_hex = module->content_hash_hex();
  all.name = module->name;
  if (services_.profiles != nullptr) all.options = services_.profiles->options();
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    all.functions = hottest_of(*found->second);
    all.samples = samples_of(*found->second);
  });
  {
    const std::lock_guard lock(mutex_);
    if (const ModuleState* const state = state_of(module)) {
      for (feedback::FunctionEvidence& e : all.functions)
        if (const auto seed = state->seeds.find(e.function.value); seed != state->seeds.end())
          e = feedback::without(std::move(e), seed->second);
    }
  }
  all.episodes = decisions_.of(module);
  std::erase_if(all.functions, [](const feedback::FunctionEvidence& e) {
    return e.samples_baseline + e.samples_optimized <= 0 && e.branches.empty() && e.calls.empty() &&
           e.loads.empty() && e.values.empty();
  });
  pages_->save(module, all);
  layout_->save(module, all);
  return all;
}

void AutoTiers::keep_profile(const ModuleCode& code) {
  if (services_.profiles == nullptr) return;
  // What the threads wrote up to now; where an embedder listens, at the times that it was told of only.
  if (config_.profiling && !config_.on_record) monitor_->round();
  read_timed_loads(nullptr);
  fold_trials(code.module().get());
  (void)services_.profiles->add(*code.module(), module_profile(code.module().get()),
                                feedback::to_parameters(policy_));
}

// What trials found out since the monitor's last round, and how far those came that go on.
void AutoTiers::fold_trials(const wasm::Module* module) {
  std::lock_guard lock(mutex_);
  const ModuleState* state = state_of(module);
  if (state == nullptr) return;
  for (const auto& [function, its] : state->watches) {
    const Watch& watch = its;
    decisions_.change(watch.episode, [&](feedback::Episode& episode) {
      for (feedback::Episode::Prefetch& p : episode.prefetches) {
        const auto site =
            std::find_if(watch.version->answers.begin(), watch.version->answers.end(),
                         [&](const jit::Answer& s) { return s.site == site_of(p) && !s.waits(); });
        if (site == watch.version->answers.end() || !site->is_applied() || site->cell >= watch.trials.size())
          continue;
        const LoopTrial::Status status = watch.trials[site->cell]->status();
        if (status.strips == 0) continue;  // it never ran: what was known of it stays
        p.outcome = is_kept(status.state)                   ? feedback::PrefetchOutcome::kKept
                    : status.state == TrialState::kRejected ? feedback::PrefetchOutcome::kRolledBack
                                                            : feedback::PrefetchOutcome::kInTrial;
        p.distance = status.distance != 0 ? status.distance : p.distance;
        if (status.gain != 0) p.measured_gain = status.gain;
        p.words = site->why + "; " + status.words;
        if (p.outcome == feedback::PrefetchOutcome::kInTrial)
          p.words += fmt::format("; {} chunks when the run ended", status.chunks);
      }
    });
  }
}

feedback::ProfileFile AutoTiers::profile_file() const {
  feedback::ProfileFile file;
  file.policy = feedback::to_parameters(policy_);
  read_timed_loads(nullptr);
  std::set<const wasm::Module*> seen;
  for (const auto& module : loaded_.all())
    if (seen.insert(module.get()).second) file.modules.push_back(module_profile(module.get()));
  std::lock_guard lock(mutex_);
  if (forgotten_.profiles != 0) {
    say(LogLevel::kWarning, "profile",
        fmt::format("of {} modules that ended long ago nothing is left to save: too many different ones",
                    forgotten_.profiles));
  }
  // Module by module: one that was loaded several times was several runs of it.
  return feedback::merge(forgotten_.profile, file);
}

Status AutoTiers::save_profile(const std::string& path) const {
  // On top of what the run started with, so that one file can be handed from run to run.
  const feedback::ProfileFile file =
      known_.modules.empty() ? profile_file() : feedback::merge(known_, profile_file());
  return feedback::save_profile(file, path);
}

}  // namespace hindsight::rt
