#include "base/fork_gate.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <new>

namespace hindsight {
namespace {

// How often the calling thread is inside: it takes its share of the lock once, since shares do not nest.
constinit thread_local uint32_t t_inside = 0;

class ProcessGate final : public ForkGate {
 public:
  ProcessGate() {
    instance_ = this;
    watches_ = pthread_atfork([] { instance_->before_fork(); }, [] { instance_->after_fork_in_parent(); },
                              [] { instance_->after_fork_in_child(); }) == 0;
  }

  void enter() noexcept override {
    if (t_inside++ == 0) lock_->lock_shared();
  }
  void leave() noexcept override {
    if (--t_inside == 0) lock_->unlock_shared();
  }
  uint64_t forks() const noexcept override {
    // Relaxed: changes under the lock alone, of which readers whom it matters to have a share.
    return forks_.load(std::memory_order_relaxed);
  }
  bool watches() const noexcept override { return watches_; }

 private:
  void before_fork() {
    if (t_inside != 0) lock_->unlock_shared();
    lock_->lock();
    forks_.fetch_add(1, std::memory_order_relaxed);
  }
  void after_fork_in_parent() {
    lock_->unlock();
    if (t_inside != 0) lock_->lock_shared();
  }
  void after_fork_in_child() {
    // In place of the one that threads which do not exist here may be waiting for, and are counted in.
    lock_ = new (lock_memory_) std::shared_mutex;
    if (t_inside != 0) lock_->lock_shared();
  }

  static inline constinit ProcessGate* instance_ = nullptr;

  // Inside: a share of it; a fork: all of it. The system's default lets readers pass a writer that waits, so a thread
  // inside may wait for another one that is just entering.
  alignas(std::shared_mutex) std::byte lock_memory_[sizeof(std::shared_mutex)];
  std::shared_mutex* lock_ = new (lock_memory_) std::shared_mutex;
  std::atomic<uint64_t> forks_{0};
  bool watches_ = false;
};

}  // namespace

ForkGate& ForkGate::of_process() {
  // Never destroyed: threads may be inside until the process ends.
  static auto* const gate = new ProcessGate;
  return *gate;
}

}  // namespace hindsight
