#include "runtime/adaptive/functions/function_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/adaptive/functions/function_plans.h"
#include "runtime/adaptive/functions/recompile.h"
#include "runtime/adaptive/machine_costs.h"
#include "runtime/adaptive/trial_parameters.h"

namespace hindsight::rt {
namespace {

using feedback::ChangeState;
using namespace std::chrono_literals;

// That code with something that has lost waits for trials of other loops in it.
constexpr auto kMostHeldUp = 100ms;

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

// `won`: where it was, in this run (WonChanges).
LoopStart start_of(const Job& job, const jit::CodeVersion& version, size_t cell, const WonChanges& won) {
  LoopStart start;
  start.setting = start.knob.first;
  bool interleaves = false, known_to_pay = false, has_distance = false;
  for (const jit::Answer& answer : version.answers) {
    if (!answer.is_applied() || answer.cell != cell) continue;
    start.knob = jit::traits_of(answer.site.kind).knob;
    has_distance |= answer.has_distance;
    interleaves = answer.site.kind == jit::ChangeKind::kInterleave;
    start.remembers = answer.site.kind == jit::ChangeKind::kJumpPointers;
    if (interleaves && !known_to_pay) start.setting = start.knob.first;
    // The samples say nothing about interleaved searches: they gain by what they do not guess as well.
    if (answer.site.kind == jit::ChangeKind::kPrefetch || start.remembers)
      for (const feedback::Candidate& candidate : feedback::of(job.plan.candidates, answer.site.kind))
        if (candidate.at() == answer.site.at) start.stall_share += candidate.request.weight;
    const auto known = job.settled.find(answer.site);
    if (known == job.settled.end() || !won.may_be_of(answer)) {
      start.settled = false;
    } else {
      known_to_pay = true;
      start.setting = known->second;
    }
  }
  // All loads of interleaved searches share one change, and all of a loop that remembers its way.
  if (interleaves || start.remembers) start.settled = known_to_pay;
  if (!has_distance) start.knob = {};
  // Nothing runs ahead: there is no distance to estimate by how long it waits.
  if (start.knob.name.empty()) {
    start.setting = 0;
    start.stall_share = 0;
  }
  return start;
}

// What is kept for one of a module's units or functions, or nothing yet.
template <typename Key, typename Known>
Known known_of(const std::map<const wasm::Module*, std::map<Key, Known>>& all, const wasm::Module* module,
               Key key) {
  const auto of_module = all.find(module);
  if (of_module == all.end()) return {};
  const auto found = of_module->second.find(key);
  return found == of_module->second.end() ? Known() : found->second;
}

StallShares shares_told(const Job& job) {
  StallShares shares = job.stall_shares;
  for (const feedback::Candidate& candidate : job.plan.candidates)
    if (jit::is_of_load(candidate.kind()) && candidate.request.weight > 0)
      shares[candidate.at()] = candidate.request.weight;
  return shares;
}

bool is_split(const feedback::Candidate& candidate) {
  return candidate.site() == feedback::version_site(jit::ChangeKind::kSplitCold);
}

}  // namespace

void WonChanges::note(const jit::Answer& answer) {
  loops_[answer.site].insert(answer.loop);
}

bool WonChanges::may_be_of(const jit::Answer& answer) const {
  const auto found = loops_.find(answer.site);
  return found == loops_.end() || found->second.contains(answer.loop);
}

std::vector<jit::Answer> Watch::answers() const {
  std::vector<jit::Answer> answers = version->answers;
  answers.insert(answers.end(), not_applied.begin(), not_applied.end());
  return answers;
}

bool Watch::has_lost() const {
  return std::any_of(reported.begin(), reported.end(),
                     [](TrialState state) { return state == TrialState::kRejected; });
}

bool Watch::pays(const jit::Answer& answer) const {
  if (!answer.is_applied()) return false;
  if (is_kept(reported[answer.cell])) return true;
  return won_before.contains(answer.site) &&
         std::any_of(version->answers.begin(), version->answers.end(), [&](const jit::Answer& other) {
           return other.is_applied() && other.cell == answer.cell && !won_before.contains(other.site);
         });
}

bool MadeRoom::is_rival(const Watch& watch, const jit::Answer& answer) {
  return answer.site.kind == jit::ChangeKind::kPrefetch && !watch.pays(answer);
}

double MadeRoom::gain_to_beat(const Watch& watch, size_t cell) const {
  double gain = 0;
  for (const jit::Answer& answer : watch.version->answers) {
    if (!answer.is_applied() || answer.cell != cell) continue;
    if (answer.has_rival) gain = std::max(gain, kMinGainBesideRival);
    if (!waiting_.empty() && is_rival(watch, answer)) gain = std::max(gain, gain_);
  }
  return gain;
}

std::vector<jit::Site> MadeRoom::note_loss(const Watch& watch, size_t cell, double gain) {
  std::vector<jit::Site> lost;
  bool has_rival = false, rival_lost = false;
  for (const jit::Answer& answer : watch.version->answers) {
    if (!answer.is_applied() || answer.cell != cell) continue;
    lost.push_back(answer.site);
    has_rival |= answer.has_rival;
    rival_lost |= is_rival(watch, answer);
  }
  // With all that shared its trial: where iterations wait is found out from all loads that are asked for.
  if (has_rival && gain >= kMinGain) {
    waiting_ = std::move(lost);
    gain_ = gain;
  }
  return rival_lost ? std::exchange(waiting_, {}) : std::vector<jit::Site>();
}

FunctionTrials::FunctionTrials(CodeServices& services, feedback::Monitor& monitor,
                               const feedback::PolicyConfig& policy, const LoadedModules& modules,
                               DecisionLog& decisions, Measurement& measurement,
                               const BackgroundCalibration& calibration, Queue queue)
    : services_(services),
      monitor_(monitor),
      policy_(policy),
      modules_(modules),
      decisions_(decisions),
      price_(policy),
      measurement_(measurement),
      calibration_(calibration),
      queue_(std::move(queue)) {}

MadeRoom FunctionTrials::room_of(const wasm::Module* module, jit::Unit unit) const {
  const std::lock_guard lock(mutex_);
  return known_of(made_room_, module, unit);
}

WonChanges FunctionTrials::won_of(const wasm::Module* module, FuncIndex function) const {
  const std::lock_guard lock(mutex_);
  return known_of(won_, module, function);
}

Watch FunctionTrials::make(const Job& job, const std::shared_ptr<jit::CodeVersion>& version) {
  Watch watch;
  watch.version = version;
  watch.episode = job.episode;
  watch.osr_loops = job.plan.osr_loops;
  watch.told = told_by(job.plan);
  watch.loop_exits = job.loop_exits;
  watch.short_loop_exits = job.short_loop_exits;
  watch.cached = job.cached;
  watch.cached_changes = job.cached_changes;
  watch.won_before = job.settled;
  watch.stall_shares = shares_told(job);
  const MadeRoom room = room_of(job.module, job.unit());
  const WonChanges won = won_of(job.module, job.plan.function);
  const double miss = miss_seconds(calibration_.get().get());
  for (size_t i = 0; i < version->loop_cells.size(); ++i) {
    const LoopStart start = start_of(job, *version, i, won);
    watch.reported.push_back(start.settled ? TrialState::kKept : TrialState::kComparing);
    const auto watched = std::make_shared<WatchedCell>(WatchedCell{
        .cell = version->loop_cells[i],
        .trial = std::make_shared<LoopTrial>(tsc_ticks_per_second(), start.setting, start.settled,
                                             start.stall_share, miss, measurement_.loops(), start.knob),
        .timed = std::make_shared<TimedLoads>(tsc_ticks_per_second())});
    if (start.remembers) watched->trial->judge_history();
    watched->trial->expect(room.gain_to_beat(watch, i));
    if (services_.knobs.trial_bias != 0) watched->trial->simulate(services_.knobs.trial_bias);
    watched->trial->arm(*watched->cell);
    watched->timed->arm(*watched->cell);
    watch.trials.push_back(watched->trial);
    watch.timed.push_back(watched->timed);
    version->loop_cells[i] = {watched, watched->cell.get()};
  }
  return watch;
}

namespace {

bool has_open(const Watch& watch) {
  for (size_t i = 0; i < watch.trials.size(); ++i)
    if (watch.is_open(i)) return true;
  return false;
}

// Code in which nothing is open, and that does what the next one does but for what is tried in its loops.
bool is_to_be_kept(const Watch& now, const Watch& next) {
  return !now.cached && !now.has_lost() && !has_open(now) && has_open(next) &&
         !now.version->polls_short_iterations &&
         (now.version->entry == nullptr) == (next.version->entry == nullptr) &&
         now.osr_loops == next.osr_loops && usual_targets(now.told) == usual_targets(next.told);
}

}  // namespace

void FunctionTrials::publish(const Job& job, ModuleCode& code, Watch watch) {
  const std::shared_ptr<jit::CodeVersion> version = watch.version;
  // Let go of after the lock is released.
  std::shared_ptr<Before> gone, plain;
  {
    const std::lock_guard lock(mutex_);
    Watch& now = watches_[code.module().get()][job.unit()];
    gone = std::move(now.before);
    plain = std::move(now.plain);
    if (std::holds_alternative<Undo>(job.priority)) {
      watch.before = std::move(gone);
      watch.plain = std::move(plain);
    } else if (now.version != nullptr && is_to_be_kept(now, watch)) {
      code.register_copy(version);
      const ModuleCode::Exchange pair{now.version, version};
      if (code.exchange({&pair, 1}).front()) {
        watch.before = std::make_shared<Before>(services_, job.code, std::move(now));
        now = std::move(watch);
        return;
      }
    }
    now = std::move(watch);
  }
  code.publish(version);
}

void FunctionTrials::drop(const wasm::Module* module, FuncIndex function) {
  const std::lock_guard lock(mutex_);
  const auto is_of_it = [&](const auto& entry) { return entry.first.function == function; };
  if (const auto found = watches_.find(module); found != watches_.end())
    std::erase_if(found->second, is_of_it);
  if (const auto found = made_room_.find(module); found != made_room_.end())
    std::erase_if(found->second, is_of_it);
  if (const auto found = won_.find(module); found != won_.end()) found->second.erase(function);
}

void FunctionTrials::move(const wasm::Module* module, const ModuleCode::Exchange& pair) {
  with(module, jit::Unit{pair.to->function, pair.to->nest}, [&](Watch& watch) {
    if (watch.version == pair.from) watch.version = pair.to;
  });
}

Settled FunctionTrials::settled(const wasm::Module* module, FuncIndex function) {
  Settled settled;
  each(module, [&](FuncIndex of, const Watch& watch) {
    if (of != function) return;
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

void FunctionTrials::begin_comparing(const wasm::Module* module, jit::Unit unit) {
  const std::lock_guard lock(mutex_);
  compared_.insert({module, unit});
}

void FunctionTrials::end_comparing(const wasm::Module* module, jit::Unit unit) {
  const std::lock_guard lock(mutex_);
  compared_.erase({module, unit});
}

DecisionLog::Units FunctionTrials::compared() const {
  const std::lock_guard lock(mutex_);
  return compared_;
}

DecisionLog::Units FunctionTrials::found_out() const {
  DecisionLog::Units units;
  const uint64_t now = read_ticks();
  const std::lock_guard lock(mutex_);
  for (const auto& [module, watches] : watches_)
    for (const auto& [unit, watch] : watches)
      for (size_t i = 0; i < watch.trials.size(); ++i)
        if (watch.is_open(i) && watch.trials[i]->is_running(now)) units.insert({module, unit});
  return units;
}

void FunctionTrials::forget(const ModuleCode& code) {
  const std::lock_guard lock(mutex_);
  watches_.erase(code.module().get());
  made_room_.erase(code.module().get());
  won_.erase(code.module().get());
}

void FunctionTrials::set_outcome(const wasm::Module* module, FuncIndex function, jit::Site site,
                                 ChangeState outcome) {
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    if (outcome == ChangeState::kNone)
      counts.changes.forget(site);
    else
      counts.settle(site, outcome);
  });
}

// ---------------------------------------------------------------- monitor thread

struct FunctionTrials::News {
  struct Change {
    const wasm::Module* module;
    FuncIndex function;
    jit::Site site;
    ChangeState outcome;
  };
  std::vector<Change> changes;
  std::vector<std::pair<const wasm::Module*, jit::Unit>> unsettled;
  struct Back {
    const wasm::Module* module;
    jit::Unit unit;
    std::shared_ptr<jit::CodeVersion> version;
    VersionId lost;
  };
  std::vector<Back> backs;
  std::vector<std::shared_ptr<ModuleCode>>
      held;  // let go of after the lock: its last owner's end comes back here
  std::vector<Job> cleanups;
  std::vector<std::string> lines;
};

void FunctionTrials::round(const Round& round) {
  News news;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [module, watches] : watches_)
      for (auto& [unit, watch] : watches)
        if (!compared_.contains({module, unit})) read(module, unit, watch, round.now, news);
  }
  for (const News::Change& change : news.changes)
    set_outcome(change.module, change.function, change.site, change.outcome);
  if (!news.unsettled.empty()) {
    // Trials move samples as well.
    monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      for (const auto& [module, unit] : news.unsettled) {
        const auto found = profiles.find(module);
        if (found == profiles.end()) continue;
        feedback::FunctionCounts& counts = found->second->counts(unit.function);
        (unit.nest ? counts.nests[unit.nest->value].shift : counts.shift) = {};
      }
    });
  }
  for (const std::string& line : news.lines) say(LogLevel::kInfo, "trial", line);
  for (const News::Back& back : news.backs) {
    say(LogLevel::kInfo, "policy",
        fmt::format("{}: rolled back: the code before it goes on, without the changes that did not pay",
                    unit_name(*back.module, back.unit)));
    monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
      const auto found = profiles.find(back.module);
      if (found == profiles.end()) return;
      feedback::FunctionCounts& counts = found->second->counts(back.unit.function);
      note_published(counts, *back.module, *back.version);
      if (!back.unit.nest) counts.lost_versions.push_back(back.lost.value);
    });
  }
  for (Job& job : news.cleanups) {
    const std::shared_ptr<ModuleCode> code = modules_.find(job.module);
    if (!code) continue;
    job.code = code;
    say(LogLevel::kInfo, "policy",
        fmt::format("{}: {}", unit_name(*code->module(), job.unit()), job.plan.reason));
    queue_(std::move(job));
  }
}

void FunctionTrials::read(const wasm::Module* module, jit::Unit unit, Watch& watch, EngineClock::Time time,
                          News& all) {
  const FuncIndex function = unit.function;
  bool news = false, loses = false, pending = false, measuring = false;
  const uint64_t ticks = read_ticks();
  for (size_t i = 0; i < watch.trials.size(); ++i) {
    const TrialState now = watch.trials[i]->state();
    const bool is_open = now == TrialState::kComparing || now == TrialState::kTuning;
    pending |= is_open;
    measuring |= is_open && watch.trials[i]->is_running(ticks);
    if (now == watch.reported[i]) continue;
    // Tuned anew while it is kept: no news until it is something else.
    if (now == TrialState::kTuning && is_kept(watch.reported[i])) continue;
    const LoopTrial::Status status = watch.trials[i]->status();
    watch.reported[i] = status.state;
    const bool kept = is_kept(status.state);
    if (!kept && status.state != TrialState::kRejected) continue;
    news = true;
    loses |= !kept;
    price_.note_verdict(kept);
    if (!kept)
      for (const jit::Site& site : made_room_[module][unit].note_loss(watch, i, status.gain)) {
        all.changes.push_back({module, function, site, ChangeState::kNone});
        watch.to_try_again.push_back(site);
      }
    const auto line_of = [&](const jit::Answer& answer, bool stays) {
      const std::string_view tuned =
          answer.has_distance ? jit::traits_of(answer.site.kind).knob.name : std::string_view();
      return fmt::format(
          "{} at 0x{:x} in {}: {}, {:+.1f} %{} after {} chunks ({})", to_string(answer.site.kind),
          answer.site.at.value, module->function_name(function),
          stays ? "stays as it was won before; with what is new beside it" : to_string(status.state),
          100 * status.gain, tuned.empty() ? "" : fmt::format(" at {} {}", tuned, status.distance),
          status.chunks, status.words);
    };
    // Of a copy of a loop all may follow what another copy was changed for.
    std::string line_of_follower;
    const size_t said = all.lines.size();
    for (const jit::Answer& answer : watch.version->answers) {
      if (!answer.is_applied() || answer.cell != i) continue;
      const bool stays = !kept && watch.pays(answer);
      const ChangeState outcome = kept || stays ? ChangeState::kKept : ChangeState::kRolledBack;
      all.changes.push_back({module, function, answer.site, outcome});
      if (kept) won_[module][function].note(answer);
      decisions_.change(watch.episode, [&](feedback::Episode& episode) {
        if (episode.outcomes.contains(answer.site) && !stays)
          episode.outcomes.settle(answer.site, {.state = outcome,
                                                .setting = status.distance,
                                                .gain = status.gain,
                                                .why = answer.why + "; " + status.words});
      });
      if (!answer.follows())
        all.lines.push_back(line_of(answer, stays));
      else if (line_of_follower.empty())
        line_of_follower = line_of(answer, stays);
    }
    if (all.lines.size() == said && !line_of_follower.empty()) all.lines.push_back(line_of_follower);
  }
  // A trial of a loop that has ended moves no samples, however long it stays open.
  if (news || measuring) all.unsettled.emplace_back(module, unit);
  // Something lost and nothing is open any more: a version without the losers takes over. Loops that do not run hold
  // nothing up for long, and are tried anew in that version; nor do those that learn their ways.
  if (!watch.has_lost()) return;
  // A version that is on its way takes what is known to pay by then.
  if (watch.is_replaced && !loses) return;
  if (pending) {
    if (watch.is_replaced) return;
    if (!watch.held_up || news) watch.held_up = time;
    if (time - *watch.held_up < kMostHeldUp) return;
    bool running = false;
    for (size_t i = 0; i < watch.trials.size(); ++i) {
      if (!watch.is_open(i)) continue;
      watch.trials[i]->stop_learning("it held up what was found out about other loops");
      running |= watch.trials[i]->is_running(ticks);
    }
    if (running) return;
  } else if (!news) {
    return;
  }
  watch.is_replaced = true;
  Job job;
  job.module = module;
  job.plan.action = feedback::Action::kReoptimize;
  job.plan.function = function;
  job.plan.nest = unit.nest;
  job.plan.osr_loops = watch.osr_loops;
  const std::vector<jit::Site> instead = plan_without_losers(job, watch);
  const DecisionLog::Id episode = watch.episode;
  double compile_seconds = watch.version->compile_seconds;
  // What was rejected may have taken most of that.
  if (watch.before != nullptr)
    compile_seconds =
        std::min(compile_seconds, kSecondOfFirst * watch.before->watch.version->compile_seconds);
  const bool back = !pending && goes_back(module, unit, watch, all);
  if (back && instead.empty()) return;
  for (const jit::Site& site : instead)
    all.changes.push_back({module, function, site, ChangeState::kInTrial});
  job.plan.reason = instead.empty()
                        ? "rolled back: compiles without the changes that did not pay"
                        : "rolled back: compiles with the changes that waited for those that did not pay";
  job.episode = episode;
  job.expected_seconds = compile_seconds;
  job.priority = back ? Priority(Later()) : Priority(Undo());
  all.cleanups.push_back(std::move(job));
}

bool FunctionTrials::goes_back(const wasm::Module* module, jit::Unit unit, Watch& watch, News& news) {
  if (watch.before == nullptr) return false;
  const std::vector<jit::Answer>& answers = watch.before->watch.version->answers;
  const bool has_won = std::ranges::any_of(watch.version->answers, [&](const jit::Answer& answer) {
    return watch.pays(answer) && std::ranges::none_of(answers, [&](const jit::Answer& other) {
             return other.is_applied() && other.site == answer.site;
           });
  });
  const std::shared_ptr<ModuleCode> code = watch.before->code.lock();
  if (code == nullptr) return false;
  news.held.push_back(code);
  if (has_won) return false;
  const ModuleCode::Exchange back{watch.version, watch.before->watch.version};
  if (!code->exchange({&back, 1}).front()) return false;
  code->retire_copy(watch.version);
  news.backs.push_back({module, unit, back.to, back.from->id});
  decisions_.end(watch.episode, DecisionState::kRolledBack);
  Watch before = watch.before->take();
  watch = std::move(before);
  return true;
}

std::vector<jit::Site> FunctionTrials::plan_without_losers(Job& job, const Watch& watch) const {
  std::vector<jit::Site> instead;
  const feedback::FunctionEvidence evidence = decisions_.at(watch.episode).evidence;
  const double samples = evidence.samples_baseline + evidence.samples_optimized;
  job.stall_shares = watch.stall_shares;
  const auto share_of = [&](WasmOffset at) {
    if (const auto told = watch.stall_shares.find(at); told != watch.stall_shares.end()) return told->second;
    for (const feedback::LoadEvidence& load : evidence.loads)
      if (load.load == at && samples > 0) return load.stall_samples / samples;
    return 0.0;
  };
  const std::vector<jit::Answer> answers = watch.answers();
  const auto is_kept_in = [&](const jit::Answer& answer) { return watch.pays(answer); };
  // What waits for its turn at a load has none where another change of it was won.
  const auto is_won = [&](WasmOffset at) {
    return std::any_of(answers.begin(), answers.end(), [&](const jit::Answer& answer) {
      return answer.site.at == at && jit::is_of_load(answer.site.kind) && is_kept_in(answer);
    });
  };
  for (const feedback::Candidate& candidate : watch.told) {
    bool kept = false, waits = false, lost = false;
    for (const jit::Answer& answer : answers) {
      if (answer.site != candidate.site()) continue;
      const bool open = answer.is_applied() && watch.is_open(answer.cell);
      kept |= is_kept_in(answer);
      waits |= answer.waits() || open;
      lost |= !is_kept_in(answer) && !answer.waits() && !open;
    }
    const bool stays =
        jit::is_of_version(candidate.kind()) || (jit::is_of_branch(candidate.kind()) ? !lost : kept || waits);
    if (!stays) continue;
    job.plan.candidates.push_back(candidate);
    if (kept) job.settled[candidate.site()] = 0;
    if (waits) instead.push_back(candidate.site());
  }
  const auto plan_anew = [&](jit::Site site) {
    if (!policy_.changes[site.kind] || job.plan.has(site)) return;
    job.plan.candidates.push_back({.request = {.site = site,
                                               .weight = share_of(site.at),
                                               .setting = jit::traits_of(site.kind).knob.first},
                                   .estimate = {.share = share_of(site.at)}});
    instead.push_back(site);
  };
  for (const jit::Site& site : watch.to_try_again) plan_anew(site);
  for (const jit::Answer& answer : answers) {
    if (!jit::is_tuned(answer.site.kind)) continue;
    const bool open = answer.is_applied() && !answer.follows() && watch.is_open(answer.cell);
    if (open || (answer.waits() && !is_won(answer.site.at))) plan_anew(answer.site);
    if (!is_kept_in(answer)) continue;
    const bool interleaved = answer.site.kind == jit::ChangeKind::kInterleave;
    const uint32_t best = is_kept(watch.reported[answer.cell]) ? watch.trials[answer.cell]->status().distance
                                                               : watch.won_before.at(answer.site);
    plan_settled(job, answer.site, best, 0, interleaved ? "kept by its trial" : "", share_of(answer.site.at));
  }
  return instead;
}

void FunctionTrials::fold(const wasm::Module* module) {
  each(module, [&](FuncIndex, const Watch& watch) {
    decisions_.change(watch.episode, [&](feedback::Episode& episode) {
      for (const jit::Answer& answer : watch.version->answers) {
        const feedback::Outcome* const known = episode.outcomes.find(answer.site);
        if (known == nullptr || answer.waits() || !answer.is_applied() || answer.cell >= watch.trials.size())
          continue;
        const LoopTrial::Status status = watch.trials[answer.cell]->status();
        if (status.strips == 0) continue;  // it never ran: what was known of it stays
        if (!is_kept(status.state) && watch.pays(answer)) continue;  // and here, what was won before
        feedback::Outcome now = *known;
        now.state = is_kept(status.state)                   ? ChangeState::kKept
                    : status.state == TrialState::kRejected ? ChangeState::kRolledBack
                                                            : ChangeState::kInTrial;
        now.setting = status.distance != 0 ? status.distance : now.setting;
        if (status.gain != 0) now.gain = status.gain;
        now.why = answer.why + "; " + status.words;
        if (now.state == ChangeState::kInTrial)
          now.why += fmt::format("; {} chunks measured when the run ended", status.chunks);
        episode.outcomes.settle(answer.site, std::move(now));
      }
    });
  });
}

// ---------------------------------------------------------------- compile threads

std::string_view FunctionTrials::news_of(const Job& job, const Watch& watch, const ModuleCode& code,
                                         const jit::CodeVersion& made) const {
  // A version without what a trial has rejected is on its way, and does not know of what is new here.
  if (watch.has_lost()) return "only the changes that were not rejected";
  if (code.optimized(job.unit()) != watch.version) return "no current version";
  const feedback::FunctionEvidence evidence = decisions_.at(job.episode).evidence;
  const bool loops_wait =
      !job.plan.nest && (evidence.samples_left_behind >= policy_.min_samples_left_behind ||
                         evidence.samples_stayed >= policy_.min_samples_left_behind);
  return what_is_new({*watch.version, watch.told}, {made, job.plan.candidates}, loops_wait);
}

std::vector<jit::Site> FunctionTrials::stay_with(const Job& job, Watch& watch, const jit::CodeVersion& made) {
  std::vector<jit::Site> refused;
  decisions_.end(job.episode, job.is_second() ? DecisionState::kCompiled : DecisionState::kRefused,
                 job.is_second() ? "" : "the running code stays");
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
      if (answer.waits() || episode.outcomes.contains(answer.site)) continue;
      episode.outcomes.put(answer.site, {.state = ChangeState::kNotPossible, .why = answer.why});
      refused.push_back(answer.site);
    }
  });
  // With what waits among them.
  const auto is_compared = [](const feedback::Candidate& candidate) {
    return candidate.kind() != jit::ChangeKind::kInlineCalls && !is_split(candidate);
  };
  for (const auto& [load, share] : shares_told(job)) watch.stall_shares[load] = share;
  std::erase_if(watch.told, is_compared);
  for (feedback::Candidate& candidate : told_by(job.plan))
    if (is_compared(candidate)) watch.told.push_back(std::move(candidate));
  return refused;
}

bool FunctionTrials::keeps_running(const Job& job, const ModuleCode& code, const jit::CodeVersion& made) {
  const wasm::Module* const module = code.module().get();
  const FuncIndex function = job.plan.function;
  const std::string name = unit_name(*module, job.unit());
  std::string_view news;
  std::vector<jit::Site> refused;
  std::map<jit::Site, bool> kept;
  bool loop_entries_only = false;
  const bool watched = with(module, job.unit(), [&](Watch& watch) {
    if (made.memory) news = news_of(job, watch, code, made);
    if (!news.empty()) return;
    refused = stay_with(job, watch, made);
    loop_entries_only = watch.version->entry == nullptr;
    for (const jit::Answer& answer : watch.version->answers)
      if (answer.is_applied()) kept[answer.site] = is_kept(watch.trials[answer.cell]->state());
  });
  if (!watched) {
    if (made.memory) return false;
    decisions_.end(job.episode, DecisionState::kCompiled, "the code that it was for is gone");
    for (const jit::Answer& answer : made.answers)
      set_outcome(module, function, answer.site, ChangeState::kNotPossible);
    return true;
  }
  if (!news.empty()) {
    say(LogLevel::kDebug, "compile", fmt::format("{}: publishes the new version for {}", name, news));
    return false;
  }
  for (const jit::Site& site : refused) set_outcome(module, function, site, ChangeState::kNotPossible);
  // What was planned among the rest is what it was.
  for (const auto& [site, is] : kept)
    set_outcome(module, function, site, is ? ChangeState::kKept : ChangeState::kInTrial);
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    const auto found = profiles.find(module);
    if (found == profiles.end()) return;
    feedback::FunctionCounts& counts = found->second->counts(function);
    if (job.plan.nest) {
      counts.nests[job.plan.nest->value].fruitless += job.is_second() ? 0 : 1;
      return;
    }
    counts.stay();
    counts.loop_entries_only = loop_entries_only;
  });
  say(LogLevel::kInfo, "compile",
      fmt::format("{}: the compile gave nothing new, so the running code stays", name));
  return true;
}

}  // namespace hindsight::rt
