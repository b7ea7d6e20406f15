#include "runtime/instance/wait_queue.h"

#include <algorithm>
#include <atomic>

namespace hindsight::rt {

void Parker::set_interrupted(bool interrupted) {
  const std::lock_guard lock(mutex_);
  interrupted_ = interrupted;
  if (interrupted) changed_.notify_one();
}

void Parker::prepare() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
}

// Notifies under the lock: once it is free the parker may be gone.
void Parker::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

bool Parker::park(std::optional<Clock::time_point> deadline) {
  std::unique_lock lock(mutex_);
  const auto over = [this] { return woken_ || interrupted_; };
  if (deadline)
    changed_.wait_until(lock, *deadline, over);
  else
    changed_.wait(lock, over);
  return !interrupted_;
}

template <typename T>
WaitQueue::End WaitQueue::wait_at(Parker& parker, const T* place, T expected, int64_t timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kEndless = int64_t{1} << 61;  // 73 years
  std::optional<Clock::time_point> deadline;
  if (timeout >= 0 && timeout < kEndless) deadline = Clock::now() + std::chrono::nanoseconds(timeout);

  Waiter waiter{&parker};
  {
    const std::lock_guard lock(mutex_);
    // Sequentially consistent, as the instruction's read is.
    if (std::atomic_ref(const_cast<T&>(*place)).load(std::memory_order_seq_cst) != expected)
      return End::kOther;
    parker.prepare();
    waiters_[place].push_back(&waiter);
  }
  const bool undisturbed = parker.park(deadline);
  const std::lock_guard lock(mutex_);
  if (!waiter.taken_out) {
    const auto at = waiters_.find(place);
    std::erase(at->second, &waiter);
    if (at->second.empty()) waiters_.erase(at);
  }
  if (!undisturbed) return End::kInterrupted;
  return waiter.taken_out ? End::kWoken : End::kTimedOut;
}

WaitQueue::End WaitQueue::wait(Parker& parker, const uint32_t* place, uint32_t expected, int64_t timeout) {
  return wait_at(parker, place, expected, timeout);
}

WaitQueue::End WaitQueue::wait(Parker& parker, const uint64_t* place, uint64_t expected, int64_t timeout) {
  return wait_at(parker, place, expected, timeout);
}

uint32_t WaitQueue::notify(const void* place, uint32_t count) {
  const std::lock_guard lock(mutex_);
  const auto at = waiters_.find(place);
  if (at == waiters_.end()) return 0;
  uint32_t woken = 0;
  while (woken < count && !at->second.empty()) {
    Waiter* const waiter = at->second.front();
    at->second.pop_front();
    waiter->taken_out = true;
    waiter->parker->wake();
    ++woken;
  }
  if (at->second.empty()) waiters_.erase(at);
  return woken;
}

}  // namespace hindsight::rt
