#include "runtime/exec/guest_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/exec/signal_handlers.h"

namespace hindsight::rt {
namespace {

constexpr size_t kSignalStackBytes = 128 * 1024;  // AVX-512 frames, sanitizers, a chained handler
constexpr size_t kLeastSignalStackBytes = 32 * 1024;

// Read by signal handlers of any thread at any time: initial-exec, so that the access is one instruction and
// never allocates.
[[gnu::tls_model("initial-exec")]] constinit thread_local GuestThread* t_thread = nullptr;

struct ThreadList {
  std::mutex mutex;  // protects threads; held while a thread leaves the list
  std::vector<GuestThread*> threads;
};
ThreadList& thread_list() {
  // Never destroyed: threads may end after static destructors ran.
  static auto* list = new ThreadList;
  return *list;
}

void find_stack(GuestThread& thread) {
  pthread_attr_t attributes;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
    // Nothing known: trust what any thread has.
    thread.stack_begin = here - 256 * 1024;
    thread.stack_end = here + 4096;
    return;
  }
  void* begin = nullptr;
  size_t bytes = 0;
  size_t guard = 0;
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_getguardsize(&attributes, &guard);
  pthread_attr_destroy(&attributes);
  thread.stack_begin = reinterpret_cast<uintptr_t>(begin) + guard;
  thread.stack_end = reinterpret_cast<uintptr_t>(begin) + bytes;
  // An unlimited stack rlimit gives the main thread a range that other mappings may lie in.
  constexpr uintptr_t kMost = uintptr_t{64} << 20;
  if (here - thread.stack_begin > kMost) thread.stack_begin = here - kMost;
}

void give_signal_stack(GuestThread& thread) {
  stack_t present{};
  if (sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE) &&
      present.ss_size >= kLeastSignalStackBytes)
    return;
  void* p = ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return;  // handlers then run on the thread's own stack, which has a reserve
  const stack_t mine{.ss_sp = p, .ss_flags = 0, .ss_size = kSignalStackBytes};
  if (sigaltstack(&mine, nullptr) != 0) {
    ::munmap(p, kSignalStackBytes);
    return;
  }
  thread.signal_stack = p;
  thread.signal_stack_bytes = kSignalStackBytes;
}

void take_signal_stack(GuestThread& thread) {
  if (thread.signal_stack == nullptr) return;
  stack_t present{};
  if (sigaltstack(nullptr, &present) == 0 && present.ss_sp == thread.signal_stack) {
    stack_t off{};
    off.ss_flags = SS_DISABLE;
    sigaltstack(&off, nullptr);
  }
  ::munmap(thread.signal_stack, thread.signal_stack_bytes);
}

// Ends a GuestThread with its thread.
struct ThreadOwner {
  std::unique_ptr<GuestThread> thread;
  ~ThreadOwner() {
    if (!thread) return;
    ThreadList& list = thread_list();
    {
      const std::lock_guard lock(list.mutex);
      std::erase(list.threads, thread.get());
      t_thread = nullptr;
    }
    take_signal_stack(*thread);
  }
};
thread_local ThreadOwner t_owner;

[[gnu::noinline]] GuestThread& make_guest_thread() {
  install_signal_handlers();
  auto thread = std::make_unique<GuestThread>();
  // Only uniqueness matters.
  static std::atomic<uint64_t> next_id{1};
  thread->id = next_id.fetch_add(1, std::memory_order_relaxed);
  thread->tid = gettid();
  find_stack(*thread);
  give_signal_stack(*thread);
  sigset_t kick;
  sigemptyset(&kick);
  sigaddset(&kick, kick_signal());
  pthread_sigmask(SIG_UNBLOCK, &kick, nullptr);
  GuestThread* p = thread.get();
  t_owner.thread = std::move(thread);
  ThreadList& list = thread_list();
  const std::lock_guard lock(list.mutex);
  list.threads.push_back(p);
  t_thread = p;
  return *p;
}

}  // namespace

GuestThread& this_guest_thread() {
  GuestThread* thread = t_thread;
  if (thread != nullptr) [[likely]]
    return *thread;
  return make_guest_thread();
}

GuestThread* this_guest_thread_or_null() noexcept {
  return t_thread;
}

void for_each_guest_thread(const std::function<void(GuestThread&)>& visit) {
  ThreadList& list = thread_list();
  const std::lock_guard lock(list.mutex);
  for (GuestThread* thread : list.threads) visit(*thread);
}

}  // namespace hindsight::rt
