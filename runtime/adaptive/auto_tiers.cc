#include "runtime/adaptive/auto_tiers.h"

#include <fmt/format.h>
#include <x86intrin.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <set>
#include <thread>

#include "runtime/code/compile_threads.h"
#include "runtime/code/guest_unit.h"
#include "runtime/code/profiling_counts.h"
#include "runtime/instance/address_ranges.h"
#include "runtime/storage/profile_store.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

// Between the monitor's rounds. The rates themselves are the policy's (feedback/policy/sampling.h).
constexpr auto kBurstPeriod = 1000us;
constexpr auto kSteadyPeriod = 50000us;
constexpr auto kTrialPeriod =
    5000us;  // while a loop is measured, or code is new: what is decided then is acted upon soon
constexpr double kCalibrateAfterSeconds = 0.2;  // programs that end sooner have no use for it
constexpr auto kSlowLook = 200ms;               // between looks at functions that are optimized already
constexpr auto kFlatLook = 50ms;                // the same at functions that have few samples of late
constexpr size_t kMostFlatJobs = 8;             // of these functions' compiles, that wait at a time
constexpr auto kCollectPeriod = 500ms;
constexpr double kSamplesToWatchEntries = 2;  // in a function's baseline code
constexpr double kPreopenSamples = 3;         // clock samples after which the optimizer is worth opening

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
      start_(Clock::now()),
      last_round_(start_),
      last_collect_(start_),
      last_slow_look_(start_),
      last_flat_look_(start_),
      last_save_(start_),
      last_version_look_(start_) {
  feedback::Monitor::Config monitor;
  monitor.frequency_hz = config.sampling_hz ? config.sampling_hz
                         : policy_.optimize ? sampling_.learn_hz
                                            : sampling_.steady_hz;
  monitor.period = policy_.optimize ? kBurstPeriod : kSteadyPeriod;
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
  layout_ = std::make_unique<CodeLayout>(
      services_, *monitor_, policy_,
      CodeLayout::Hooks{.enqueue_place =
                            [this] {
                              std::lock_guard lock(mutex_);
                              return stopping_ || enqueue(&AutoTiers::place_code);
                            },
                        .on_moved = [this](const wasm::Module* module,
                                           const ModuleCode::Exchange& pair) { note_moved(module, pair); },
                        .now_seconds = [this] { return now_seconds(); }});
  versions_ = make_version_trials();
  new_code();
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
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    abandon_.store(true, std::memory_order_relaxed);
    for (const Job& job : jobs_) end_job(job.episode, "abandoned: the engine ended");
    jobs_.clear();
    // Invariant: no task of ours is left with the compile threads, which would still run it after we are gone.
    idle_.wait(lock, [this] { return tasks_ == 0; });
  }
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

AutoTiers::ModuleState* AutoTiers::state_of(const ModuleCode& code) {
  return state_of(code.module().get());
}

AutoTiers::ModuleState* AutoTiers::state_of(const wasm::Module* module) {
  for (ModuleState& state : modules_) {
    if (state.module.get() == module) return &state;
  }
  return nullptr;
}

void AutoTiers::on_loaded(const std::shared_ptr<ModuleCode>& code) {
  if (!owner_.here()) return;
  {
    std::lock_guard lock(mutex_);
    ModuleState state;
    state.code = code;
    state.module = code->module();
    modules_.push_back(std::move(state));
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
    std::lock_guard lock(mutex_);
    if (ModuleState* state = state_of(*code)) state->known_pages = known->page_episodes;
  }
  install_cached(code);
  queue_known(code, questions);
}

void AutoTiers::on_published(ModuleCode&, const std::shared_ptr<jit::CodeVersion>& version) {
  if (version->tier == jit::Tier::kBaseline) new_code();
}

void AutoTiers::on_destroyed(ModuleCode& code) {
  if (!owner_.here()) return;
  save_code(code);
  keep_profile(code);
  layout_->forget(code);
  versions_->forget(code);
  {
    std::lock_guard lock(mutex_);
    if (ModuleState* state = state_of(code)) {
      state->ended = code.counts();
      state->gone = true;
      state->watches.clear();
      if (whole_trial_ && whole_trial_->job.code.expired()) whole_trial_.reset();
    }
  }
  forget_modules();
}

// ---------------------------------------------------------------- monitor thread

void AutoTiers::on_round() {
  Clock::time_point now = Clock::now();
  read_trials();
  if (policy_.optimize) watch_entries();
  watch_filling(now);
  ask_policy(now);
  try_versions(now);
  adapt_rate(now);
  calibrate(now);
  collect(now);
  services_.say_system_failures();
  save_code_at_times(now);
  last_round_ = now;
}

// Functions about to become hot are watched for their next call: what a compilation has to offer running
// loops depends on it.
void AutoTiers::watch_entries() {
  std::vector<std::pair<const wasm::Module*, FuncIndex>> entered, candidates;
  std::erase_if(entry_watches_, [&](const EntryWatch& watch) {
    const auto code = watch.code.lock();
    if (!code) return true;
    if (!code->entered(watch.function)) return false;
    entered.emplace_back(code->module().get(), watch.function);
    return true;
  });
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (const auto& [module, function] : entered) {
      if (auto found = profiles.find(module); found != profiles.end())
        found->second->counts(function).entered = feedback::Entered::kAgain;
    }
    for (auto& [module, profile] : profiles) {
      for (const auto& [index, counts] : profile->functions()) {
        if (counts.entered != feedback::Entered::kUnknown || counts.optimized ||
            counts.run_samples_baseline < kSamplesToWatchEntries)
          continue;
        feedback::FunctionCounts& watched = profile->counts(FuncIndex(index));
        watched.entered = feedback::Entered::kNotYet;
        watched.seconds_when_watched = watched.seconds_baseline;
        watched.all_seconds_when_watched = profile->seconds_seen();
        candidates.emplace_back(module, FuncIndex(index));
      }
    }
  });
  for (const auto& [module, function] : candidates) {
    std::shared_ptr<ModuleCode> code;
    {
      std::lock_guard lock(mutex_);
      if (ModuleState* state = state_of(module); state && !state->gone) code = state->code.lock();
    }
    if (code && code->watch_entry(function)) entry_watches_.push_back({code, function});
  }
}

void AutoTiers::ask_policy(Clock::time_point now) {
  sampling_state_.waiting = false;
  // Relaxed: what has been measured meanwhile is under mutex_.
  bool slow_look =
      now - last_slow_look_ >= kSlowLook || pages_measured_.exchange(false, std::memory_order_relaxed);
  if (slow_look) {
    last_slow_look_ = now;
    std::vector<std::string> news;
    read_timed_loads(&news);
    for (const std::string& line : news) say(LogLevel::kInfo, "trial", line);
    judge_pages(now);
    // Memory that moves under a trial would be taken for the trial's doing.
    if (!versions_->busy()) ask_pages();
  }
  lay_out_code(slow_look);
  if (!policy_.optimize) return;
  std::vector<std::pair<feedback::FunctionEvidence, feedback::FunctionPlan>> plans;
  std::vector<const wasm::Module*> plan_modules;
  // What a decision is under way about is not decided on again by what the code shows that it is to replace.
  std::set<std::pair<const wasm::Module*, uint32_t>> in_flight;
  bool compiling = false;
  size_t room =
      0;  // for compiles of functions in a flat profile: what gets hot meanwhile does not wait for them
  {
    const std::lock_guard lock(mutex_);
    compiling = tasks_ != 0;
    if (now - last_flat_look_ >= kFlatLook && jobs_.size() < kMostFlatJobs) {
      last_flat_look_ = now;
      room = kMostFlatJobs - jobs_.size();
    }
    for (const EpisodeId id : queued_) {
      const EpisodeState& entry = episodes_.at(id);
      in_flight.insert({entry.module, entry.episode.evidence.function.value});
    }
    // Two versions in turns: what samples say of them is of neither.
    if (whole_trial_) in_flight.insert({whole_trial_->module, whole_trial_->job.plan.function.value});
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
      sampling_state_.waiting |= plan.action == feedback::Action::kWait;
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
  if (samples >= kPreopenSamples && !preopened_.exchange(true, std::memory_order_relaxed)) {
    std::lock_guard lock(mutex_);
    if (!stopping_) {
      enqueue(&AutoTiers::open_optimizer);
    }
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    auto& [evidence, plan] = plans[i];
    if (plan.action == feedback::Action::kObserve) {
      observe(plan_modules[i], evidence, plan);
      continue;
    }
    Job job;
    {
      std::lock_guard lock(mutex_);
      ModuleState* state = state_of(plan_modules[i]);
      if (!state || state->gone) continue;
      job.code = state->code;
      // What was won already stays, at the distance it was tuned to.
      auto watch = state->watches.find(plan.function.value);
      if (watch != state->watches.end()) {
        for (const jit::Answer& answer : watch->second.version->answers) {
          if (!answer.is_applied() || answer.cell >= watch->second.trials.size()) continue;
          LoopTrial::Status status = watch->second.trials[answer.cell]->status();
          if (is_kept(status.state)) job.settled[answer.site] = status.distance;
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
    job.priority = evidence.seconds_baseline + evidence.seconds_optimized;
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
    queue(std::move(job));
  }
}

void AutoTiers::observe(const wasm::Module* module, const feedback::FunctionEvidence& evidence,
                        const feedback::FunctionPlan& plan) {
  const EpisodeId episode = add_episode(module, feedback::make_episode(evidence, plan));
  std::shared_ptr<ModuleCode> code;
  {
    std::lock_guard lock(mutex_);
    if (ModuleState* state = state_of(module); state != nullptr && !state->gone) {
      code = state->code.lock();
      state->watches.erase(plan.function.value);  // trials of code that nobody enters any more
    }
  }
  say(LogLevel::kInfo, "policy",
      fmt::format("{} {}: {}", to_string(plan.action), evidence.name, plan.reason));
  for (const std::string& line : feedback::describe_alternatives(plan))
    say(LogLevel::kDebug, "policy", fmt::format("  alternative {}", line));
  const bool taken_back = code != nullptr && code->observe(plan.function);
  {
    std::lock_guard lock(mutex_);
    end_job(episode, taken_back ? "back in baseline code" : "failed: there is no optimized code");
  }
  new_code();
}

void AutoTiers::lay_out_code(bool look) {
  if (!policy_.code_layout) return;
  std::vector<std::shared_ptr<ModuleCode>> modules;
  double settled = 0;
  // Code that moves under a trial would be taken for the trial's doing.
  look = look && !gate_.busy(__rdtsc()) && !versions_->busy();
  if (look) {
    std::lock_guard lock(mutex_);
    if (jobs_.empty() && tasks_ == 0) settled = now_seconds() - seconds_at(new_version_);
    for (const ModuleState& state : modules_)
      if (auto alive = state.gone ? nullptr : state.code.lock()) modules.push_back(std::move(alive));
  }
  layout_->round(settled, look, modules);
}

void AutoTiers::place_code() {
  layout_->place(abandon_);
}

void AutoTiers::note_moved(const wasm::Module* module, const ModuleCode::Exchange& pair) {
  std::lock_guard lock(mutex_);
  ModuleState* const state = state_of(module);
  if (state == nullptr) return;
  const auto watch = state->watches.find(pair.to->function.value);
  if (watch != state->watches.end() && watch->second.version == pair.from) watch->second.version = pair.to;
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
    for (ModuleState& state : modules_) {
      for (auto& [function, watch] : state.watches) {
        // Its news wait: nothing is compiled of it meanwhile.
        if (whole_trial_ && whole_trial_->module == state.module.get() &&
            whole_trial_->job.plan.function.value == function)
          continue;
        bool news = false, pending = false;
        for (size_t i = 0; i < watch.trials.size(); ++i) {
          LoopTrial::Status status = watch.trials[i]->status();
          pending |= status.state == TrialState::kComparing || status.state == TrialState::kTuning;
          if (status.state == watch.reported[i]) continue;
          // Tuned anew while it is kept: no news until it is something else.
          if (status.state == TrialState::kTuning && is_kept(watch.reported[i])) continue;
          watch.reported[i] = status.state;
          const bool kept = is_kept(status.state), rejected = status.state == TrialState::kRejected;
          if (!kept && !rejected) continue;
          news = true;
          for (const jit::Answer& answer : watch.version->answers) {
            if (!answer.is_applied() || answer.cell != i) continue;
            feedback::PrefetchOutcome outcome =
                kept ? feedback::PrefetchOutcome::kKept : feedback::PrefetchOutcome::kRolledBack;
            changes.push_back({state.module.get(), FuncIndex(function), answer.site, outcome});
            for (feedback::Episode::Prefetch& p : episode_of(watch.episode).prefetches) {
              if (site_of(p) != answer.site) continue;
              p.outcome = outcome;
              p.distance = status.distance;
              p.measured_gain = status.gain;
              p.words = answer.why + "; " + status.words;
            }
            if (answer.follows()) continue;
            const char* const tuned = tuned_by(answer.site.kind);
            lines.push_back(fmt::format(
                "{} at 0x{:x} in {}: {}, {:+.1f} %{} after {} chunks ({})", to_string(answer.site.kind),
                answer.site.at.value, state.module->function_name(FuncIndex(function)),
                to_string(status.state), 100 * status.gain,
                *tuned != '\0' ? fmt::format(" at {} {}", tuned, status.distance) : "", status.chunks,
                status.words));
          }
        }
        if (news || pending) unsettled.emplace_back(state.module.get(), FuncIndex(function));
        // Something lost and nothing is open any more: a version without the losers takes over.
        bool any_lost = std::any_of(watch.reported.begin(), watch.reported.end(),
                                    [](TrialState s) { return s == TrialState::kRejected; });
        if (!news || pending || !any_lost || state.gone) continue;
        Job job;
        job.code = state.code;
        job.plan.action = feedback::Action::kReoptimize;
        job.plan.function = FuncIndex(function);
        job.plan.osr_loops = watch.osr_loops;
        job.plan.calls = watch.calls;
        job.plan.split_cold = watch.split_cold;
        const std::vector<jit::Site> instead = plan_without_losers(job, watch);
        for (const jit::Site& site : instead)
          changes.push_back(
              {state.module.get(), FuncIndex(function), site, feedback::PrefetchOutcome::kInTrial});
        job.plan.reason =
            instead.empty() ? "rolled back: a version without the changes that did not pay"
                            : "rolled back: a version with what had to wait for the changes that did not pay";
        job.episode = watch.episode;
        job.priority = 1e3;  // undoing comes first
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
    if (auto code = job.code.lock()) {
      say(LogLevel::kInfo, "policy",
          fmt::format("{}: {}", code->module()->function_name(job.plan.function), job.plan.reason));
    }
    queue(std::move(job));
  }
}

void AutoTiers::adapt_rate(Clock::time_point now) {
  // Code that nobody knows is looked at in its branches as well, whoever decides.
  if (const Clock::rep at = new_code_.load(std::memory_order_relaxed); at != burst_series_at_) {
    burst_series_at_ = at;
    monitor_->begin_branch_series();
  }
  if (!policy_.optimize) return;
  const double seconds = std::chrono::duration<double>(now - last_round_).count();
  const double cost = feedback::burst_cost(monitor_->frequency(), seconds, sampling_);
  if (cost > 0) {
    sampling_state_.spent_seconds += cost;
    rate_burst_seconds_.store(rate_burst_seconds_.load(std::memory_order_relaxed) + seconds,
                              std::memory_order_relaxed);
    rate_burst_cost_.store(sampling_state_.spent_seconds, std::memory_order_relaxed);
  }
  sampling_state_.now = std::chrono::duration<double>(now - start_).count();
  sampling_state_.new_code = seconds_at(new_code_);
  sampling_state_.new_version = seconds_at(new_version_);
  const feedback::SamplingPlan plan = feedback::plan_sampling(sampling_state_, sampling_);
  const bool burst = plan.hz > sampling_.steady_hz;
  if (plan.hz != rate_hz_) {
    if (burst) rate_bursts_.fetch_add(1, std::memory_order_relaxed);
    say(LogLevel::kDebug, "lwp", fmt::format("{} samples a second: {}", plan.hz, plan.reason));
    rate_hz_ = plan.hz;
    monitor_->set_frequency(plan.hz);
  }
  // Rounds cost no samples: they come often also where the budget of these is spent. Chunks of a trial of versions begin and
  // end with calls, as near as rounds come to them.
  const bool attentive =
      gate_.busy(__rdtsc()) || sampling_state_.now - sampling_state_.new_version < sampling_.follow_seconds;
  monitor_->set_period(burst || versions_->busy() ? kBurstPeriod : attentive ? kTrialPeriod : kSteadyPeriod);
}

void AutoTiers::calibrate(Clock::time_point now) {
  if (!calibration_loaded_) {
    calibration_loaded_ = true;
    calibration_->load();
  } else if (now - start_ >= std::chrono::duration<double>(kCalibrateAfterSeconds) && !calibration_->get()) {
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
  const feedback::FunctionEvidence& evidence = episode_of(watch.episode).evidence;
  const double samples = evidence.samples_baseline + evidence.samples_optimized;
  const auto share_of = [&](WasmOffset at) {
    for (const feedback::LoadEvidence& load : evidence.loads)
      if (load.load == at && samples > 0) return load.stall_samples / samples;
    return 0.0;
  };
  job.plan.branches = watch.branches;
  plan_kept_values(job, watch, instead);
  for (const jit::Answer& answer : sites_of(watch)) {
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
  std::lock_guard lock(mutex_);
  const EpisodeId id = ++last_episode_;
  episode.id = id;
  episode.seconds = now_seconds();
  episode.state = "queued";
  episodes_.emplace(id, EpisodeState{std::move(episode), module});
  queued_.insert(id);
  if (ModuleState* state = state_of(module)) state->episodes.push_back(id);
  return id;
}

void AutoTiers::end_job(EpisodeId id, std::string state) {
  queued_.erase(id);
  if (const auto found = episodes_.find(id); found != episodes_.end())
    found->second.episode.state = std::move(state);
}

// ---------------------------------------------------------------- compile threads

void AutoTiers::queue(Job job) {
  new_version();
  std::lock_guard lock(mutex_);
  if (stopping_) return;
  const EpisodeId episode = job.episode;
  jobs_.push_back(std::move(job));
  if (enqueue(&AutoTiers::run_one_job)) return;
  jobs_.pop_back();
  end_job(episode, "abandoned: there is no thread to compile on");
}

bool AutoTiers::enqueue(void (AutoTiers::*task)()) {
  Status enqueued = services_.threads().enqueue([this, task] {
    try {
      (this->*task)();
    } catch (const std::bad_alloc&) {
      // What the task was about stays as it is.
      if (!no_memory_said_.exchange(true, std::memory_order_relaxed))
        say(LogLevel::kWarning, "compile",
            "there was no memory for a task of the compile threads; said once");
    }
    task_ended();
  });
  // Invariant: what has just begun does not end before mutex_ is free.
  if (enqueued) ++tasks_;
  // Relaxed: only keeps the line from being said twice.
  if (!enqueued && !no_thread_said_.exchange(true, std::memory_order_relaxed))
    say(LogLevel::kWarning, "compile",
        enqueued.error().describe() + "; what gets hot meanwhile stays in baseline code");
  return enqueued.has_value();
}

void AutoTiers::open_optimizer() {
  if (auto optimizer = services_.optimizer(); !optimizer)
    say(LogLevel::kWarning, "compile", "no optimizing tier: " + optimizer.error().describe());
}

// Jobs wait for the library and for each other, and what was hot when they were queued need not be what is
// hot now.
void AutoTiers::refresh_priorities() {
  struct Waiting {
    EpisodeId episode;
    const wasm::Module* module;
    FuncIndex function;
    double seconds = 0;
  };
  std::vector<Waiting> waiting;
  {
    std::lock_guard lock(mutex_);
    if (jobs_.size() < 2) return;
    for (const Job& job : jobs_)
      if (const auto found = episodes_.find(job.episode); found != episodes_.end())
        waiting.push_back({job.episode, found->second.module, job.plan.function});
  }
  monitor_->with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (Waiting& w : waiting) {
      const auto profile = profiles.find(w.module);
      if (profile == profiles.end()) continue;
      const auto counts = profile->second->functions().find(w.function.value);
      if (counts != profile->second->functions().end())
        w.seconds = counts->second.seconds_baseline + counts->second.seconds_optimized;
    }
  });
  std::lock_guard lock(mutex_);
  for (Job& job : jobs_) {
    for (const Waiting& w : waiting)
      if (w.episode == job.episode) job.priority = std::max(job.priority, w.seconds);
  }
}

void AutoTiers::run_one_job() {
  refresh_priorities();
  Job job;
  {
    std::lock_guard lock(mutex_);
    if (jobs_.empty()) return;  // cleared by shutdown
    auto hottest = std::max_element(jobs_.begin(), jobs_.end(),
                                    [](const Job& a, const Job& b) { return a.priority < b.priority; });
    job = std::move(*hottest);
    jobs_.erase(hottest);
  }
  if (std::shared_ptr<ModuleCode> code = job.code.lock()) {
    compile(job, *code);
  } else {
    std::lock_guard lock(mutex_);
    end_job(job.episode, "abandoned: the module is gone");
  }
  new_version();
}

void AutoTiers::task_ended() {
  // Notified under the lock: whoever waits may end this object as soon as the lock is free.
  std::lock_guard lock(mutex_);
  --tasks_;
  idle_.notify_all();
}

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
  request.abandoned = &abandon_;
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
    const bool abandoned = abandon_.load(std::memory_order_relaxed);
    if (!abandoned) {
      // A function too large for the optimizer is the program's business, and runs on.
      say(result.error().kind != ErrorKind::kResource ? LogLevel::kWarning
          : code.is_out_of_room()                     ? LogLevel::kDebug  // said once
                                                      : LogLevel::kInfo,
          "compile", fmt::format("{}: {}", name, result.error().describe()));
    }
    std::lock_guard lock(mutex_);
    end_job(job.episode, abandoned ? "abandoned: the engine ended" : "failed: " + result.error().message);
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
  for (const jit::Answer& answer : version.answers) {
    if (answer.follows()) continue;
    say(LogLevel::kInfo, "compile",
        fmt::format("{} at 0x{:x} in {}: {}{}", to_string(answer.site.kind), answer.site.at.value, name,
                    answer.is_applied() ? ""
                    : answer.waits()    ? "not now: "
                                        : "not possible: ",
                    answer.why));
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
    for (const jit::Answer& answer : version->answers) {
      if (!answer.is_applied() || answer.cell != i) continue;
      tuned = tuned_by(answer.site.kind);
      interleaves = answer.site.kind == jit::ChangeKind::kInterleave;
      remembers = answer.site.kind == jit::ChangeKind::kJumpPointers;
      if (interleaves && !known_to_pay) distance = policy_.first_width;
      for (const feedback::PrefetchPlan& plan : job.plan.prefetches)
        if (answer.site.kind == jit::ChangeKind::kPrefetch && plan.hint.load == answer.site.at)
          stall_share += plan.hint.stall_share;
      for (const feedback::JumpPlan& plan : job.plan.jumps)
        if (remembers && plan.hint.load == answer.site.at) stall_share += plan.hint.stall_share;
      auto known = job.settled.find(answer.site);
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
    const auto watched = std::make_shared<WatchedCell>(WatchedCell{
        .cell = version->loop_cells[i],
        .trial =
            std::make_shared<LoopTrial>(tsc_ticks_per_second(), distance, settled, stall_share, gate_, tuned),
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
  {
    std::lock_guard lock(mutex_);
    feedback::Episode& episode = episode_of(job.episode);
    const bool undoing = episode.state == "compiled" && job.priority >= 1e3;
    end_job(job.episode, undoing ? "rolled back" : "compiled");
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
      auto known = job.settled.find(answer.site);
      bool kept = answer.is_applied() && known != job.settled.end();
      p.outcome = !answer.is_applied() ? feedback::PrefetchOutcome::kNoSlice
                  : kept               ? feedback::PrefetchOutcome::kKept
                                       : feedback::PrefetchOutcome::kInTrial;
      p.distance = !jit::is_tuned(answer.site.kind) ? 0 : kept ? known->second : 16;
      // What it gave when it was measured; it is settled, not measured again.
      for (const feedback::PrefetchPlan& plan : job.plan.prefetches)
        if (kept && p.change == jit::ChangeKind::kPrefetch && plan.hint.load == answer.site.at)
          p.measured_gain = plan.estimated_gain;
      for (const feedback::InterleavePlan& plan : job.plan.interleaves)
        if (kept && p.change == jit::ChangeKind::kInterleave && plan.hint.load == answer.site.at)
          p.measured_gain = plan.estimated_gain;
      for (const feedback::JumpPlan& plan : job.plan.jumps)
        if (kept && p.change == jit::ChangeKind::kJumpPointers && plan.hint.load == answer.site.at)
          p.measured_gain = plan.estimated_gain;
      p.words = answer.why;
      episode.prefetches.push_back(p);
      if (!answer.is_applied()) outcomes.emplace_back(answer.site, feedback::PrefetchOutcome::kNoSlice);
    }
    if (ModuleState* state = state_of(code); state && !state->gone)
      state->watches[function.value] = std::move(watch);
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
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return tasks_ == 0; });
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

  // Let go behind the lock: if its last owner lets go of a module meanwhile, its end (on_destroyed) is here.
  std::vector<std::shared_ptr<ModuleCode>> held;
  std::lock_guard lock(mutex_);
  ModuleCodeCounts compiled = forgotten_.counts;
  for (const ModuleState& state : modules_) {
    auto alive = state.gone ? nullptr : state.code.lock();
    compiled.add_compilations(alive ? alive->counts() : state.ended);
    if (alive) held.push_back(std::move(alive));
  }
  report_compilations(compiled, report);
  for (const auto& code : held) report_left_in_baseline(*code, report);
  report.modules_forgotten = forgotten_.modules;
  report.decisions_forgotten = forgotten_.decisions;
  for (const auto& [id, entry] : episodes_) {
    const feedback::Episode& e = entry.episode;
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
  report_pages(report);
  layout_->report(report);
  return report;
}

}  // namespace hindsight::rt
