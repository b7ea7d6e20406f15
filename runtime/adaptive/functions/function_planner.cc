#include "runtime/adaptive/functions/function_planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/functions/function_plans.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr auto kFlatLook = 50ms;      // between looks at functions that have few samples of late
constexpr double kFirstLook = 0.025;  // seconds between looks at functions that have new code
constexpr size_t kMostFlatJobs = 8;   // of these functions' compiles, that wait at a time
constexpr size_t kMostNests = 4;      // of one function that are under way
// Between asking about a function of which hardly anything was seen meanwhile: where the answer was to wait, and where not. It is asked about
// sooner with an eighth more samples, or with as many as make a loop hot.
constexpr auto kAskedWaiting = 4ms, kAskedAnyhow = 16ms;
constexpr double kMoreSamples = 1.0 / 8;
constexpr double kMuchInBaseline = 0.2;  // of all samples: what runs there does not wait for trials
constexpr double kPreopenSamples = 3;    // clock samples after which the optimizer is worth opening

Hot priority_of(const feedback::FunctionEvidence& e, const feedback::FunctionPlan& plan,
                const feedback::PolicyConfig& policy) {
  if (!plan.nest)
    return {.seconds = e.seconds_baseline + e.seconds_optimized,
            .expected = feedback::compile_seconds(e, policy)};
  const feedback::LoopEvidence& root = e.loops[plan.nest->value];
  Hot hot{.nest = true, .expected = root.compile_seconds};
  if (hot.expected <= 0)
    hot.expected = feedback::expected_seconds(root.code_bytes, root.inner_loops + 1, e.compile_scale, policy);
  for (const feedback::LoopEvidence& loop : e.loops)
    if (is_in(root, loop.offset)) hot.seconds += loop.seconds_baseline;
  return hot;
}

// What is to be tried in code that is being made is asked by what runs in its place.
bool is_seen_meanwhile(const feedback::FunctionCounts& counts) {
  return (counts.early && counts.optimized && !counts.samples_when_published) ||
         std::ranges::any_of(counts.nests,
                             [](const auto& nest) { return nest.second.early && nest.second.under_way; });
}

}  // namespace

FunctionPlanner::FunctionPlanner(const EngineParts& engine, FunctionTrials& trials,
                                 const SecondCompiles& seconds, const CompileScale& scale,
                                 SamplingGovernor& governor)
    : engine_(engine),
      trials_(trials),
      seconds_(seconds),
      scale_(scale),
      governor_(governor),
      last_look_(EngineClock::Clock::now()),
      last_flat_look_(last_look_) {}

void FunctionPlanner::round(const Round& round) {
  waits_ = false;
  if (!engine_.policy.optimize || engine_.services.has_no_optimizer()) return;
  Questions questions;
  questions.now = round.now;
  // What a version shows is looked at soon after it came, and less and less often from then on.
  const double wait = std::max(kFirstLook, governor_.seconds_since_version() / 2);
  questions.look = round.look || std::chrono::duration<double>(round.now - last_look_).count() >= wait;
  if (questions.look) last_look_ = round.now;
  // What a decision is under way about is not decided on again by what the code shows that it is to replace. Read
  // before the load: what ends in between counts as under way for one round more.
  questions.waiting = seconds_.waiting();
  questions.waiting.merge(engine_.queue.waiting_for_second());
  questions.in_flight = engine_.decisions.under_way();
  for (const auto& waiting : questions.waiting) questions.in_flight.erase(waiting);
  // Two versions in turns: what samples say of them is of neither.
  questions.in_flight.merge(trials_.compared());
  questions.found_out = trials_.found_out();
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
  if (!counts.optimized && counts.samples_baseline >= engine_.policy.min_samples) return true;
  // What to try in code that came early, samples of the baseline code before it say as well.
  const auto enough_in_code = [&](bool early) {
    return early ? engine_.policy.min_samples : engine_.policy.min_reoptimize_samples;
  };
  const bool calls_elsewhere =
      std::any_of(counts.unforeseen.begin(), counts.unforeseen.end(), [&](const auto& call) {
        return static_cast<double>(call.second.total) >= engine_.policy.min_call_records;
      });
  if (look && std::any_of(counts.nests.begin(), counts.nests.end(), [&](const auto& nest) {
        const feedback::NestCounts& its = nest.second;
        return its.version != 0 &&
               (calls_elsewhere || its.samples_optimized >= enough_in_code(its.early) ||
                (engine_.policy.follow_shifts && its.shift.share() >= engine_.policy.min_moved_share));
      }))
    return true;
  // What little runs of it in baseline code may be a loop that calls a nest in each iteration.
  if (look && !counts.optimized && !counts.nests.empty() && counts.samples_baseline > 0) return true;
  if (!counts.optimized) return false;
  const bool left_behind =
      counts.samples_when_published &&
      counts.samples_baseline - *counts.samples_when_published >= engine_.policy.min_samples_left_behind;
  if (left_behind || (counts.loop_entries_only && counts.entered == feedback::Entered::kAgain)) return true;
  if (!look) return false;
  const bool shifted =
      engine_.policy.follow_shifts && (counts.samples_stayed >= engine_.policy.min_samples_left_behind ||
                                       counts.shift.share() >= engine_.policy.min_moved_share);
  return calls_elsewhere || shifted || counts.samples_optimized >= enough_in_code(counts.early);
}

bool FunctionPlanner::was_just_asked(const wasm::Module* module, uint32_t function,
                                     const feedback::FunctionCounts& counts, EngineClock::Time now) {
  const auto [entry, is_new] = asked_.try_emplace({module, function});
  Asked& asked = entry->second;
  const double samples = counts.run_samples_baseline + counts.run_samples_optimized;
  const double more = std::clamp(kMoreSamples * asked.samples, 1.0, engine_.policy.min_samples);
  if (!is_new && samples - asked.samples < more && asked.entered == counts.entered &&
      now - asked.at < (asked.waits ? kAskedWaiting : kAskedAnyhow)) {
    waits_ |= asked.waits;
    return true;
  }
  asked = {.at = now, .samples = samples, .entered = counts.entered};
  return false;
}

// A function that it calls in a loop waits for memory. Where the loop is in baseline code, few samples are its own.
bool FunctionPlanner::calls_what_stalls(const feedback::Profile& profile, FuncIndex function,
                                        const feedback::FunctionCounts& counts) const {
  return (counts.optimized || !counts.nests.empty() || counts.samples_baseline > 0) &&
         profile.calls_what_stalls(function,
                                   std::max(engine_.policy.min_stall_samples,
                                            engine_.policy.min_callee_stall_share * profile.total_samples()));
}

void FunctionPlanner::ask_all(feedback::Monitor::Profiles& profiles, Questions& questions) {
  struct Flat {
    double worth = 0;  // seconds of its run for each of compiling
    const wasm::Module* module;
    feedback::Profile* profile;
    uint32_t function;
  };
  std::vector<Flat> flat;
  uint64_t new_places = 0, samples_without_code = 0;
  for (auto& [module, profile] : profiles) {
    new_places += profile->new_places();
    samples_without_code += profile->samples_without_code();
    for (const auto& [index, counts] : profile->functions()) {
      questions.samples += counts.samples_baseline;
      waits_ |= is_seen_meanwhile(counts);
      if ((is_worth_asking(counts, questions.look) &&
           (questions.look || !was_just_asked(module, index, counts, questions.now))) ||
          (questions.look && calls_what_stalls(*profile, FuncIndex(index), counts))) {
        ask(module, *profile, FuncIndex(index), questions);
      } else if (questions.room != 0 && !counts.optimized && counts.nests.empty() &&
                 counts.entered == feedback::Entered::kAgain) {
        const wasm::FunctionBody& body = module->body(FuncIndex(index));
        const double cost = feedback::compile_seconds(
            counts.compile_seconds, body.end.value - body.begin.value, scale_.get(), engine_.policy);
        if (feedback::may_pay_in_flat_profile(counts.run_seconds_baseline, counts.run_samples_baseline, cost,
                                              engine_.policy))
          flat.push_back({counts.run_seconds_baseline / cost, module, profile.get(), index});
      }
    }
  }
  if (questions.look)
    std::erase_if(asked_, [&](const auto& asked) { return !profiles.contains(asked.first.first); });
  // Profiles that went take their counts with them.
  sees_places_ = samples_without_code > samples_without_code_;
  samples_without_code_ = samples_without_code;
  new_places_ = std::max(new_places_, new_places);
  // Most return for each second of compiling first.
  std::stable_sort(flat.begin(), flat.end(), [](const Flat& a, const Flat& b) { return a.worth > b.worth; });
  if (flat.size() > questions.room) flat.resize(questions.room);
  for (const Flat& f : flat) ask(f.module, *f.profile, FuncIndex(f.function), questions);
}

void FunctionPlanner::ask(const wasm::Module* module, feedback::Profile& profile, FuncIndex function,
                          Questions& questions) {
  if (!engine_.services.may_optimize(function)) return;
  const bool waited = std::exchange(waits_, false);
  // Each time another loop of it may be decided about.
  for (size_t i = 0; i < kMostNests && ask_once(module, profile, function, questions); ++i) {
  }
  if (const auto asked = asked_.find({module, function.value}); asked != asked_.end())
    asked->second.waits = waits_;
  waits_ |= waited;
}

bool FunctionPlanner::ask_once(const wasm::Module* module, feedback::Profile& profile, FuncIndex function,
                               Questions& questions) {
  // All of it, or some of its loops.
  const auto first = questions.in_flight.lower_bound({module, jit::Unit{function}});
  const auto last = questions.in_flight.lower_bound({module, jit::Unit{FuncIndex(function.value + 1)}});
  if (first != last && !first->second.nest) return false;
  if (static_cast<size_t>(std::distance(first, last)) >= kMostNests) return false;
  feedback::FunctionCounts& counts = profile.counts(function);
  for (auto& [root, nest] : counts.nests)
    nest.under_way = questions.in_flight.contains({module, jit::Unit{function, LoopIndex(root)}});
  feedback::FunctionEvidence evidence = profile.evidence(function);
  forget_what_waits(evidence, module, questions.waiting);
  evidence.compile_scale = scale_.get();
  evidence.price_of_trying = trials_.price().get();
  feedback::FunctionPlan plan;
  bool compiles = false;
  while (true) {
    plan = feedback::decide(evidence, engine_.policy);
    waits_ |= plan.action == feedback::Action::kWait;
    compiles = plan.action == feedback::Action::kOptimize || plan.action == feedback::Action::kReoptimize;
    if (!compiles) break;
    const bool found_out = is_being_found_out(module, evidence, plan, questions);
    if (!found_out && !questions.waiting.contains({module, jit::Unit{function, plan.nest}})) break;
    waits_ |= found_out;
    // It waits, for long if the loop has ended. The function's other loops do not wait for it.
    if (!plan.nest || evidence.loops[plan.nest->value].set_aside) return false;
    evidence.loops[plan.nest->value].set_aside = true;
  }
  if (compiles && plan.nest) {
    feedback::NestCounts& nest = counts.nests[plan.nest->value];
    nest.compiles += 1;
    nest.under_way = true;
    nest.only_for_callees = plan.only_for_callees;
    nest.early = plan.early;
    mark_in_trial(counts, plan);
    questions.in_flight.insert({module, jit::Unit{function, plan.nest}});
  } else if (first != last) {
    return false;  // what its loops show by then says more about it
  } else if (plan.action == feedback::Action::kObserve) {
    // A version under way would take over again, and nobody would know that it is there.
    if (questions.compiling) return false;
    counts.see_anew();
  } else if (compiles) {
    counts.optimized = true;
    counts.early = plan.early;
    // Of two compiles the first was made for a part of what is planned now.
    if (!plan.second) counts.optimize_count += 1;
    counts.loop_entries_only = false;  // known again when it is installed
    counts.samples_when_published.reset();
    counts.seconds_when_published.reset();
    mark_in_trial(counts, plan);
  } else {
    return false;
  }
  const bool of_loop = plan.nest.has_value();
  questions.decided.push_back({module, std::move(evidence), std::move(plan)});
  return of_loop;
}

bool FunctionPlanner::is_being_found_out(const wasm::Module* module,
                                         const feedback::FunctionEvidence& evidence,
                                         const feedback::FunctionPlan& plan, const Questions& questions) {
  const auto loop = [&](std::optional<LoopIndex> nest) -> const feedback::LoopEvidence& {
    return evidence.loops[nest->value];
  };
  // Where much runs in baseline code that does not wait for anybody.
  double baseline = evidence.samples_baseline;
  if (plan.nest) {
    baseline = 0;
    for (const feedback::LoopEvidence& inner : evidence.loops)
      if (is_in(loop(plan.nest), inner.offset)) baseline += inner.samples_baseline;
  }
  if (baseline >= kMuchInBaseline * evidence.total_samples) return false;
  return std::ranges::any_of(questions.found_out, [&](const auto& measured) {
    if (measured.first != module || measured.second.function != plan.function) return false;
    const std::optional<LoopIndex> nest = measured.second.nest;
    return !plan.nest || !nest || is_in(loop(plan.nest), loop(nest).offset) ||
           is_in(loop(nest), loop(plan.nest).offset);
  });
}

void FunctionPlanner::say_alternatives(const feedback::FunctionPlan& plan) const {
  for (const std::string& line : feedback::describe_alternatives(plan))
    say(LogLevel::kDebug, "policy", fmt::format("  alternative {}", line));
}

void FunctionPlanner::say_plan(const Decided& decided) const {
  say(LogLevel::kInfo, "policy",
      fmt::format("{} {}: {}", to_string(decided.plan.action),
                  unit_name(*decided.module, {decided.plan.function, decided.plan.nest}),
                  decided.plan.reason));
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
  const Hot hot = priority_of(decided.evidence, decided.plan, engine_.policy);
  job.priority = Priority(hot);
  if (decided.plan.second)
    job.priority =
        Later{.seconds = hot.seconds,
              .expected = hot.expected,
              .saves = trials_.price().share_won() * feedback::may_save(decided.plan, decided.evidence)};
  job.expected_seconds = hot.expected;
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
