// RightOfWay: while what runs in baseline code is compiled on one thread more than there are, or beside guests that leave one processor,
// one compile of what can wait does wait. What is only to be tried does not count: its threads have a lower priority.
//
// Otherwise that thread shares the processors with the guest and with such compiles. On two of them the guest waited
// for a processor 4 to 12 % of runs of half a second (without feedback 0.4 to 3 %), and its first optimized code came late.
//
// Concurrency: any thread. mutex_ protects the members below it; nothing is called with it held. asked_ is a copy of them that is read
// without it between passes (relaxed: who reads an old one waits from the next pass on, or takes the lock for nothing).
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace hindsight::rt {

class RightOfWay {
 public:
  // By whoever has it. As often as it was taken it is to be given back.
  void take();
  void give_back();

  // Between passes of a compile that can wait, with no lock held: returns when it may go on. How many seconds that took.
  double give();
  // Whether somebody waits in it now.
  bool is_given() const {
    const std::lock_guard lock(mutex_);
    return waited_;
  }

 private:
  std::atomic<bool> asked_{false};
  mutable std::mutex mutex_;
  std::condition_variable free_;
  unsigned taken_ = 0;   // by compiles of what runs in baseline code
  bool waited_ = false;  // by a compile that can wait
};

}  // namespace hindsight::rt
