#include "runtime/adaptive/compile_queue.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hindsight::rt {

namespace {

constexpr uint32_t kMostGivenWay = 2;

// In baseline code of late, of the loop and of those in it.
double seconds_in(const feedback::FunctionCounts& counts, const wasm::FunctionBody& body, LoopIndex root) {
  const WasmOffset end = body.loops[root.value].end;
  double seconds = 0;
  for (auto at = counts.loops.lower_bound(root.value);
       at != counts.loops.end() && body.loops[at->first].offset < end; ++at)
    seconds += at->second.seconds_baseline;
  return seconds;
}

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
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  const DecisionLog::Id episode = job.episode;
  jobs_.push_back(std::move(job));
  if (enqueue([this] { run_one_job(); })) return make_room_for(jobs_.back());
  jobs_.pop_back();
  decisions_.end(episode, DecisionState::kAbandoned, "no thread could be created to compile it");
}

void CompileQueue::make_room_for(const Job& job) {
  if (job.is_second() || tasks_ <= services_.threads().most() || may_give_way_.empty()) return;
  // Relaxed: a wish, as OptimizeRequest::abandoned has it.
  may_give_way_.back()->store(true, std::memory_order_relaxed);
  may_give_way_.pop_back();
}

bool CompileQueue::run(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  return stopping_ || enqueue(std::move(task));
}

void CompileQueue::run_again(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  enqueue(std::move(task));
}

void CompileQueue::open_optimizer() {
  run([this] {
    if (auto optimizer = services_.optimizer(); !optimizer)
      services_.say(LogLevel::kWarning, "compile", "no optimizing tier: " + optimizer.error().describe());
  });
}

bool CompileQueue::enqueue(std::function<void()> task) {
  Status enqueued = services_.threads().enqueue([this, task = std::move(task)] {
    try {
      task();
    } catch (const std::bad_alloc&) {
      // What the task was about stays as it is.
      if (!no_memory_said_.exchange(true, std::memory_order_relaxed))
        services_.say(LogLevel::kWarning, "compile",
                      "no memory for a task of the compile threads; this is said once");
    }
    task_ended();
  });
  // Invariant: what has just begun does not end before mutex_ is free.
  if (enqueued) ++tasks_;
  if (!enqueued && !no_thread_said_.exchange(true, std::memory_order_relaxed))
    services_.say(LogLevel::kWarning, "compile",
                  enqueued.error().describe() + "; functions that get hot meanwhile stay in baseline code");
  return enqueued.has_value();
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
  for (const auto& gives_way : may_give_way_) gives_way->store(true, std::memory_order_relaxed);
  for (const Job& job : jobs_) decisions_.end(job.episode, DecisionState::kAbandoned, "the engine ended");
  jobs_.clear();
  // Invariant: no task of ours is left with the compile threads, which would still run it after we are gone.
  idle_.wait(lock, [this] { return tasks_ == 0; });
}

// Jobs wait for the library and for each other, and what was hot when they were queued need not be what is hot now.
void CompileQueue::refresh_priorities() {
  struct Waiting {
    DecisionLog::Id episode;
    const wasm::Module* module;
    jit::Unit unit;
    double seconds = 0;
  };
  std::vector<Waiting> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() < 2) return;
    for (const Job& job : jobs_)
      if (std::holds_alternative<Hot>(job.priority)) waiting.push_back({job.episode, job.module, job.unit()});
  }
  monitor_.with_profiles([&](feedback::Monitor::Profiles& profiles) {
    for (Waiting& w : waiting) {
      const auto profile = profiles.find(w.module);
      if (profile == profiles.end()) continue;
      const auto counts = profile->second->functions().find(w.unit.function.value);
      if (counts == profile->second->functions().end()) continue;
      w.seconds = w.unit.nest ? seconds_in(counts->second, profile->second->module().body(w.unit.function),
                                           *w.unit.nest)
                              : counts->second.seconds_baseline + counts->second.seconds_optimized;
    }
  });
  const std::lock_guard lock(mutex_);
  for (Job& job : jobs_) {
    Hot* const hot = std::get_if<Hot>(&job.priority);
    for (const Waiting& w : waiting)
      if (hot != nullptr && w.episode == job.episode) hot->seconds = std::max(hot->seconds, w.seconds);
  }
}

void CompileQueue::run_one_job() {
  refresh_priorities();
  Job job;
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.empty()) return;  // cleared by stop()
    const auto first = std::max_element(jobs_.begin(), jobs_.end(),
                                        [](const Job& a, const Job& b) { return a.priority < b.priority; });
    job = std::move(*first);
    jobs_.erase(first);
    // Not for ever: what has to be tried is.
    if (job.is_second() && job.gave_way < kMostGivenWay) {
      job.gives_way = std::make_shared<std::atomic<bool>>(false);
      may_give_way_.push_back(job.gives_way);
    }
  }
  const std::shared_ptr<std::atomic<bool>> gives_way = job.gives_way;
  if (const std::shared_ptr<ModuleCode> code = job.code.lock())
    compile_(std::move(job), *code);
  else
    decisions_.end(job.episode, DecisionState::kAbandoned, "the module is gone");
  governor_.note_version();
  if (gives_way == nullptr) return;
  const std::lock_guard lock(mutex_);
  std::erase(may_give_way_, gives_way);
}

void CompileQueue::task_ended() {
  // Notified under the lock: whoever waits may end this object as soon as the lock is free.
  const std::lock_guard lock(mutex_);
  --tasks_;
  idle_.notify_all();
}

}  // namespace hindsight::rt
