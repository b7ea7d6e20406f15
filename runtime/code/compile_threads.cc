#include "runtime/code/compile_threads.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "base/host_signals.h"
#include "base/thread_priority.h"

namespace hindsight::rt {
namespace {

using namespace std::chrono_literals;

// Where address space is limited, less will do. Chains of operations are cut before LLVM sees them
// (jit/optimizing/cut_chains.h), and what is left of them takes some MiB.
constexpr size_t kStackBytes[] = {size_t{256} << 20, size_t{64} << 20, size_t{16} << 20};
constexpr size_t kKeptBytes = size_t{256} << 10;  // of a stack, while its thread has nothing to do
constexpr auto kPatience = 1s;                    // of a thread with nothing to do
constexpr auto kLook = 5ms;                       // of those who wait, at what else there is

}  // namespace

// Addresses for a stack, the guard page below it included.
class CompileThreads::Stack {
 public:
  Stack() = default;
  Stack(Stack&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Stack& operator=(Stack&&) = delete;
  ~Stack() {
    if (begin_ != nullptr) ::munmap(begin_, bytes_);  // two mappings of ours, whole: cannot fail
  }

  static Stack make(size_t least) {
    Stack stack;
    const size_t page = page_bytes();
    for (const size_t bytes : kStackBytes) {
      if (bytes < least) break;
      // Nothing is set aside for it: what is never touched costs nothing.
      void* const begin = ::mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
      if (begin == MAP_FAILED) continue;
      stack.begin_ = static_cast<std::byte*>(begin);
      stack.bytes_ = bytes + page;
      if (::mprotect(begin, page, PROT_NONE) == 0) return stack;
      // Without a guard it is none.
      return {};
    }
    return stack;
  }

  bool there() const { return begin_ != nullptr; }
  void* begin() const { return begin_ + page_bytes(); }
  size_t bytes() const { return bytes_ - page_bytes(); }

  // By the thread whose stack it is: gives back what it does not use now.
  void trim() const {
    auto* const frame = static_cast<std::byte*>(__builtin_frame_address(0));
    auto* const low = static_cast<std::byte*>(begin());
    const size_t used_from = static_cast<size_t>(frame - low);
    if (used_from <= kKeptBytes) return;
    const size_t unused = (used_from - kKeptBytes) / page_bytes() * page_bytes();
    // What fails here only keeps memory.
    (void)::madvise(low, unused, MADV_DONTNEED);
  }

 private:
  static size_t page_bytes() {
    static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
  }
  std::byte* begin_ = nullptr;
  size_t bytes_ = 0;
};

class CompileThreads::Thread {
 public:
  Thread(CompileThreads& owner, Stack stack) : owner_(owner), stack_(std::move(stack)) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // 0, or an error number.
  int start() {
    pthread_attr_t attributes;
    if (const int error = ::pthread_attr_init(&attributes); error != 0) return error;
    int error = ::pthread_attr_setstack(&attributes, stack_.begin(), stack_.bytes());
    const sigset_t not_ours = host_signals();
    if (error == 0) error = ::pthread_attr_setsigmask_np(&attributes, &not_ours);
    if (error == 0) error = ::pthread_create(&id_, &attributes, &Thread::main, this);
    (void)::pthread_attr_destroy(&attributes);
    return error;
  }
  void join() { (void)::pthread_join(id_, nullptr); }  // of a thread that started: cannot fail
  void trim() const { stack_.trim(); }

  std::list<Thread>::iterator self;

 private:
  static void* main(void* self) {
    auto* const thread = static_cast<Thread*>(self);
    ::pthread_setname_np(::pthread_self(), "hindsight-jit");
    if (thread->owner_.below_guests_ != 0) lower_priority_of_this_thread(thread->owner_.below_guests_);
    thread->owner_.work(*thread);
    return nullptr;
  }

  CompileThreads& owner_;
  const Stack stack_;
  pthread_t id_{};
};

CompileThreads::CompileThreads(unsigned most, int below_guests)
    : most_(std::max(1u, most)), below_guests_(below_guests) {}

CompileThreads::~CompileThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return threads_.empty() || !ended_.empty(); });
      if (threads_.empty() && ended_.empty()) return;
    }
    join_ended();
  }
}

Status CompileThreads::start() {
  Stack stack = Stack::make(least_stack_);
  if (!stack.there()) {
    ++refused_;
    return make_error(ErrorKind::kResource, "no addresses for the stack of a thread to compile on");
  }
  threads_.emplace_back(*this, std::move(stack));
  threads_.back().self = std::prev(threads_.end());
  if (const int error = threads_.back().start(); error != 0) {
    threads_.pop_back();
    ++refused_;
    return make_error(ErrorKind::kResource, fmt::format("no thread to compile on: {}", std::strerror(error)));
  }
  return {};
}

Status CompileThreads::enqueue(std::function<void()> task) {
  return enqueue_in(others_, std::move(task));
}

Status CompileThreads::enqueue_urgent(std::function<void()> task) {
  return enqueue_in(urgent_, std::move(task));
}

CompileThreads::Lane* CompileThreads::next_lane() {
  for (Lane* const lane : {&urgent_, &others_})
    if (lane->could_begin() > 0) return lane;
  return nullptr;
}

Status CompileThreads::enqueue_in(Lane& lane, std::function<void()> task) {
  if (!owner_.here())
    return make_error(ErrorKind::kResource,
                      "no thread to compile on: they belong to the process that was forked");
  join_ended();
  {
    const std::lock_guard lock(mutex_);
    lane.tasks.push_back(std::move(task));
    const size_t most = others_.most + (urgent_.tasks.empty() ? 0 : urgent_.most);
    if (urgent_.could_begin() + others_.could_begin() > idle_ && threads_.size() < most) {
      if (Status started = start(); !started && threads_.empty()) {
        lane.tasks.pop_back();
        ++refused_tasks_;
        return started;
      }
    }
  }
  wake_.notify_one();
  return {};
}

Status CompileThreads::run(std::function<void()> task, const std::function<void()>& while_waiting) {
  struct Waiter {
    std::mutex mutex;  // protects what follows
    std::condition_variable over;
    bool done = false;
  };
  // Shared: the thread may still be at its notification when the one that waited is gone.
  const auto waiter = std::make_shared<Waiter>();
  HINDSIGHT_TRY(enqueue([waiter, task = std::move(task)] {
    task();
    const std::lock_guard lock(waiter->mutex);
    waiter->done = true;
    waiter->over.notify_all();
  }));
  std::unique_lock lock(waiter->mutex);
  while (!waiter->over.wait_for(lock, kLook, [&] { return waiter->done; })) {
    lock.unlock();
    while_waiting();
    lock.lock();
  }
  return {};
}

void CompileThreads::work(Thread& self) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (Lane* const lane = next_lane()) {
      std::function<void()> task = std::move(lane->tasks.front());
      lane->tasks.pop_front();
      ++lane->running;
      // Whoever was woken for what is left found that this thread would do it.
      if (next_lane() != nullptr) wake_.notify_one();
      lock.unlock();
      task();
      task = nullptr;  // what it holds goes without the lock
      self.trim();
      lock.lock();
      --lane->running;
      continue;
    }
    // What waits here while it may not begin is taken by a thread that has something to do now: as its task ends.
    if (ending_) break;
    ++idle_;
    const bool woken = wake_.wait_for(lock, kPatience, [this] { return next_lane() != nullptr || ending_; });
    --idle_;
    if (!woken) break;
  }
  // From here on nothing of ours is touched but under the lock: whoever joins may end this object.
  ended_.splice(ended_.end(), threads_, self.self);
  if (ending_) wake_.notify_all();
}

void CompileThreads::join_ended() {
  std::list<Thread> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  for (Thread& thread : ended) thread.join();
}

uint64_t CompileThreads::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

uint64_t CompileThreads::refused_tasks() const {
  const std::lock_guard lock(mutex_);
  return refused_tasks_;
}

size_t CompileThreads::count() const {
  const std::lock_guard lock(mutex_);
  return threads_.size();
}

}  // namespace hindsight::rt
