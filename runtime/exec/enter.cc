#include "runtime/exec/enter.h"

#include <algorithm>
#include <utility>

#include "jit/abi/type_registry.h"
#include "runtime/exec/guest_thread.h"
#include "runtime/exec/interrupt.h"
#include "runtime/exec/signal_handlers.h"
#include "runtime/exec/thread_hooks.h"
#include "runtime/instance/store_use.h"

namespace hindsight::rt {
namespace {

// Stack that guest frames must leave for builtins, host functions and compilers on the same thread: a quarter of the
// stack, within these bounds.
constexpr uintptr_t kReserveBytes = 256 * 1024;
// Invariant: more than the largest frame of which code may take part of the reserve before it looks at the limit.
// That is kLargestFrame in jit/optimizing/optimizer.cc, and what jumps out of there need.
constexpr uintptr_t kLeastReserveBytes = 64 * 1024;

// A look at the signals that the thread blocks is a system call (100 ns where an entry takes 28). Once in so many
// entries it costs what one cannot measure.
constexpr uint32_t kEntriesBetweenLooks = 255;

uintptr_t reserve_of(const GuestThread& thread) {
  return std::clamp((thread.stack_end - thread.stack_begin) / 4, kLeastReserveBytes, kReserveBytes);
}

// What one entry changes and gives back: the thread's chain of activations, the store's entry state and
// stack limits. Not used while guest code unwinds: invoke has returned by then, always.
class EntryScope {
 public:
  EntryScope(Store& store, GuestThread& thread, uintptr_t frame) : store_(store), thread_(thread) {
    jit::ThreadState& state = *store.thread();
    Activation* const newest = thread.entries.load(std::memory_order_relaxed);
    activation_.previous.store(newest, std::memory_order_relaxed);
    activation_.leads_back = thread.activation.load(std::memory_order_relaxed) == newest;
    activation_.store = &store;
    activation_.thread = &thread;
    activation_.frame = frame;
    activation_.stack_begin = thread.stack_begin;
    activation_.stack_end = thread.stack_end;
    // Sequentially consistent: ordered before every read of an entry slot (see quiescence.h).
    if (newest == nullptr)
      thread.inside.store(frame, std::memory_order_seq_cst);
    else
      newest->next = &activation_;

    const uintptr_t lowest = thread.stack_begin + reserve_of(thread);
    const size_t most = store.services().max_stack_bytes;
    const uintptr_t limit = std::max(lowest, frame > most ? frame - most : uintptr_t{0});
    activation_.limit = limit;
    outer_limit_ = state.native_stack_limit;
    EntryState::TimePoint deadline = EntryState::TimePoint::max();
    bool limited = false;
    {
      EntryState& entry = store.entry_state();
      const std::lock_guard lock(entry.mutex);
      if (entry.depth++ == 0) {
        entry.sequence++;
        entry.thread = &thread;
        if (entry.asked != 0) [[unlikely]]
          refused_ = jit::TrapCode::kInterrupted;
        if (entry.limit.count() != 0) [[unlikely]] {
          deadline = entry.deadline = deadline_of(entry.limit);
          entry.limited.store(deadline != EntryState::TimePoint::max(), std::memory_order_relaxed);
        }
      }
      limited = entry.limited.load(std::memory_order_relaxed);
      state.native_stack_limit = limit;
      // An interruption of an outer entry stays in force: its limit of ~0 must not be overwritten.
      if (state.interrupt_requested.load(std::memory_order_relaxed) == 0)
        state.stack_limit.store(limit, std::memory_order_relaxed);
    }
    if (thread.entries_until_look-- == 0 || limited) [[unlikely]]
      prepare(deadline);
    store.activation = &activation_;
    thread.entries.store(&activation_, std::memory_order_release);
    // Last: from here on the thread's signal handlers may redirect it.
    thread.activation.store(&activation_, std::memory_order_release);
    // And before any entry slot is read, for a handler that looks through the entries.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  ~EntryScope() {
    end_entry();
    jit::ThreadState& state = *store_.thread();
    {
      EntryState& entry = store_.entry_state();
      const std::lock_guard lock(entry.mutex);
      state.native_stack_limit = outer_limit_;
      if (--entry.depth == 0) {
        entry.thread = nullptr;
        entry.deadline = EntryState::TimePoint::max();
        entry.limited.store(false, std::memory_order_relaxed);
        if (entry.asked != 0) [[unlikely]]
          take_back(entry);
        // Invariant: no mark outlives the entry that it was made for.
        if (state.interrupt_requested.exchange(0, std::memory_order_relaxed) != 0)
          for (const auto& listener : entry.listeners) listener(false);
        state.stack_limit.store(outer_limit_, std::memory_order_relaxed);
      } else if (state.interrupt_requested.load(std::memory_order_relaxed) == 0) {
        state.stack_limit.store(outer_limit_, std::memory_order_relaxed);
      }
    }
    // Release: what this thread did in the guest is before a scanner sees it outside.
    if (thread_.entries.load(std::memory_order_relaxed) == nullptr)
      thread_.inside.store(0, std::memory_order_release);
  }
  EntryScope(const EntryScope&) = delete;
  EntryScope& operator=(const EntryScope&) = delete;

  // Why it is not to begin; kNone: it is.
  jit::TrapCode refused() const { return refused_; }
  void ended_by(jit::TrapCode trap) { ended_by_ = trap; }

 private:
  // Takes the entry out of the list. The one that it leads back to can go on, if nothing else has begun. Where there is no such
  // one, whoever goes on, on another stack, puts back its own state.
  void end_entry() {
    Activation* const previous = activation_.previous.load(std::memory_order_relaxed);
    Activation* const next = activation_.next;
    store_.activation = nullptr;
    if (next == nullptr) [[likely]] {
      Activation* const goes_on = activation_.leads_back ? previous : nullptr;
      thread_.activation.store(goes_on, std::memory_order_release);
      if (goes_on != nullptr) goes_on->store->activation = goes_on;
    } else {
      thread_.activation.store(nullptr, std::memory_order_release);
      next->leads_back = false;
    }
    if (previous != nullptr) previous->next = next;
    // One store, so that a handler that looks through the list misses none of the others.
    (next != nullptr ? next->previous : thread_.entries).store(previous, std::memory_order_release);
  }

  // What entries do rarely, or under a time limit.
  [[gnu::noinline]] void prepare(EntryState::TimePoint deadline) {
    const bool is_first = thread_.looks_one_after_another == GuestThread::kFirstLooks + 1;
    const bool were_blocked = unblock_signals_here();
    uint32_t& looks = thread_.looks_one_after_another;
    // A thread's first entry tells how the host makes threads, later ones what it does between calls: once is enough.
    if (were_blocked && !is_first)
      looks = GuestThread::kAlways;
    else if (looks != 0 && looks != GuestThread::kAlways)
      --looks;
    thread_.entries_until_look = looks != 0 ? 0 : kEntriesBetweenLooks;
    if (deadline != EntryState::TimePoint::max() && !watch_deadline(store_, deadline))
      refused_ = jit::TrapCode::kOutOfResources;
  }

  // What the end of the outermost entry takes with it of what was asked.
  void take_back(EntryState& entry) {
    entry.asked &= ~EntryState::kByTime;
    // One that the program ended is told as what ended it (GuestThreads::settle).
    if (ended_by_ == jit::TrapCode::kInterrupted && (entry.asked & EntryState::kByProgram) == 0)
      entry.asked &= ~EntryState::kByEmbedder;
  }

  Store& store_;
  GuestThread& thread_;
  Activation activation_;
  uint64_t outer_limit_ = 0;
  jit::TrapCode refused_ = jit::TrapCode::kNone;
  jit::TrapCode ended_by_ = jit::TrapCode::kNone;
};

[[gnu::noinline]] void record_refusal(Store& store, jit::TrapCode code) {
  const bool interrupted = code == jit::TrapCode::kInterrupted;
  store.trap = GuestTrap{
      .code = code,
      .detail = interrupted ? "before it began" : "no thread can be started to watch its time limit",
      .frames = {}};
  store.thread()->pending_trap = code;
}

// The thread's LWP unit becomes the store's, if another thread entered last.
void switch_unit(Store& store, GuestThread& thread) {
  LwpSink* sink = nullptr;
  if (store.services().hooks != nullptr && store.services().attachments != nullptr)
    sink = store.services().attachments->enter(*store.services().hooks, store);
  store.thread()->lwp_unit = sink;
  if (sink != nullptr) sink->arm(*store.thread());
  store.last_thread = thread.id;  // last: where there was no memory for a unit the next entry asks again
}

}  // namespace

void go_on_in(Activation& entry) {
  GuestThread& thread = *entry.thread;
  Store& store = *entry.store;
  jit::ThreadState& state = *store.thread();
  thread.stack_begin = entry.stack_begin;
  thread.stack_end = entry.stack_end;
  state.entry_sp.store(entry.entry_sp, std::memory_order_relaxed);
  store.activation = &entry;
  {
    const std::lock_guard lock(store.entry_state().mutex);
    state.native_stack_limit = entry.limit;
    // As at its beginning: an interruption stays in force.
    if (state.interrupt_requested.load(std::memory_order_relaxed) == 0)
      state.stack_limit.store(entry.limit, std::memory_order_relaxed);
  }
  thread.activation.store(&entry, std::memory_order_release);
}

Status enter(Store& store, jit::InvokeFn invoke, const jit::FuncRef& function, uint64_t* slots) {
  const StoreUse use(store);
  if (!use) [[unlikely]]
    return StoreUse::refusal();
  GuestThread& thread = this_guest_thread();
  if (store.last_thread != thread.id) [[unlikely]]
    switch_unit(store, thread);
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const StackOfEntry stack(thread, frame);
  store.trap.reset();
  store.thread()->pending_trap = jit::TrapCode::kNone;
  bool unwound = false;
  if (frame < thread.stack_begin + reserve_of(thread)) [[unlikely]] {
    // Nested host and guest calls have used up the thread's stack.
    store.trap = GuestTrap{.code = jit::TrapCode::kStackExhausted, .detail = {}, .frames = {}};
    unwound = true;
  } else {
    EntryScope scope(store, thread, frame);
    if (scope.refused() != jit::TrapCode::kNone) [[unlikely]] {
      record_refusal(store, scope.refused());
      unwound = true;
    } else {
      // Acquire: the code's bytes were written before its address was published.
      unwound = invoke(store.thread(), function.code.load(std::memory_order_acquire), function.callee_context,
                       slots) != 0;
    }
    if (unwound) [[unlikely]]
      scope.ended_by(store.trap->code);
  }
  // What instrumented code wrote since the buffer was last full.
  if (store.thread()->trace_at != nullptr) [[unlikely]] {
    if (auto* sink = static_cast<LwpSink*>(store.thread()->lwp_unit)) sink->trace(*store.thread());
  }
  if (!unwound) [[likely]]
    return {};
  return std::unexpected(to_error(*store.trap));
}

Status enter(Store& store, const jit::FuncRef& function, uint64_t* slots) {
  HINDSIGHT_ASSIGN(const jit::InvokeFn invoke,
                   store.services().trampolines->invoke(jit::type_of_canonical_id(function.type_id)));
  return enter(store, invoke, function, slots);
}

Status run_start(Instance& instance) {
  if (!instance.module()->start) return {};
  uint64_t slot = 0;
  return enter(instance.store(), *instance.func_ref(*instance.module()->start), &slot);
}

}  // namespace hindsight::rt
