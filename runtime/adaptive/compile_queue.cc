#include "runtime/adaptive/compile_queue.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/thread_processor.h"
#include "runtime/adaptive/counts_of.h"

namespace hindsight::rt {

namespace {

// In baseline code of late, of the loop and of those in it.
double seconds_in(const feedback::FunctionCounts& counts, const wasm::FunctionBody& body, LoopIndex root) {
  const WasmOffset end = body.loops[root.value].end;
  double seconds = 0;
  for (auto at = counts.loops.lower_bound(root.value);
       at != counts.loops.end() && body.loops[at->first].offset < end; ++at)
    seconds += at->second.seconds_baseline;
  return seconds;
}

// Of jobs that are to be compiled because of that.
bool has_run(const Priority& priority) {
  return std::holds_alternative<Hot>(priority) || std::holds_alternative<Later>(priority);
}

// What is to be tried goes by the time in the code that it is tried in.
double seconds_by_now(const feedback::Monitor::Profiles& profiles, const wasm::Module* module, jit::Unit unit,
                      bool is_second) {
  const feedback::FunctionCounts* const counts = counts_of(profiles, module, unit.function);
  if (counts == nullptr) return 0;
  if (is_second) return counts->run_seconds_in_code(unit.nest);
  return unit.nest ? seconds_in(*counts, module->body(unit.function), *unit.nest)
                   : counts->seconds_baseline + counts->seconds_optimized;
}

void refresh(Priority& priority, double seconds) {
  if (Hot* const hot = std::get_if<Hot>(&priority)) hot->seconds = std::max(hot->seconds, seconds);
  if (Later* const later = std::get_if<Later>(&priority)) later->seconds = std::max(later->seconds, seconds);
}

// Has the right of way over what is worth less as long as this exists.
class WayTaken {
 public:
  WayTaken(RightOfWay& way, double worth) : way_(way), worth_(worth) { way_.take_over(worth_); }
  ~WayTaken() { way_.give_back_over(worth_); }
  WayTaken(const WayTaken&) = delete;
  WayTaken& operator=(const WayTaken&) = delete;

 private:
  RightOfWay& way_;
  const double worth_;
};

// Lets others have it as long as this exists.
class WayLent {
 public:
  explicit WayLent(RightOfWay& way) : way_(way) { way_.give_back(); }
  ~WayLent() { way_.take(); }
  WayLent(const WayLent&) = delete;
  WayLent& operator=(const WayLent&) = delete;

 private:
  RightOfWay& way_;
};

}  // namespace

CompileQueue::CompileQueue(CodeServices& services, feedback::Monitor& monitor, DecisionLog& decisions,
                           SamplingGovernor& governor, Compile compile)
    : services_(services),
      monitor_(monitor),
      decisions_(decisions),
      governor_(governor),
      compile_(std::move(compile)) {}

void CompileQueue::add(Job job) {
  governor_.note_version();
  const Where where = job.is_second() ? where_trials_run() : Where::kThreads;
  job.below_guests = where == Where::kForTrials;
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  const DecisionLog::Id episode = job.episode;
  const bool below_guests = job.below_guests;
  jobs_.push_back(std::move(job));
  if (enqueue([this, below_guests] { run_one_job(below_guests); }, where)) return see_to_urgent_jobs();
  jobs_.pop_back();
  decisions_.end(episode, DecisionState::kAbandoned, "no thread could be created to compile it");
}

void CompileQueue::see_to_urgent_jobs() {
  if (sees_to_urgent_ || tasks_ - tasks_for_trials_ <= services_.threads().most()) return;
  if (std::ranges::none_of(jobs_, [this](const Job& job) { return goes_first(job); })) return;
  sees_to_urgent_ = enqueue([this] { run_urgent_jobs(); }, Where::kOneMore);
}

bool CompileQueue::goes_first(const Job& job) const {
  return job.is_urgent() && std::ranges::any_of(can_wait_, [&](const Underway* other) {
           return other->priority < job.priority &&
                  (!job.is_long() || std::holds_alternative<Later>(other->priority));
         });
}

bool CompileQueue::run(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  return stopping_ || enqueue(less_urgent(std::move(task)));
}

bool CompileQueue::run_for_trials(std::function<void()> task) {
  const Where where = where_trials_run();
  if (where != Where::kForTrials) return run(std::move(task));
  const std::lock_guard lock(mutex_);
  return stopping_ || enqueue(std::move(task), where);
}

CompileQueue::Where CompileQueue::where_trials_run() const {
  return monitor_.guest_threads() < usable_processors() ? Where::kForTrials : Where::kThreads;
}

void CompileQueue::run_again(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  enqueue(less_urgent(std::move(task)));
}

// As long as it exists, its thread is at something that can wait.
class CompileQueue::LessUrgent {
 public:
  // Anything that is hot comes before it.
  explicit LessUrgent(CompileQueue& queue) : LessUrgent(queue, Underway{.priority = Later()}) {}
  // What is hotter does.
  LessUrgent(CompileQueue& queue, const Job& job)
      : LessUrgent(queue,
                   Underway{job.is_urgent() ? job.priority : Later(), job.episode, job.module, job.unit()}) {}
  ~LessUrgent() {
    const std::lock_guard lock(queue_.mutex_);
    queue_.can_wait_.erase(std::ranges::find(queue_.can_wait_, &underway_));
  }
  LessUrgent(const LessUrgent&) = delete;
  LessUrgent& operator=(const LessUrgent&) = delete;

 private:
  LessUrgent(CompileQueue& queue, Underway underway) : queue_(queue), underway_(underway) {
    const std::lock_guard lock(queue_.mutex_);
    queue_.can_wait_.push_back(&underway_);
    queue_.see_to_urgent_jobs();
  }

  CompileQueue& queue_;
  Underway underway_;  // under the queue's mutex_
};

std::function<void()> CompileQueue::less_urgent(std::function<void()> task) {
  return [this, task = std::move(task)] {
    const LessUrgent at_it(*this);
    task();
  };
}

void CompileQueue::open_optimizer() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  // What is urgent needs the library as well, and waits for it.
  enqueue([this] {
    if (auto optimizer = services_.optimizer(); !optimizer)
      services_.say(LogLevel::kWarning, "compile", "no optimizing tier: " + optimizer.error().describe());
  });
}

bool CompileQueue::enqueue(std::function<void()> task, Where where) {
  const auto enqueue_there = [this, &task](Where at) {
    auto whole = [this, task, at] {
      monitor_.guest_processors().make_way();
      with_what_memory_there_is(task);
      task_ended(at);
    };
    CompileThreads& threads = at == Where::kForTrials ? services_.threads_for_trials() : services_.threads();
    Status enqueued =
        at == Where::kOneMore ? threads.enqueue_urgent(std::move(whole)) : threads.enqueue(std::move(whole));
    // Invariant: what has just begun does not end before mutex_ is free.
    if (enqueued) ++tasks_;
    if (enqueued && at == Where::kForTrials) ++tasks_for_trials_;
    return enqueued;
  };
  Status enqueued = enqueue_there(where);
  if (!enqueued && where == Where::kForTrials) enqueued = enqueue_there(Where::kThreads);
  if (!enqueued && !no_thread_said_.exchange(true, std::memory_order_relaxed))
    services_.say(LogLevel::kWarning, "compile",
                  enqueued.error().describe() + "; functions that get hot meanwhile stay in baseline code");
  return enqueued.has_value();
}

void CompileQueue::with_what_memory_there_is(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    // What it was about stays as it is.
    if (!no_memory_said_.exchange(true, std::memory_order_relaxed))
      services_.say(LogLevel::kWarning, "compile",
                    "no memory for a task of the compile threads; this is said once");
  }
}

CompileQueue::Load CompileQueue::load() const {
  const std::lock_guard lock(mutex_);
  return {.jobs = jobs_.size(), .tasks = tasks_, .stopping = stopping_};
}

void CompileQueue::wait_until_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return tasks_ == 0; });
}

void CompileQueue::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  abandon_.store(true, std::memory_order_relaxed);
  for (const Job& job : jobs_) decisions_.end(job.episode, DecisionState::kAbandoned, "the engine ended");
  jobs_.clear();
  // Invariant: no task of ours is left with the compile threads, which would still run it after we are gone.
  idle_.wait(lock, [this] { return tasks_ == 0; });
}

// Jobs wait for the library and for each other, and what was hot when they were queued need not be what is hot now. What runs and waits
// for them runs in baseline code meanwhile: with the time that it had when it began it would come after whatever is new.
void CompileQueue::refresh_priorities() {
  struct Waiting {
    DecisionLog::Id episode;
    const wasm::Module* module;
    jit::Unit unit;
    bool is_second;
    double seconds = 0;
  };
  std::vector<Waiting> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (const Job& job : jobs_)
      if (has_run(job.priority)) waiting.push_back({job.episode, job.module, job.unit(), job.is_second()});
    for (const Underway* other : can_wait_)
      if (has_run(other->priority))
        waiting.push_back(
            {other->episode, other->module, other->unit, std::holds_alternative<Later>(other->priority)});
  }
  if (waiting.empty()) return;
  monitor_.with_profiles([&](const feedback::Monitor::Profiles& profiles) {
    for (Waiting& w : waiting) w.seconds = seconds_by_now(profiles, w.module, w.unit, w.is_second);
  });
  const auto refresh_one = [&waiting](Priority& priority, DecisionLog::Id episode) {
    for (const Waiting& w : waiting)
      if (w.episode == episode) refresh(priority, w.seconds);
  };
  const std::lock_guard lock(mutex_);
  for (Job& job : jobs_) refresh_one(job.priority, job.episode);
  for (Underway* other : can_wait_) refresh_one(other->priority, other->episode);
}

double CompileQueue::worth_by_now(const Job& job) const {
  Priority priority = job.priority;
  monitor_.with_profiles([&](const feedback::Monitor::Profiles& profiles) {
    refresh(priority, seconds_by_now(profiles, job.module, job.unit(), job.is_second()));
  });
  return worth_of(priority);
}

std::optional<Job> CompileQueue::take_first(const std::function<bool(const Job&)>& is_wanted) {
  auto first = jobs_.end();
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    if (!is_wanted(*job)) continue;
    if (first == jobs_.end() || first->priority < job->priority) first = job;
  }
  if (first == jobs_.end()) return std::nullopt;
  Job job = std::move(*first);
  jobs_.erase(first);
  return job;
}

// It has not begun, and nothing is under way about its unit until it has.
void CompileQueue::give_way_of_next_trial() {
  if (!way_past_trials_.is_taken()) return;
  refresh_priorities();
  double worth = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Job& job : jobs_)
      if (job.below_guests) worth = std::max(worth, worth_of(job.priority));
  }
  way_past_trials_.give(worth);
}

void CompileQueue::run_one_job(bool below_guests) {
  if (below_guests) give_way_of_next_trial();
  refresh_priorities();
  std::optional<Job> job;
  bool has_way = false;
  {
    const bool one_processor = guests_leave_one_processor();
    const std::lock_guard lock(mutex_);
    job = take_first([=](const Job& other) { return other.below_guests == below_guests; });
    has_way = job && one_processor && !below_guests && job->is_urgent() &&
              std::ranges::any_of(can_wait_, [&](const Underway* other) {
                return std::holds_alternative<Hot>(other->priority) && other->priority < job->priority;
              });
    if (has_way) right_of_way_.take();
  }
  if (!job) return;  // cleared by stop(), or taken by a task for urgent jobs
  if (has_way) {
    run_job(std::move(*job));
    return right_of_way_.give_back();
  }
  std::optional<LessUrgent> at_it;
  // What waits for guests takes nothing from what is urgent.
  job->can_wait = !below_guests && (!job->is_urgent() || job->is_long());
  if (job->can_wait) at_it.emplace(*this, *job);
  run_job(std::move(*job));
}

// Also where memory ends on the way: what waits would wait for ever.
class CompileQueue::Urgent {
 public:
  explicit Urgent(CompileQueue& queue) : queue_(queue) { queue_.right_of_way_.take(); }
  ~Urgent() {
    if (ended_) return;
    const std::lock_guard lock(queue_.mutex_);
    end();
  }
  Urgent(const Urgent&) = delete;
  Urgent& operator=(const Urgent&) = delete;

  // Under mutex_, without which no other begins.
  void end() {
    queue_.right_of_way_.give_back();
    queue_.sees_to_urgent_ = false;
    ended_ = true;
  }

 private:
  CompileQueue& queue_;
  bool ended_ = false;
};

void CompileQueue::run_urgent_jobs() {
  Urgent urgent(*this);
  for (;;) {
    refresh_priorities();
    std::optional<Job> job;
    {
      const std::lock_guard lock(mutex_);
      // Once nothing else is compiled, those that are left have a thread of their own.
      job = take_first([this](const Job& other) { return goes_first(other); });
      if (!job) return urgent.end();
    }
    job->can_wait = job->is_long();
    if (!job->can_wait) {
      run_job(std::move(*job));
      continue;
    }
    // What is hotter may come meanwhile, to a thread that what went before has left. It would wait for itself if it kept the way.
    const LessUrgent at_it(*this, *job);
    const WayLent lent(right_of_way_);
    run_job(std::move(*job));
  }
}

double CompileQueue::give_way(const Job& job) {
  if (job.can_wait) return right_of_way_.give();
  return job.is_second() && way_past_trials_.is_taken() ? way_past_trials_.give(worth_by_now(job)) : 0;
}

DecisionLog::Units CompileQueue::waiting_for_second() const {
  DecisionLog::Units units;
  const std::lock_guard lock(mutex_);
  for (const Job& job : jobs_)
    if (job.is_second()) units.insert({job.module, job.unit()});
  return units;
}

bool CompileQueue::guests_leave_one_processor() const {
  return usable_processors() < monitor_.guest_threads() + 2;
}

void CompileQueue::run_job(Job job) {
  if (const std::shared_ptr<ModuleCode> code = job.code.lock())
    with_what_memory_there_is([&] {
      std::optional<WayTaken> way;
      if (!job.is_second() && guests_leave_one_processor())
        way.emplace(way_past_trials_, worth_of(job.priority));
      compile_(std::move(job), *code);
    });
  else
    decisions_.end(job.episode, DecisionState::kAbandoned, "the module is gone");
  governor_.note_version();
}

void CompileQueue::task_ended(Where where) {
  // Notified under the lock: whoever waits may end this object as soon as the lock is free.
  const std::lock_guard lock(mutex_);
  --tasks_;
  if (where == Where::kForTrials) --tasks_for_trials_;
  idle_.notify_all();
}

}  // namespace hindsight::rt
