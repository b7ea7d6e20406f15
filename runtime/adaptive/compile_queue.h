// CompileQueue holds what is to be compiled in the background, the most urgent first. What runs in baseline code does not
// wait for a thread that makes code to be tried, which may take half a second: such code is made on threads of its own, of lower priority
// (CodeServices::threads_for_trials), if there are more processors than guests. Nor does it wait for what is long, or undoes something: it is
// compiled on one thread more, and what can wait does so meanwhile (RightOfWay). Where guests leave one processor, what is long waits for
// what is hotter on whatever thread, and what is to be tried for all else that is worth more.
// It also holds all other tasks of the adaptive tier for the compile threads (runtime/code/compile_threads.h).
//
// Concurrency: any thread; what is compiled and what tasks do runs on the compile threads. A job has a task, and takes no more
// than one; what was taken by a task for urgent ones leaves one with nothing to do. mutex_
// protects the members below it. With it held only CompileThreads, DecisionLog and RightOfWay are called.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "feedback/monitor/monitor.h"
#include "runtime/adaptive/job.h"
#include "runtime/adaptive/right_of_way.h"
#include "runtime/adaptive/sampling_governor.h"
#include "runtime/code/code_services.h"

namespace hindsight::rt {

class CompileQueue {
 public:
  // On a compile thread, with no lock held. What it cannot do it writes into the decision log.
  using Compile = std::function<void(Job, ModuleCode&)>;

  // All outlive this.
  CompileQueue(CodeServices& services, feedback::Monitor& monitor, DecisionLog& decisions,
               SamplingGovernor& governor, Compile compile);
  // Precondition: stop() was called.
  ~CompileQueue() = default;

  // Has it compiled; where there is no thread to do that, or the engine ends, its decision says so.
  void add(Job job);
  // Has `task` run. False: there is no thread for it, which is said once. While the engine ends nothing runs any
  // more, and nobody need know: true.
  bool run(std::function<void()> task);
  // The same, where guests go before it: what is compiled for trials.
  bool run_for_trials(std::function<void()> task);
  // From a task: has it run again, after what has come meanwhile. Also while the engine ends, so that what was begun
  // ends.
  void run_again(std::function<void()> task);

  // Opens the optimizing tier's library before something is to be compiled, so that the first compile does not wait
  // for it.
  void open_optimizer();

  struct Load {
    size_t jobs = 0;   // that no thread has taken yet
    size_t tasks = 0;  // enqueued or running; each job has at least one
    bool stopping = false;
    bool idle() const { return jobs == 0 && tasks == 0; }
  };
  Load load() const;
  void wait_until_idle();

  // True once the engine ends: compiles under way are abandoned (OptimizeRequest::abandoned). Relaxed: a wish,
  // published by nothing; who ends the engine waits for the tasks.
  const std::atomic<bool>& abandon() const { return abandon_; }
  // Between passes of the job's compile, with no lock held: returns when it may go on. How many seconds it waited.
  double give_way(const Job& job);
  // The same, of what run_for_trials() runs.
  double give_way_of_trials() { return way_past_trials_.give(); }
  // Units whose second compile no thread has begun yet.
  DecisionLog::Units waiting_for_second() const;
  // Whether a compile waits for others.
  bool is_way_given() const { return right_of_way_.is_given() || way_past_trials_.is_given(); }
  // Drops what no thread has taken, and waits for the rest. Nothing is run afterwards. May be called again.
  void stop();

 private:
  // Where a task runs. What is to be tried has threads of its own (CodeServices::threads_for_trials), if guests leave it a processor.
  enum class Where : uint8_t { kThreads, kOneMore, kForTrials };
  bool enqueue(std::function<void()> task, Where where = Where::kThreads);  // under mutex_
  // Nothing is thrown out of it.
  void with_what_memory_there_is(const std::function<void()>& work);
  void run_one_job(bool below_guests);
  // Before a thread takes what is to be tried.
  void give_way_of_next_trial();
  // Where what is to be tried runs. Where there are as many guests as processors it would not come to an end below them.
  Where where_trials_run() const;
  void run_urgent_jobs();
  void run_job(Job job);
  // Two compiles at once would share it, and the first of them be ready as late as both are.
  bool guests_leave_one_processor() const;
  // Under mutex_; none: there is no such job.
  std::optional<Job> take_first(const std::function<bool(const Job&)>& is_wanted);
  // A job or task that runs and can wait. It waits for what comes before `priority`.
  struct Underway {
    Priority priority;
    DecisionLog::Id episode = 0;  // of a job
    const wasm::Module* module = nullptr;
    jit::Unit unit{};
  };
  class LessUrgent;
  class Urgent;
  // The task, counted as less urgent than jobs of what runs in baseline code.
  std::function<void()> less_urgent(std::function<void()> task);
  // Under mutex_: has urgent jobs compiled beside what can wait.
  void see_to_urgent_jobs();
  // Under mutex_: whether it is urgent, and something is under way that can wait for it.
  bool goes_first(const Job& job) const;
  void refresh_priorities();
  double worth_by_now(const Job& job) const;
  void task_ended(Where where);

  CodeServices& services_;
  feedback::Monitor& monitor_;
  DecisionLog& decisions_;
  SamplingGovernor& governor_;
  const Compile compile_;
  std::atomic<bool> abandon_{false};
  // Of what is urgent, past what can wait; and of all that is not only to be tried, past what is and is worth less.
  RightOfWay right_of_way_, way_past_trials_{RightOfWay::Waiters::kAll};
  // Relaxed: keep lines from being said twice.
  std::atomic<bool> no_thread_said_{false}, no_memory_said_{false};

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<Job> jobs_;
  size_t tasks_ = 0;                 // all
  size_t tasks_for_trials_ = 0;      // of these
  std::vector<Underway*> can_wait_;  // each is a LessUrgent's
  bool sees_to_urgent_ = false;      // a task for urgent jobs is enqueued or running
  bool stopping_ = false;
};

}  // namespace hindsight::rt
