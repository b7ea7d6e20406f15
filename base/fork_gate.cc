#include "base/fork_gate.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

namespace hindsight {
namespace {

// How often the calling thread is inside: it is counted once.
constinit thread_local uint32_t t_inside = 0;

// Who enters while a fork waits lets it go first, else threads that come one after the other would keep it out for
// ever. But not for longer than this: should a thread inside wait for it after all, both go on then.
constexpr auto kPatience = std::chrono::milliseconds(20);

// Argument. All that decides is one word. A thread is inside once its addition found that no fork waits. After a wait it
// is once it has replaced a word in which no fork has the gate. A fork has the gate once it has replaced the word in
// which nobody is counted. So a thread is either in the word that the fork finds, or finds the fork. Who comes in
// acquires and who goes releases, forks too: each sees what was done before.
class ProcessGate final : public ForkGate {
 public:
  ProcessGate() {
    instance_ = this;
    watches_ = pthread_atfork([] { instance_->before_fork(); }, [] { instance_->after_fork_in_parent(); },
                              [] { instance_->after_fork_in_child(); }) == 0;
  }

  void enter() noexcept override {
    if (t_inside++ != 0) return;
    if ((word_.fetch_add(1, std::memory_order_acquire) & kForkWaits) != 0) [[unlikely]] {
      uncount();
      await_fork();
    }
  }
  void leave() noexcept override {
    if (--t_inside == 0) uncount();
  }
  uint64_t forks() const noexcept override {
    // Relaxed: changes while a fork has the gate alone, and whoever it matters to is inside.
    return forks_.load(std::memory_order_relaxed);
  }
  bool watches() const noexcept override { return watches_; }

 private:
  // In word_, beside the number of threads that are inside or about to find that they are not.
  static constexpr uint32_t kForkWaits = uint32_t{1} << 31;  // until it is over
  static constexpr uint32_t kForkHas = uint32_t{1} << 30;

  // Only while something waits. Nobody enters or forks with its mutex.
  struct Waiting {
    std::mutex turn;   // one fork at a time, from its beginning to its end
    std::mutex mutex;  // whoever changes what somebody waits for takes it before telling
    std::condition_variable emptied;
    std::condition_variable over;
  };

  void uncount() {
    if (word_.fetch_sub(1, std::memory_order_release) != (kForkWaits | 1)) [[likely]]
      return;
    // With the mutex: a fork that has looked before the subtraction waits by now.
    const std::lock_guard lock(waiting_->mutex);
    waiting_->emptied.notify_one();
  }
  void await_fork() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    std::unique_lock lock(waiting_->mutex);
    for (bool patient = true;;) {
      uint32_t word = word_.load(std::memory_order_relaxed);
      if ((word & kForkHas) != 0) {
        waiting_->over.wait(lock);
      } else if ((word & kForkWaits) != 0 && patient) {
        patient = waiting_->over.wait_until(lock, until) == std::cv_status::no_timeout;
      } else if (word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
        return;
      }
    }
  }

  void before_fork() {
    if (t_inside != 0) uncount();
    waiting_->turn.lock();
    {
      std::unique_lock lock(waiting_->mutex);
      word_.fetch_or(kForkWaits, std::memory_order_relaxed);
      for (;;) {
        uint32_t nobody = kForkWaits;
        if (word_.compare_exchange_strong(nobody, kForkWaits | kForkHas, std::memory_order_acquire,
                                          std::memory_order_relaxed))
          break;
        waiting_->emptied.wait(lock);
      }
    }
    forks_.fetch_add(1, std::memory_order_relaxed);
  }
  void after_fork_in_parent() {
    {
      const std::lock_guard lock(waiting_->mutex);
      // In one step: no other fork falls into what the thread was about to do.
      word_.fetch_sub((kForkWaits | kForkHas) - share(), std::memory_order_release);
    }
    waiting_->over.notify_all();
    waiting_->turn.unlock();
  }
  void after_fork_in_child() {
    // In place of what threads which do not exist here may have held or waited for, and are counted in.
    waiting_ = new (waiting_memory_) Waiting;
    word_.store(share(), std::memory_order_relaxed);
  }
  static uint32_t share() { return t_inside != 0 ? 1 : 0; }

  static inline constinit ProcessGate* instance_ = nullptr;

  std::atomic<uint32_t> word_{0};
  std::atomic<uint64_t> forks_{0};
  alignas(Waiting) std::byte waiting_memory_[sizeof(Waiting)];
  Waiting* waiting_ = new (waiting_memory_) Waiting;
  bool watches_ = false;
};

}  // namespace

ForkGate& ForkGate::of_process() {
  // Never destroyed: threads may be inside until the process ends.
  static auto* const gate = new ProcessGate;
  return *gate;
}

}  // namespace hindsight
