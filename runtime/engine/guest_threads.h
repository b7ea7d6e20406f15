// GuestThreads: the threads of one program, after wasi-threads. A guest that imports "wasi" "thread-spawn"
// gets a native thread for each call of it. On it a new instance of the guest's module, in a store of its
// own, runs its start function. Then it runs the export wasi_thread_start(thread id, argument). What the
// instances share is the imported shared memory, the WASI context and the embedder's functions. Globals,
// tables and other memories each instance has for itself. A thread enters guest code like any other. It has
// its own ThreadState, LWP unit, activation chain and signal stack, so all that works for guests on several
// threads works here.
//
// The program is over when its first thread's outermost entry traps, exits or is interrupted, or when _start
// returns. It is also over when any other thread traps or exits. Then every thread is ended as by an
// interruption, also those that wait in memory.atomic.wait or in a WASI call. Each is marked before the calls
// are woken, so that none goes on. The first thread joins them on its way out, and its entry ends with what
// ended the program first. A call of another export that returns leaves the threads running; so a later call
// may wait for them.
//
// Threads: spawn() and end() are called by any thread of the program. The rest is called by the thread that
// is, or is to be, inside the first store.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/instance/instance.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {

class EngineHandle;

inline constexpr std::string_view kThreadModule = "wasi";
inline constexpr std::string_view kThreadSpawn = "thread-spawn";

class GuestThreads : public std::enable_shared_from_this<GuestThreads> {
 public:
  static constexpr int32_t kMostThreadId = (1 << 29) - 1;  // as wasi-threads has it; the first is 1
  static constexpr uint64_t kMostThreads = 1 << 20;        // at a time, whatever the limit: fewer than ids

  // `engine` outlives this.
  GuestThreads(EngineHandle& engine, const std::shared_ptr<Store>& first);
  ~GuestThreads();  // Precondition: finish() left none
  GuestThreads(const GuestThreads&) = delete;
  GuestThreads& operator=(const GuestThreads&) = delete;

  // WasiBinding::interrupt of a WASI that the program uses. Before any thread is spawned that does.
  void add_wasi(std::function<void(bool)> interrupt);
  // True if `module` wants to spawn threads.
  static bool wanted_by(const wasm::Module& module);
  // Why instances of `module`, which wants to, cannot be made again for each thread. `imports`: what the
  // first one gets. Error: kLink.
  static Status check(const wasm::Module& module, const std::vector<Extern>& imports);

  // An interruption of the first store (true), or its end: so for all threads and for WASI calls. Lock order:
  // the first store's EntryState, then ours, then the other stores' EntryStates.
  void interrupt(bool interrupted);

  // thread-spawn, called by `caller`: the thread's id, or a negative WASI errno.
  int32_t spawn(Instance& caller, uint32_t argument);

  // The first thread has left guest code with `status` and the trap in its store; `over`: the program ends
  // even if nothing failed. Ends and joins all threads if the program is over. What the first thread is to
  // end with: what another thread ended the program with, or `status`.
  Status settle(const Status& status, bool over);
  // Ends and joins all threads, for the store's end.
  void finish();

 private:
  struct Thread;
  void run(Thread& thread);
  Status enter_thread(Thread& thread);
  Status prepare(Thread& thread, Instance& caller);
  // A thread ended with `trap`: so does the program, if nothing did before.
  void end(GuestTrap trap);
  bool ended() const;
  std::vector<std::shared_ptr<Store>> stores() const;  // of the threads; under mutex_
  int32_t take_id();                                   // under mutex_; 0: none is free
  void reap();                                         // joins those that have ended

  EngineHandle& engine_;
  const uint64_t most_;  // threads at a time
  // Some thread was spawned once. Set by the first thread itself, or on a thread that came after it: relaxed
  // is enough for the first thread, which alone asks.
  std::atomic<bool> used_{false};
  const std::weak_ptr<Store> first_;
  mutable std::mutex mutex_;  // protects what follows
  std::vector<std::function<void(bool)>> wasi_;
  std::vector<std::shared_ptr<Thread>> threads_;
  int32_t last_id_ = 0;
  bool ended_ = false;                // no thread may begin
  std::optional<GuestTrap> outcome_;  // of the thread that ended the program
};

}  // namespace hindsight::rt
