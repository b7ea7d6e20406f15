#include "runtime/adaptive/right_of_way.h"

#include <algorithm>
#include <chrono>

namespace hindsight::rt {

void RightOfWay::take() {
  const std::lock_guard lock(mutex_);
  ++taken_;
  note();
}

void RightOfWay::give_back() {
  {
    const std::lock_guard lock(mutex_);
    --taken_;
    note();
  }
  free_.notify_all();
}

void RightOfWay::take_over(double worth) {
  const std::lock_guard lock(mutex_);
  taken_over_.push_back(worth);
  note();
}

void RightOfWay::give_back_over(double worth) {
  {
    const std::lock_guard lock(mutex_);
    taken_over_.erase(std::ranges::find(taken_over_, worth));
    note();
  }
  free_.notify_all();
}

bool RightOfWay::is_over(double worth) const {
  return taken_ != 0 || std::ranges::any_of(taken_over_, [worth](double other) { return other > worth; });
}

double RightOfWay::give(double worth) {
  if (!is_taken()) return 0;
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  if (!is_over(worth) || (waiters_ == Waiters::kOne && waiting_ != 0)) return 0;
  const Clock::time_point begin = Clock::now();
  ++waiting_;
  free_.wait(lock, [&] { return !is_over(worth); });
  --waiting_;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace hindsight::rt
