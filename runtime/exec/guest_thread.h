// GuestThread: what the process knows of a thread that has entered guest code. That is stack bounds, alternate signal
// stack, and the chain of guest entries it is in. Created at the thread's first entry, gone when the thread ends.
//
// Stacks. A host may have stacks of its own and change between them while it is in a function that a guest called
// (fibers, coroutines). So a thread's entries are in no order of addresses. The newest need not be the one that runs, and
// an older one may end before it. What holds is this:
//   - Guest code and what it calls of ours stay on one stack. So what an entry's guest has on a stack is a range: from
//     Activation::frame down to where the thread is, if the entry runs, else to Activation::low.
//   - An entry that does not run is in a function of the host's. All it has in registers was written above its `low`.
//   - When such a function returns, its entry runs again, and nothing else says so. So it is looked then whether the
//     thread's state is still this entry's, and else that is put back (go_on_in, in enter.cc).
//
// Concurrency: signal handlers run on the thread itself and read its fields; `inside` is also read by the
// quiescence scanner (see quiescence.h for the argument). Everything else is the thread's own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "jit/abi/vm_context.h"

namespace hindsight::rt {

class Store;

struct GuestThread;

// One guest entry, on the stack of enter().
struct Activation {
  // In the thread's list of those that have not ended, by when they began. Relaxed: `previous` is read by signal handlers
  // of this thread.
  std::atomic<Activation*> previous{nullptr};
  Activation* next = nullptr;
  // The thread had the state of `previous` when it began, so it has that again at its end.
  bool leads_back = false;
  Store* store = nullptr;
  GuestThread* thread = nullptr;
  uintptr_t frame = 0;  // address of enter()'s
  // While it is in a function of the host's: below all that its guest has on the stack, registers included. 0: it runs.
  // Relaxed: read by signal handlers of this thread alone.
  std::atomic<uintptr_t> low{0};
  // The same while: frame address of the C++ function through which the guest called, and this entry's
  // ThreadState::entry_sp.
  uintptr_t host_frame = 0;
  uint64_t entry_sp = 0;
  uintptr_t stack_begin = 0, stack_end = 0;  // GuestThread's, as the entry needs them
  uint64_t limit = 0;                        // ThreadState::native_stack_limit, the same
};

// Written by the fault handler, read by the function that it redirects the thread to.
struct FaultRecord {
  enum class Kind : uint8_t { kNone, kMemoryFault, kInterrupt };
  Kind kind = Kind::kNone;
  uintptr_t pc = 0;
  uintptr_t fp = 0;
  uintptr_t sp = 0;
  uintptr_t address = 0;
};

struct GuestThread {
  pid_t tid = 0;
  uint64_t id = 0;  // unique in the process, never reused, never 0
  // Bounds of the stack that the innermost entry is on: the thread's own, but for hosts that run guests on stacks of
  // theirs (see StackOfEntry).
  uintptr_t stack_begin = 0;
  uintptr_t stack_end = 0;
  uintptr_t own_stack_begin = 0;  // constant
  uintptr_t own_stack_end = 0;
  // Relaxed, both: read by signal handlers of this thread alone. The newest entry that has not ended:
  std::atomic<Activation*> entries{nullptr};
  // The one that runs, while guest code or a function of ours that it called does. In functions of the host's: the one
  // whose state the thread and its store have, or null. Invariant: it is its store's (Store::activation).
  std::atomic<Activation*> activation{nullptr};
  // Not 0 while there is an entry that has not ended. Set before any entry slot is read.
  std::atomic<uintptr_t> inside{0};
  FaultRecord fault;
  // A kick of ours may be on its way. Set by whoever sends one, cleared by the handler: a signal without it is the
  // host's.
  std::atomic<bool> kicked{false};
  // How many signals of faults that were sent in its place (Reach::other) may be on their way. One may wait while the
  // handler of another has only begun. Raised by whoever sends one, lowered by the handler. One that the kernel dropped
  // stays counted.
  std::atomic<uint32_t> kicks_otherwise{0};
  // In our handler of the kick, for which the kernel blocks it.
  std::atomic<bool> handles_kick{false};
  uint32_t entries_until_look = 0;  // at the signals that the thread blocks (interrupt.h)
  // Entries to come that look, each of them; kAlways: no end of these. One more than kFirstLooks: it has not entered yet.
  uint32_t looks_one_after_another = kFirstLooks + 1;
  static constexpr uint32_t kFirstLooks = 16;
  static constexpr uint32_t kAlways = UINT32_MAX;
  // The generation of quiescence scan that this thread answered last.
  std::atomic<uint64_t> scan_answer{0};
  uint64_t scan_asked = 0;  // the generation that it was asked for; the scanner's own
  uint64_t scan_missed =
      0;  // the one that it had not answered in time, and nothing since; 0: none. The scanner's own
  // In the list of all threads, under its lock.
  GuestThread* previous = nullptr;
  GuestThread* next = nullptr;
  void* signal_stack = nullptr;  // ours, if the thread had none
  size_t signal_stack_bytes = 0;
};

// Has `handler` called in children of fork(), on their only thread.
void at_fork_in_child(void (*handler)());

// Makes stack_begin and stack_end those of the stack that `frame`, an address of the running function, is on, until
// its end. Costs a comparison where they are already.
//
// A stack of the host's own ends where the mapping ends that it is in. That is asked at each entry, for some microseconds
// (kernels before 6.11: some tens). Hosts unmap stacks and map others in their places, and nobody tells. Where the
// system does not say, kUnknownStackBytes are taken to be there.
class StackOfEntry {
 public:
  static constexpr uintptr_t kUnknownStackBytes = 128 * 1024;

  StackOfEntry(GuestThread& thread, uintptr_t frame) {
    if (frame - thread.stack_begin >= thread.stack_end - thread.stack_begin) [[unlikely]]
      change(thread, frame);
  }
  ~StackOfEntry() {
    if (changed_ != nullptr) [[unlikely]]
      restore();
  }
  StackOfEntry(const StackOfEntry&) = delete;
  StackOfEntry& operator=(const StackOfEntry&) = delete;

 private:
  void change(GuestThread& thread, uintptr_t frame);
  void restore();
  GuestThread* changed_ = nullptr;
  uintptr_t begin_ = 0, end_ = 0;
};

// The calling thread's, created at first use. Installs the signal handlers (once a process).
GuestThread& this_guest_thread();
// The calling thread's, or null. Async-signal-safe.
GuestThread* this_guest_thread_or_null() noexcept;

// Whether all memory from `begin` to `end` is now in one mapping that can be written to, as stacks are. A system call or
// several.
bool is_one_mapping(uintptr_t begin, uintptr_t end);

// Calls `visit` for every thread with a GuestThread, under the list's lock (threads cannot end meanwhile).
void for_each_guest_thread(const std::function<void(GuestThread&)>& visit);

}  // namespace hindsight::rt
