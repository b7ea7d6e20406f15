#include "runtime/exec/interrupt.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "base/host_signals.h"
#include "base/system_failures.h"
#include "runtime/exec/guest_thread.h"
#include "runtime/exec/signal_handlers.h"
#include "runtime/exec/watch_list.h"

namespace hindsight::rt {
namespace {

using Clock = std::chrono::steady_clock;
using jit::TrapCode;

// In between are at most the runtime's own short functions: the first signals come close together. A host function
// may take hours, and is not to be disturbed a thousand times a second; the mark ends the entry after it.
constexpr auto kRepeat = std::chrono::milliseconds(1);
constexpr auto kSlowRepeat = std::chrono::milliseconds(10);
constexpr uint32_t kQuickRepeats = 100;
constexpr uint32_t kRepeatsBeforeDoubt = 10;
// How long a thread has to run without our handler before it is said to block the signal. More than the kernel takes to
// begin a handler and to end it.
constexpr auto kRunsBeforeBlamed = std::chrono::milliseconds(1);

// How long the timer thread stays with nothing to do. A host that gives each of its short calls a limit does not
// start a thread for each.
constexpr auto kPatience = std::chrono::seconds(1);

// Tells the embedder, on whichever thread. No lock of ours is held: its log may do anything but end the process by an
// exception here.
void warn(Store& store, const std::string& words) noexcept {
  try {
    if (store.services().warn) store.services().warn(words);
  } catch (...) {  // no memory for it; what it is about is counted
  }
}

// Only while a thread is inside, with the entry's lock.
std::shared_ptr<Store> keep(const EntryState& entry) {
  return entry.store->shared_from_this();
}

// For how long a thread of this process has run; nothing where the system does not say.
std::optional<std::chrono::nanoseconds> time_run_by(pid_t thread) {
  // As pthread_getcpuclockid() makes it of a thread's number.
  const auto clock = static_cast<clockid_t>(~static_cast<uint32_t>(thread) << 3 | 6);
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// The one timer thread of the process. It ends where there is nothing to time for a while.
class Timer {
 public:
  // Looks at the entry's deadline at this time at the latest. False: there is no thread to do it, or no memory.
  bool watch(const std::shared_ptr<EntryState>& entry, Clock::time_point at) {
    const std::lock_guard lock(mutex_);
    try {
      watches_.add(entry, at);
    } catch (const std::bad_alloc&) {
      return false;
    }
    if (wake(at)) return true;
    watches_.remove(*entry);
    return false;
  }

  // With its store the entry goes. Without the entry's lock.
  void forget(const EntryState& entry) {
    const std::lock_guard lock(mutex_);
    watches_.remove(entry);
  }

  size_t watched() {
    const std::lock_guard lock(mutex_);
    return watches_.size();
  }

  // Repeats the signal for this outermost entry until it has ended.
  bool repeat(const std::shared_ptr<EntryState>& entry, uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    try {
      repeats_.push_back({entry, sequence, Clock::now() + kRepeat});
    } catch (const std::bad_alloc&) {
      return false;
    }
    if (wake(repeats_.back().at)) return true;
    repeats_.pop_back();
    return false;
  }

 private:
  struct Repeat {
    std::weak_ptr<EntryState> entry;
    uint64_t sequence;
    Clock::time_point at;
    uint32_t count = 0;
    bool told = false;  // that the thread does not get the signal
    // How long the thread had run when it first seemed to block the signal, or when it was last sent another one. Nothing
    // once a handler of ours was seen.
    std::optional<std::chrono::nanoseconds> blocked_at = std::nullopt;
    // Whether a thread that seems to block the signal does. So it also seems where the thread stands at the beginning or
    // end of our handler. On a busy machine that may be for long, but not while it runs.
    bool blocks(pid_t thread);
    // With the entry's lock.
    bool is_of(const EntryState& now) const { return now.depth != 0 && now.sequence == sequence; }
  };

  // With the lock. A thread that wakes by itself before `at` looks then at what there is. Hosts that give each of their
  // short calls a limit would else wake it for each.
  bool wake(Clock::time_point at) {
    if (running_) {
      if (at < waits_until_) changed_.notify_one();
      return true;
    }
    try {
      const HostSignalsBlocked blocked;
      std::thread([this] { run(); }).detach();
    } catch (const std::exception&) {  // no thread, or no memory for one
      return false;
    }
    return running_ = true;
  }

  // Allocates nothing: there is nobody to tell that it failed.
  void run() {
    std::unique_lock lock(mutex_);
    Clock::time_point idle_since = Clock::now();
    for (;;) {
      const Clock::time_point now = Clock::now();
      // Entries are touched without our lock.
      if (const auto entry = watches_.take_due(now)) {
        lock.unlock();
        look(entry, now);
        lock.lock();
        idle_since = now;
        continue;
      }
      const auto due = std::find_if(repeats_.begin(), repeats_.end(),
                                    [&](const Repeat& repeat) { return repeat.at <= now; });
      if (due != repeats_.end()) {
        std::list<Repeat> one;
        one.splice(one.begin(), repeats_, due);
        lock.unlock();
        const bool again = kick_again(one.front());
        lock.lock();
        idle_since = now;
        if (!again) continue;
        one.front().at = Clock::now() + (one.front().count < kQuickRepeats ? kRepeat : kSlowRepeat);
        repeats_.splice(repeats_.end(), one);
        continue;
      }
      Clock::time_point next = watches_.next();
      for (const Repeat& repeat : repeats_) next = std::min(next, repeat.at);
      if (watches_.empty() && repeats_.empty()) {
        next = idle_since + kPatience;
        if (next <= now) break;
      }
      // With the lock until it waits: whoever adds something finds it there.
      waits_until_ = next;
      changed_.wait_until(lock, next);
    }
    running_ = false;
  }

  static void look(const std::shared_ptr<EntryState>& shared, Clock::time_point now);
  static bool kick_again(Repeat& repeat);
  static void tell(const std::shared_ptr<Store>& store, pid_t thread, bool sent, const Reach& reach) noexcept;

  std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  bool running_ = false;
  Clock::time_point waits_until_;  // while it waits; else it looks again before it does
  WatchList watches_;
  std::list<Repeat> repeats_;
};

// Never destroyed: its thread may outlive static destructors. Another one in a child of fork(), which has neither
// the thread nor whoever may have held the lock: written where one thread lives.
Timer* g_timer = nullptr;

Timer& timer() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_timer = new Timer;
    at_fork_in_child([] { g_timer = new Timer; });
  });
  return *g_timer;
}

// With the entry's lock, and a thread inside. True if it was not marked before.
bool mark(Store& store, EntryState& entry) {
  jit::ThreadState& state = *store.thread();
  // The threads of a program whose time is up end as it does, and then ask for the end of its first one: by time.
  const bool timed_out =
      (entry.asked & (EntryState::kByTime | EntryState::kByEmbedder)) == EntryState::kByTime;
  const TrapCode code = timed_out ? TrapCode::kTimedOut : TrapCode::kInterrupted;
  const bool asked_before =
      state.interrupt_requested.exchange(static_cast<uint32_t>(code), std::memory_order_relaxed) != 0;
  // Release: whoever sees this limit sees the request.
  state.stack_limit.store(~uint64_t{0}, std::memory_order_release);
  (void)kick_thread(*entry.thread);  // comes again, and is looked into if nothing comes of it
  if (asked_before) return false;
  for (const auto& listener : entry.listeners) listener(true);
  return true;
}

void repeat_until_ended(const std::shared_ptr<Store>& store, uint64_t sequence) {
  if (timer().repeat(store->shared_entry_state(), sequence)) return;
  count_system_failure(SystemFailure::kInterruption, 0);
  warn(*store, "no thread can be started to repeat an interruption: a loop without calls may not notice it");
}

// The look that the timer's thread takes over: by itself, so it fails for want of memory alone.
bool watch_here(const std::shared_ptr<EntryState>& shared, Clock::time_point deadline) {
  Timer& timer = rt::timer();
  {
    EntryState& entry = *shared;
    const std::lock_guard lock(entry.mutex);
    // Entries come one after the other, and so do their deadlines: a look that comes early looks again later.
    if (entry.watched_by == &timer && entry.watched_at <= deadline) return true;
    entry.forget = [](const EntryState& gone) { rt::timer().forget(gone); };
    entry.watched_by = &timer;
    entry.watched_at = deadline;
  }
  // Another thread may have asked for a nearer look by now, and be the first here: the nearer one stays.
  if (timer.watch(shared, deadline)) return true;
  const std::lock_guard lock(shared->mutex);
  shared->watched_at = Clock::time_point::max();
  return false;
}

void ask_to_end(const std::shared_ptr<Store>& store, uint32_t reason) {
  uint64_t sequence = 0;
  {
    EntryState& entry = store->entry_state();
    const std::lock_guard lock(entry.mutex);
    // Decided under the lock: an entry that begins from now on sees it.
    entry.asked |= reason;
    if (entry.depth == 0 || !mark(*store, entry)) return;
    sequence = entry.sequence;
  }
  repeat_until_ended(store, sequence);
}

void Timer::look(const std::shared_ptr<EntryState>& shared, Clock::time_point now) {
  EntryState& entry = *shared;
  Clock::time_point later;
  uint64_t sequence = 0;
  bool expired = false;
  {
    const std::lock_guard lock(entry.mutex);
    entry.watched_at = Clock::time_point::max();
    if (entry.depth == 0) return;  // its next entry asks for a look
    sequence = entry.sequence;
    later = entry.deadline;
    expired = later <= now;
    if (expired) {
      entry.deadline = Clock::time_point::max();
      entry.asked |= EntryState::kByTime;
      if (!mark(*entry.store, entry)) return;
    }
  }
  if (!expired && later == Clock::time_point::max()) return;
  // By this very thread: fails for want of memory alone.
  if (expired ? timer().repeat(shared, sequence) : watch_here(shared, later)) return;
  count_system_failure(SystemFailure::kInterruption, ENOMEM);
}

// False: that entry has ended.
bool Timer::kick_again(Repeat& repeat) {
  const auto shared = repeat.entry.lock();
  if (!shared) return false;
  EntryState& entry = *shared;
  bool sent = false, noticed = false, handles = false;
  pid_t thread = 0;
  {
    const std::lock_guard lock(entry.mutex);
    if (!repeat.is_of(entry)) return false;
    thread = entry.thread->tid;
    noticed = !entry.thread->kicked.load(std::memory_order_relaxed);
    handles = entry.thread->handles_kick.load(std::memory_order_relaxed);
    sent = kick_thread(*entry.thread);
  }
  if (noticed || handles) repeat.blocked_at.reset();
  if (++repeat.count % kRepeatsBeforeDoubt != 0) return true;
  // Our handler has had the one before: it comes, and the thread is where it only notes it. It may also not have run
  // since: the system is asked.
  if (sent && (noticed || handles)) return true;
  const Reach reach = reach_of(thread);
  if (!reach.blocked) repeat.blocked_at.reset();
  if (sent && !reach.replaced && !(reach.blocked && repeat.blocks(thread))) return true;
  // Said first: once the thread is reached, its call ends, and with it perhaps whoever listens.
  if (!repeat.told) {
    repeat.told = true;
    count_system_failure(SystemFailure::kInterruption, 0);
    std::shared_ptr<Store> store;
    {
      const std::lock_guard lock(entry.mutex);
      if (!repeat.is_of(entry)) return false;
      store = keep(entry);
    }
    tell(store, thread, sent, reach);
  }
  const std::lock_guard lock(entry.mutex);
  if (!repeat.is_of(entry)) return false;
  if (reach.other == 0 || reach.other_waits) return true;
  (void)kick_otherwise(*entry.thread, reach.other);  // comes again, as the other does
  repeat.blocked_at = time_run_by(thread);
  return true;
}

bool Timer::Repeat::blocks(pid_t thread) {
  const auto now = time_run_by(thread);
  if (!now) return true;
  if (!blocked_at) blocked_at = now;
  return *now - *blocked_at >= kRunsBeforeBlamed;
}

void Timer::tell(const std::shared_ptr<Store>& store, pid_t thread, bool sent, const Reach& reach) noexcept {
  try {
    const std::string kick = fmt::format("signal {} (SIGURG)", kick_signal());
    const std::string why =
        reach.replaced ? fmt::format("another handler of {} has taken the place of this library's", kick)
                       : fmt::format("thread {} {} {}", thread, sent ? "blocks" : "cannot be sent", kick);
    const std::string then = reach.other != 0 ? fmt::format(
                                                    "by which interruptions and time limits end loops "
                                                    "without calls: {} goes to thread {} in its "
                                                    "place",
                                                    reach.other == SIGBUS ? "SIGBUS" : "SIGSEGV", thread)
                                              : fmt::format(
                                                    "and neither SIGSEGV nor SIGBUS can take its place, so "
                                                    "an interruption or time limit cannot "
                                                    "end a loop without calls in thread {}",
                                                    thread);
    warn(*store, fmt::format("{}, {}: {}", why, then,
                             reach.replaced ? "have that handler hand on what it gets"
                                            : "unblock the signal in threads that run guests"));
  } catch (const std::bad_alloc&) {  // it is counted
  }
}

}  // namespace

void interrupt(const std::shared_ptr<Store>& store) {
  ask_to_end(store, EntryState::kByEmbedder);
}

void end_program(const std::shared_ptr<Store>& store) {
  ask_to_end(store, EntryState::kByProgram);
}

void clear_interrupt(const std::shared_ptr<Store>& store) {
  EntryState& entry = store->entry_state();
  const std::lock_guard lock(entry.mutex);
  entry.asked &= ~EntryState::kByEmbedder;
}

void continue_program(const std::shared_ptr<Store>& store) {
  EntryState& entry = store->entry_state();
  const std::lock_guard lock(entry.mutex);
  entry.asked &= ~EntryState::kByProgram;
}

size_t watched_entries() {
  return timer().watched();
}

bool watch_deadline(Store& store, Clock::time_point deadline) {
  return watch_here(store.shared_entry_state(), deadline);
}

void set_timeout(const std::shared_ptr<Store>& store, std::chrono::milliseconds limit) {
  Clock::time_point deadline;
  {
    EntryState& entry = store->entry_state();
    const std::lock_guard lock(entry.mutex);
    entry.limit = std::max(limit, std::chrono::milliseconds(0));
    if (entry.depth == 0) return;
    deadline = entry.deadline = deadline_of(entry.limit);
    entry.limited.store(deadline != Clock::time_point::max(), std::memory_order_relaxed);
    if (deadline == Clock::time_point::max()) return;
  }
  if (watch_deadline(*store, deadline)) return;
  count_system_failure(SystemFailure::kInterruption, 0);
  warn(*store, "no thread can be started to watch the time limit of the call that is running");
}

}  // namespace hindsight::rt
