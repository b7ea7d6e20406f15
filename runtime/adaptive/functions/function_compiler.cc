#include "runtime/adaptive/functions/function_compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/functions/function_plans.h"
#include "runtime/adaptive/functions/second_compiles.h"

namespace hindsight::rt {

using feedback::ChangeState;

namespace {

constexpr double kLongFailure = 0.5;  // seconds

// Code that was made for loads, calls or numbers as they were is to be left when they are others. Code without these is
// the best there is, until samples say that its loads stall: a loop that runs on for long in short iterations misses that.
bool may_turn_out_wrong(const feedback::FunctionPlan& plan) {
  return std::any_of(
      plan.candidates.begin(), plan.candidates.end(), [](const feedback::Candidate& candidate) {
        return jit::is_of_load(candidate.kind()) || candidate.kind() == jit::ChangeKind::kValue ||
               candidate.kind() == jit::ChangeKind::kInlineCalls;
      });
}

// Whether there were any.
bool leave_out_weights(feedback::FunctionPlan& plan) {
  return std::erase_if(plan.candidates, [](const feedback::Candidate& candidate) {
           return candidate.kind() == jit::ChangeKind::kWeighBranches;
         }) != 0;
}

}  // namespace

jit::OptimizeRequest FunctionCompiler::request_of(const Job& job, const ModuleCode& code) const {
  jit::OptimizeRequest request;
  request.function = job.plan.function;
  request.nest = job.plan.nest;
  request.osr_loops = job.plan.osr_loops;
  request.loop_entries_only = job.plan.loop_entries_only;
  // Exits cost time to compile. What is called again soon comes to new code by that.
  const std::shared_ptr<jit::CodeVersion> before = code.version(job.plan.function, jit::Tier::kOptimized);
  const bool stays_long = !job.plan.osr_loops.empty() ||
                          (before != nullptr && (!before->osr_entries.empty() || !before->osr_exits.empty()));
  request.loop_exits = policy_.follow_shifts && (stays_long || job.plan.nest);
  request.short_loop_exits = !job.plan.nest || job.plan.early || may_turn_out_wrong(job.plan);
  request.selects_stay = policy_.changes[jit::ChangeKind::kBranch];
  request.split_cold = job.plan.has(feedback::version_site(jit::ChangeKind::kSplitCold));
  request.abandoned = &queue_.abandon();
  request.changes = feedback::requests_of(job.plan);
  request.mispredict_cycles = policy_.cycles_mispredicted;
  return request;
}

std::optional<Job> FunctionCompiler::first_of(const Job& job, const ModuleCode& code) {
  // Only for what it calls, code without what is to be tried would gain nothing, and hardly be seen to run.
  if (!job.is_urgent()) return std::nullopt;
  const auto is_tried = [&](const feedback::Candidate& candidate) {
    return !jit::is_of_version(candidate.kind()) && !job.settled.contains(candidate.site());
  };
  if (std::ranges::none_of(job.plan.candidates, is_tried)) return std::nullopt;
  // It has code already, or something was won in loops of it that have: they would come out of that, for code without it.
  const std::vector<wasm::LoopInfo>& loops = code.module()->body(job.plan.function).loops;
  const auto is_won_in_it = [&](const std::shared_ptr<jit::CodeVersion>& nest) {
    return has_won(*nest, job.settled) && (!job.plan.nest || is_loop_in(loops, *nest->nest, *job.plan.nest));
  };
  if (std::ranges::any_of(code.nests(job.plan.function), is_won_in_it) ||
      (!job.plan.nest && code.version(job.plan.function, jit::Tier::kOptimized) != nullptr))
    return std::nullopt;
  Job first = job;
  std::erase_if(first.plan.candidates, is_tried);
  leave_out_weights(first.plan);  // what is tried is compared with code that has none either
  first.plan.reason += "; what is to be tried in it comes later";
  return first;
}

std::optional<Job> FunctionCompiler::compile(Job& job, ModuleCode& code) const {
  if (job.is_second() && has_newer_code_around(job.unit(), code)) {
    decisions_.end(job.episode, DecisionState::kCompiled,
                   "nothing was tried in it: code around it took over");
    return std::nullopt;
  }
  take_news(job, code);
  jit::OptimizeRequest request = request_of(job, code);
  job.loop_exits = request.loop_exits;
  job.short_loop_exits = request.short_loop_exits;
  const EngineClock::Time begin = EngineClock::Clock::now();
  const std::optional<Job> first = first_of(job, code);
  if (first) request.changes = feedback::requests_of(first->plan);
  // Its first code runs already, and has no more than the rest of what was planned.
  request.only_with_changes = job.is_second() && code.optimized(job.unit()) != nullptr;
  double gave_way = 0;
  request.give_way = [&] {
    gave_way += queue_.give_way(job);
    monitor_.guest_processors().make_way();
  };
  auto result = code.optimize(std::move(request));
  const double seconds = std::chrono::duration<double>(EngineClock::Clock::now() - begin).count() - gave_way;
  if (!result) {
    say_failure(job, code, result.error(), seconds);
    return std::nullopt;
  }
  trials_.price().note_compile(result->version->compile_seconds, seconds);
  say_made(first ? *first : job, code, *result, seconds);
  if (result->version->memory)
    scale_.note(expected_seconds(*code.module(), job.unit(), policy_), result->version->compile_seconds);
  else if (leave_out_weights(job.plan))
    note_no_weights(job);
  if (first) {
    decisions_.change(job.episode, [&](feedback::Episode& episode) {
      episode.compile_seconds += result->version->compile_seconds;
      // It is under way all the same.
      episode.state = DecisionState::kCompiled;
      episode.state_why = "its first code runs, without what is to be tried in it";
    });
    job.expected_seconds = kSecondOfFirst * result->version->compile_seconds;
    publish(*first, code, trials_.make(*first, result->version));
    job.priority = Later();  // what it is worth is known when it has run for a while
    return std::move(job);
  }
  if (!trials_.keeps_running(job, code, *result->version)) install(job, code, std::move(result->version));
  return std::nullopt;
}

// What little they give is worth no code of its own.
void FunctionCompiler::note_no_weights(const Job& job) const {
  decisions_.change(job.episode, [](feedback::Episode& episode) {
    episode.outcomes.put(site_of_version(episode, jit::ChangeKind::kWeighBranches),
                         {.state = ChangeState::kNotPossible,
                          .why = "nothing that was to be tried with them is possible, and they alone are "
                                 "worth no compile"});
  });
}

void FunctionCompiler::take_news(Job& job, const ModuleCode& code) const {
  const FuncIndex function = job.plan.function;
  const Settled settled = trials_.settled(job.module, function);
  std::vector<jit::Site> lost;
  feedback::FunctionPlan more;
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(job.module);
    if (found == profiles.end()) return;
    // A site that is asked for went on trial when the job was made, whatever had become of it before.
    const feedback::ChangeLedger& changes = found->second->counts(function).changes;
    for (const feedback::Candidate& candidate : job.plan.candidates)
      if (!jit::is_of_version(candidate.kind()) && !job.settled.contains(candidate.site()) &&
          changes.state(candidate.site()) == ChangeState::kRolledBack)
        lost.push_back(candidate.site());
    if (!job.is_second()) return;
    // It ran since it was decided on, and was sampled.
    more.candidates = feedback::loads_since(job.plan, found->second->evidence(function), policy_);
    mark_in_trial(found->second->counts(function), more);
  });
  for (const feedback::Candidate& candidate : more.candidates) {
    say(LogLevel::kInfo, "policy",
        fmt::format("{} in {}, by what its first code showed: {}", to_string(candidate.kind()),
                    unit_name(*code.module(), job.unit()), candidate.reason));
    job.plan.candidates.push_back(candidate);
  }
  for (const jit::Site& site : lost) {
    std::erase_if(job.plan.candidates,
                  [&](const feedback::Candidate& candidate) { return candidate.site() == site; });
    say(LogLevel::kDebug, "compile",
        fmt::format("{} at 0x{:x} was rejected meanwhile: left out", to_string(site.kind), site.at.value));
  }
  for (const feedback::Candidate& candidate : job.plan.candidates)
    if (const auto known = settled.find(candidate.site()); known != settled.end()) job.settled.insert(*known);
  begin_where_settled(job.plan, job.settled);
}

void FunctionCompiler::say_failure(const Job& job, const ModuleCode& code, const Error& error,
                                   double seconds) const {
  const bool abandoned = queue_.abandon().load(std::memory_order_relaxed);
  if (!abandoned) {
    // A function too large for the optimizer is the program's business, and runs on.
    say(error.kind != ErrorKind::kResource ? LogLevel::kWarning
        : code.is_out_of_room()            ? LogLevel::kDebug  // said once
                                           : LogLevel::kInfo,
        "compile", fmt::format("{}: {}", unit_name(*code.module(), job.unit()), error.describe()));
  }
  // Before it may be decided on again.
  if (!abandoned) {
    // What took so long takes as long again.
    const uint32_t times = seconds >= kLongFailure ? policy_.max_fruitless : 1;
    const bool has_code = code.version(job.plan.function, jit::Tier::kOptimized) != nullptr;
    monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      const auto found = profiles.find(code.module().get());
      if (found == profiles.end()) return;
      feedback::FunctionCounts& counts = found->second->counts(job.plan.function);
      if (job.plan.nest)
        counts.nests[job.plan.nest->value].fruitless += times;
      else
        counts.note_failed_compile(has_code, times);
    });
  }
  if (abandoned)
    decisions_.end(job.episode, DecisionState::kAbandoned, "the engine ended");
  else
    decisions_.end(job.episode, DecisionState::kFailed, error.message);
}

void FunctionCompiler::say_calls(const Job& job, const ModuleCode& code,
                                 const jit::CodeVersion& version) const {
  const std::string name = unit_name(*code.module(), job.unit());
  for (const feedback::Candidate& call : feedback::of(job.plan.candidates, jit::ChangeKind::kInlineCalls)) {
    const auto& [targets, by_reference] = jit::what_of<jit::CallTargets>(call.request);
    std::string inlined;
    for (const jit::CallTargets::Target& target : targets) {
      const std::optional<FuncIndex> callee =
          !by_reference ? code.module()->initial_element(0, target.element)
          : target.element < code.module()->function_count() ? std::optional(FuncIndex(target.element))
                                                             : std::nullopt;
      const bool in_place = callee && std::find(version.inlined.begin(), version.inlined.end(), *callee) !=
                                          version.inlined.end();
      inlined += fmt::format("{}{}{}", inlined.empty() ? "" : ", ",
                             callee ? code.module()->function_name(*callee) : "nobody known",
                             in_place ? " in place" : " by call");
    }
    say(LogLevel::kInfo, "compile", fmt::format("inline-calls in {}: {}: {}", name, call.reason, inlined));
  }
}

void FunctionCompiler::say_made(const Job& job, const ModuleCode& code, const ModuleCode::Optimized& made,
                                double seconds) const {
  const jit::CodeVersion& version = *made.version;
  const std::string name = unit_name(*code.module(), job.unit());
  std::string passes;
  for (const jit::PassTime& pass : version.pass_times)
    passes += fmt::format(" {} {:.1f}", pass.name, 1e3 * pass.seconds);
  std::string why = job.plan.reason;
  if (!made.begun_anew.empty()) why += "; restarted: " + made.begun_anew;
  if (!made.left_out.empty()) why += "; left out passes: " + made.left_out;
  const std::string apart =
      version.hot_bytes.value == 0
          ? ""
          : fmt::format(" ({} of them cold, split off)", version.code_size.value - version.hot_bytes.value);
  const std::string took =
      fmt::format("{:.1f} ms of CPU, {:.1f} ms of wall time", 1e3 * version.compile_seconds, 1e3 * seconds);
  if (version.memory) {
    say(LogLevel::kInfo, "compile",
        fmt::format("{}: {} bytes of code{} in {} ({} OSR entries, {} OSR exits, {} bodies inlined; ms:{}); "
                    "because: {}",
                    name, version.code_size.value, apart, took, version.osr_entries.size(),
                    version.osr_exits.size(), version.inlined.size(), passes, why));
    say_calls(job, code, version);
  } else {
    say(LogLevel::kInfo, "compile",
        fmt::format("{}: nothing of what was to be tried is possible: ended before code generation, after {} "
                    "(ms:{})",
                    name, took, passes));
  }
  for (const jit::Answer& answer : version.answers) {
    if (answer.follows()) continue;
    say(LogLevel::kInfo, "compile",
        fmt::format("{} at 0x{:x} in {}: {}{}", to_string(answer.site.kind), answer.site.at.value, name,
                    answer.is_applied() ? ""
                    : answer.waits()    ? "not now: "
                                        : "not possible: ",
                    answer.why));
  }
}

void FunctionCompiler::install(const Job& job, ModuleCode& code,
                               std::shared_ptr<jit::CodeVersion> version) const {
  const FuncIndex function = job.plan.function;
  const wasm::Module* const module = code.module().get();
  Watch watch = trials_.make(job, version);
  std::vector<std::pair<jit::Site, ChangeState>> outcomes;  // that are known now
  bool undoing = false;
  decisions_.change(job.episode, [&](feedback::Episode& episode) {
    undoing = std::holds_alternative<Undo>(job.priority) && episode.state == DecisionState::kCompiled;
    episode.compile_seconds += version->compile_seconds;
    for (const jit::Answer& answer : version->answers) {
      if (answer.waits()) continue;  // stays in trial with the change that stands in for it
      if (answer.follows()) {
        outcomes.emplace_back(answer.site, watch.reported[answer.cell] == TrialState::kKept
                                               ? ChangeState::kKept
                                               : ChangeState::kInTrial);
        continue;
      }
      if (episode.outcomes.contains(answer.site)) continue;  // when something else was undone
      const auto known = job.settled.find(answer.site);
      const bool kept = answer.is_applied() && known != job.settled.end();
      feedback::Outcome outcome;
      outcome.state = !answer.is_applied() ? ChangeState::kNotPossible
                      : kept               ? ChangeState::kKept
                                           : ChangeState::kInTrial;
      outcome.setting = kept && jit::is_tuned(answer.site.kind) ? known->second
                                                                : jit::traits_of(answer.site.kind).knob.first;
      // What it gave when it was measured; it is settled, not measured again.
      if (const auto* asked = feedback::find(job.plan.candidates, answer.site); kept && asked != nullptr)
        outcome.gain = jit::is_tuned(answer.site.kind) ? asked->estimate.share : 0;
      outcome.why = answer.why;
      episode.outcomes.put(answer.site, std::move(outcome));
      if (!answer.is_applied()) outcomes.emplace_back(answer.site, ChangeState::kNotPossible);
    }
  });
  for (const auto& [site, outcome] : outcomes) trials_.set_outcome(module, function, site, outcome);
  publish(job, code, std::move(watch));
  // From here on the unit may be decided on again: what is watched and known of it is this version.
  decisions_.end(job.episode, undoing ? DecisionState::kRolledBack : DecisionState::kCompiled);
}

void FunctionCompiler::publish(const Job& job, ModuleCode& code, Watch watch) const {
  const FuncIndex function = job.plan.function;
  const wasm::Module* const module = code.module().get();
  const std::shared_ptr<jit::CodeVersion> version = watch.version;
  const bool loop_entries_only = version->entry == nullptr;
  trials_.publish(job, code, std::move(watch));
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    note_published(counts, *module, *version);
    if (!version->nest) counts.loop_entries_only = loop_entries_only;
  });
}

}  // namespace hindsight::rt
