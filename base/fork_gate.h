// ForkGate: sections of code that no fork() may fall into. A child has its parent's memory as it was at that moment,
// but only the one thread that forked. What another thread was about to do stays half done for ever, and a lock that it
// held stays locked. A thread is inside the gate while it holds such a lock, or writes what a child is to have whole. A
// fork waits until no thread is inside. Whoever wants to enter meanwhile lets the fork go first.
//
// One a process, made at its first use, never destroyed. Inside are short things (a table changed, a function
// placed or compiled in one pass): a fork waits for the longest. A thread may enter again while it is inside.
// Whoever blocks inside waits only for others that are inside, so that a fork always gets its turn. A thread that
// forks while it is inside itself gets a child that is inside, with what it was about to do.
//
// The gate does not wait for children made without the handlers of pthread_atfork (vfork, posix_spawn, _Fork, a clone
// of one's own). Such a child may only exec or _exit.
//
// The functions are virtual for the optimizing tier's library, which has copies of these rooms. So it enters the gate
// of whoever made what it works on.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace hindsight {

class ForkGate {
 public:
  static ForkGate& of_process();

  // Never fail; need not be paired within one function, but on one thread.
  virtual void enter() noexcept = 0;
  virtual void leave() noexcept = 0;
  // Forks that this process took part in, as parent or as child, since the gate was made, its parents' included.
  // Inside the gate it does not change.
  virtual uint64_t forks() const noexcept = 0;
  // Whether forks are noticed at all; false: there was no memory to ask for that.
  virtual bool watches() const noexcept = 0;

 protected:
  ~ForkGate() = default;
};

// Inside the gate as long as it exists.
class InsideForkGate {
 public:
  explicit InsideForkGate(ForkGate& gate = ForkGate::of_process()) : gate_(gate) { gate_.enter(); }
  ~InsideForkGate() { gate_.leave(); }
  InsideForkGate(const InsideForkGate&) = delete;
  InsideForkGate& operator=(const InsideForkGate&) = delete;

 private:
  ForkGate& gate_;
};

// A mutex that nobody holds in a child that has just been forked. For locks that are held shortly.
template <typename Mutex>
class ForkSafe {
 public:
  void lock() {
    gate_.enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    gate_.leave();
  }
  void lock_shared() {
    gate_.enter();
    mutex_.lock_shared();
  }
  void unlock_shared() {
    mutex_.unlock_shared();
    gate_.leave();
  }

 private:
  ForkGate& gate_ = ForkGate::of_process();
  Mutex mutex_;
};
using ForkSafeMutex = ForkSafe<std::mutex>;
using ForkSafeSharedMutex = ForkSafe<std::shared_mutex>;

}  // namespace hindsight
