// WaitQueue: the threads that wait at addresses of one shared memory (memory.atomic.wait) until another one
// notifies. Parker: where the thread that is inside a store sleeps meanwhile, and is woken by whoever
// notifies or interrupts it.
//
// Why no notification is lost. A waiter compares the memory with what it expects, and joins the queue, in one
// critical section of the queue's mutex. A notifier takes waiters out of it in another. If the notifier's
// comes first, what its thread stored before is seen by the comparison, and nobody sleeps. Else it finds the
// waiter.
//
// Why nothing is touched that is gone. A waiter is on the stack of its thread, and its parker in its thread's
// store. The thread leaves wait() only after it has held the mutex again, and found itself taken out, or
// taken itself out. A notifier touches both only while it holds the mutex.
//
// Lock order: WaitQueue, then Parker. Nobody who holds a parker's mutex takes another one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace hindsight::rt {

class Parker {
 public:
  // Any thread. While set, nobody sleeps here.
  void set_interrupted(bool interrupted);

 private:
  friend class WaitQueue;
  using Clock = std::chrono::steady_clock;
  void prepare();  // from here on a wake() counts
  void wake();
  // Until woken, interrupted, or the deadline. False: it is interrupted.
  bool park(std::optional<Clock::time_point> deadline);

  std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  bool woken_ = false;
  bool interrupted_ = false;
};

class WaitQueue {
 public:
  // The first three are what the instruction answers.
  enum class End : uint32_t { kWoken = 0, kOther = 1, kTimedOut = 2, kInterrupted = 3 };

  // Sleeps if the naturally aligned place holds `expected`. `timeout` in nanoseconds, negative: endless.
  End wait(Parker& parker, const uint32_t* place, uint32_t expected, int64_t timeout);
  End wait(Parker& parker, const uint64_t* place, uint64_t expected, int64_t timeout);
  // Wakes at most `count` of those who wait there, longest first; how many.
  uint32_t notify(const void* place, uint32_t count);

 private:
  struct Waiter {
    Parker* parker;
    bool taken_out = false;  // by a notifier; under mutex_
  };
  template <typename T>
  End wait_at(Parker& parker, const T* place, T expected, int64_t timeout);

  std::mutex mutex_;                                              // protects what follows
  std::unordered_map<const void*, std::deque<Waiter*>> waiters_;  // no empty ones
};

}  // namespace hindsight::rt
