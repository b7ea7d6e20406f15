#include "runtime/exec/guest_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <type_traits>

#include "base/system_failures.h"
#include "runtime/exec/signal_handlers.h"

namespace hindsight::rt {
namespace {

constexpr size_t kSignalStackBytes = 128 * 1024;  // AVX-512 frames, sanitizers, a chained handler
constexpr size_t kLeastSignalStackBytes = 32 * 1024;

// Read by signal handlers of any thread at any time: initial-exec, so that the access is one instruction and
// never allocates.
[[gnu::tls_model("initial-exec")]] constinit thread_local GuestThread* t_thread = nullptr;

// Linked through the threads themselves: a child of fork() can make it new without memory for it.
struct ThreadList {
  std::mutex mutex;  // protects the rest, and each thread's links; held while a thread leaves the list
  GuestThread* first = nullptr;

  void add(GuestThread& thread) {
    thread.previous = nullptr;
    thread.next = first;
    if (first != nullptr) first->previous = &thread;
    first = &thread;
  }
  void remove(const GuestThread& thread) {
    (thread.previous != nullptr ? thread.previous->next : first) = thread.next;
    if (thread.next != nullptr) thread.next->previous = thread.previous;
  }
};
// Never destroyed: threads may end after static destructors ran.
constinit ThreadList g_threads;
static_assert(std::is_trivially_destructible_v<ThreadList>);

void find_stack(GuestThread& thread) {
  pthread_attr_t attributes;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
    // Nothing known: trust what any thread has.
    thread.stack_begin = thread.own_stack_begin = here - 256 * 1024;
    thread.stack_end = thread.own_stack_end = here + 4096;
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
  const bool inside = here >= thread.stack_begin && here < thread.stack_end;
  const uintptr_t from = inside ? here : thread.stack_end;
  if (from - thread.stack_begin > kMost) thread.stack_begin = from - kMost;
  thread.own_stack_begin = thread.stack_begin;
  thread.own_stack_end = thread.stack_end;
}

struct Range {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t address) const { return address >= begin && address < end; }
};

// linux/fs.h has it since 6.11: one mapping, by an address in it.
struct MappingQuery {
  uint64_t size = sizeof(MappingQuery);
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t begin = 0, end = 0;  // from here on the answer
  uint64_t protection = 0;      // 1: readable, 2: writable
  uint64_t page_bytes = 0, offset = 0, inode = 0;
  uint32_t device[2] = {};
  uint32_t name_size = 0, build_id_size = 0;
  uint64_t name = 0, build_id = 0;
};
static_assert(sizeof(MappingQuery) == 104);
constexpr unsigned long kQueryMapping = _IOWR('f', 17, MappingQuery);

// The writable mapping around an address, or nothing where the system does not say. With little stack: this may run
// on a small one.
Range mapping_around(uintptr_t address) {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  MappingQuery query;
  query.address = address;
  if (::ioctl(fd, kQueryMapping, &query) == 0) {
    ::close(fd);
    const bool fits = (query.protection & 2) != 0 && address >= query.begin && address < query.end;
    return fits ? Range{query.begin, query.end} : Range{};
  }
  // Each line: begin-end rw.. and the rest.
  Range line;
  enum { kBegin, kEnd, kRead, kWrite, kRest } at = kBegin;
  bool writable = false;
  Range found;
  char buffer[1024];
  for (;;) {
    const ssize_t bytes = ::read(fd, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0 || found.end != 0) break;
    for (const char c : std::span(buffer, static_cast<size_t>(bytes))) {
      const auto digit = [c] { return static_cast<uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
      if (c == '\n') {
        if (writable && line.contains(address)) found = line;
        line = {};
        at = kBegin;
      } else if (at == kBegin) {
        if (c == '-')
          at = kEnd;
        else
          line.begin = line.begin << 4 | digit();
      } else if (at == kEnd) {
        if (c == ' ')
          at = kRead;
        else
          line.end = line.end << 4 | digit();
      } else if (at == kRead) {
        at = kWrite;
      } else if (at == kWrite) {
        writable = c == 'w';
        at = kRest;
      }
    }
  }
  ::close(fd);
  return found;
}

Range stack_around(const GuestThread& thread, uintptr_t frame) {
  const Range own{thread.own_stack_begin, thread.own_stack_end};
  if (own.contains(frame)) return own;
  const Range found = mapping_around(frame);
  if (found.end == 0) {
    constexpr uintptr_t kUnknown = StackOfEntry::kUnknownStackBytes;
    return {frame > kUnknown ? frame - kUnknown : 0, frame + 4096};
  }
  return found;
}

void give_signal_stack(GuestThread& thread) {
  stack_t present{};
  if (sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE) &&
      present.ss_size >= kLeastSignalStackBytes)
    return;
  void* p = ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // Without one, handlers run on the thread's own stack, which has a reserve.
  if (p == MAP_FAILED) return count_system_failure(SystemFailure::kSignalStack, errno);
  const stack_t mine{.ss_sp = p, .ss_flags = 0, .ss_size = kSignalStackBytes};
  if (sigaltstack(&mine, nullptr) != 0) {
    count_system_failure(SystemFailure::kSignalStack, errno);
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
    {
      const std::lock_guard lock(g_threads.mutex);
      g_threads.remove(*thread);
      t_thread = nullptr;
    }
    take_signal_stack(*thread);
  }
};
thread_local ThreadOwner t_owner;

// The child's one thread has another number than the one it was copied from, and the others are not there. One of them
// may have held the lock, as long as a scan waits for answers, or may have been changing the list. So it is made anew.
void keep_this_thread_alone() {
  new (&g_threads) ThreadList;
  GuestThread* const thread = t_thread;
  if (thread != nullptr) {
    thread->tid = gettid();
    // Signals that wait for the parent's thread do not come to the child's. Relaxed: there is nobody else.
    thread->kicks_otherwise.store(0, std::memory_order_relaxed);
    g_threads.add(*thread);
  }
}

[[gnu::noinline]] GuestThread& make_guest_thread() {
  install_signal_handlers();
  static std::once_flag once;
  std::call_once(once, [] { at_fork_in_child(keep_this_thread_alone); });
  auto thread = std::make_unique<GuestThread>();
  // Only uniqueness matters.
  static std::atomic<uint64_t> next_id{1};
  thread->id = next_id.fetch_add(1, std::memory_order_relaxed);
  thread->tid = gettid();
  find_stack(*thread);
  give_signal_stack(*thread);
  GuestThread* p = thread.get();
  t_owner.thread = std::move(thread);
  const std::lock_guard lock(g_threads.mutex);
  g_threads.add(*p);
  t_thread = p;
  return *p;
}

}  // namespace

void StackOfEntry::change(GuestThread& thread, uintptr_t frame) {
  const Range stack = stack_around(thread, frame);
  changed_ = &thread;
  begin_ = thread.stack_begin;
  end_ = thread.stack_end;
  thread.stack_begin = stack.begin;
  thread.stack_end = stack.end;
}

void StackOfEntry::restore() {
  changed_->stack_begin = begin_;
  changed_->stack_end = end_;
}

GuestThread& this_guest_thread() {
  GuestThread* thread = t_thread;
  if (thread != nullptr) [[likely]]
    return *thread;
  return make_guest_thread();
}

GuestThread* this_guest_thread_or_null() noexcept {
  return t_thread;
}

bool is_one_mapping(uintptr_t begin, uintptr_t end) {
  const Range found = mapping_around(begin);
  return found.contains(begin) && end <= found.end;
}

void at_fork_in_child(void (*handler)()) {
  // Without memory for it children go without time limits, as if nobody had asked.
  (void)pthread_atfork(nullptr, nullptr, handler);
}

void for_each_guest_thread(const std::function<void(GuestThread&)>& visit) {
  const std::lock_guard lock(g_threads.mutex);
  for (GuestThread* thread = g_threads.first; thread != nullptr; thread = thread->next) visit(*thread);
}

}  // namespace hindsight::rt
