#include "runtime/exec/interrupt.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/exec/signal_handlers.h"

namespace hindsight::rt {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRepeat = std::chrono::milliseconds(1);

// The one timer thread of the process. It lives only while there is something to time.
class Timer {
 public:
  void set_deadline(const std::shared_ptr<Store>& store, uint64_t timeout,
                    std::optional<Clock::time_point> deadline) {
    const std::lock_guard lock(mutex_);
    if (deadline)
      deadlines_[store.get()] = {store, timeout, *deadline};
    else
      deadlines_.erase(store.get());
    wake();
  }

  // Repeats the signal for this entry of the store until it has ended.
  void repeat(const std::shared_ptr<Store>& store, uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    repeats_.push_back({store, sequence, Clock::now() + kRepeat});
    wake();
  }

 private:
  struct Deadline {
    std::weak_ptr<Store> store;
    uint64_t timeout;
    Clock::time_point at;
  };
  struct Repeat {
    std::weak_ptr<Store> store;
    uint64_t sequence;
    Clock::time_point at;
  };

  void wake() {
    if (!running_) {
      running_ = true;
      std::thread([this] { run(); }).detach();
    } else {
      changed_.notify_one();
    }
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!deadlines_.empty() || !repeats_.empty()) {
      const Clock::time_point now = Clock::now();
      std::vector<Deadline> expired;
      std::erase_if(deadlines_, [&](const auto& entry) {
        if (entry.second.at > now) return false;
        expired.push_back(entry.second);
        return true;
      });
      std::vector<Repeat> due;
      std::erase_if(repeats_, [&](const Repeat& repeat) {
        if (repeat.at > now) return false;
        due.push_back(repeat);
        return true;
      });
      if (!expired.empty() || !due.empty()) {
        // Stores are touched, and perhaps destroyed, without our lock.
        lock.unlock();
        for (const Deadline& deadline : expired) expire(deadline);
        std::erase_if(due, [](const Repeat& repeat) { return !kick_again(repeat); });
        lock.lock();
        for (Repeat& repeat : due) {
          repeat.at = Clock::now() + kRepeat;
          repeats_.push_back(std::move(repeat));
        }
        continue;
      }
      Clock::time_point next = Clock::time_point::max();
      for (const auto& [key, deadline] : deadlines_) next = std::min(next, deadline.at);
      for (const Repeat& repeat : repeats_) next = std::min(next, repeat.at);
      changed_.wait_until(lock, next);
    }
    running_ = false;
  }

  static void expire(const Deadline& deadline) {
    const auto store = deadline.store.lock();
    if (!store) return;
    {
      EntryState& entry = store->entry_state();
      const std::lock_guard lock(entry.mutex);
      if (entry.timeout != deadline.timeout) return;  // cancelled or replaced meanwhile
      // Decided under the lock: an entry that begins from now on sees the mark.
      entry.expired = entry.depth == 0;
      if (entry.expired) return;
    }
    interrupt(store);
  }

  // False: that entry has ended.
  static bool kick_again(const Repeat& repeat) {
    const auto store = repeat.store.lock();
    if (!store) return false;
    EntryState& entry = store->entry_state();
    const std::lock_guard lock(entry.mutex);
    if (entry.depth == 0 || entry.sequence != repeat.sequence) return false;
    kick_thread(entry.thread);
    return true;
  }

  std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  bool running_ = false;
  std::map<Store*, Deadline> deadlines_;
  std::vector<Repeat> repeats_;
};

Timer& timer() {
  static auto* timer = new Timer;  // never destroyed: its thread may outlive static destructors
  return *timer;
}

}  // namespace

bool interrupt(const std::shared_ptr<Store>& store) {
  uint64_t sequence = 0;
  {
    EntryState& entry = store->entry_state();
    // Invariant: marks are made under the lock and only while a thread is inside; the entry's end, which
    // removes them, takes the lock too.
    const std::lock_guard lock(entry.mutex);
    if (entry.depth == 0) return false;
    jit::ThreadState& state = *store->thread();
    const bool asked_before = state.interrupt_requested.exchange(1, std::memory_order_relaxed) != 0;
    // Release: whoever sees this limit sees the request.
    state.stack_limit.store(~uint64_t{0}, std::memory_order_release);
    kick_thread(entry.thread);
    if (asked_before) return true;
    for (const auto& listener : entry.listeners) listener(true);
    sequence = entry.sequence;
  }
  timer().repeat(store, sequence);
  return true;
}

void interrupt_now_or_next(const std::shared_ptr<Store>& store) {
  do {
    EntryState& entry = store->entry_state();
    const std::lock_guard lock(entry.mutex);
    // Decided under the lock: an entry that begins from now on sees the mark.
    entry.expired = entry.depth == 0;
    if (entry.expired) return;
  } while (!interrupt(store));
}

void forget_interruption(const std::shared_ptr<Store>& store) {
  const std::lock_guard lock(store->entry_state().mutex);
  store->entry_state().expired = false;
}

void set_timeout(const std::shared_ptr<Store>& store, std::chrono::milliseconds limit) {
  uint64_t timeout = 0;
  {
    EntryState& entry = store->entry_state();
    const std::lock_guard lock(entry.mutex);
    timeout = ++entry.timeout;
    entry.expired = false;
  }
  timer().set_deadline(store, timeout,
                       limit.count() > 0 ? std::optional(Clock::now() + limit) : std::nullopt);
}

}  // namespace hindsight::rt
