#include "runtime/adaptive/auto_tiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "runtime/code/compile_threads.h"
#include "runtime/code/guest_unit.h"
#include "runtime/code/profiling_counts.h"
#include "runtime/instance/address_ranges.h"
#include "runtime/storage/profile_store.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr double kCalibrateAfterSeconds = 0.2;  // programs that end sooner have no use for it
constexpr auto kSlowLook = 200ms;               // between looks at functions that are optimized already
constexpr auto kFlatLook = 50ms;                // the same at functions that have few samples of late
constexpr size_t kMostFlatJobs = 8;             // of these functions' compiles, that wait at a time
constexpr auto kCollectPeriod = 500ms;
constexpr double kPreopenSamples = 3;  // clock samples after which the optimizer is worth opening

feedback::PolicyConfig make_policy(const EngineConfig& config) {
  feedback::PolicyConfig policy;
  for (const feedback::Decision& decision : feedback::kDecisions) {
    const bool feeds_back = decision.enabled != &feedback::PolicyConfig::optimize;
    policy.*decision.enabled =
        config.tier == TierMode::kAuto && (config.feedback || !feeds_back) &&
        std::ranges::find(config.disabled_decisions, decision.name) == config.disabled_decisions.end();
  }
  policy.branches_per_record = kBranchInterval;
  policy.calls_per_record = kValueInterval;
  if (usable_threads() == 1) policy.background_cost = 1;
  if (config.version_trial_bias != 0) {
    policy.min_version_seconds = policy.seconds_of_version_trial = 0;
    policy.version_gain = policy.max_version_trial_share = 1;
  }
  return policy;
}

// Why nothing watches, if "auto" was left with the unit that only counts; empty otherwise.
std::string refusals_of(const lwp::Selection& selection) {
  std::string reasons;
  for (const lwp::UnitProbe& probe : selection.probes) {
    if (probe.selected && probe.name != "null") return {};
    // Units that no machine has any more, or that this version does not drive, are no news.
    if (!probe.available && probe.name.starts_with("clock/"))
      reasons += (reasons.empty() ? "" : "; ") + probe.name + ": " + probe.reason;
  }
  return reasons;
}

// Why the better clock was not taken, if the other one was; empty otherwise. Not a warning: the thread is
// watched, only less evenly.
std::string lesser_clock(const lwp::Selection& selection) {
  std::string perf;
  for (const lwp::UnitProbe& probe : selection.probes) {
    if (probe.name == "clock/perf" && !probe.available) perf = "; no clock/perf: " + probe.reason;
    if (probe.name == "clock/timer" && probe.selected) return perf;
  }
  return {};
}

// What a cell points to lives as long as the cell: a thread in retired code may still end a strip.
struct WatchedCell {
  std::shared_ptr<jit::LoopCell> cell;
  std::shared_ptr<LoopTrial> trial;
  std::shared_ptr<TimedLoads> timed;
};

// What a trial tunes of the change, beside whether it is there.
const char* tuned_by(jit::ChangeKind kind) {
  switch (kind) {
    case jit::ChangeKind::kPrefetch:
    case jit::ChangeKind::kJumpPointers:
      return "distance";
    case jit::ChangeKind::kInterleave:
      return "width";
    default:
      return "";
  }
}

}  // namespace

Result<std::unique_ptr<TierManager>> make_tier_manager(const EngineConfig& config, CodeServices& services,
                                                       RecordFeed& feed) {
  HINDSIGHT_ASSIGN(lwp::Selection selection, lwp::select_unit(config.profiling ? config.unit : "null"));
  feedback::ProfileFile known;
  if (!config.profile_in.empty()) {
    HINDSIGHT_ASSIGN(known, feedback::load_profile(config.profile_in));
  }
  return std::make_unique<AutoTiers>(config, services, std::move(selection), std::move(known), feed);
}

AutoTiers::AutoTiers(const EngineConfig& config, CodeServices& services, lwp::Selection selection,
                     feedback::ProfileFile known, RecordFeed& feed)
    : config_(config),
      services_(services),
      selection_(std::move(selection)),
      known_(std::move(known)),
      policy_(make_policy(config)),
      last_collect_(Clock::now()),
      last_look_(last_collect_),
      last_flat_look_(last_collect_),
      last_save_(last_collect_),
      last_version_look_(last_collect_),
      governor_(services, clock_) {
  feedback::Monitor::Config monitor;
  monitor.frequency_hz = config.sampling_hz ? config.sampling_hz : governor_.first_hz(policy_.optimize);
  monitor.period = policy_.optimize ? SamplingGovernor::kBurstPeriod : SamplingGovernor::kSteadyPeriod;
  // Of units whose branch records come from counting code. The hardware's own view of a machine branch does
  // not say how the guest's went.
  monitor.branch_bursts =
      selection_.factory->name().starts_with("clock") || selection_.factory->name() == "hardware";
  monitor.log = services.log;
  monitor.is_guest_memory = [](uint64_t address) { return memory_reservations().contains(address); };
  monitor.on_round = [this] { on_round(); };
  monitor.on_record = [&feed](const feedback::LocatedRecord& record) { feed.on_record(record); };
  monitor.only_guest_records = !feed.wants_all();
  monitor.count_events = true;
  monitor_ = std::make_unique<feedback::Monitor>(services_.registry(), std::move(monitor));
  governor_.watch(*monitor_);
  queue_ = std::make_unique<CompileQueue>(services_, *monitor_, decisions_, governor_,
                                          [this](Job& job, ModuleCode& code) { compile(job, code); });
  pages_ = std::make_unique<PageMoves>(services_, *monitor_, policy_, clock_, loaded_, measurement_, *queue_,
                                       [this](const wasm::Module* module) { return timed_loops(module); });
  filling_ = std::make_unique<MemoryFilling>(services_, *monitor_, policy_, loaded_, *pages_);
  layout_ = std::make_unique<CodeLayout>(
      services_, *monitor_, policy_, measurement_,
      CodeLayout::Hooks{
          .enqueue_place = [this] { return queue_->run([this] { layout_->place(queue_->abandon()); }); },
          .on_moved = [this](const wasm::Module* module,
                             const ModuleCode::Exchange& pair) { note_moved(module, pair); },
          .now_seconds = [this] { return clock_.now(); },
          .settled = [this] { return queue_->load().idle() ? governor_.seconds_since_version() : 0; }});
  versions_ = make_version_trials();
  entries_ = std::make_unique<EntryWatch>(loaded_, *monitor_);
  calibration_ = std::make_unique<BackgroundCalibration>([this](bool warning, const std::string& line) {
    say(warning ? LogLevel::kWarning : LogLevel::kInfo, "calibration", line);
  });
  tsc_ticks_per_second();  // measured before a guest waits for it
  if (config_.profiling) monitor_->start();
  say(LogLevel::kInfo, "lwp", fmt::format("unit {}{}", selection_.factory->name(), lesser_clock(selection_)));
  if (const std::string refusals = refusals_of(selection_); config_.profiling && !refusals.empty()) {
    say(LogLevel::kWarning, "lwp",
        "no unit can watch here: " + refusals + "; the guest runs on without feedback");
  }
}

AutoTiers::~AutoTiers() {
  shutdown();
}

jit::Tier AutoTiers::first_tier() const {
  return config_.tier == TierMode::kOptimized ? jit::Tier::kOptimized : jit::Tier::kBaseline;
}

void AutoTiers::shutdown() {
  monitor_->stop();
  calibration_->stop();
  queue_->stop();
  if (!config_.profile_out.empty()) {
    if (Status saved = save_profile(config_.profile_out); !saved) {
      say(LogLevel::kWarning, "profile", saved.error().describe());
    }
  }
}

// ---------------------------------------------------------------- guest threads

std::shared_ptr<LwpSink> AutoTiers::on_first_entry(Store&) {
  if (!config_.profiling || !owner_.here()) return nullptr;
  auto give_up = [&](const Error& error) {
    // Relaxed: only keeps the line from being said twice.
    if (!unit_failed_.exchange(true, std::memory_order_relaxed)) {
      say(LogLevel::kWarning, "lwp",
          "no profiling of this thread: " + error.describe() + "; the guest runs on without feedback");
    }
    return nullptr;
  };
  lwp::UnitConfig unit_config;
  unit_config.frequency_hz = monitor_->frequency();
  unit_config.guest_code = {reinterpret_cast<uint64_t>(services_.arena().executable_begin()),
                            reinterpret_cast<uint64_t>(services_.arena().executable_end())};
  try {
    auto unit = selection_.factory->create(unit_config);
    if (!unit) return give_up(unit.error());
    if (Status attached = (*unit)->attach(); !attached) return give_up(attached.error());
    say(LogLevel::kDebug, "lwp", fmt::format("thread attached to unit {}", (*unit)->name()));
    return std::make_shared<GuestUnit>(std::shared_ptr<lwp::Unit>(std::move(*unit)), *monitor_);
  } catch (const std::bad_alloc&) {
    return give_up(Error{ErrorKind::kResource, "no memory for the thread's unit", {}, {}});
  }
}

void AutoTiers::strip_ended(Store&, jit::VmContext* context, jit::LoopCell* cell) {
  // First, so that the next strip is measured from behind it. Acquire pairs with TimedLoads::arm.
  void* timed = std::atomic_ref(cell->timed_loads).load(std::memory_order_acquire);
  if (timed && context->memory) {
    // Relaxed: memory only grows, and a length of the past is as good.
    static_cast<TimedLoads*>(timed)->strip_ended(
        *cell, context->memory->base, context->memory->byte_length.load(std::memory_order_relaxed));
  }
  // Acquire pairs with LoopTrial::arm: the trial is complete, whatever way the code that calls here came.
  if (void* trial = std::atomic_ref(cell->trial).load(std::memory_order_acquire)) {
    static_cast<LoopTrial*>(trial)->strip_ended(*cell);
  } else {
    std::atomic_ref(cell->countdown).store(INT32_MAX, std::memory_order_relaxed);  // nobody asks
  }
}

// ---------------------------------------------------------------- modules

AutoTiers::ModuleState* AutoTiers::state_of(const wasm::Module* module) {
  const auto found = modules_.find(module);
  return found == modules_.end() ? nullptr : &found->second;
}

const AutoTiers::ModuleState* AutoTiers::state_of(const wasm::Module* module) const {
  const auto found = modules_.find(module);
  return found == modules_.end() ? nullptr : &found->second;
}

void AutoTiers::on_loaded(const std::shared_ptr<ModuleCode>& code) {
  if (!owner_.here()) return;
  loaded_.add(code);
  {
    std::lock_guard lock(mutex_);
    modules_.emplace(code->module().get(), ModuleState());
  }
  // The module is hashed on demand.
  const feedback::ModuleProfile* known =
      known_.modules.empty() ? nullptr : known_.find(code->module()->content_hash_hex());
  std::optional<feedback::ModuleProfile> kept;
  if (known == nullptr && services_.profiles != nullptr) {
    kept = services_.profiles->load(*code->module());
    if (kept) known = &*kept;
  }
  std::vector<feedback::StartQuestion> questions;
  if (known != nullptr) questions = plausible_questions(*code->module(), *known);
  if (known != nullptr) {
    seed(code, questions);
    pages_->remember(code->module().get(), known->page_episodes);
  }
  install_cached(code);
  queue_known(code, questions);
}

void AutoTiers::on_published(ModuleCode&, const std::shared_ptr<jit::CodeVersion>& version) {
  if (version->tier == jit::Tier::kBaseline) governor_.note_code();
}

void AutoTiers::on_instance(ModuleCode& code, const Instance& instance) {
  if (owner_.here()) pages_->on_instance(code, instance);
}

void AutoTiers::on_destroyed(ModuleCode& code) {
  if (!owner_.here()) return;
  save_code(code);
  keep_profile(code);
  pages_->forget(code);
  layout_->forget(code);
  versions_->forget(code);
  loaded_.end(code);
  {
    std::lock_guard lock(mutex_);
    if (ModuleState* state = state_of(code.module().get())) state->watches.clear();
    if (whole_trial_ && whole_trial_->job.code.expired()) whole_trial_.reset();
  }
  forget_modules();
}

// ---------------------------------------------------------------- monitor thread

void AutoTiers::on_round() {
  Round round{.now = Clock::now()};
  round.look = pages_->take_measured() || round.now - last_look_ >= kSlowLook;
  if (round.look) {
    last_look_ = round.now;
    round.modules = loaded_.alive();
  }
  read_trials();
  if (policy_.optimize) entries_->round();
  filling_->round(round);
  if (round.look) {
    std::vector<std::string> news;
    read_timed_loads(&news);
    for (const std::string& line : news) say(LogLevel::kInfo, "trial", line);
  }
  pages_->round(round);
  layout_->round(round);
  ask_policy(round.now, round.look);
  try_versions(round.now);
  governor_.round({.time = round.now,
                   .adapts = policy_.optimize,
                   .policy_waits = policy_waits_,
                   .versions_compared = measurement_.is_held(Disturbs::kVersions),
                   .loops_measured = measurement_.loops_are_measured()});
  calibrate(round.now);
  collect(round.now);
  services_.say_system_failures();
  save_code_at_times(round.now);
}

void AutoTiers::ask_policy(Clock::time_point now, bool slow_look) {
  policy_waits_ = false;
  if (!policy_.optimize) return;
  std::vector<std::pair<feedback::FunctionEvidence, feedback::FunctionPlan>> plans;
  std::vector<const wasm::Module*> plan_modules;
  // What a decision is under way about is not decided on again by what the code shows that it is to replace.
  DecisionLog::Functions in_flight = decisions_.under_way();
  const CompileQueue::Load load = queue_->load();
  const bool compiling = load.tasks != 0;
  size_t room =
      0;  // for compiles of functions in a flat profile: what gets hot meanwhile does not wait for them
  if (now - last_flat_look_ >= kFlatLook && load.jobs < kMostFlatJobs) {
    last_flat_look_ = now;
    room = kMostFlatJobs - load.jobs;
  }
  {
    const std::lock_guard lock(mutex_);
    // Two versions in turns: what samples say of them is of neither.
    if (whole_trial_) in_flight.insert({whole_trial_->job.module, whole_trial_->job.plan.function.value});
  }
  double samples = 0;
  struct Flat {
    double worth = 0;  // seconds of its run for each of compiling
    const wasm::Module* module;
    feedback::Profile* profile;
    uint32_t function;
  };
  std::vector<Flat> flat;
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto ask = [&](const wasm::Module* module, feedback::Profile& profile, uint32_t index) {
      if (!services_.may_optimize(FuncIndex(index)) || in_flight.contains({module, index})) return;
      feedback::FunctionEvidence evidence = profile.evidence(FuncIndex(index));
      feedback::FunctionPlan plan = feedback::decide(evidence, policy_);
      policy_waits_ |= plan.action == feedback::Action::kWait;
      feedback::FunctionCounts& counts = profile.counts(FuncIndex(index));
      if (plan.action == feedback::Action::kObserve) {
        // A version under way would take over again, and nobody would know that it is there.
        if (compiling) return;
        counts.see_anew();
        plans.emplace_back(std::move(evidence), std::move(plan));
        plan_modules.push_back(module);
        return;
      }
      if (plan.action != feedback::Action::kOptimize && plan.action != feedback::Action::kReoptimize) return;
      counts.optimized = true;
      counts.optimize_count += 1;
      counts.loop_entries_only = false;  // known again when it is installed
      counts.samples_when_published.reset();
      counts.seconds_when_published.reset();
      mark_in_trial(counts, plan);
      plans.emplace_back(std::move(evidence), std::move(plan));
      plan_modules.push_back(module);
    };
    for (auto& [module, profile] : profiles) {
      for (const auto& [index, counts] : profile->functions()) {
        samples += counts.samples_baseline;  // of what may still be compiled
        const bool left_behind =
            counts.samples_when_published &&
            counts.samples_baseline - *counts.samples_when_published >= policy_.min_samples_left_behind;
        const bool calls_elsewhere =
            slow_look &&
            std::any_of(counts.unforeseen.begin(), counts.unforeseen.end(), [&](const auto& call) {
              return static_cast<double>(call.second.total) >= policy_.min_call_records;
            });
        const bool stayed =
            slow_look && policy_.follow_shifts && counts.samples_stayed >= policy_.min_samples_left_behind;
        bool look =
            counts.optimized
                ? left_behind || calls_elsewhere || stayed ||
                      (counts.loop_entries_only && counts.entered == feedback::Entered::kAgain) ||
                      (slow_look && counts.samples_optimized >= policy_.min_reoptimize_samples) ||
                      (slow_look && policy_.follow_shifts && counts.shift.share() >= policy_.min_moved_share)
                : counts.samples_baseline >= policy_.min_samples;
        if (look) {
          ask(module, *profile, index);
        } else if (room != 0 && !counts.optimized && counts.entered == feedback::Entered::kAgain) {
          const wasm::FunctionBody& body = module->body(FuncIndex(index));
          const double cost =
              feedback::compile_seconds(counts.compile_seconds, body.end.value - body.begin.value, policy_);
          if (feedback::may_pay_in_flat_profile(counts.run_seconds_baseline, counts.run_samples_baseline,
                                                cost, policy_))
            flat.push_back({counts.run_seconds_baseline / cost, module, profile.get(), index});
        }
      }
    }
    // Most return for each second of compiling first.
    std::stable_sort(flat.begin(), flat.end(),
                     [](const Flat& a, const Flat& b) { return a.worth > b.worth; });
    if (flat.size() > room) flat.resize(room);
    for (const Flat& f : flat) ask(f.module, *f.profile, f.function);
  });
  // Opened before something is to be compiled, so that the first compile does not wait for it.
  if (samples >= kPreopenSamples && !preopened_.exchange(true, std::memory_order_relaxed))
    queue_->open_optimizer();
  for (size_t i = 0; i < plans.size(); ++i) {
    auto& [evidence, plan] = plans[i];
    if (plan.action == feedback::Action::kObserve) {
      observe(plan_modules[i], evidence, plan);
      continue;
    }
    Job job;
    const std::shared_ptr<ModuleCode> code = loaded_.find(plan_modules[i]);
    if (!code) continue;
    job.module = plan_modules[i];
    job.code = code;
    {
      std::lock_guard lock(mutex_);
      ModuleState* state = state_of(plan_modules[i]);
      if (state == nullptr) continue;
      // What was won already stays, at the distance it was tuned to.
      auto watch = state->watches.find(plan.function.value);
      if (watch != state->watches.end()) {
        for (const jit::Answer& site : watch->second.version->answers) {
          if (!site.is_applied() || site.cell >= watch->second.trials.size()) continue;
          LoopTrial::Status status = watch->second.trials[site.cell]->status();
          if (is_kept(status.state)) job.settled[site.site] = status.distance;
        }
      }
    }
    for (feedback::PrefetchPlan& p : plan.prefetches) {
      if (auto known = job.settled.find({jit::ChangeKind::kPrefetch, p.hint.load});
          known != job.settled.end())
        p.hint.initial_distance = known->second;
    }
    for (feedback::InterleavePlan& p : plan.interleaves) {
      if (auto known = job.settled.find({jit::ChangeKind::kInterleave, p.hint.load});
          known != job.settled.end())
        p.hint.initial_width = known->second;
    }
    for (feedback::JumpPlan& p : plan.jumps) {
      if (auto known = job.settled.find({jit::ChangeKind::kJumpPointers, p.hint.load});
          known != job.settled.end())
        p.hint.initial_distance = known->second;
    }
    job.episode = add_episode(plan_modules[i], feedback::make_episode(evidence, plan));
    job.priority = Hot{evidence.seconds_baseline + evidence.seconds_optimized};
    say(LogLevel::kInfo, "policy",
        fmt::format("{} {}: {}", to_string(plan.action), evidence.name, plan.reason));
    for (const feedback::PrefetchPlan& p : plan.prefetches) {
      say(LogLevel::kInfo, "policy", fmt::format("prefetch in {}: {}", evidence.name, p.reason));
    }
    for (const feedback::InterleavePlan& p : plan.interleaves) {
      say(LogLevel::kInfo, "policy",
          fmt::format("interleave in {}, if it searches: {}", evidence.name, p.reason));
    }
    for (const feedback::JumpPlan& p : plan.jumps) {
      say(LogLevel::kInfo, "policy",
          fmt::format("jump-pointers in {}, if it follows pointers: {}", evidence.name, p.reason));
    }
    say_branches(evidence.name, plan);
    say_values(evidence.name, plan);
    for (const std::string& line : feedback::describe_alternatives(plan)) {
      say(LogLevel::kDebug, "policy", fmt::format("  alternative {}", line));
    }
    job.plan = std::move(plan);
    queue_->add(std::move(job));
  }
}

void AutoTiers::observe(const wasm::Module* module, const feedback::FunctionEvidence& evidence,
                        const feedback::FunctionPlan& plan) {
  const EpisodeId episode = add_episode(module, feedback::make_episode(evidence, plan));
  const std::shared_ptr<ModuleCode> code = loaded_.find(module);
  if (code != nullptr) {
    std::lock_guard lock(mutex_);
    // Trials of code that nobody enters any more.
    if (ModuleState* state = state_of(module)) state->watches.erase(plan.function.value);
  }
  say(LogLevel::kInfo, "policy",
      fmt::format("{} {}: {}", to_string(plan.action), evidence.name, plan.reason));
  for (const std::string& line : feedback::describe_alternatives(plan))
    say(LogLevel::kDebug, "policy", fmt::format("  alternative {}", line));
  const bool taken_back = code != nullptr && code->observe(plan.function);
  decisions_.end(episode, taken_back ? "back in baseline code" : "failed: there is no optimized code");
  governor_.note_code();
}

void AutoTiers::note_moved(const wasm::Module* module, const ModuleCode::Exchange& pair) {
  std::lock_guard lock(mutex_);
  ModuleState* const state = state_of(module);
  if (state == nullptr) return;
  const auto watch = state->watches.find(pair.to->function.value);
  if (watch != state->watches.end() && watch->second.version == pair.from) watch->second.version = pair.to;
}

std::vector<PageMoves::TimedLoop> AutoTiers::timed_loops(const wasm::Module* module) const {
  std::vector<PageMoves::TimedLoop> loops;
  const std::lock_guard lock(mutex_);
  const ModuleState* const state = state_of(module);
  if (state == nullptr) return loops;
  for (const auto& [function, watch] : state->watches)
    for (const auto& trial : watch.trials)
      if (const double ticks = trial->settled_ticks_an_iteration(); ticks > 0)
        loops.emplace_back(trial, ticks);
  return loops;
}

void AutoTiers::read_trials() {
  struct Change {
    const wasm::Module* module;
    FuncIndex function;
    jit::Site site;
    feedback::PrefetchOutcome outcome;
  };
  std::vector<Change> changes;
  std::vector<std::pair<const wasm::Module*, FuncIndex>> unsettled;
  std::vector<Job> cleanups;
  std::vector<std::string> lines;
  {
    std::lock_guard lock(mutex_);
    for (auto& [module, state] : modules_) {
      for (auto& [function, watch] : state.watches) {
        // Its news wait: nothing is compiled of it meanwhile.
        if (whole_trial_ && whole_trial_->job.module == module &&
            whole_trial_->job.plan.function.value == function)
          continue;
        bool news = false, pending = false;
        for (size_t i = 0; i < watch.trials.size(); ++i) {
          const TrialState now = watch.trials[i]->state();
          pending |= now == TrialState::kComparing || now == TrialState::kTuning;
          if (now == watch.reported[i]) continue;
          // Tuned anew while it is kept: no news until it is something else.
          if (now == TrialState::kTuning && is_kept(watch.reported[i])) continue;
          const LoopTrial::Status status = watch.trials[i]->status();
          watch.reported[i] = status.state;
          const bool kept = is_kept(status.state), rejected = status.state == TrialState::kRejected;
          if (!kept && !rejected) continue;
          news = true;
          for (const jit::Answer& site : watch.version->answers) {
            if (!site.is_applied() || site.cell != i) continue;
            feedback::PrefetchOutcome outcome =
                kept ? feedback::PrefetchOutcome::kKept : feedback::PrefetchOutcome::kRolledBack;
            changes.push_back({module, FuncIndex(function), site.site, outcome});
            decisions_.change(watch.episode, [&](feedback::Episode& episode) {
              for (feedback::Episode::Prefetch& p : episode.prefetches) {
                if (site_of(p) != site.site) continue;
                p.outcome = outcome;
                p.distance = status.distance;
                p.measured_gain = status.gain;
                p.words = site.why + "; " + status.words;
              }
            });
            if (site.follows()) continue;
            const char* const tuned = tuned_by(site.site.kind);
            lines.push_back(fmt::format(
                "{} at 0x{:x} in {}: {}, {:+.1f} %{} after {} chunks ({})", to_string(site.site.kind),
                site.site.at.value, module->function_name(FuncIndex(function)), to_string(status.state),
                100 * status.gain, *tuned != '\0' ? fmt::format(" at {} {}", tuned, status.distance) : "",
                status.chunks, status.words));
          }
        }
        if (news || pending) unsettled.emplace_back(module, FuncIndex(function));
        // Something lost and nothing is open any more: a version without the losers takes over.
        bool any_lost = std::any_of(watch.reported.begin(), watch.reported.end(),
                                    [](TrialState s) { return s == TrialState::kRejected; });
        if (!news || pending || !any_lost) continue;
        Job job;
        job.module = module;
        job.plan.action = feedback::Action::kReoptimize;
        job.plan.function = FuncIndex(function);
        job.plan.osr_loops = watch.osr_loops;
        job.plan.calls = watch.calls;
        job.plan.split_cold = watch.split_cold;
        const std::vector<jit::Site> instead = plan_without_losers(job, watch);
        for (const jit::Site& site : instead)
          changes.push_back({module, FuncIndex(function), site, feedback::PrefetchOutcome::kInTrial});
        job.plan.reason =
            instead.empty() ? "rolled back: a version without the changes that did not pay"
                            : "rolled back: a version with what had to wait for the changes that did not pay";
        job.episode = watch.episode;
        job.priority = Undo();
        cleanups.push_back(std::move(job));
      }
    }
  }
  for (const Change& change : changes)
    set_outcome(change.module, change.function, change.site, change.outcome);
  if (!unsettled.empty()) {
    // Trials move samples as well.
    monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
      for (const auto& [module, function] : unsettled)
        if (const auto found = profiles.find(module); found != profiles.end())
          found->second->counts(function).shift = {};
    });
  }
  for (const std::string& line : lines) say(LogLevel::kInfo, "trial", line);
  for (Job& job : cleanups) {
    const std::shared_ptr<ModuleCode> code = loaded_.find(job.module);
    if (!code) continue;
    job.code = code;
    say(LogLevel::kInfo, "policy",
        fmt::format("{}: {}", code->module()->function_name(job.plan.function), job.plan.reason));
    queue_->add(std::move(job));
  }
}

void AutoTiers::calibrate(Clock::time_point now) {
  if (!calibration_loaded_) {
    calibration_loaded_ = true;
    calibration_->load();
  } else if (clock_.seconds(now) >= kCalibrateAfterSeconds && !calibration_->get()) {
    calibration_->measure();
  }
}

void AutoTiers::collect(Clock::time_point now) {
  if (now - last_collect_ < kCollectPeriod || services_.retired().pending() == 0) return;
  last_collect_ = now;
  if (size_t freed = services_.collect_retired()) {
    say(LogLevel::kDebug, "retire",
        fmt::format("{} versions freed, {} waiting", freed, services_.retired().pending()));
  }
}

void AutoTiers::set_outcome(const wasm::Module* module, FuncIndex function, jit::Site site,
                            feedback::PrefetchOutcome outcome) {
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    outcome_in(counts, site) = outcome;
    if (outcome == feedback::PrefetchOutcome::kRolledBack && jit::is_tuned(site.kind))
      counts.reject(site.at.value);
  });
}

std::vector<jit::Site> AutoTiers::plan_without_losers(Job& job, const Watch& watch) const {
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
  for (const jit::Answer& site : sites_of(watch)) {
    if (site.site.kind == jit::ChangeKind::kValue) continue;
    if (jit::is_of_branch(site.site.kind)) {
      const bool kept = site.is_applied() && watch.reported[site.cell] == TrialState::kKept;
      if (kept) job.settled[site.site] = 0;
      if (site.waits()) instead.push_back(site.site);
      if (kept || site.waits()) continue;
      for (feedback::BranchPlan& plan : job.plan.branches)
        if (plan.hint.branch == site.site.at) plan.hint.form = jit::BranchHint::Form::kAsItComes;
      continue;
    }
    if (site.waits() && site.site.kind == jit::ChangeKind::kJumpPointers) {
      feedback::JumpPlan plan;
      plan.hint.load = site.site.at;
      plan.hint.stall_share = share_of(site.site.at);
      job.plan.jumps.push_back(std::move(plan));
      instead.push_back(site.site);
    } else if (site.waits() && policy_.prefetch) {
      feedback::PrefetchPlan plan;
      plan.hint.load = site.site.at;
      plan.hint.stall_share = share_of(site.site.at);
      job.plan.prefetches.push_back(std::move(plan));
      instead.push_back(site.site);
    }
    if (!site.is_applied() || !is_kept(watch.reported[site.cell])) continue;
    const bool interleaved = site.site.kind == jit::ChangeKind::kInterleave;
    plan_settled(job, site.site, watch.trials[site.cell]->status().distance, 0,
                 interleaved ? "kept by its trial" : "");
  }
  return instead;
}

void AutoTiers::plan_settled(Job& job, jit::Site site, uint32_t best, double gain, const char* reason) {
  const auto settle = [&]<typename Plan, typename Hint>(std::vector<Plan>& plans, uint32_t Hint::*tuned,
                                                        uint32_t number) {
    Plan plan;
    plan.hint.load = site.at;
    plan.hint.*tuned = number;
    plan.estimated_gain = gain;
    plan.reason = reason;
    plans.push_back(std::move(plan));
  };
  if (jit::is_of_branch(site.kind)) {
    feedback::BranchPlan plan;
    plan.hint.branch = site.at;
    plan.hint.weigh = false;
    plan.hint.form = site.kind == jit::ChangeKind::kSelect ? jit::BranchHint::Form::kSelect
                                                           : jit::BranchHint::Form::kBranch;
    plan.reason = reason;
    job.plan.branches.push_back(std::move(plan));
  } else if (site.kind == jit::ChangeKind::kInterleave) {
    settle(job.plan.interleaves, &jit::InterleaveHint::initial_width, std::max(best, 1u));
  } else if (site.kind == jit::ChangeKind::kJumpPointers) {
    settle(job.plan.jumps, &jit::JumpHint::initial_distance, best);
  } else {
    settle(job.plan.prefetches, &jit::PrefetchHint::initial_distance, best);
  }
  job.settled[site] = best;
}

AutoTiers::EpisodeId AutoTiers::add_episode(const wasm::Module* module, feedback::Episode episode) {
  return decisions_.add(module, std::move(episode), clock_.now());
}

// ---------------------------------------------------------------- compile threads

jit::OptimizeRequest AutoTiers::request_of(const Job& job, const ModuleCode& code) const {
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
  request.abandoned = &queue_->abandon();
  request.changes = feedback::requests_of(job.plan);
  return request;
}

void AutoTiers::compile(Job& job, ModuleCode& code) {
  jit::OptimizeRequest request = request_of(job, code);
  job.loop_exits = request.loop_exits;
  std::string name = code.module()->function_name(job.plan.function);
  Clock::time_point begin = Clock::now();
  auto result = code.optimize(std::move(request));
  if (!result) {
    const bool abandoned = queue_->abandon().load(std::memory_order_relaxed);
    if (!abandoned) {
      // A function too large for the optimizer is the program's business, and runs on.
      say(result.error().kind != ErrorKind::kResource ? LogLevel::kWarning
          : code.is_out_of_room()                     ? LogLevel::kDebug  // said once
                                                      : LogLevel::kInfo,
          "compile", fmt::format("{}: {}", name, result.error().describe()));
    }
    decisions_.end(job.episode,
                   abandoned ? "abandoned: the engine ended" : "failed: " + result.error().message);
    return;
  }
  const jit::CodeVersion& version = *result->version;
  std::string passes;
  for (const jit::PassTime& pass : version.pass_times)
    passes += fmt::format(" {} {:.1f}", pass.name, 1e3 * pass.seconds);
  std::string why = job.plan.reason;
  for (const std::string& reason : result->begun_anew) why += "; begun anew: " + reason;
  if (!result->left_out.empty()) why += "; too large for " + result->left_out;
  const std::string apart = version.hot_bytes.value == 0
                                ? ""
                                : fmt::format(" ({} of them apart: hardly ever run)",
                                              version.code_size.value - version.hot_bytes.value);
  say(LogLevel::kInfo, "compile",
      fmt::format(
          "{}: {} bytes of code{} in {:.1f} ms of CPU, {:.1f} ms of wall time ({} OSR entries, {} exits, {} "
          "bodies inlined; ms:{}); because: {}",
          name, version.code_size.value, apart, 1e3 * version.compile_seconds,
          1e3 * std::chrono::duration<double>(Clock::now() - begin).count(), version.osr_entries.size(),
          version.osr_exits.size(), version.inlined.size(), passes, why));
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
  for (const jit::Answer& site : version.answers) {
    if (site.follows()) continue;
    say(LogLevel::kInfo, "compile",
        fmt::format("{} at 0x{:x} in {}: {}{}", to_string(site.site.kind), site.site.at.value, name,
                    site.is_applied() ? ""
                    : site.waits()    ? "not now: "
                                      : "not possible: ",
                    site.why));
  }
  if (!keeps_running(job, code, *result->version)) install(job, code, std::move(result->version));
}

AutoTiers::Watch AutoTiers::watch_of(const Job& job, const std::shared_ptr<jit::CodeVersion>& version) {
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
    // A loop starts settled if everything prefetched in it is known to pay.
    bool settled = true, known_to_pay = false;
    uint32_t distance = 16;
    double stall_share = 0;
    bool interleaves = false, remembers = false;
    const char* tuned = tuned_by(jit::ChangeKind::kPrefetch);
    for (const jit::Answer& site : version->answers) {
      if (!site.is_applied() || site.cell != i) continue;
      tuned = tuned_by(site.site.kind);
      interleaves = site.site.kind == jit::ChangeKind::kInterleave;
      remembers = site.site.kind == jit::ChangeKind::kJumpPointers;
      if (interleaves && !known_to_pay) distance = policy_.first_width;
      for (const feedback::PrefetchPlan& plan : job.plan.prefetches)
        if (site.site.kind == jit::ChangeKind::kPrefetch && plan.hint.load == site.site.at)
          stall_share += plan.hint.stall_share;
      for (const feedback::JumpPlan& plan : job.plan.jumps)
        if (remembers && plan.hint.load == site.site.at) stall_share += plan.hint.stall_share;
      auto known = job.settled.find(site.site);
      if (known == job.settled.end()) {
        settled = false;
      } else {
        known_to_pay = true;
        distance = known->second;
      }
    }
    // All loads of interleaved searches share one change, and all of a loop that remembers its way.
    if (interleaves || remembers) settled = known_to_pay;
    if (*tuned == '\0') distance = 0;
    const auto watched = std::make_shared<WatchedCell>(
        WatchedCell{.cell = version->loop_cells[i],
                    .trial = std::make_shared<LoopTrial>(tsc_ticks_per_second(), distance, settled,
                                                         stall_share, measurement_.loops(), tuned),
                    .timed = std::make_shared<TimedLoads>(tsc_ticks_per_second())});
    if (remembers) watched->trial->judge_history();
    watched->trial->arm(*watched->cell);
    watched->timed->arm(*watched->cell);
    watch.trials.push_back(watched->trial);
    watch.timed.push_back(watched->timed);
    version->loop_cells[i] = {watched, watched->cell.get()};
    watch.reported.push_back(settled ? TrialState::kKept : TrialState::kComparing);
  }
  return watch;
}

void AutoTiers::note_published(feedback::FunctionCounts& counts, const jit::CodeVersion& version) {
  std::vector<LoopIndex> exits, entries;
  for (const jit::OsrExit& exit : version.osr_exits) exits.push_back(exit.loop);
  for (const jit::OsrEntry& entry : version.osr_entries) entries.push_back(entry.loop);
  counts.publish(version.id, std::move(exits), std::move(entries));
}

void AutoTiers::install(Job& job, ModuleCode& code, std::shared_ptr<jit::CodeVersion> version) {
  FuncIndex function = job.plan.function;
  Watch watch = watch_of(job, version);
  std::vector<std::pair<jit::Site, feedback::PrefetchOutcome>> outcomes;  // that are known now
  const bool undoing =
      std::holds_alternative<Undo>(job.priority) && decisions_.at(job.episode).state == "compiled";
  decisions_.end(job.episode, undoing ? "rolled back" : "compiled");
  decisions_.change(job.episode, [&](feedback::Episode& episode) {
    episode.compile_seconds += version->compile_seconds;
    for (const jit::Answer& site : version->answers) {
      if (site.waits()) continue;  // stays in trial with the change that stands in for it
      feedback::Episode::Prefetch p;
      p.load = site.site.at.value;
      p.change = site.site.kind;
      if (site.follows()) {
        outcomes.emplace_back(site.site, watch.reported[site.cell] == TrialState::kKept
                                             ? feedback::PrefetchOutcome::kKept
                                             : feedback::PrefetchOutcome::kInTrial);
        continue;
      }
      if (std::any_of(episode.prefetches.begin(), episode.prefetches.end(),
                      [&](const feedback::Episode::Prefetch& other) { return same_change(other, p); }))
        continue;  // when something else was undone
      auto known = job.settled.find(site.site);
      bool kept = site.is_applied() && known != job.settled.end();
      p.outcome = !site.is_applied() ? feedback::PrefetchOutcome::kNoSlice
                  : kept             ? feedback::PrefetchOutcome::kKept
                                     : feedback::PrefetchOutcome::kInTrial;
      p.distance = !jit::is_tuned(site.site.kind) ? 0 : kept ? known->second : 16;
      // What it gave when it was measured; it is settled, not measured again.
      for (const feedback::PrefetchPlan& plan : job.plan.prefetches)
        if (kept && p.change == jit::ChangeKind::kPrefetch && plan.hint.load == site.site.at)
          p.measured_gain = plan.estimated_gain;
      for (const feedback::InterleavePlan& plan : job.plan.interleaves)
        if (kept && p.change == jit::ChangeKind::kInterleave && plan.hint.load == site.site.at)
          p.measured_gain = plan.estimated_gain;
      for (const feedback::JumpPlan& plan : job.plan.jumps)
        if (kept && p.change == jit::ChangeKind::kJumpPointers && plan.hint.load == site.site.at)
          p.measured_gain = plan.estimated_gain;
      p.words = site.why;
      episode.prefetches.push_back(p);
      if (!site.is_applied()) outcomes.emplace_back(site.site, feedback::PrefetchOutcome::kNoSlice);
    }
  });
  {
    std::lock_guard lock(mutex_);
    if (ModuleState* state = state_of(code.module().get())) state->watches[function.value] = std::move(watch);
  }
  for (const auto& [site, outcome] : outcomes) set_outcome(code.module().get(), function, site, outcome);
  const bool loop_entries_only = version->entry == nullptr;
  code.publish(version);
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    auto found = profiles.find(code.module().get());
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    note_published(counts, *version);
    counts.loop_entries_only = loop_entries_only;
  });
}

// ---------------------------------------------------------------- reports

void AutoTiers::wait_for_compiles() {
  queue_->wait_until_idle();
}

FeedbackReport AutoTiers::feedback_report() const {
  FeedbackReport report;
  report.unit = std::string(selection_.factory->name());
  if (config_.profiling) monitor_->round();  // what the threads wrote up to now
  report.counts = profiling_counts(*monitor_);
  read_timed_loads(nullptr);
  report_evidence(report);
  for (const feedback::PmuReading& reading : monitor_->pmu()) {
    report.pmu.push_back({reading.name, reading.available, reading.why_not, reading.value, reading.scale});
  }
  report.versions_retired = services_.retired().freed();
  report.versions_waiting = services_.retired().pending();

  ModuleCodeCounts compiled;
  {
    const std::lock_guard lock(mutex_);
    compiled = forgotten_.counts;
    report.modules_forgotten = forgotten_.modules;
    report.decisions_forgotten = forgotten_.decisions;
  }
  loaded_.add_compilations(compiled);
  report_compilations(compiled, report);
  for (const auto& code : loaded_.alive()) report_left_in_baseline(*code, report);
  const std::lock_guard lock(mutex_);
  for (const feedback::Episode& e : decisions_.all()) {
    DecisionReport decision;
    decision.id = e.id;
    decision.kind =
        e.action == feedback::to_string(feedback::Action::kObserve) ? "follow-shifts" : "optimize";
    decision.function = e.evidence.name;
    decision.reason = e.reason;
    decision.alternatives = e.alternatives;
    decision.state = e.state;
    decision.seconds = e.seconds;
    decision.outcome = fmt::format("{:.1f} ms of compiling", 1e3 * e.compile_seconds);
    report.decisions.push_back(decision);
    // The evidence says which they were: the policy is pure.
    for (const feedback::CallPlan& call : feedback::plan_calls(e.evidence, policy_)) {
      if (std::find(e.inlined_calls.begin(), e.inlined_calls.end(), call.hint.call.value) ==
          e.inlined_calls.end())
        continue;
      DecisionReport inlined;
      inlined.id = e.id;
      inlined.kind = "inline-calls";
      inlined.function = e.evidence.name;
      inlined.wasm_offset = call.hint.call.value;
      inlined.reason = call.reason;
      inlined.alternatives = {
          "nothing: every call goes through its table",
          fmt::format("compare with {} target{}: no call where one of them matches", call.hint.targets.size(),
                      call.hint.targets.size() == 1 ? "" : "s")};
      inlined.seconds = e.seconds;
      report_version(e, jit::ChangeKind::kInlineCalls, inlined);
      report.decisions.push_back(inlined);
    }
    double samples = e.evidence.samples_baseline + e.evidence.samples_optimized;
    report_branches(e, report);
    report_split(e, report);
    for (const feedback::Episode::Prefetch& p : e.prefetches) {
      if (jit::is_of_version(p.change)) continue;  // said with the decision
      DecisionReport prefetch;
      prefetch.id = e.id;
      prefetch.kind = to_string(p.change);
      prefetch.function = e.evidence.name;
      prefetch.wasm_offset = p.load;
      for (const feedback::LoadEvidence& load : e.evidence.loads) {
        if (load.load.value != p.load || samples <= 0) continue;
        prefetch.estimated_gain = load.stall_samples / samples;
        prefetch.reason = fmt::format("{:.0f} of {:.0f} samples ({:.0f} %) stand behind this load",
                                      load.stall_samples, samples, 100 * load.stall_samples / samples);
      }
      if (jit::is_of_branch(p.change)) explain_form(e.evidence, prefetch);
      if (p.change == jit::ChangeKind::kValue) explain_value(e.evidence, prefetch);
      prefetch.alternatives = {"nothing: costs nothing, gains nothing",
                               fmt::format("{}: at most {:.0f} % of the function's time", prefetch.kind,
                                           100 * prefetch.estimated_gain)};
      prefetch.state = p.outcome == feedback::PrefetchOutcome::kInTrial   ? "trial"
                       : p.outcome == feedback::PrefetchOutcome::kNoSlice ? "rejected"
                                                                          : to_string(p.outcome);
      prefetch.measured_gain = p.measured_gain;
      prefetch.outcome = p.words;
      prefetch.seconds = e.seconds;
      report.decisions.push_back(prefetch);
    }
  }
  pages_->report(report.decisions);
  layout_->report(report.decisions);
  return report;
}

}  // namespace hindsight::rt
