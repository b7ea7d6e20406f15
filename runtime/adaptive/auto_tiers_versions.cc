// The automatic tier and decisions that are part of a whole version: which of them is put on trial, what it is compared
// with, and the way back. What runs when, version_trials.h says.
#include <fmt/format.h>

#include <algorithm>

#include "feedback/policy/versions.h"
#include "runtime/adaptive/auto_tiers.h"

namespace hindsight::rt {
namespace {

using feedback::PrefetchOutcome;
using namespace std::chrono_literals;

constexpr auto kLook = 200ms;  // between looks for something to try

void take_out(feedback::FunctionPlan& plan, jit::ChangeKind decision) {
  if (decision == jit::ChangeKind::kInlineCalls) plan.calls.clear();
  if (decision == jit::ChangeKind::kSplitCold) plan.split_cold = false;
  for (feedback::BranchPlan& branch : plan.branches) {
    if (decision == jit::ChangeKind::kWeighBranches) branch.hint.weigh = false;
    if (decision == jit::ChangeKind::kSplitCold) branch.hint.one_sided = false;
  }
  std::erase_if(plan.branches, [](const feedback::BranchPlan& branch) {
    return !branch.hint.weigh && !branch.hint.one_sided &&
           branch.hint.form == jit::BranchHint::Form::kAsItComes;
  });
}

}  // namespace

std::unique_ptr<VersionTrials> AutoTiers::make_version_trials() {
  VersionTrials::Pace pace;
  if (config_.version_trial_bias != 0) {
    pace.bias = config_.version_trial_bias;
    pace.counting_seconds = 0.002;
    pace.chunk.least_seconds = 0.002;
    pace.rule.least_seconds = 0;
  }
  return std::make_unique<VersionTrials>(
      services_,
      VersionTrials::Hooks{
          .compile =
              [this](const VersionTrials::Subject&) { return queue_->run([this] { compile_without(); }); },
          .on_ended = [this](const VersionTrials::Ending& ending) { version_trial_ended(ending); },
          .disturbed = [this] { return measurement_.loops_are_measured(); },
          .read =
              [this](const ModuleCode& code, FuncIndex function) {
                return CallChunk::Reading{clock_.now(), code.metered_calls(function),
                                          monitor_->guest_seconds()};
              }},
      pace);
}

// ---------------------------------------------------------------- monitor thread

void AutoTiers::try_versions(Clock::time_point now) {
  if (!policy_.inline_calls && !policy_.weigh_branches && !policy_.code_layout) return;
  versions_->round();
  const auto period = config_.version_trial_bias != 0 ? 0ms : kLook;
  if (versions_->busy() || now - last_version_look_ < period) return;
  last_version_look_ = now;
  if (!queue_->load().idle()) return;
  std::optional<Measurement::Lease> lease = measurement_.try_begin(Disturbs::kVersions);
  if (!lease) return;

  struct Candidate {
    VersionTrials::Subject subject;
    feedback::VersionEvidence evidence;
  };
  std::vector<Candidate> candidates;
  std::vector<std::string> lines;
  const std::vector<std::shared_ptr<ModuleCode>> held = loaded_.alive();
  {
    std::lock_guard lock(mutex_);
    for (const std::shared_ptr<ModuleCode>& code : held) {
      ModuleState* const state = state_of(code->module().get());
      if (state == nullptr) continue;
      for (auto& [function, watch] : state->watches) {
        const jit::CodeVersion& version = *watch.version;
        if (watch.cached || watch.not_to_be_measured || version.entry == nullptr) continue;
        Candidate candidate;
        feedback::VersionEvidence& evidence = candidate.evidence;
        evidence.inline_calls = !watch.calls.empty();
        evidence.weigh_branches = std::any_of(watch.branches.begin(), watch.branches.end(),
                                              [](const feedback::BranchPlan& p) { return p.hint.weigh; });
        evidence.split_cold = watch.split_cold && (version.hot_bytes.value != 0 || version.whole != nullptr);
        if (!evidence.inline_calls && !evidence.weigh_branches && !evidence.split_cold) continue;
        const bool settled = std::all_of(watch.trials.begin(), watch.trials.end(), [](const auto& trial) {
          return trial->state() == TrialState::kKept;
        });
        if (!settled) continue;
        // A second version would have to learn the way first, and has no memory for that beside the first.
        if (std::any_of(version.answers.begin(), version.answers.end(), [](const jit::Answer& answer) {
              return answer.is_applied() && answer.site.kind == jit::ChangeKind::kJumpPointers;
            })) {
          watch.not_to_be_measured = true;
          lines.push_back(fmt::format("{} as a whole: not to be measured: a loop of it remembers its way",
                                      code->module()->function_name(FuncIndex(function))));
          continue;
        }
        evidence.compile_seconds = version.compile_seconds;
        candidate.subject = {.module = code->module().get(), .code = code, .with = watch.version};
        candidates.push_back(std::move(candidate));
      }
    }
  }
  for (const std::string& line : lines) say(LogLevel::kDebug, "trial", line);
  if (candidates.empty()) return;
  const double guest_seconds = monitor_->guest_seconds();
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (Candidate& candidate : candidates) {
      const auto profile = profiles.find(candidate.subject.module);
      if (profile == profiles.end()) continue;
      const auto found = profile->second->functions().find(candidate.subject.with->function.value);
      if (found == profile->second->functions().end()) continue;
      const feedback::FunctionCounts& counts = found->second;
      candidate.evidence.outcomes = counts.outcomes;
      candidate.evidence.seconds_published = counts.run_seconds() - counts.run_seconds_when_published;
      const double samples = profile->second->total_samples();
      candidate.evidence.share =
          samples > 0 ? (counts.samples_baseline + counts.samples_optimized) / samples : 0;
    }
  });
  // The hottest first: the others have their turn when it has ended.
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.evidence.share > b.evidence.share;
  });
  for (Candidate& candidate : candidates) {
    candidate.evidence.guest_seconds = guest_seconds;
    candidate.evidence.seconds_on_trial = versions_->seconds_on_trial();
    const feedback::VersionTrialPlan plan = feedback::decide_version_trial(candidate.evidence, policy_);
    if (!plan.without) continue;
    const FuncIndex function = candidate.subject.with->function;
    candidate.subject.decision = *plan.without;
    {
      std::lock_guard lock(mutex_);
      ModuleState* const state = state_of(candidate.subject.module);
      if (state == nullptr) continue;
      const auto watch = state->watches.find(function.value);
      if (watch == state->watches.end() || watch->second.version != candidate.subject.with) continue;
      Job job;
      job.module = candidate.subject.module;
      job.code = candidate.subject.code;
      job.episode = watch->second.episode;
      job.loop_exits = watch->second.loop_exits;
      job.plan.action = feedback::Action::kReoptimize;
      job.plan.function = function;
      job.plan.osr_loops = watch->second.osr_loops;
      job.plan.calls = watch->second.calls;
      job.plan.split_cold = watch->second.split_cold;
      plan_without_losers(job, watch->second);
      take_out(job.plan, *plan.without);
      whole_trial_.emplace(
          WholeTrial{.decision = *plan.without, .job = std::move(job), .lease = std::move(*lease)});
    }
    say(LogLevel::kInfo, "policy",
        fmt::format("{} in {}, against none: {}", to_string(*plan.without),
                    candidate.subject.module->function_name(function), plan.reason));
    for (const std::string& line : feedback::describe_alternatives(plan.alternatives))
      say(LogLevel::kDebug, "policy", fmt::format("  alternative {}", line));
    versions_->begin(std::move(candidate.subject));
    if (!versions_->busy()) {
      std::lock_guard lock(mutex_);
      whole_trial_.reset();
    }
    return;
  }
}

void AutoTiers::version_trial_ended(const VersionTrials::Ending& ending) {
  const jit::ChangeKind decision = ending.subject.decision;
  const FuncIndex function = ending.subject.with->function;
  const wasm::Module* const module = ending.subject.module;
  const bool lost = ending.outcome == PrefetchOutcome::kRolledBack;
  {
    std::lock_guard lock(mutex_);
    std::optional<WholeTrial> whole = std::exchange(whole_trial_, std::nullopt);
    ModuleState* const state = state_of(module);
    if (!whole || state == nullptr) return;
    const auto watch = state->watches.find(function.value);
    if (watch == state->watches.end() || watch->second.version != ending.subject.with) return;
    if (ending.outcome == PrefetchOutcome::kNone) {
      watch->second.not_to_be_measured = true;
    } else {
      feedback::Episode::Prefetch p;
      p.change = decision;
      p.outcome = ending.outcome;
      p.measured_gain = ending.gain;
      p.words = ending.words;
      decisions_.change(watch->second.episode, [&](feedback::Episode& episode) {
        std::erase_if(episode.prefetches,
                      [&](const feedback::Episode::Prefetch& other) { return same_change(other, p); });
        episode.prefetches.push_back(p);
      });
    }
    if (lost) watch->second = std::move(*whole->watch);
  }
  // From here on, so that no sample of either version is taken for one of code that was replaced before.
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    if (ending.outcome != PrefetchOutcome::kNone) counts.outcomes.of(decision) = ending.outcome;
    if (ending.without == nullptr) return;
    if (!lost) return counts.publish_again(ending.without->id);
    note_published(counts, *ending.without);
  });
  const std::string what = fmt::format("{} in {}", to_string(decision), module->function_name(function));
  if (ending.outcome == PrefetchOutcome::kNone)
    say(LogLevel::kDebug, "trial", fmt::format("{}: {}", what, ending.words));
  else
    say(LogLevel::kInfo, "trial",
        fmt::format("{}: {}, {:+.1f} % ({})", what, to_string(ending.outcome), 100 * ending.gain,
                    ending.words));
}

// ---------------------------------------------------------------- compile threads

void AutoTiers::compile_without() {
  Job job;
  {
    std::lock_guard lock(mutex_);
    if (!whole_trial_) return;
    job = whole_trial_->job;
  }
  const std::shared_ptr<ModuleCode> code = job.code.lock();
  if (!code) return;
  jit::OptimizeRequest request = request_of(job, *code);
  request.loop_exits = job.loop_exits;  // as the other version has them
  auto result = code->optimize(std::move(request));
  if (!result) return versions_->offer(nullptr, result.error().message);
  const std::shared_ptr<jit::CodeVersion> version = std::move(result->version);
  Watch watch = watch_of(job, version);
  if (std::any_of(watch.reported.begin(), watch.reported.end(),
                  [](TrialState s) { return s != TrialState::kKept; }))
    return versions_->offer(nullptr, "its loops would have to be tried anew");
  say(LogLevel::kInfo, "compile",
      fmt::format("{}: {} bytes of code in {:.1f} ms of CPU, to be compared with",
                  code->module()->function_name(job.plan.function), version->code_size.value,
                  1e3 * version->compile_seconds));
  {
    std::lock_guard lock(mutex_);
    if (!whole_trial_) return;
    whole_trial_->watch = std::move(watch);
  }
  versions_->offer(version);
}

// ---------------------------------------------------------------- reports

void AutoTiers::report_version(const feedback::Episode& e, jit::ChangeKind change,
                               DecisionReport& decision) const {
  const bool under_way =
      whole_trial_ && whole_trial_->job.episode == e.id && whole_trial_->decision == change;
  decision.state = under_way ? "trial" : e.state;
  for (const feedback::Episode::Prefetch& p : e.prefetches) {
    if (p.change != change) continue;
    decision.state = to_string(p.outcome);
    decision.measured_gain = p.measured_gain;
    decision.outcome = p.words;
  }
}

void AutoTiers::report_split(const feedback::Episode& e, FeedbackReport& report) const {
  if (!e.split_cold) return;
  DecisionReport split;
  split.id = e.id;
  split.kind = "code-layout";
  split.function = e.evidence.name;
  split.reason = fmt::format("its module has {} KiB of code, and the instruction TLB reaches {:.0f} KiB",
                             e.evidence.module_bytes >> 10, policy_.itlb_reach_bytes / 1024);
  split.alternatives = {"nothing: what hardly ever runs lies between what runs",
                        "apart: a jump where it is entered, and less to lie side by side"};
  split.seconds = e.seconds;
  report_version(e, jit::ChangeKind::kSplitCold, split);
  report.decisions.push_back(split);
}

}  // namespace hindsight::rt
