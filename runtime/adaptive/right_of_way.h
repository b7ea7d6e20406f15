// RightOfWay: while what runs in baseline code is compiled on one thread more than there are, or beside guests that leave one processor,
// one compile of what can wait does wait. And while anything is compiled there, what is compiled only to be tried and is worth less.
//
// Otherwise such a thread shares the processors with the guest and with what is compiled first. On two of them the guest waited
// for a processor 4 to 12 % of runs of half a second (without feedback 0.4 to 3 %), and its first optimized code came late. A lower
// priority of the thread is not enough: beside what was to be tried a first compile took up to twice its CPU time.
//
// Concurrency: any thread. mutex_ protects the members below it; nothing is called with it held. asked_ is a copy of them that is read
// without it between passes (relaxed: who reads an old one waits from the next pass on, or takes the lock for nothing).
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace hindsight::rt {

class RightOfWay {
 public:
  // Who waits for it: a thread each for what is compiled is what there is, so one is enough where compiles share threads.
  enum class Waiters : bool { kOne, kAll };
  explicit RightOfWay(Waiters waiters = Waiters::kOne) : waiters_(waiters) {}

  // By whoever has it, over all else. As often as it was taken it is to be given back.
  void take();
  void give_back();
  // Over what is worth less. Given back by the same worth. It needs memory.
  void take_over(double worth);
  void give_back_over(double worth);

  // Between passes of a compile that can wait, with no lock held: returns when it may go on. How many seconds that took.
  double give(double worth = 0);
  bool is_taken() const { return asked_.load(std::memory_order_relaxed); }
  // Whether somebody waits in it now.
  bool is_given() const {
    const std::lock_guard lock(mutex_);
    return waiting_ != 0;
  }

 private:
  // Under mutex_.
  bool is_over(double worth) const;
  void note() { asked_.store(taken_ != 0 || !taken_over_.empty(), std::memory_order_relaxed); }

  const Waiters waiters_;
  std::atomic<bool> asked_{false};
  mutable std::mutex mutex_;
  std::condition_variable free_;
  unsigned taken_ = 0;              // by compiles that have it over all else
  std::vector<double> taken_over_;  // the worth of those that do not
  unsigned waiting_ = 0;            // compiles that can wait
};

}  // namespace hindsight::rt
