// ThreadHooks: what a profiler wants to know of running guests. ThreadAttachments: which threads have an LWP
// unit of an engine. A unit is attached when a thread first enters guest code of the engine. It is detached
// when the thread ends or the engine goes, whichever is first.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "jit/abi/loop_cell.h"
#include "runtime/exec/lwp_sink.h"

namespace hindsight::rt {

class Store;

// Implemented by the tier manager. All calls come on guest threads.
class ThreadHooks {
 public:
  virtual ~ThreadHooks() = default;
  // This thread is about to enter guest code of this engine for the first time. Returns its unit; null: none.
  // The caller holds one reference until the thread or the engine ends.
  virtual std::shared_ptr<LwpSink> on_first_entry(Store& store) = 0;
  // LoopCell::countdown became negative. Must re-arm the cell.
  virtual void strip_ended(Store& store, jit::VmContext* context, jit::LoopCell* cell) = 0;
  // Code of the module has grown the memory at `base` from so many bytes to so many.
  virtual void memory_grown(const wasm::Module* /*module*/, uint64_t /*base*/, uint64_t /*old_bytes*/,
                            uint64_t /*bytes*/) {}
};

// One an engine. Thread-safe.
class ThreadAttachments {
 public:
  ThreadAttachments();
  ~ThreadAttachments();  // detaches every thread's unit
  ThreadAttachments(const ThreadAttachments&) = delete;
  ThreadAttachments& operator=(const ThreadAttachments&) = delete;

  // Detaches all units now and attaches none from now on. For an engine's orderly end: hooks may go after it.
  void shut_down();
  // The calling thread's unit, attached by `hooks` if this is the thread's first entry; null: none.
  LwpSink* enter(ThreadHooks& hooks, Store& store);
  size_t attached() const;

 private:
  struct Attachment;
  struct Shared;
  friend struct ThreadSinks;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hindsight::rt
