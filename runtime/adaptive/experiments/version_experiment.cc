#include "runtime/adaptive/experiments/version_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/adaptive/functions/function_plans.h"
#include "runtime/adaptive/functions/version_changes.h"

namespace hindsight::rt {
namespace {

using feedback::ChangeState;
using namespace std::chrono_literals;

constexpr auto kTrialLook = 50ms;

void take_out(feedback::FunctionPlan& plan, std::optional<jit::ChangeKind> decision) {
  std::erase_if(plan.candidates, [&](const feedback::Candidate& candidate) {
    return !decision || candidate.kind() == *decision;
  });
}

std::string words_of(std::optional<jit::ChangeKind> decision) {
  return decision ? std::string(to_string(*decision)) : "all that is changed";
}

jit::Unit unit_of(const jit::CodeVersion& version) {
  return {version.function, version.nest};
}

// Where changes of the whole version stand.
WasmOffset place_of(const wasm::Module& module, const jit::CodeVersion& version) {
  return version.nest ? module.body(version.function).loops[version.nest->value].offset : WasmOffset();
}

uint64_t work_of(const jit::CodeVersion* nest) {
  if (nest == nullptr || nest->work == nullptr) return 0;
  // Relaxed: a count that orders nothing (NestWork).
  return std::atomic_ref(nest->work->done).load(std::memory_order_relaxed);
}

VersionTrials::Pace pace_of(double bias) {
  VersionTrials::Pace pace;
  if (bias != 0) {
    pace.bias = bias;
    pace.counting_seconds = 0.002;
    pace.chunk.least_seconds = 0.002;
    pace.rule.least_seconds = 0;
  }
  return pace;
}

// Code of the unit without any change that is there still, and its place in what is watched. Null: there is none.
std::shared_ptr<Before>* plain_of(Watch& watch) {
  std::shared_ptr<Before>& there = watch.plain != nullptr ? watch.plain : watch.before;
  return there != nullptr && !is_changed(there->watch) ? &there : nullptr;
}

bool remembers_its_way(const jit::CodeVersion& version) {
  return std::any_of(version.answers.begin(), version.answers.end(), [](const jit::Answer& answer) {
    return answer.is_applied() && answer.site.kind == jit::ChangeKind::kJumpPointers;
  });
}

}  // namespace

VersionExperiment::VersionExperiment(const EngineParts& engine, Measurement& measurement,
                                     FunctionTrials& trials, const FunctionCompiler& compiler, double bias)
    : engine_(engine),
      measurement_(measurement),
      trials_(trials),
      compiler_(compiler),
      period_(bias != 0 ? 0ms : kTrialLook),
      versions_(engine.services, hooks(), pace_of(bias)),
      last_look_(EngineClock::Clock::now()) {}

VersionTrials::Hooks VersionExperiment::hooks() {
  return {.compile =
              [this](const VersionTrials::Subject&) {
                return engine_.queue.run_for_trials([this] { compile_without(); });
              },
          .on_ended = [this](const VersionTrials::Ending& ending) { ended(ending); },
          .disturbed = [this] { return measurement_.loops_are_measured(); },
          .read =
              [this](const ModuleCode& code, const jit::CodeVersion& with, const jit::CodeVersion* without) {
                return CallChunk::Reading{
                    engine_.clock.now(),
                    with.nest ? work_of(&with) + work_of(without) : code.metered_calls(with.function),
                    engine_.monitor.guest_seconds()};
              }};
}

std::optional<VersionExperiment::Whole> VersionExperiment::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(whole_, std::nullopt);
}

bool VersionExperiment::is_on_trial(DecisionLog::Id episode, jit::ChangeKind decision) const {
  const std::lock_guard lock(mutex_);
  return whole_ && whole_->job.episode == episode && whole_->decision == decision;
}

void VersionExperiment::forget(const ModuleCode& code) {
  versions_.forget(code);
  std::optional<Whole> whole;
  {
    const std::lock_guard lock(mutex_);
    if (whole_ && whole_->job.code.expired()) whole = std::exchange(whole_, std::nullopt);
  }
  if (whole) trials_.end_comparing(whole->job.module, whole->job.unit());
}

// ---------------------------------------------------------------- monitor thread

void VersionExperiment::round(const Round& round) {
  if (std::ranges::none_of(jit::kChanges, [&](const jit::ChangeTraits& change) {
        return engine_.policy.changes[change.kind];
      }))
    return;
  versions_.round();
  if (versions_.busy() || round.now - last_look_ < period_ || engine_.services.has_no_optimizer()) return;
  last_look_ = round.now;
  if (!engine_.queue.load().idle()) return;
  std::optional<Measurement::Lease> lease = measurement_.try_begin(Disturbs::kVersions);
  if (!lease) return;
  std::vector<Candidate> all = candidates();
  if (all.empty()) return;
  find_evidence(all);
  // The hottest first: the others have their turn when it has ended.
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.evidence.share > b.evidence.share;
  });
  for (Candidate& candidate : all) {
    const feedback::VersionTrialPlan plan =
        feedback::decide_version_trial(candidate.evidence, engine_.policy);
    if (!plan.tries) continue;
    std::optional<Job> job = job_without(candidate, plan.without);
    if (!job) continue;
    return begin(std::move(candidate), std::move(*job), plan, std::move(*lease));
  }
}

std::vector<VersionExperiment::Candidate> VersionExperiment::candidates() {
  std::vector<Candidate> candidates;
  std::vector<std::string> lines;
  for (const std::shared_ptr<ModuleCode>& code : engine_.modules.alive()) {
    const wasm::Module* const module = code->module().get();
    trials_.each(module, [&](FuncIndex function, Watch& watch) {
      const jit::CodeVersion& version = *watch.version;
      if (watch.not_to_be_measured || (version.entry == nullptr && !version.nest)) return;
      Candidate candidate;
      feedback::VersionEvidence& evidence = candidate.evidence;
      // What was not told to this process's compiler cannot be told without a part of it.
      if (!watch.cached) evidence.there = version_changes(watch);
      evidence.at = place_of(*module, version);
      evidence.is_changed = is_changed(watch);
      if (!evidence.is_changed) return;
      const bool settled = std::all_of(watch.trials.begin(), watch.trials.end(),
                                       [](const auto& trial) { return trial->state() == TrialState::kKept; });
      if (!settled) return;
      // A second version would have to learn the way first, and has no memory for that beside the first.
      if (remembers_its_way(version)) {
        watch.not_to_be_measured = true;
        lines.push_back(fmt::format("{} as a whole: cannot be measured: a loop of it has jump pointers",
                                    module->function_name(function)));
        return;
      }
      evidence.compile_seconds = version.compile_seconds;
      evidence.has_plain = plain_of(watch) != nullptr;
      evidence.comparisons = {trials_.price().taken(), plain_won_, plain_lost_};
      candidate.tried = watch.tried;
      candidate.subject = {.module = module, .code = code, .with = watch.version};
      candidates.push_back(std::move(candidate));
    });
  }
  for (const std::string& line : lines) say(LogLevel::kDebug, "trial", line);
  return candidates;
}

void VersionExperiment::find_evidence(std::vector<Candidate>& candidates) const {
  const double guest_seconds = engine_.monitor.guest_seconds(), seconds_lost = versions_.seconds_lost();
  // All that runs may be out of the code cache.
  const double opening = engine_.services.compiler_files() ? 0 : kCompilerOpeningSeconds;
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (Candidate& candidate : candidates) {
      candidate.evidence.compile_seconds += opening;
      candidate.evidence.guest_seconds = guest_seconds;
      candidate.evidence.seconds_lost = seconds_lost;
      const auto profile = profiles.find(candidate.subject.module);
      if (profile == profiles.end()) continue;
      const auto found = profile->second->functions().find(candidate.subject.with->function.value);
      if (found == profile->second->functions().end()) continue;
      const feedback::FunctionCounts& counts = found->second;
      candidate.evidence.changes = counts.changes;
      const std::optional<LoopIndex> root = candidate.subject.with->nest;
      const auto nest = root ? counts.nests.find(root->value) : counts.nests.end();
      if (root && nest == counts.nests.end()) continue;
      const double samples = profile->second->total_samples();
      const double its = root ? nest->second.samples_optimized : counts.samples();
      feedback::VersionEvidence& evidence = candidate.evidence;
      candidate.run_seconds = root ? nest->second.run_seconds_optimized : counts.run_seconds();
      const Watch::Tried published{.run_seconds = root ? nest->second.run_seconds_when_published
                                                       : counts.run_seconds_when_published};
      const Watch::Tried& last = candidate.tried ? *candidate.tried : published;
      evidence.seconds_tried = last.seconds_in_version;
      evidence.seconds_since_tried = candidate.run_seconds - last.run_seconds;
      evidence.known_gain = last.gain;
      evidence.share = samples > 0 ? its / samples : 0;
    }
  });
}

std::optional<Job> VersionExperiment::job_without(const Candidate& candidate,
                                                  std::optional<jit::ChangeKind> decision) {
  std::optional<Job> made;
  const VersionTrials::Subject& subject = candidate.subject;
  trials_.with(subject.module, unit_of(*subject.with), [&](const Watch& watch) {
    if (watch.version != subject.with) return;
    Job job;
    job.module = subject.module;
    job.code = subject.code;
    job.episode = watch.episode;
    job.loop_exits = watch.loop_exits;
    job.short_loop_exits = watch.short_loop_exits;
    job.plan.action = feedback::Action::kReoptimize;
    job.plan.function = subject.with->function;
    job.plan.nest = subject.with->nest;
    job.plan.osr_loops = watch.osr_loops;
    trials_.plan_without_losers(job, watch);
    take_out(job.plan, decision);
    made = std::move(job);
  });
  return made;
}

void VersionExperiment::begin(Candidate candidate, Job job, const feedback::VersionTrialPlan& plan,
                              Measurement::Lease lease) {
  const wasm::Module* const module = candidate.subject.module;
  const jit::Unit unit = unit_of(*candidate.subject.with);
  candidate.subject.decision = plan.without;
  trials_.begin_comparing(module, unit);
  {
    const std::lock_guard lock(mutex_);
    whole_.emplace(Whole{.decision = plan.without,
                         .job = std::move(job),
                         .lease = std::move(lease),
                         .begun = {.run_seconds = candidate.run_seconds,
                                   .seconds_in_version = candidate.evidence.seconds_tried +
                                                         candidate.evidence.seconds_since_tried,
                                   .gain = candidate.evidence.known_gain},
                         .inlined = candidate.subject.with->inlined});
  }
  say(LogLevel::kInfo, "policy",
      fmt::format("{} in {}, tried against a version without it: {}", words_of(plan.without),
                  unit_name(*module, unit), plan.reason));
  for (const std::string& line : feedback::describe_alternatives(plan.alternatives))
    say(LogLevel::kDebug, "policy", fmt::format("  alternative {}", line));
  versions_.begin(std::move(candidate.subject));
  if (versions_.busy()) return;
  if (take()) trials_.end_comparing(module, unit);
}

void VersionExperiment::ended(const VersionTrials::Ending& ending) {
  const jit::Unit unit = unit_of(*ending.subject.with);
  const wasm::Module* const module = ending.subject.module;
  const bool lost = ending.outcome == ChangeState::kRolledBack;
  std::optional<Whole> whole = take();
  // What is left is retired with these, after the lock is released.
  std::shared_ptr<Before> left, plain;
  if (ending.left != nullptr) {
    left = std::make_shared<Before>(engine_.services, ending.subject.code, Watch());
    left->watch.version = ending.left;
  }
  if (!whole) return;
  bool watched = false;
  std::vector<std::pair<jit::Site, feedback::Outcome>> outcomes;
  trials_.with(module, unit, [&](Watch& watch) {
    if (watch.version != ending.subject.with) return;
    watched = true;
    if (ending.outcome == ChangeState::kNone) {
      watch.tried = whole->begun;  // it may be measured later
    } else {
      outcomes = outcomes_of(ending, watch);
      engine_.decisions.change(watch.episode, [&](feedback::Episode& episode) {
        for (const auto& [site, outcome] : outcomes) episode.outcomes.settle(site, outcome);
      });
    }
    if (lost) {
      // What may be gone back to is that still, and what it is to be compared with if anything is changed in it.
      std::shared_ptr<Before> before = std::move(watch.before);
      plain = std::move(watch.plain);
      watch = std::move(*whole->watch);
      watch.before = std::move(before);
      if (is_changed(watch)) watch.plain = std::move(plain);
    }
    const std::optional<jit::ChangeKind> decision = ending.subject.decision;
    if (ending.outcome == ChangeState::kKept) {
      const Watch::Tried& begun = whole->begun;
      watch.tried = begun;
      watch.tried->gain = ending.gain;
      if (decision && !has_no_change_but(watch, *decision)) {
        // The others are next, after all that it ran. Without any of them it loses what it lost without this one.
        watch.tried->run_seconds = begun.run_seconds - begun.seconds_in_version;
        watch.tried->seconds_in_version = 0;
        watch.tried->gain = std::max(begun.gain, ending.gain);
      }
    }
    // It is compared with that again and again. What was inlined for a decision's sake is not plain.
    if (!lost && left != nullptr && whole->watch && !is_changed(*whole->watch) &&
        (!decision || whole->inlined.empty())) {
      left->watch = std::move(*whole->watch);
      plain = std::exchange(watch.plain, std::move(left));
    }
  });
  if (!ending.subject.decision && ending.without != nullptr) ++(lost ? plain_won_ : plain_lost_);
  trials_.end_comparing(module, unit);
  if (!watched) return;
  // From here on, so that no sample of either version is taken for one of code that was replaced before.
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(unit.function);
    for (const auto& [site, outcome] : outcomes) counts.settle(site, outcome.state);
    if (ending.without == nullptr) return;
    if (lost) return note_published(counts, *module, *ending.without);
    if (!unit.nest) counts.publish_again(ending.without->id);
  });
  const std::string what =
      fmt::format("{} in {}", words_of(ending.subject.decision), unit_name(*module, unit));
  if (ending.outcome == ChangeState::kNone)
    say(LogLevel::kDebug, "trial", fmt::format("{}: {}", what, ending.words));
  else
    say(LogLevel::kInfo, "trial",
        fmt::format("{}: {}, {:+.1f} % ({})", what, to_string(ending.outcome), 100 * ending.gain,
                    ending.words));
}

std::vector<std::pair<jit::Site, feedback::Outcome>> VersionExperiment::outcomes_of(
    const VersionTrials::Ending& ending, const Watch& watch) const {
  const jit::CodeVersion& with = *ending.subject.with;
  const WasmOffset at = place_of(*ending.subject.module, with);
  feedback::Outcome outcome{.state = ending.outcome, .gain = ending.gain, .why = ending.words};
  if (ending.subject.decision) return {{feedback::version_site(*ending.subject.decision, at), outcome}};
  // What is kept was judged by its own trial.
  if (ending.outcome != ChangeState::kRolledBack) return {};
  outcome.why = "with all else that was changed: " + outcome.why;
  std::vector<std::pair<jit::Site, feedback::Outcome>> outcomes;
  for (const jit::ChangeKind kind : version_changes(watch))
    outcomes.emplace_back(feedback::version_site(kind, at), outcome);
  for (const jit::Answer& answer : with.answers)
    if (answer.is_applied() && !answer.follows()) outcomes.emplace_back(answer.site, outcome);
  return outcomes;
}

// ---------------------------------------------------------------- compile threads

bool VersionExperiment::offer_plain(const Job& job) {
  std::optional<Watch> plain;
  trials_.with(job.module, job.unit(), [&](Watch& watch) {
    std::shared_ptr<Before>* const there = plain_of(watch);
    if (there == nullptr) return;
    plain = (*there)->take();
    *there = nullptr;
  });
  if (!plain) return false;
  const std::shared_ptr<jit::CodeVersion> version = plain->version;
  {
    const std::lock_guard lock(mutex_);
    if (whole_) whole_->watch = std::move(plain);
  }
  versions_.offer_again(version);
  return true;
}

void VersionExperiment::compile_without() {
  Job job;
  std::optional<jit::ChangeKind> decision;
  std::vector<FuncIndex> inlined;
  {
    const std::lock_guard lock(mutex_);
    if (!whole_) return;
    job = whole_->job;
    decision = whole_->decision;
    inlined = whole_->inlined;
  }
  const std::shared_ptr<ModuleCode> code = job.code.lock();
  if (!code) return;
  if (decision == std::nullopt && offer_plain(job)) return;
  jit::OptimizeRequest request = compiler_.request_of(job, *code);
  request.loop_exits = job.loop_exits;  // as the other version has them
  request.short_loop_exits = job.short_loop_exits;
  // What is compared is the decision alone, and not what was inlined for loads that are not asked for any more.
  if (decision && *decision != jit::ChangeKind::kInlineCalls) request.inlined = std::move(inlined);
  request.give_way = [this] { engine_.queue.give_way_of_trials(); };
  auto result = code->optimize(std::move(request));
  if (!result) return versions_.offer(nullptr, result.error().message);
  const std::shared_ptr<jit::CodeVersion> version = std::move(result->version);
  Watch watch = trials_.make(job, version);
  if (std::any_of(watch.reported.begin(), watch.reported.end(),
                  [](TrialState s) { return s != TrialState::kKept; }))
    return versions_.offer(nullptr, "the trials of its loops would begin again");
  say(LogLevel::kInfo, "compile",
      fmt::format("{}: {} bytes of code in {:.1f} ms of CPU, for a trial of the whole version",
                  unit_name(*code->module(), job.unit()), version->code_size.value,
                  1e3 * version->compile_seconds));
  {
    const std::lock_guard lock(mutex_);
    if (!whole_) return;
    whole_->watch = std::move(watch);
  }
  versions_.offer(version);
}

}  // namespace hindsight::rt
