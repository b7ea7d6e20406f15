#include "runtime/adaptive/adaptive_tiers.h"

#include "feedback/lwp/calibration/tlb_reach.h"
#include "runtime/adaptive/engine_policy.h"
#include "runtime/adaptive/functions/function_reports.h"
#include "runtime/adaptive/late_report.h"
#include "runtime/code/profiling_counts.h"
#include "runtime/instance/address_ranges.h"

namespace hindsight::rt {

using namespace std::chrono_literals;

namespace {

constexpr auto kLook = 200ms;  // between looks for something to begin
constexpr auto kCollectPeriod = 500ms;

constexpr const char* kUnitOfTime = "clock";  // which is asked for its samples alone

}  // namespace

Result<std::unique_ptr<TierManager>> make_tier_manager(const EngineConfig& config, CodeServices& services,
                                                       RecordFeed& feed) {
  const std::string& unit = config.unit == kTimeUnit ? kUnitOfTime : config.unit;
  HINDSIGHT_ASSIGN(lwp::Selection selection, lwp::select_unit(config.profiling ? unit : "null"));
  feedback::ProfileFile known;
  if (!config.profile_in.empty()) {
    HINDSIGHT_ASSIGN(known, feedback::load_profile(config.profile_in));
  }
  auto tiers =
      std::make_unique<AdaptiveTiers>(config, services, std::move(selection), std::move(known), feed);
  HINDSIGHT_TRY(tiers->start());
  return tiers;
}

AdaptiveTiers::AdaptiveTiers(const EngineConfig& config, CodeServices& services, lwp::Selection selection,
                             feedback::ProfileFile known, RecordFeed& feed)
    : config_(config),
      services_(services),
      calibration_([this](bool warning, const std::string& line) {
        services_.say(warning ? LogLevel::kWarning : LogLevel::kInfo, "calibration", line);
      }),
      policy_(make_policy(config, services.knobs, known_machine())),
      monitor_(services.registry(), monitor_config(selection, feed)),
      governor_(services, monitor_, clock_),
      threads_(services, monitor_, std::move(selection)),
      queue_(services, monitor_, decisions_, governor_,
             [this](Job job, ModuleCode& code) {
               if (auto again = compiler_.compile(job, code)) seconds_.add(std::move(*again));
             }),
      trials_(services, monitor_, policy_, modules_, decisions_, measurement_, calibration_,
              [this](Job job) {
                // What is tried next waits until the loop has run for a while in the code that it is back in.
                if (job.is_second())
                  seconds_.add(std::move(job));
                else
                  queue_.add(std::move(job));
              }),
      compiler_(services, monitor_, policy_, decisions_, trials_, scale_, queue_),
      seconds_(monitor_, decisions_, trials_.price(), [this](Job job) { queue_.add(std::move(job)); }),
      planner_(parts_, trials_, seconds_, scale_, governor_),
      entries_(modules_, monitor_),
      latencies_(services, monitor_, clock_, modules_, trials_, calibration_),
      pages_(parts_, measurement_,
             [this](const wasm::Module* module) { return trials_.timed_loops(module); }),
      filling_(parts_, pages_),
      growth_(parts_),
      layout_(services, monitor_, policy_, measurement_, layout_hooks()),
      versions_(parts_, measurement_, trials_, compiler_, services.knobs.trial_bias),
      profiles_(parts_, std::move(known), profile_hooks()),
      code_keeper_(parts_, trials_, compiler_,
                   [this](const wasm::Module* module, FuncIndex function) {
                     return versions_.subject(module, function);
                   }),
      last_look_(EngineClock::Clock::now()),
      last_collect_(last_look_) {
  tsc_ticks_per_second();  // measured before a guest waits for it
}

MachineFacts AdaptiveTiers::known_machine() {
  MachineFacts known{.tlb_reach = lwp::detect_tlb_reach()};
  if (config_.profiling && config_.unit != kTimeUnit) {
    calibration_.load();
    known.calibration = calibration_.get();
  }
  return known;
}

Status AdaptiveTiers::start() {
  if (config_.profiling) HINDSIGHT_TRY(monitor_.start());
  threads_.say_selection(config_.profiling);
  started_ = true;
  return {};
}

feedback::Monitor::Config AdaptiveTiers::monitor_config(const lwp::Selection& selection, RecordFeed& feed) {
  feedback::Monitor::Config monitor;
  monitor.frequency_hz =
      config_.sampling_hz ? config_.sampling_hz : SamplingGovernor::first_hz(policy_.optimize);
  monitor.period = policy_.optimize ? SamplingGovernor::kBurstPeriod : SamplingGovernor::kSteadyPeriod;
  // Only for units whose branch records come from counting code. The hardware's own view of a machine branch does not
  // say how the guest's went.
  const std::string_view unit = selection.factory->name();
  const bool counts = config_.unit != kTimeUnit;
  monitor.branch_bursts = counts && (unit.starts_with("clock") || unit == "hardware");
  monitor.log = services_.log;
  monitor.is_guest_memory = [](uint64_t address) { return memory_reservations().contains(address); };
  monitor.on_round = [this] { round(); };
  monitor.on_record = [&feed](const feedback::LocatedRecord& record) { feed.on_record(record); };
  monitor.only_guest_records = !feed.wants_all();
  monitor.count_events = counts;
  monitor.hot = hot_rule(policy_);
  return monitor;
}

CodeLayout::Hooks AdaptiveTiers::layout_hooks() {
  return {.enqueue_place = [this] { return queue_.run([this] { layout_.place(queue_.abandon()); }); },
          .on_moved = [this](const wasm::Module* module,
                             const ModuleCode::Exchange& pair) { trials_.move(module, pair); },
          .now_seconds = [this] { return clock_.now(); },
          .settled = [this] { return queue_.load().idle() ? governor_.seconds_since_version() : 0; }};
}

ProfileKeeper::Hooks AdaptiveTiers::profile_hooks() {
  return {.save =
              [this](const wasm::Module* module, feedback::ModuleProfile& profile) {
                for (const Experiment* experiment : experiments_) experiment->save(module, profile);
              },
          .refresh = [this] { latencies_.refresh(); },
          .fold = [this](const wasm::Module* module) { trials_.fold(module); }};
}

void AdaptiveTiers::shutdown() {
  monitor_.stop();
  calibration_.stop();
  queue_.stop();
  if (!started_ || config_.profile_out.empty()) return;
  if (Status saved = save_profile(config_.profile_out); !saved)
    services_.say(LogLevel::kWarning, "profile", saved.error().describe());
}

// ---------------------------------------------------------------- monitor thread

void AdaptiveTiers::round() {
  Round round{.now = EngineClock::Clock::now()};
  round.look = pages_.take_measured() || round.now - last_look_ >= kLook;
  if (round.look) {
    last_look_ = round.now;
    round.modules = modules_.alive();
  }
  trials_.round(round);
  seconds_.round(round);
  if (policy_.optimize) entries_.round();
  filling_.round(round);
  growth_.round(round);
  if (config_.unit != kTimeUnit) latencies_.round(round);
  pages_.round(round);
  layout_.round(round);
  planner_.round(round);
  versions_.round(round);
  governor_.round({.time = round.now,
                   .adapts = policy_.optimize,
                   .policy_waits = planner_.waits(),
                   .new_places = planner_.new_places(),
                   .sees_places = planner_.sees_places(),
                   .versions_compared = measurement_.is_held(Disturbs::kVersions),
                   .loops_measured = measurement_.loops_are_measured(),
                   .pages_compared = pages_.compares()});
  collect(round.now);
  services_.say_system_failures();
  code_keeper_.round(round);
}

void AdaptiveTiers::collect(EngineClock::Time now) {
  if (now - last_collect_ < kCollectPeriod || services_.retired().pending() == 0) return;
  last_collect_ = now;
  if (const size_t freed = services_.collect_retired())
    services_.say(LogLevel::kDebug, "retire",
                  std::to_string(freed) + " versions freed, " +
                      std::to_string(services_.retired().pending()) + " waiting");
}

// ---------------------------------------------------------------- guest threads

std::shared_ptr<LwpSink> AdaptiveTiers::on_first_entry(Store&) {
  return config_.profiling && owner_.here() ? threads_.attach() : nullptr;
}

void AdaptiveTiers::strip_ended(Store&, jit::VmContext* context, jit::LoopCell* cell) {
  // First, so that the next strip is measured from after it. Acquire pairs with TimedLoads::arm.
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

void AdaptiveTiers::memory_grown(const wasm::Module* module, uint64_t base, uint64_t old_bytes,
                                 uint64_t bytes) {
  if (owner_.here()) growth_.grown(module, base, old_bytes, bytes);
}

// ---------------------------------------------------------------- modules

void AdaptiveTiers::on_loaded(const std::shared_ptr<ModuleCode>& code) {
  if (!owner_.here()) return;
  modules_.add(code);
  const std::shared_ptr<const feedback::ModuleProfile> known = profiles_.find(*code->module());
  std::vector<feedback::StartQuestion> questions;
  if (known != nullptr) {
    questions = profiles_.plausible_questions(*code->module(), *known);
    profiles_.seed(code, questions);
    pages_.remember(code->module().get(), known->page_episodes);
  }
  code_keeper_.install(code);
  profiles_.queue_known(code, questions);
}

void AdaptiveTiers::on_published(ModuleCode&, const std::shared_ptr<jit::CodeVersion>& version) {
  if (version->tier == jit::Tier::kBaseline) governor_.note_code();
}

void AdaptiveTiers::on_instance(ModuleCode& code, const Instance& instance) {
  if (owner_.here()) pages_.on_instance(code, instance);
}

void AdaptiveTiers::on_destroyed(ModuleCode& code) {
  if (!owner_.here()) return;
  code_keeper_.save(code);
  // Where an embedder listens, records are drained at the times that it was told of only.
  profiles_.keep(code, /*drain=*/config_.profiling && !config_.on_record);
  for (Experiment* experiment : experiments_) experiment->forget(code);
  modules_.end(code);
  forget_modules();
}

// Modules that went long ago keep only their counts and what would go into a profile file. A host that loads modules
// all day long does not grow by it.
void AdaptiveTiers::forget_modules() {
  for (const auto& module : modules_.take_old(pages_.moving())) {
    feedback::ModuleProfile profile = profiles_.module_profile(module.get());
    size_t decisions = decisions_.forget(module.get());
    for (Experiment* experiment : experiments_) decisions += experiment->forget_decisions(module.get());
    monitor_.forget(module.get());
    profiles_.forget(module.get(), std::move(profile), modules_.forget(module.get()), decisions);
  }
}

// ---------------------------------------------------------------- reports

FeedbackReport AdaptiveTiers::feedback_report() const {
  FeedbackReport report;
  report.unit = std::string(threads_.unit());
  if (config_.profiling) monitor_.round();  // what the threads wrote up to now
  report.counts = profiling_counts(monitor_);
  latencies_.refresh();
  report_evidence(monitor_, report);
  report_late(monitor_.late(), report);
  governor_.report(report.bursts);
  for (const feedback::PmuReading& reading : monitor_.pmu())
    report.pmu.push_back({reading.name, reading.available, reading.why_not, reading.value, reading.scale});
  report.versions_retired = services_.retired().freed();
  report.versions_waiting = services_.retired().pending();
  ModuleCodeCounts compiled;
  profiles_.report(report, compiled);
  modules_.add_compilations(compiled);
  report_compilations(compiled, report);
  for (const auto& code : modules_.alive()) report_left_in_baseline(*code, report);
  for (const feedback::Episode& episode : decisions_.all())
    report_function(
        episode, policy_,
        [this](DecisionLog::Id id, jit::ChangeKind change) { return versions_.is_on_trial(id, change); },
        report.decisions);
  for (const Experiment* experiment : experiments_) experiment->report(report.decisions);
  report.page_decisions_forgotten = pages_.dropped();
  return report;
}

}  // namespace hindsight::rt
