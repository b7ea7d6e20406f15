// Store: everything that may refer to each other. That is instances linked together, their memories, tables, globals and
// host functions, and the ThreadState of the thread that runs them. It only grows; all goes when the store goes. (An
// instance that failed to initialize stays too: its functions may already be in shared tables.)
//
// Threads: one thread at a time uses a store. Exceptions: EntryState, which interrupt() of any thread locks,
// publishing code to instances, which any thread may do, and shared memories, which several stores may own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jit/abi/builtins.h"
#include "jit/abi/trampolines.h"
#include "jit/abi/vm_context.h"
#include "jit/code/code_registry.h"
#include "jit/compile_options.h"
#include "runtime/instance/exception_heap.h"
#include "runtime/instance/guest_frame.h"
#include "runtime/instance/host_function.h"
#include "runtime/instance/memory.h"
#include "runtime/instance/store_budget.h"
#include "runtime/instance/table.h"
#include "runtime/instance/tag.h"
#include "runtime/instance/wait_queue.h"

namespace hindsight::rt {

class Instance;
struct Activation;        // runtime/exec/guest_thread.h
struct GuestThread;       // the same
class ThreadHooks;        // runtime/exec/thread_hooks.h
class ThreadAttachments;  // runtime/exec/thread_hooks.h

// What a store uses of its engine. All pointers outlive the store (`keep_alive` may hold their owner).
struct StoreServices {
  const jit::Builtins* builtins = nullptr;
  jit::Trampolines* trampolines = nullptr;
  const jit::CodeRegistry* registry = nullptr;
  uint32_t (*dispatch)(jit::HostCallee*, uint64_t*) = nullptr;  // runtime/exec's dispatch_host_call
  jit::BoundsChecks bounds = jit::BoundsChecks::kGuardPages;
  uint64_t max_memory_bytes = uint64_t{16} << 30;
  size_t max_stack_bytes = size_t{1} << 20;
  ThreadHooks* hooks = nullptr;                  // may be null
  ThreadAttachments* attachments = nullptr;      // may be null
  std::shared_ptr<StoreBudget> budget;           // null: one of its own, with the usual limits
  std::function<void(const std::string&)> warn;  // for the embedder's log, any thread; may be empty
  std::shared_ptr<void> keep_alive;
};

// Why the last entry was unwound.
struct GuestTrap {
  jit::TrapCode code = jit::TrapCode::kNone;
  std::string detail;              // faulting address, host error's words; may be empty
  std::vector<GuestFrame> frames;  // innermost first, through nested entries, at most kMaxBacktraceFrames
  uint64_t frames_left_out = 0;
  uint32_t exit_code = 0;  // kExit
  // kUncaughtException; kept alive by the store while this is its trap.
  jit::ExceptionRecord* exception = nullptr;
};

// Which thread is inside the store's guest code, for interrupt(). See runtime/exec/interrupt.h.
//
// Lives as long as its store, or as whoever watches it. The timer keeps this, and never a store, so that no store ends on
// the timer's thread. `store` may be used under the mutex while a thread is inside, which keeps it.
struct EntryState {
  std::mutex mutex;  // protects the rest, but for what is atomic
  Store* store = nullptr;
  // Called with true when an interruption is requested (any thread) and with false when the interrupted entry has ended.
  // The mutex is held, so they must be short and must not enter the guest. For host functions that block: they can be
  // woken.
  std::vector<std::function<void(bool interrupted)>> listeners;
  void add_listener(std::function<void(bool)> listener) {
    const std::lock_guard lock(mutex);
    listeners.push_back(std::move(listener));
  }
  // Who wants an entry to end.
  static constexpr uint32_t kByEmbedder = 1, kByProgram = 2, kByTime = 4;
  uint32_t asked = 0;
  uint64_t sequence = 0;               // of the outermost entries; never reused
  uint32_t depth = 0;                  // nested entries; 0 = outside
  GuestThread* thread = nullptr;       // the one inside
  std::chrono::milliseconds limit{0};  // of each outermost entry; zero: none
  using TimePoint = std::chrono::steady_clock::time_point;
  TimePoint deadline = TimePoint::max();    // of the one that a thread is in
  TimePoint watched_at = TimePoint::max();  // when the timer looks at the deadline next
  const void* watched_by = nullptr;         // which timer: a child of fork() has another
  // Called without the mutex as the store goes: who watches the entry forgets it. Null: nobody has.
  void (*forget)(const EntryState&) = nullptr;
  // The entry that a thread is in has a deadline, or had. Written with the mutex held, read by the thread inside without
  // it. Relaxed suffices, since it says nothing but itself, and a thread that learns of a limit late only leaves its
  // signals as they are.
  std::atomic<bool> limited{false};
};

class Store : public std::enable_shared_from_this<Store> {
 public:
  static std::shared_ptr<Store> create(StoreServices services);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Result<Memory*> add_memory(const wasm::MemoryType& type, uint32_t index);  // kResource; see Memory::create
  void keep_memory(std::shared_ptr<Memory> shared) { memories_.push_back(std::move(shared)); }
  Result<Table*> add_table(const wasm::TableType& type);                    // kResource
  Global* add_global(const wasm::GlobalType& type, jit::GlobalCell* cell);  // cell: see Global
  Tag* add_tag(uint32_t type_id, std::string name);                         // type_id: canonical
  // The dispatch function is StoreServices::dispatch. Errors: kResource (no trampoline).
  Result<HostFunction*> add_host_function(wasm::FuncType type, std::string name, RawHostFunction body);
  // A copy of `function` that knows its caller; lives as long as the store.
  BoundHostFunction* bind(HostFunction& function, Instance& caller);
  Instance* add_instance(std::unique_ptr<Instance> instance);
  // Whether there is such a function: what the embedder passes as a reference may be anything. O(log n).
  bool is_function(const void* reference) const;

  jit::ThreadState* thread() const { return thread_.get(); }
  const StoreServices& services() const { return services_; }
  const std::shared_ptr<StoreBudget>& budget() const { return services_.budget; }
  const void* unwind() const { return unwind_; }
  EntryState& entry_state() { return *entry_; }
  const std::shared_ptr<EntryState>& shared_entry_state() { return entry_; }
  ExceptionHeap& exceptions() { return exceptions_; }
  const ExceptionHeap& exceptions() const { return exceptions_; }
  // Marks what the store's tables, globals and trap refer to. Not what is on threads' stacks.
  void mark_exceptions();
  Parker& parker() { return parker_; }  // interruptions of the store wake who waits in it
  const std::deque<std::unique_ptr<Instance>>& instances() const { return instances_; }

  // The last entry's; empty if it returned normally.
  std::optional<GuestTrap> trap;
  // The entry that runs, or the one whose host function does: runtime/exec's own (guest_thread.h). Null: none.
  Activation* activation = nullptr;
  // Whoever embeds the store may leave a pointer to what it keeps for it.
  void* embedder = nullptr;
  // Which thread uses the store now, from outermost entry to its end; see store_use.h.
  std::atomic<const void*> user{nullptr};
  // Unique number of the GuestThread that entered last (0: none): says whether the LWP unit must be switched.
  uint64_t last_thread = 0;

 private:
  explicit Store(StoreServices services);
  StoreServices services_;
  const void* unwind_ = nullptr;
  std::unique_ptr<jit::ThreadState> thread_;
  const std::shared_ptr<EntryState> entry_ = std::make_shared<EntryState>();
  Parker parker_;
  std::deque<std::shared_ptr<Memory>> memories_;
  std::deque<std::unique_ptr<Table>> tables_;
  std::deque<std::unique_ptr<Global>> globals_;
  std::deque<std::unique_ptr<Tag>> tags_;
  ExceptionHeap exceptions_;
  std::vector<const Table*> exception_tables_;    // that hold exnrefs
  std::vector<const Global*> exception_globals_;  // the same; their instances are among instances_
  std::deque<std::unique_ptr<HostFunction>> host_functions_;
  std::deque<std::unique_ptr<BoundHostFunction>> bound_;
  std::map<uintptr_t, uintptr_t> func_refs_;         // where FuncRefs lie: begin and end of arrays of them
  std::deque<std::unique_ptr<Instance>> instances_;  // destroyed first
};

}  // namespace hindsight::rt
