// GuestThread: what the process knows of a thread that has entered guest code. That is stack bounds, alternate signal
// stack, and the chain of guest entries it is in. Created at the thread's first entry, gone when the thread ends.
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

// One guest entry, on the stack of enter(). Innermost first.
struct Activation {
  Activation* previous = nullptr;
  Store* store = nullptr;
  // Frame address of the C++ function through which the guest one activation out called the host; 0 if none.
  uintptr_t host_frame = 0;
  // This entry's ThreadState::entry_sp, valid only while a further entry is nested in it.
  uint64_t entry_sp = 0;
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
  // An entry is nested in one on another stack: a walk from the one stack to the other leads through neither.
  // Relaxed: read by signal handlers of this thread alone.
  std::atomic<bool> on_several_stacks{false};
  std::atomic<Activation*> activation{nullptr};
  // Stack address of the outermost enter(), or 0 outside. Set before any entry slot is read.
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
  bool on_several_ = false;
};

// The calling thread's, created at first use. Installs the signal handlers (once a process).
GuestThread& this_guest_thread();
// The calling thread's, or null. Async-signal-safe.
GuestThread* this_guest_thread_or_null() noexcept;

// Calls `visit` for every thread with a GuestThread, under the list's lock (threads cannot end meanwhile).
void for_each_guest_thread(const std::function<void(GuestThread&)>& visit);

}  // namespace hindsight::rt
