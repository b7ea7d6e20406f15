#include "runtime/adaptive/code_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/function_plans.h"
#include "runtime/storage/code_cache.h"

namespace hindsight::rt {
namespace {

using namespace std::chrono_literals;

constexpr auto kSavePeriod = 5s;  // what a program that is killed loses at most

}  // namespace

CodeKeeper::CodeKeeper(CodeServices& services, feedback::Monitor& monitor,
                       const feedback::PolicyConfig& policy, const EngineClock& clock,
                       const LoadedModules& modules, DecisionLog& decisions, FunctionTrials& trials,
                       const FunctionCompiler& compiler, CompileQueue& queue, Subject subject)
    : services_(services),
      monitor_(monitor),
      policy_(policy),
      clock_(clock),
      modules_(modules),
      decisions_(decisions),
      trials_(trials),
      compiler_(compiler),
      queue_(queue),
      subject_(std::move(subject)),
      last_save_(EngineClock::Clock::now()) {}

void CodeKeeper::install(const std::shared_ptr<ModuleCode>& code) const {
  if (services_.cache == nullptr) return;
  const wasm::Module* const module = code->module().get();
  for (KeptCode& kept : services_.cache->load(*module)) {
    if (!code->adopt(kept.version)) continue;
    jit::CodeVersion& version = *kept.version;
    const FuncIndex function = version.function;
    Job job;
    job.module = module;
    job.code = code;
    job.cached = true;
    job.loop_exits = !version.osr_exits.empty();
    job.plan.split_cold = version.hot_bytes.value != 0;
    job.plan.action = feedback::Action::kOptimize;
    job.plan.function = function;
    for (const jit::OsrEntry& entry : version.osr_entries) job.plan.osr_loops.push_back(entry.loop);
    for (const CachedPrefetch& p : kept.prefetches) {
      if (p.outcome != feedback::PrefetchOutcome::kKept || jit::is_of_version(p.change)) continue;
      if (p.change == jit::ChangeKind::kValue) {
        job.settled[{jit::ChangeKind::kValue, WasmOffset(p.load)}] = 0;  // its number is known below
        continue;
      }
      plan_settled(job, {p.change, WasmOffset(p.load)}, jit::clamped(p.change, p.distance), p.measured_gain,
                   "kept in an earlier run");
    }
    constexpr std::string_view kWords = "from the code cache: ";
    job.plan.reason = kept.reason.starts_with(kWords) ? kept.reason : std::string(kWords) + kept.reason;
    job.plan.alternatives = {{"nothing", 0, 0}, {"compile it again", version.compile_seconds, 0}};
    feedback::FunctionEvidence evidence;
    monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      auto& profile = profiles[module];
      if (!profile) profile = std::make_unique<feedback::Profile>(code->module());
      feedback::FunctionCounts& counts = profile->counts(function);
      counts.optimized = true;
      counts.optimize_count = std::max(counts.optimize_count, 1u);
      for (const CachedPrefetch& p : kept.prefetches) {
        if (jit::is_of_version(p.change))
          counts.outcomes.of(p.change) = p.outcome;
        else
          outcome_in(counts, {p.change, WasmOffset(p.load)}) = p.outcome;
      }
      for (const auto& [call, values] : kept.calls) counts.values[call] = values;
      evidence = profile->evidence(function);
    });
    // The same as when the code was made, since the policy is pure.
    job.plan.calls = feedback::plan_calls(evidence, policy_);
    job.plan.values = feedback::plan_values(evidence, policy_);
    std::erase_if(job.plan.values, [&](const feedback::ValuePlan& p) {
      return std::none_of(version.answers.begin(), version.answers.end(), [&](const jit::Answer& answer) {
        return answer.is_applied() && answer.site == jit::Site{jit::ChangeKind::kValue, p.hint.at};
      });
    });
    feedback::Episode taken_over = feedback::make_episode(evidence, job.plan);
    taken_over.origin = feedback::Origin::kCodeCache;
    job.episode = decisions_.add(module, std::move(taken_over), clock_.now());
    say(LogLevel::kDebug, "cache", fmt::format("{}: {}", evidence.name, job.plan.reason));
    compiler_.install(job, *code, std::move(kept.version));
    decisions_.change(job.episode, [&](feedback::Episode& episode) {
      episode.compile_seconds = 0;  // in this process
      for (feedback::Episode::Prefetch& p : episode.prefetches)
        for (const CachedPrefetch& known : kept.prefetches)
          if (known.load == p.load && known.change == p.change) p.measured_gain = known.measured_gain;
    });
  }
}

void CodeKeeper::save(const ModuleCode& code) const {
  if (services_.cache == nullptr) return;
  const wasm::Module* const module = code.module().get();
  std::map<uint32_t, KeptCode> kept;
  for (auto& version : code.optimized_versions()) {
    const uint32_t function = version->function.value;
    // What is known is of the version with the decision, until a trial has ended.
    const std::shared_ptr<jit::CodeVersion> with = subject_(module, version->function);
    kept[function].version = with != nullptr ? with : std::move(version);
  }
  if (kept.empty()) return;
  // What became of each load, in this version and in those before it; then what this one's trials say by now.
  std::map<uint32_t, std::map<jit::Site, CachedPrefetch>> loads;
  std::map<uint32_t, CachedCalls> calls;
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    for (const auto& [function, counts] : found->second->functions()) {
      if (!kept.contains(function)) continue;
      calls[function] = counts.values;
      for (const jit::ChangeKind change : jit::kVersionChanges) {
        const feedback::PrefetchOutcome outcome = counts.outcomes.of(change);
        if (outcome == feedback::PrefetchOutcome::kKept || outcome == feedback::PrefetchOutcome::kRolledBack)
          kept[function].prefetches.push_back({0, outcome, 0, 0, change});
      }
      const auto keep = [&](jit::ChangeKind change, uint32_t at, feedback::PrefetchOutcome outcome) {
        if (outcome != feedback::PrefetchOutcome::kNone && outcome != feedback::PrefetchOutcome::kInTrial)
          loads[function][{change, WasmOffset(at)}] = {at, outcome, 0, 0, change};
      };
      for (const auto& [load, seen] : counts.loads) {
        keep(jit::ChangeKind::kPrefetch, load, seen.outcome);
        keep(jit::ChangeKind::kInterleave, load, seen.interleave);
        keep(jit::ChangeKind::kJumpPointers, load, seen.jump);
      }
      // Which of its forms it was shows in the code, if it is there.
      for (const auto& [branch, seen] : counts.branches) {
        if (seen.outcome != feedback::PrefetchOutcome::kKept)
          keep(jit::ChangeKind::kSelect, branch, seen.outcome);
      }
      for (const auto& [at, outcome] : counts.value_outcomes)
        if (outcome != feedback::PrefetchOutcome::kKept) keep(jit::ChangeKind::kValue, at, outcome);
    }
  });
  trials_.each(module, [&](FuncIndex function, const Watch& watch) {
    const auto code_of = kept.find(function.value);
    if (code_of == kept.end() || code_of->second.version != watch.version) return;
    CachedCalls& seen_calls = calls[function.value];
    for (const feedback::CallPlan& call : watch.calls)
      if (const auto seen = seen_calls.find(call.hint.call.value); seen != seen_calls.end())
        code_of->second.calls.insert(*seen);
    for (const feedback::ValuePlan& value : watch.values)
      if (const auto seen = seen_calls.find(value.hint.at.value); seen != seen_calls.end())
        code_of->second.calls.insert(*seen);
    code_of->second.reason = decisions_.at(watch.episode).reason;
    for (const jit::Answer& answer : watch.version->answers) {
      if (!answer.is_applied() || answer.cell >= watch.trials.size()) continue;
      const LoopTrial::Status status = watch.trials[answer.cell]->status();
      // One that was rejected but not yet compiled out is tried again.
      const bool won = is_kept(status.state);
      loads[function.value][answer.site] = {
          answer.site.at.value, won ? feedback::PrefetchOutcome::kKept : feedback::PrefetchOutcome::kInTrial,
          won ? status.distance : 0, won ? status.gain : 0, answer.site.kind};
    }
  });
  std::vector<KeptCode> codes;
  for (auto& [function, its] : kept) {
    for (const auto& [load, prefetch] : loads[function]) its.prefetches.push_back(prefetch);
    codes.push_back(std::move(its));
  }
  services_.cache->save(*module, codes);
}

void CodeKeeper::round(const Round& round) {
  if (services_.cache == nullptr || round.now - last_save_ < kSavePeriod) return;
  last_save_ = round.now;
  queue_.run([this] {
    for (const auto& code : modules_.alive()) save(*code);
  });
}

}  // namespace hindsight::rt
