// CompileThreads: the threads on which an engine's optimizing tier works, and the queue in front of them.
//
// The threads are our own because LLVM walks along the operands of values by calling itself. What a guest makes long
// makes that deep, and neither a guest's thread nor a thread pool's has room for it. Each has a stack of 256 MiB of
// addresses, with a page below it that nobody can write to. The kernel gives memory only to what is touched.
//
// What is urgent does not wait for what is not: where all threads are busy it has one more.
//
// There is no thread before the first task. One that has had nothing to do for a second ends; another is made when
// there is work again. No signal is delivered to them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>

#include "base/result.h"
#include "runtime/code/owner_process.h"

namespace hindsight::rt {

class CompileThreads {
 public:
  // `most`: threads at a time, at least 1. `below_guests`: by how many steps their priority is lower than that of the thread that starts
  // them (base/thread_priority.h).
  explicit CompileThreads(unsigned most, int below_guests = 0);
  // Waits for what is enqueued. Only in the process that made it; see owner_process.h.
  ~CompileThreads();
  CompileThreads(const CompileThreads&) = delete;
  CompileThreads& operator=(const CompileThreads&) = delete;

  // Has `task` run on one of the threads, first come, first served. Any thread. Nothing may be thrown out of it. What was
  // done before comes before the task. Errors: kResource, if no thread could be made and there is none (the task is
  // dropped). Also kResource if this process is a fork of the one that has the threads.
  Status enqueue(std::function<void()> task);
  // The same of an urgent task, which comes before all others, and for which one thread beyond `most` may run. Two urgent
  // ones never do.
  Status enqueue_urgent(std::function<void()> task);
  // Like enqueue(), and waits until it has run. `while_waiting` is called every few milliseconds meanwhile. Not from a task.
  Status run(std::function<void()> task, const std::function<void()>& while_waiting);

  // Threads that could not be made, with or without others to do their work. Any thread.
  uint64_t refused() const;
  // Tasks that were not taken, because no thread could be made and there was none.
  uint64_t refused_tasks() const;
  // That there are now.
  size_t count() const;
  unsigned most() const { return most_; }

  // For tests, before the first task: threads without stacks that are this large are not made.
  void set_least_stack(size_t bytes) { least_stack_ = bytes; }

 private:
  class Stack;
  class Thread;
  // Tasks of one urgency, of which so many may run at once.
  struct Lane {
    const size_t most;
    std::deque<std::function<void()>> tasks = {};
    size_t running = 0;
    size_t could_begin() const { return std::min(tasks.size(), most - running); }
  };
  Status start();  // under mutex_
  Status enqueue_in(Lane& lane, std::function<void()> task);
  Lane* next_lane();  // under mutex_: of which a task may begin; null: there is none
  void work(Thread& self);
  void join_ended();  // not under mutex_

  const unsigned most_;
  const int below_guests_;
  size_t least_stack_ = 0;
  const OwnerProcess owner_;
  mutable std::mutex mutex_;  // protects what follows
  std::condition_variable wake_;
  Lane urgent_{.most = 1}, others_{.most = most_};
  std::list<Thread> threads_, ended_;  // the second have nothing left to do but to end
  size_t idle_ = 0;                    // of threads_
  uint64_t refused_ = 0, refused_tasks_ = 0;
  bool ending_ = false;
};

}  // namespace hindsight::rt
