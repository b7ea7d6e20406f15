#include "runtime/adaptive/function_compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/function_plans.h"

namespace hindsight::rt {

jit::OptimizeRequest FunctionCompiler::request_of(const Job& job, const ModuleCode& code) const {
  jit::OptimizeRequest request;
  request.function = job.plan.function;
  request.osr_loops = job.plan.osr_loops;
  request.loop_entries_only = job.plan.loop_entries_only;
  // Exits cost time to compile. What is called again soon comes to new code by that.
  const std::shared_ptr<jit::CodeVersion> before = code.version(job.plan.function, jit::Tier::kOptimized);
  const bool stays_long = !job.plan.osr_loops.empty() ||
                          (before != nullptr && (!before->osr_entries.empty() || !before->osr_exits.empty()));
  request.loop_exits = policy_.follow_shifts && stays_long;
  request.split_cold = job.plan.split_cold;
  request.abandoned = &abandon_;
  request.changes = feedback::requests_of(job.plan);
  return request;
}

void FunctionCompiler::compile(Job& job, ModuleCode& code) const {
  jit::OptimizeRequest request = request_of(job, code);
  job.loop_exits = request.loop_exits;
  const EngineClock::Time begin = EngineClock::Clock::now();
  auto result = code.optimize(std::move(request));
  if (!result) return say_failure(job, code, result.error());
  say_made(job, code, *result, std::chrono::duration<double>(EngineClock::Clock::now() - begin).count());
  if (!trials_.keeps_running(job, code, *result->version)) install(job, code, std::move(result->version));
}

void FunctionCompiler::say_failure(const Job& job, const ModuleCode& code, const Error& error) const {
  const bool abandoned = abandon_.load(std::memory_order_relaxed);
  if (!abandoned) {
    // A function too large for the optimizer is the program's business, and runs on.
    say(error.kind != ErrorKind::kResource ? LogLevel::kWarning
        : code.is_out_of_room()            ? LogLevel::kDebug  // said once
                                           : LogLevel::kInfo,
        "compile", fmt::format("{}: {}", code.module()->function_name(job.plan.function), error.describe()));
  }
  decisions_.end(job.episode, abandoned ? "abandoned: the engine ended" : "failed: " + error.message);
}

void FunctionCompiler::say_made(const Job& job, const ModuleCode& code, const ModuleCode::Optimized& made,
                                double seconds) const {
  const jit::CodeVersion& version = *made.version;
  const std::string name = code.module()->function_name(job.plan.function);
  std::string passes;
  for (const jit::PassTime& pass : version.pass_times)
    passes += fmt::format(" {} {:.1f}", pass.name, 1e3 * pass.seconds);
  std::string why = job.plan.reason;
  for (const std::string& reason : made.begun_anew) why += "; begun anew: " + reason;
  if (!made.left_out.empty()) why += "; too large for " + made.left_out;
  const std::string apart = version.hot_bytes.value == 0
                                ? ""
                                : fmt::format(" ({} of them apart: hardly ever run)",
                                              version.code_size.value - version.hot_bytes.value);
  say(LogLevel::kInfo, "compile",
      fmt::format(
          "{}: {} bytes of code{} in {:.1f} ms of CPU, {:.1f} ms of wall time ({} OSR entries, {} exits, {} "
          "bodies inlined; ms:{}); because: {}",
          name, version.code_size.value, apart, 1e3 * version.compile_seconds, 1e3 * seconds,
          version.osr_entries.size(), version.osr_exits.size(), version.inlined.size(), passes, why));
  for (const feedback::CallPlan& plan : job.plan.calls) {
    std::string inlined;
    for (const jit::CallHint::Target& target : plan.hint.targets) {
      const std::optional<FuncIndex> callee =
          !plan.hint.by_reference ? code.module()->initial_element(0, target.element)
          : target.element < code.module()->function_count() ? std::optional(FuncIndex(target.element))
                                                             : std::nullopt;
      const bool in_place = callee && std::find(version.inlined.begin(), version.inlined.end(), *callee) !=
                                          version.inlined.end();
      inlined += fmt::format("{}{}{}", inlined.empty() ? "" : ", ",
                             callee ? code.module()->function_name(*callee) : "nobody known",
                             in_place ? " in place" : " by call");
    }
    say(LogLevel::kInfo, "compile", fmt::format("inline-calls in {}: {}: {}", name, plan.reason, inlined));
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
  const auto gain_of = [&](jit::Site site) {  // when it was measured; it is settled, not measured again
    double gain = 0;
    for (const feedback::PrefetchPlan& plan : job.plan.prefetches)
      if (site == jit::Site{jit::ChangeKind::kPrefetch, plan.hint.load}) gain = plan.estimated_gain;
    for (const feedback::InterleavePlan& plan : job.plan.interleaves)
      if (site == jit::Site{jit::ChangeKind::kInterleave, plan.hint.load}) gain = plan.estimated_gain;
    for (const feedback::JumpPlan& plan : job.plan.jumps)
      if (site == jit::Site{jit::ChangeKind::kJumpPointers, plan.hint.load}) gain = plan.estimated_gain;
    return gain;
  };
  std::vector<std::pair<jit::Site, feedback::PrefetchOutcome>> outcomes;  // that are known now
  bool undoing = false;
  decisions_.change(job.episode, [&](feedback::Episode& episode) {
    undoing = std::holds_alternative<Undo>(job.priority) && episode.state == "compiled";
    episode.compile_seconds += version->compile_seconds;
    for (const jit::Answer& answer : version->answers) {
      if (answer.waits()) continue;  // stays in trial with the change that stands in for it
      feedback::Episode::Prefetch p;
      p.load = answer.site.at.value;
      p.change = answer.site.kind;
      if (answer.follows()) {
        outcomes.emplace_back(answer.site, watch.reported[answer.cell] == TrialState::kKept
                                               ? feedback::PrefetchOutcome::kKept
                                               : feedback::PrefetchOutcome::kInTrial);
        continue;
      }
      if (std::any_of(episode.prefetches.begin(), episode.prefetches.end(),
                      [&](const feedback::Episode::Prefetch& other) { return same_change(other, p); }))
        continue;  // when something else was undone
      const auto known = job.settled.find(answer.site);
      const bool kept = answer.is_applied() && known != job.settled.end();
      p.outcome = !answer.is_applied() ? feedback::PrefetchOutcome::kNoSlice
                  : kept               ? feedback::PrefetchOutcome::kKept
                                       : feedback::PrefetchOutcome::kInTrial;
      p.distance = !jit::is_tuned(answer.site.kind) ? 0
                   : kept                           ? known->second
                                                    : jit::traits_of(answer.site.kind).knob.first;
      if (kept) p.measured_gain = gain_of(answer.site);
      p.words = answer.why;
      episode.prefetches.push_back(p);
      if (!answer.is_applied()) outcomes.emplace_back(answer.site, feedback::PrefetchOutcome::kNoSlice);
    }
  });
  trials_.put(module, function, std::move(watch));
  // From here on the function may be decided on again: what is watched of it is this version.
  decisions_.end(job.episode, undoing ? "rolled back" : "compiled");
  for (const auto& [site, outcome] : outcomes) trials_.set_outcome(module, function, site, outcome);
  const bool loop_entries_only = version->entry == nullptr;
  code.publish(version);
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    note_published(counts, *version);
    counts.loop_entries_only = loop_entries_only;
  });
}

}  // namespace hindsight::rt
