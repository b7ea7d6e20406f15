// GuestThread: what the process knows of a thread that has entered guest code: stack bounds, alternate signal
// stack, the chain of guest entries it is in. Created at the thread's first entry, gone when the thread ends.
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
  uintptr_t stack_begin = 0;
  uintptr_t stack_end = 0;
  std::atomic<Activation*> activation{nullptr};
  // Stack address of the outermost enter(), or 0 outside. Set before any entry slot is read.
  std::atomic<uintptr_t> inside{0};
  FaultRecord fault;
  // The generation of quiescence scan that this thread answered last.
  std::atomic<uint64_t> scan_answer{0};
  uint64_t scan_asked = 0;  // the generation that it was asked for; the scanner's own
  void* signal_stack = nullptr;  // ours, if the thread had none
  size_t signal_stack_bytes = 0;
};

// The calling thread's, created at first use. Installs the signal handlers (once a process).
GuestThread& this_guest_thread();
// The calling thread's, or null. Async-signal-safe.
GuestThread* this_guest_thread_or_null() noexcept;

// Calls `visit` for every thread with a GuestThread, under the list's lock (threads cannot end meanwhile).
void for_each_guest_thread(const std::function<void(GuestThread&)>& visit);

}  // namespace hindsight::rt
