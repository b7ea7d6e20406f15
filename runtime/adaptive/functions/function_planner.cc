#include "runtime/adaptive/functions/function_planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/functions/function_plans.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr auto kFlatLook = 50ms;       // between looks at functions that have few samples of late
constexpr size_t kMostFlatJobs = 8;    // of these functions' compiles, that wait at a time
constexpr double kPreopenSamples = 3;  // clock samples after which the optimizer is worth opening

}  // namespace

FunctionPlanner::FunctionPlanner(const EngineParts& engine, FunctionTrials& trials,
                                 SamplingGovernor& governor)
    : engine_(engine), trials_(trials), governor_(governor), last_flat_look_(EngineClock::Clock::now()) {}

void FunctionPlanner::round(const Round& round) {
  waits_ = false;
  if (!engine_.policy.optimize) return;
  Questions questions;
  questions.look = round.look;
  // What a decision is under way about is not decided on again by what the code shows that it is to replace. Read
  // before the load: what ends in between counts as under way for one round more.
  questions.in_flight = engine_.decisions.under_way();
  // Two versions in turns: what samples say of them is of neither.
  questions.in_flight.merge(trials_.compared());
  const CompileQueue::Load load = engine_.queue.load();
  questions.compiling = load.tasks != 0;
  // What gets hot meanwhile does not wait for functions of a flat profile.
  if (round.now - last_flat_look_ >= kFlatLook && load.jobs < kMostFlatJobs) {
    last_flat_look_ = round.now;
    questions.room = kMostFlatJobs - load.jobs;
  }
  engine_.monitor.with_profiles([&](feedback::Monitor::Profiles& profiles) { ask_all(profiles, questions); });
  if (questions.samples >= kPreopenSamples && !opened_) {
    opened_ = true;
    engine_.queue.open_optimizer();
  }
  for (Decided& decided : questions.decided) {
    if (decided.plan.action == feedback::Action::kObserve)
      observe(decided);
    else
      compile(std::move(decided));
  }
}

bool FunctionPlanner::is_worth_asking(const feedback::FunctionCounts& counts, bool look) const {
  if (!counts.optimized) return counts.samples_baseline >= engine_.policy.min_samples;
  const bool left_behind =
      counts.samples_when_published &&
      counts.samples_baseline - *counts.samples_when_published >= engine_.policy.min_samples_left_behind;
  if (left_behind || (counts.loop_entries_only && counts.entered == feedback::Entered::kAgain)) return true;
  if (!look) return false;
  const bool calls_elsewhere =
      std::any_of(counts.unforeseen.begin(), counts.unforeseen.end(), [&](const auto& call) {
        return static_cast<double>(call.second.total) >= engine_.policy.min_call_records;
      });
  const bool shifted =
      engine_.policy.follow_shifts && (counts.samples_stayed >= engine_.policy.min_samples_left_behind ||
                                       counts.shift.share() >= engine_.policy.min_moved_share);
  return calls_elsewhere || shifted || counts.samples_optimized >= engine_.policy.min_reoptimize_samples;
}

void FunctionPlanner::ask_all(feedback::Monitor::Profiles& profiles, Questions& questions) {
  struct Flat {
    double worth = 0;  // seconds of its run for each of compiling
    const wasm::Module* module;
    feedback::Profile* profile;
    uint32_t function;
  };
  std::vector<Flat> flat;
  for (auto& [module, profile] : profiles) {
    for (const auto& [index, counts] : profile->functions()) {
      questions.samples += counts.samples_baseline;
      if (is_worth_asking(counts, questions.look)) {
        ask(module, *profile, FuncIndex(index), questions);
      } else if (questions.room != 0 && !counts.optimized && counts.entered == feedback::Entered::kAgain) {
        const wasm::FunctionBody& body = module->body(FuncIndex(index));
        const double cost = feedback::compile_seconds(counts.compile_seconds,
                                                      body.end.value - body.begin.value, engine_.policy);
        if (feedback::may_pay_in_flat_profile(counts.run_seconds_baseline, counts.run_samples_baseline, cost,
                                              engine_.policy))
          flat.push_back({counts.run_seconds_baseline / cost, module, profile.get(), index});
      }
    }
  }
  // Most return for each second of compiling first.
  std::stable_sort(flat.begin(), flat.end(), [](const Flat& a, const Flat& b) { return a.worth > b.worth; });
  if (flat.size() > questions.room) flat.resize(questions.room);
  for (const Flat& f : flat) ask(f.module, *f.profile, FuncIndex(f.function), questions);
}

void FunctionPlanner::ask(const wasm::Module* module, feedback::Profile& profile, FuncIndex function,
                          Questions& questions) {
  if (!engine_.services.may_optimize(function) || questions.in_flight.contains({module, function.value}))
    return;
  feedback::FunctionEvidence evidence = profile.evidence(function);
  feedback::FunctionPlan plan = feedback::decide(evidence, engine_.policy);
  waits_ |= plan.action == feedback::Action::kWait;
  feedback::FunctionCounts& counts = profile.counts(function);
  if (plan.action == feedback::Action::kObserve) {
    // A version under way would take over again, and nobody would know that it is there.
    if (questions.compiling) return;
    counts.see_anew();
  } else if (plan.action == feedback::Action::kOptimize || plan.action == feedback::Action::kReoptimize) {
    counts.optimized = true;
    counts.optimize_count += 1;
    counts.loop_entries_only = false;  // known again when it is installed
    counts.samples_when_published.reset();
    counts.seconds_when_published.reset();
    mark_in_trial(counts, plan);
  } else {
    return;
  }
  questions.decided.push_back({module, std::move(evidence), std::move(plan)});
}

void FunctionPlanner::say_alternatives(const feedback::FunctionPlan& plan) const {
  for (const std::string& line : feedback::describe_alternatives(plan))
    say(LogLevel::kDebug, "policy", fmt::format("  alternative {}", line));
}

void FunctionPlanner::say_plan(const Decided& decided) const {
  say(LogLevel::kInfo, "policy",
      fmt::format("{} {}: {}", to_string(decided.plan.action), decided.evidence.name, decided.plan.reason));
}

void FunctionPlanner::compile(Decided decided) {
  const std::shared_ptr<ModuleCode> code = engine_.modules.find(decided.module);
  if (!code) return;
  Job job;
  job.module = decided.module;
  job.code = code;
  // What was won already stays, as it was tuned.
  job.settled = trials_.settled(decided.module, decided.plan.function);
  begin_where_settled(decided.plan, job.settled);
  job.episode = engine_.decisions.add(decided.module, feedback::make_episode(decided.evidence, decided.plan),
                                      engine_.clock.now());
  job.priority = Hot{decided.evidence.seconds_baseline + decided.evidence.seconds_optimized};
  say_plan(decided);
  for (const std::string& line : lines_of(decided.plan, decided.evidence.name))
    say(LogLevel::kInfo, "policy", line);
  say_alternatives(decided.plan);
  job.plan = std::move(decided.plan);
  engine_.queue.add(std::move(job));
}

void FunctionPlanner::observe(const Decided& decided) {
  const DecisionLog::Id episode = engine_.decisions.add(
      decided.module, feedback::make_episode(decided.evidence, decided.plan), engine_.clock.now());
  const std::shared_ptr<ModuleCode> code = engine_.modules.find(decided.module);
  trials_.drop(decided.module, decided.plan.function);
  say_plan(decided);
  say_alternatives(decided.plan);
  const bool taken_back = code != nullptr && code->observe(decided.plan.function);
  if (taken_back)
    engine_.decisions.end(episode, DecisionState::kObserved);
  else
    engine_.decisions.end(episode, DecisionState::kFailed, "it has no optimized code");
  governor_.note_code();
}

}  // namespace hindsight::rt
