#include "runtime/adaptive/right_of_way.h"

#include <chrono>

namespace hindsight::rt {

void RightOfWay::take() {
  const std::lock_guard lock(mutex_);
  ++taken_;
  asked_.store(true, std::memory_order_relaxed);
}

void RightOfWay::give_back() {
  {
    const std::lock_guard lock(mutex_);
    --taken_;
    asked_.store(taken_ != 0, std::memory_order_relaxed);
  }
  free_.notify_all();
}

double RightOfWay::give() {
  if (!asked_.load(std::memory_order_relaxed)) return 0;
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  // One is enough: a thread each for what is compiled is what there is.
  if (taken_ == 0 || waited_) return 0;
  const Clock::time_point begin = Clock::now();
  waited_ = true;
  free_.wait(lock, [this] { return taken_ == 0; });
  waited_ = false;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace hindsight::rt
