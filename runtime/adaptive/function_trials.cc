#include "runtime/adaptive/function_trials.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/adaptive/function_plans.h"
#include "runtime/adaptive/recompile.h"

namespace hindsight::rt {
namespace {

using feedback::PrefetchOutcome;

// What a cell points to lives as long as the cell: a thread in retired code may still end a strip.
struct WatchedCell {
  std::shared_ptr<jit::LoopCell> cell;
  std::shared_ptr<LoopTrial> trial;
  std::shared_ptr<TimedLoads> timed;
};

// How the loop of a cell begins: with what, known or not.
struct LoopStart {
  bool settled = true;  // everything that is applied in it is known to pay
  uint32_t setting = 0;
  double stall_share = 0;
  bool remembers = false;
  jit::Knob knob = jit::traits_of(jit::ChangeKind::kPrefetch).knob;
};

LoopStart start_of(const Job& job, const jit::CodeVersion& version, size_t cell,
                   const feedback::PolicyConfig& policy) {
  LoopStart start;
  start.setting = start.knob.first;
  bool interleaves = false, known_to_pay = false;
  for (const jit::Answer& answer : version.answers) {
    if (!answer.is_applied() || answer.cell != cell) continue;
    start.knob = jit::traits_of(answer.site.kind).knob;
    interleaves = answer.site.kind == jit::ChangeKind::kInterleave;
    start.remembers = answer.site.kind == jit::ChangeKind::kJumpPointers;
    if (interleaves && !known_to_pay) start.setting = policy.first_width;
    for (const feedback::PrefetchPlan& plan : job.plan.prefetches)
      if (answer.site.kind == jit::ChangeKind::kPrefetch && plan.hint.load == answer.site.at)
        start.stall_share += plan.hint.stall_share;
    for (const feedback::JumpPlan& plan : job.plan.jumps)
      if (start.remembers && plan.hint.load == answer.site.at) start.stall_share += plan.hint.stall_share;
    const auto known = job.settled.find(answer.site);
    if (known == job.settled.end()) {
      start.settled = false;
    } else {
      known_to_pay = true;
      start.setting = known->second;
    }
  }
  // All loads of interleaved searches share one change, and all of a loop that remembers its way.
  if (interleaves || start.remembers) start.settled = known_to_pay;
  if (start.knob.name.empty()) start.setting = 0;
  return start;
}

// Of plans for usual values: those that are kept in `watch`, as settled, and those that the code had to do without for
// another change of their loop.
void plan_kept_values(Job& job, const Watch& watch, std::vector<jit::Site>& instead) {
  for (const jit::Answer& answer : watch.answers()) {
    if (answer.site.kind != jit::ChangeKind::kValue) continue;
    const bool kept = answer.is_applied() && is_kept(watch.reported[answer.cell]);
    if (!kept && !answer.waits()) continue;
    const auto plan = std::find_if(watch.values.begin(), watch.values.end(),
                                   [&](const feedback::ValuePlan& p) { return p.hint.at == answer.site.at; });
    if (plan == watch.values.end()) continue;
    job.plan.values.push_back(*plan);
    if (kept)
      job.settled[answer.site] = 0;
    else
      instead.push_back(answer.site);
  }
}

}  // namespace

std::vector<jit::Answer> Watch::answers() const {
  std::vector<jit::Answer> answers = version->answers;
  answers.insert(answers.end(), not_applied.begin(), not_applied.end());
  return answers;
}

bool Watch::has_lost() const {
  return std::any_of(reported.begin(), reported.end(),
                     [](TrialState state) { return state == TrialState::kRejected; });
}

FunctionTrials::FunctionTrials(CodeServices& services, feedback::Monitor& monitor,
                               const feedback::PolicyConfig& policy, const LoadedModules& modules,
                               DecisionLog& decisions, Measurement& measurement, Queue queue)
    : services_(services),
      monitor_(monitor),
      policy_(policy),
      modules_(modules),
      decisions_(decisions),
      measurement_(measurement),
      queue_(std::move(queue)) {}

Watch FunctionTrials::make(const Job& job, const std::shared_ptr<jit::CodeVersion>& version) {
  Watch watch;
  watch.version = version;
  watch.episode = job.episode;
  watch.osr_loops = job.plan.osr_loops;
  watch.calls = job.plan.calls;
  watch.branches = job.plan.branches;
  watch.values = job.plan.values;
  watch.split_cold = job.plan.split_cold;
  watch.loop_exits = job.loop_exits;
  watch.cached = job.cached;
  for (size_t i = 0; i < version->loop_cells.size(); ++i) {
    const LoopStart start = start_of(job, *version, i, policy_);
    const auto watched = std::make_shared<WatchedCell>(
        WatchedCell{.cell = version->loop_cells[i],
                    .trial = std::make_shared<LoopTrial>(tsc_ticks_per_second(), start.setting, start.settled,
                                                         start.stall_share, measurement_.loops(), start.knob),
                    .timed = std::make_shared<TimedLoads>(tsc_ticks_per_second())});
    if (start.remembers) watched->trial->judge_history();
    if (services_.knobs.trial_bias != 0) watched->trial->simulate(services_.knobs.trial_bias);
    watched->trial->arm(*watched->cell);
    watched->timed->arm(*watched->cell);
    watch.trials.push_back(watched->trial);
    watch.timed.push_back(watched->timed);
    version->loop_cells[i] = {watched, watched->cell.get()};
    watch.reported.push_back(start.settled ? TrialState::kKept : TrialState::kComparing);
  }
  return watch;
}

void FunctionTrials::put(const wasm::Module* module, FuncIndex function, Watch watch) {
  const std::lock_guard lock(mutex_);
  watches_[module][function.value] = std::move(watch);
}

void FunctionTrials::drop(const wasm::Module* module, FuncIndex function) {
  const std::lock_guard lock(mutex_);
  if (const auto found = watches_.find(module); found != watches_.end()) found->second.erase(function.value);
}

void FunctionTrials::move(const wasm::Module* module, const ModuleCode::Exchange& pair) {
  with(module, pair.to->function, [&](Watch& watch) {
    if (watch.version == pair.from) watch.version = pair.to;
  });
}

Settled FunctionTrials::settled(const wasm::Module* module, FuncIndex function) {
  Settled settled;
  with(module, function, [&](const Watch& watch) {
    for (const jit::Answer& answer : watch.version->answers) {
      if (!answer.is_applied() || answer.cell >= watch.trials.size()) continue;
      const LoopTrial::Status status = watch.trials[answer.cell]->status();
      if (is_kept(status.state)) settled[answer.site] = status.distance;
    }
  });
  return settled;
}

std::vector<std::pair<std::shared_ptr<const LoopTrial>, double>> FunctionTrials::timed_loops(
    const wasm::Module* module) const {
  std::vector<std::pair<std::shared_ptr<const LoopTrial>, double>> loops;
  each(module, [&](FuncIndex, const Watch& watch) {
    for (const auto& trial : watch.trials)
      if (const double ticks = trial->settled_ticks_an_iteration(); ticks > 0)
        loops.emplace_back(trial, ticks);
  });
  return loops;
}

void FunctionTrials::begin_comparing(const wasm::Module* module, FuncIndex function) {
  const std::lock_guard lock(mutex_);
  compared_.insert({module, function.value});
}

void FunctionTrials::end_comparing(const wasm::Module* module, FuncIndex function) {
  const std::lock_guard lock(mutex_);
  compared_.erase({module, function.value});
}

DecisionLog::Functions FunctionTrials::compared() const {
  const std::lock_guard lock(mutex_);
  return compared_;
}

void FunctionTrials::forget(const ModuleCode& code) {
  const std::lock_guard lock(mutex_);
  watches_.erase(code.module().get());
}

void FunctionTrials::set_outcome(const wasm::Module* module, FuncIndex function, jit::Site site,
                                 PrefetchOutcome outcome) {
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    outcome_in(counts, site) = outcome;
    if (outcome == PrefetchOutcome::kRolledBack && jit::is_tuned(site.kind)) counts.reject(site.at.value);
  });
}

// ---------------------------------------------------------------- monitor thread

struct FunctionTrials::News {
  struct Change {
    const wasm::Module* module;
    FuncIndex function;
    jit::Site site;
    PrefetchOutcome outcome;
  };
  std::vector<Change> changes;
  std::vector<std::pair<const wasm::Module*, FuncIndex>> unsettled;
  std::vector<Job> cleanups;
  std::vector<std::string> lines;
};

void FunctionTrials::round(const Round&) {
  News news;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [module, watches] : watches_)
      for (auto& [function, watch] : watches)
        if (!compared_.contains({module, function})) read(module, FuncIndex(function), watch, news);
  }
  for (const News::Change& change : news.changes)
    set_outcome(change.module, change.function, change.site, change.outcome);
  if (!news.unsettled.empty()) {
    // Trials move samples as well.
    monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      for (const auto& [module, function] : news.unsettled)
        if (const auto found = profiles.find(module); found != profiles.end())
          found->second->counts(function).shift = {};
    });
  }
  for (const std::string& line : news.lines) say(LogLevel::kInfo, "trial", line);
  for (Job& job : news.cleanups) {
    const std::shared_ptr<ModuleCode> code = modules_.find(job.module);
    if (!code) continue;
    job.code = code;
    say(LogLevel::kInfo, "policy",
        fmt::format("{}: {}", code->module()->function_name(job.plan.function), job.plan.reason));
    queue_(std::move(job));
  }
}

void FunctionTrials::read(const wasm::Module* module, FuncIndex function, Watch& watch, News& all) {
  bool news = false, pending = false;
  for (size_t i = 0; i < watch.trials.size(); ++i) {
    const TrialState now = watch.trials[i]->state();
    pending |= now == TrialState::kComparing || now == TrialState::kTuning;
    if (now == watch.reported[i]) continue;
    // Tuned anew while it is kept: no news until it is something else.
    if (now == TrialState::kTuning && is_kept(watch.reported[i])) continue;
    const LoopTrial::Status status = watch.trials[i]->status();
    watch.reported[i] = status.state;
    const bool kept = is_kept(status.state);
    if (!kept && status.state != TrialState::kRejected) continue;
    news = true;
    const PrefetchOutcome outcome = kept ? PrefetchOutcome::kKept : PrefetchOutcome::kRolledBack;
    for (const jit::Answer& answer : watch.version->answers) {
      if (!answer.is_applied() || answer.cell != i) continue;
      all.changes.push_back({module, function, answer.site, outcome});
      decisions_.change(watch.episode, [&](feedback::Episode& episode) {
        for (feedback::Episode::Prefetch& p : episode.prefetches) {
          if (site_of(p) != answer.site) continue;
          p.outcome = outcome;
          p.distance = status.distance;
          p.measured_gain = status.gain;
          p.words = answer.why + "; " + status.words;
        }
      });
      if (answer.follows()) continue;
      const std::string_view tuned = jit::traits_of(answer.site.kind).knob.name;
      all.lines.push_back(fmt::format(
          "{} at 0x{:x} in {}: {}, {:+.1f} %{} after {} chunks ({})", to_string(answer.site.kind),
          answer.site.at.value, module->function_name(function), to_string(status.state), 100 * status.gain,
          tuned.empty() ? "" : fmt::format(" at {} {}", tuned, status.distance), status.chunks,
          status.words));
    }
  }
  if (news || pending) all.unsettled.emplace_back(module, function);
  // Something lost and nothing is open any more: a version without the losers takes over.
  if (!news || pending || !watch.has_lost()) return;
  Job job;
  job.module = module;
  job.plan.action = feedback::Action::kReoptimize;
  job.plan.function = function;
  job.plan.osr_loops = watch.osr_loops;
  job.plan.calls = watch.calls;
  job.plan.split_cold = watch.split_cold;
  const std::vector<jit::Site> instead = plan_without_losers(job, watch);
  for (const jit::Site& site : instead)
    all.changes.push_back({module, function, site, PrefetchOutcome::kInTrial});
  job.plan.reason = instead.empty()
                        ? "rolled back: a version without the changes that did not pay"
                        : "rolled back: a version with what had to wait for the changes that did not pay";
  job.episode = watch.episode;
  job.priority = Undo();
  all.cleanups.push_back(std::move(job));
}

std::vector<jit::Site> FunctionTrials::plan_without_losers(Job& job, const Watch& watch) const {
  std::vector<jit::Site> instead;
  const feedback::FunctionEvidence evidence = decisions_.at(watch.episode).evidence;
  const double samples = evidence.samples_baseline + evidence.samples_optimized;
  const auto share_of = [&](WasmOffset at) {
    for (const feedback::LoadEvidence& load : evidence.loads)
      if (load.load == at && samples > 0) return load.stall_samples / samples;
    return 0.0;
  };
  job.plan.branches = watch.branches;
  plan_kept_values(job, watch, instead);
  for (const jit::Answer& answer : watch.answers()) {
    if (answer.site.kind == jit::ChangeKind::kValue) continue;
    if (jit::is_of_branch(answer.site.kind)) {
      const bool kept = answer.is_applied() && watch.reported[answer.cell] == TrialState::kKept;
      if (kept) job.settled[answer.site] = 0;
      if (answer.waits()) instead.push_back(answer.site);
      if (kept || answer.waits()) continue;
      for (feedback::BranchPlan& plan : job.plan.branches)
        if (plan.hint.branch == answer.site.at) plan.hint.form = jit::BranchHint::Form::kAsItComes;
      continue;
    }
    if (answer.waits() && answer.site.kind == jit::ChangeKind::kJumpPointers) {
      feedback::JumpPlan plan;
      plan.hint.load = answer.site.at;
      plan.hint.stall_share = share_of(answer.site.at);
      job.plan.jumps.push_back(std::move(plan));
      instead.push_back(answer.site);
    } else if (answer.waits() && policy_.prefetch) {
      feedback::PrefetchPlan plan;
      plan.hint.load = answer.site.at;
      plan.hint.stall_share = share_of(answer.site.at);
      job.plan.prefetches.push_back(std::move(plan));
      instead.push_back(answer.site);
    }
    if (!answer.is_applied() || !is_kept(watch.reported[answer.cell])) continue;
    const bool interleaved = answer.site.kind == jit::ChangeKind::kInterleave;
    plan_settled(job, answer.site, watch.trials[answer.cell]->status().distance, 0,
                 interleaved ? "kept by its trial" : "");
  }
  return instead;
}

void FunctionTrials::fold(const wasm::Module* module) {
  each(module, [&](FuncIndex, const Watch& watch) {
    decisions_.change(watch.episode, [&](feedback::Episode& episode) {
      for (feedback::Episode::Prefetch& p : episode.prefetches) {
        const auto answer =
            std::find_if(watch.version->answers.begin(), watch.version->answers.end(),
                         [&](const jit::Answer& s) { return s.site == site_of(p) && !s.waits(); });
        if (answer == watch.version->answers.end() || !answer->is_applied() ||
            answer->cell >= watch.trials.size())
          continue;
        const LoopTrial::Status status = watch.trials[answer->cell]->status();
        if (status.strips == 0) continue;  // it never ran: what was known of it stays
        p.outcome = is_kept(status.state)                   ? PrefetchOutcome::kKept
                    : status.state == TrialState::kRejected ? PrefetchOutcome::kRolledBack
                                                            : PrefetchOutcome::kInTrial;
        p.distance = status.distance != 0 ? status.distance : p.distance;
        if (status.gain != 0) p.measured_gain = status.gain;
        p.words = answer->why + "; " + status.words;
        if (p.outcome == PrefetchOutcome::kInTrial)
          p.words += fmt::format("; {} chunks when the run ended", status.chunks);
      }
    });
  });
}

// ---------------------------------------------------------------- compile threads

std::string_view FunctionTrials::news_of(const Job& job, const Watch& watch, const ModuleCode& code,
                                         const jit::CodeVersion& made) const {
  // A version without what a trial has rejected is on its way, and does not know of what is new here.
  if (watch.has_lost()) return "what is left without what was rejected";
  if (code.version(job.plan.function, jit::Tier::kOptimized) != watch.version) return "all of it";
  const feedback::FunctionEvidence evidence = decisions_.at(job.episode).evidence;
  const bool loops_wait = evidence.samples_left_behind >= policy_.min_samples_left_behind ||
                          evidence.samples_stayed >= policy_.min_samples_left_behind;
  return what_is_new({*watch.version, watch.calls, watch.branches, watch.values},
                     {made, job.plan.calls, job.plan.branches, job.plan.values}, loops_wait);
}

std::vector<jit::Site> FunctionTrials::stay_with(const Job& job, Watch& watch, const jit::CodeVersion& made) {
  std::vector<jit::Site> refused;
  decisions_.end(job.episode, std::string(feedback::kNothingNew));
  decisions_.change(job.episode, [&](feedback::Episode& episode) {
    episode.compile_seconds += made.compile_seconds;
    for (const jit::Answer& answer : made.answers) {
      const auto same = [&](const jit::Answer& other) { return other.site == answer.site; };
      // Also where only one of the function's copies has it: it is on trial, or kept, in the version that runs.
      if (std::any_of(made.answers.begin(), made.answers.end(),
                      [&](const jit::Answer& other) { return other.is_applied() && same(other); }))
        continue;
      const std::vector<jit::Answer> known = watch.answers();
      // What waits for another change of its loop has its turn if that is taken back.
      if (std::none_of(known.begin(), known.end(), [&](const jit::Answer& other) {
            return same(other) && other.waits() == answer.waits();
          }))
        watch.not_applied.push_back(answer);
      feedback::Episode::Prefetch p;
      p.load = answer.site.at.value;
      p.change = answer.site.kind;
      if (answer.waits() || std::any_of(episode.prefetches.begin(), episode.prefetches.end(),
                                        [&](const auto& other) { return same_change(other, p); }))
        continue;
      p.outcome = PrefetchOutcome::kNoSlice;
      p.words = answer.why;
      episode.prefetches.push_back(std::move(p));
      refused.push_back(answer.site);
    }
  });
  // With what waits among them.
  watch.branches = job.plan.branches;
  watch.values = job.plan.values;
  return refused;
}

bool FunctionTrials::keeps_running(const Job& job, const ModuleCode& code, const jit::CodeVersion& made) {
  const wasm::Module* const module = code.module().get();
  const FuncIndex function = job.plan.function;
  const std::string name = module->function_name(function);
  std::string_view news;
  std::vector<jit::Site> refused;
  std::map<jit::Site, bool> kept;
  bool loop_entries_only = false;
  const bool watched = with(module, function, [&](Watch& watch) {
    news = news_of(job, watch, code, made);
    if (!news.empty()) return;
    refused = stay_with(job, watch, made);
    loop_entries_only = watch.version->entry == nullptr;
    for (const jit::Answer& answer : watch.version->answers)
      if (answer.is_applied()) kept[answer.site] = is_kept(watch.trials[answer.cell]->state());
  });
  if (!watched) return false;
  if (!news.empty()) {
    say(LogLevel::kDebug, "compile", fmt::format("{}: new in it: {}", name, news));
    return false;
  }
  for (const jit::Site& site : refused) set_outcome(module, function, site, PrefetchOutcome::kNoSlice);
  // What was planned among the rest is what it was.
  for (const auto& [site, is] : kept)
    set_outcome(module, function, site, is ? PrefetchOutcome::kKept : PrefetchOutcome::kInTrial);
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    counts.stay();
    counts.loop_entries_only = loop_entries_only;
  });
  say(LogLevel::kInfo, "compile", fmt::format("{}: {}", name, feedback::kNothingNew));
  return true;
}

}  // namespace hindsight::rt
