#include "runtime/adaptive/code_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/functions/function_plans.h"
#include "runtime/adaptive/functions/version_changes.h"
#include "runtime/storage/code_cache.h"

namespace hindsight::rt {
namespace {

using namespace std::chrono_literals;

constexpr auto kSavePeriod = 5s;  // what a program that is killed loses at most

// Which changes of the whole are in the code. What is known of others that were kept once is of other code.
void note_version_changes(const Watch& watch, feedback::ChangeLedger& changes) {
  const std::vector<jit::ChangeKind> there = version_changes(watch);
  for (const jit::ChangeKind kind : jit::kVersionChanges) {
    const jit::Site site = feedback::version_site(kind);
    const feedback::ChangeState known = changes.state(site);
    if (std::ranges::find(there, kind) == there.end()) {
      if (in_use(known)) changes.forget(site);
    } else if (!judged(known)) {
      changes.put(site, {.state = feedback::ChangeState::kInTrial});
    }
  }
}

}  // namespace

CodeKeeper::CodeKeeper(const EngineParts& engine, FunctionTrials& trials, const FunctionCompiler& compiler,
                       Subject subject)
    : engine_(engine),
      trials_(trials),
      compiler_(compiler),
      subject_(std::move(subject)),
      last_save_(EngineClock::Clock::now()) {}

void CodeKeeper::install(const std::shared_ptr<ModuleCode>& code) const {
  if (engine_.services.cache == nullptr) return;
  const wasm::Module* const module = code->module().get();
  for (KeptCode& kept : engine_.services.cache->load(*module)) {
    if (!code->adopt(kept.version)) continue;
    jit::CodeVersion& version = *kept.version;
    const FuncIndex function = version.function;
    Job job;
    job.module = module;
    job.code = code;
    job.cached = true;
    // As a whole function is compiled that has exits.
    job.loop_exits = job.short_loop_exits = !version.osr_exits.empty();
    for (const jit::ChangeKind kind : jit::kVersionChanges)
      if (in_use(kept.changes.state(feedback::version_site(kind)))) job.cached_changes.push_back(kind);
    if (version.hot_bytes.value != 0)
      job.plan.candidates.push_back(
          {.request = {.site = feedback::version_site(jit::ChangeKind::kSplitCold)}});
    job.plan.action = feedback::Action::kOptimize;
    job.plan.function = function;
    for (const jit::OsrEntry& entry : version.osr_entries) job.plan.osr_loops.push_back(entry.loop);
    for (const auto& [site, known] : kept.changes) {
      if (known.state != feedback::ChangeState::kKept || jit::is_of_version(site.kind)) continue;
      if (site.kind == jit::ChangeKind::kValue)
        job.settled[site] = 0;  // its number is known below
      else
        plan_settled(job, site, jit::clamped(site.kind, known.setting), known.gain, "kept in an earlier run");
    }
    constexpr std::string_view kWords = "from the code cache: ";
    job.plan.reason = kept.reason.starts_with(kWords) ? kept.reason : std::string(kWords) + kept.reason;
    job.plan.alternatives = {{"nothing", 0, 0}, {"compile it again", version.compile_seconds, 0}};
    feedback::FunctionEvidence evidence;
    engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      auto& profile = profiles[module];
      if (!profile) profile = engine_.monitor.make_profile(code->module());
      feedback::FunctionCounts& counts = profile->counts(function);
      counts.optimized = true;
      counts.optimize_count = std::max(counts.optimize_count, 1u);
      feedback::ChangeLedger states;
      for (const auto& [site, known] : kept.changes)
        if (judged(known.state) || !jit::is_of_version(site.kind)) states.put(site, {.state = known.state});
      counts.settle(states);
      for (const auto& [call, values] : kept.calls) counts.values[call] = values;
      evidence = profile->evidence(function);
    });
    // The same as when the code was made, since the policy is pure.
    for (feedback::Candidate& call :
         feedback::propose(jit::ChangeKind::kInlineCalls, evidence, engine_.policy))
      job.plan.candidates.push_back(std::move(call));
    for (feedback::Candidate& value : feedback::propose(jit::ChangeKind::kValue, evidence, engine_.policy)) {
      const bool there = std::any_of(
          version.answers.begin(), version.answers.end(),
          [&](const jit::Answer& answer) { return answer.is_applied() && answer.site == value.site(); });
      if (there) job.plan.candidates.push_back(std::move(value));
    }
    feedback::Episode taken_over = feedback::make_episode(evidence, job.plan);
    taken_over.origin = feedback::Origin::kCodeCache;
    job.episode = engine_.decisions.add(module, std::move(taken_over), engine_.clock.now());
    say(LogLevel::kDebug, "cache", fmt::format("{}: {}", evidence.name, job.plan.reason));
    compiler_.install(job, *code, std::move(kept.version));
    engine_.decisions.change(job.episode, [&](feedback::Episode& episode) {
      episode.compile_seconds = 0;  // in this process
      for (const auto& [site, known] : kept.changes)
        if (feedback::Outcome* const outcome = episode.outcomes.find(site)) outcome->gain = known.gain;
    });
  }
}

void CodeKeeper::save(const ModuleCode& code) const {
  if (engine_.services.cache == nullptr) return;
  const wasm::Module* const module = code.module().get();
  std::map<uint32_t, KeptCode> kept;
  for (auto& version : code.optimized_versions()) {
    if (version->nest) continue;
    const uint32_t function = version->function.value;
    // What is known is of the version with the decision, until a trial has ended.
    const std::shared_ptr<jit::CodeVersion> with = subject_(module, version->function);
    kept[function].version = with != nullptr ? with : std::move(version);
  }
  if (kept.empty()) return;
  // What became of each change, in this version and in those before it; then what this one's trials say by now.
  std::map<uint32_t, CachedCalls> calls;
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    for (const auto& [function, counts] : found->second->functions()) {
      if (!kept.contains(function)) continue;
      calls[function] = counts.values;
      for (const auto& [site, known] : counts.changes) {
        // For branches and operands the code shows what was kept: which form, which number.
        const bool shows = jit::is_of_branch(site.kind) || site.kind == jit::ChangeKind::kValue;
        if (judged(known.state) && !(shows && known.state == feedback::ChangeState::kKept))
          kept[function].changes.put(site, {.state = known.state});
      }
    }
  });
  trials_.each(module, [&](FuncIndex function, const Watch& watch) {
    const auto code_of = kept.find(function.value);
    // Nests are not kept.
    if (watch.version->nest) return;
    if (code_of == kept.end() || code_of->second.version != watch.version) return;
    CachedCalls& seen_calls = calls[function.value];
    for (const feedback::Candidate& candidate : watch.told) {
      if (candidate.kind() != jit::ChangeKind::kInlineCalls && candidate.kind() != jit::ChangeKind::kValue)
        continue;
      if (const auto seen = seen_calls.find(candidate.at().value); seen != seen_calls.end())
        code_of->second.calls.insert(*seen);
    }
    code_of->second.reason = engine_.decisions.at(watch.episode).reason;
    note_version_changes(watch, code_of->second.changes);
    for (const jit::Answer& answer : watch.version->answers) {
      if (!answer.is_applied() || answer.cell >= watch.trials.size()) continue;
      const LoopTrial::Status status = watch.trials[answer.cell]->status();
      // One that was rejected but not yet compiled out is tried again.
      const bool won = is_kept(status.state);
      code_of->second.changes.put(answer.site,
                                  won ? feedback::Outcome{.state = feedback::ChangeState::kKept,
                                                          .setting = status.distance,
                                                          .gain = status.gain}
                                      : feedback::Outcome{.state = feedback::ChangeState::kInTrial});
    }
  });
  std::vector<KeptCode> codes;
  for (auto& [function, its] : kept) codes.push_back(std::move(its));
  engine_.services.cache->save(*module, codes);
}

void CodeKeeper::round(const Round& round) {
  if (engine_.services.cache == nullptr || round.now - last_save_ < kSavePeriod) return;
  last_save_ = round.now;
  engine_.queue.run([this] {
    for (const auto& code : engine_.modules.alive()) save(*code);
  });
}

}  // namespace hindsight::rt
