// The builtins table. Each builtin does its work in a body that returns, and leaves the guest only afterwards (see trap.h).
#include <algorithm>
#include <climits>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <type_traits>

#include "runtime/exec/enter.h"
#include "runtime/exec/exceptions.h"
#include "runtime/exec/interrupt.h"
#include "runtime/exec/lwp_sink.h"
#include "runtime/exec/thread_hooks.h"
#include "runtime/exec/trap.h"
#include "runtime/instance/instance.h"

namespace hindsight::rt {
namespace {

using jit::TrapCode;
using jit::VmContext;

Store& store_of(VmContext* context) {
  return *static_cast<Store*>(context->thread->store);
}
Instance& instance_of(VmContext* context) {
  return *static_cast<Instance*>(context->instance);
}

// One call of a builtin: what its body leaves for Entry, which alone leaves the guest.
struct Call {
  VmContext* context;
  void* frame;                             // of the entry: its return address is the wasm position
  bool trapped = false;                    // and the trap is recorded
  jit::ExceptionRecord* thrown = nullptr;  // goes on at `landing`
  Landing landing{};

  // The body returns then, whatever.
  void trap(TrapCode code, const char* detail) noexcept {
    record_trap_at(store_of(context), code, detail, frame);
    trapped = true;
  }
  void go_on_with(jit::ExceptionRecord* exception) {
    landing = find_landing(store_of(context), *exception, reinterpret_cast<uintptr_t>(frame));
    thrown = exception;
  }
};

// Whether a builtin looks for an interruption when its work is done. One that does what instructions of WebAssembly do,
// looks. A loop may be in such builtins but for a few instructions of generated code in each iteration, which no signal
// ever meets. What only counts is rare and short.
enum class AtItsEnd : bool { kGoesOn, kNotices };

// What generated code calls: the body between guest frames and C++. No exception of C++ passes it, no memory is a trap like
// others, and the guest is left from here, where nothing has a destructor. Every builtin is one of these (see kTable).
template <auto body, AtItsEnd at_its_end = AtItsEnd::kNotices>
struct Entry;
template <typename R, typename... Args, R (*body)(Call&, VmContext*, Args...), AtItsEnd at_its_end>
struct Entry<body, at_its_end> {
  HINDSIGHT_UNWOUND static R call(VmContext* context, Args... args) noexcept {
    Call call{context, __builtin_frame_address(0)};
    if constexpr (std::is_void_v<R>) {
      attempt(call, args...);
      notice(call);
      if (call.trapped || call.thrown != nullptr) leave(call);
    } else {
      const R result = attempt(call, args...);
      notice(call);
      if (call.trapped || call.thrown != nullptr) [[unlikely]]
        leave(call);
      return result;
    }
  }

  // For an instruction that always traps or throws.
  [[noreturn]] HINDSIGHT_UNWOUND static void call_for_good(VmContext* context, Args... args) {
    Call call{context, __builtin_frame_address(0)};
    attempt(call, args...);
    notice(call);
    leave(call);
  }

 private:
  static R attempt(Call& call, Args... args) noexcept {
    try {
      return body(call, call.context, args...);
    } catch (const std::bad_alloc&) {
      call.trap(TrapCode::kOutOfResources, "the host has no memory");
    } catch (const std::exception& e) {
      call.trap(TrapCode::kOutOfResources, e.what());
    } catch (...) {
      call.trap(TrapCode::kOutOfResources, "the runtime failed");
    }
    return R();
  }
  // An interruption wins over an exception that would go on, as over what a host function made of it.
  static void notice(Call& call) noexcept {
    if constexpr (at_its_end == AtItsEnd::kGoesOn) return;
    // Acquire: as in asked_to_end(). Through the context: a copy of some bytes takes as long as the way through the store.
    const uint32_t asked = call.context->thread->interrupt_requested.load(std::memory_order_acquire);
    if (asked != 0 && !call.trapped) [[unlikely]]
      call.trap(static_cast<TrapCode>(asked), "");
  }
  [[noreturn]] HINDSIGHT_UNWOUND static void leave(Call& call) {
    Store& store = store_of(call.context);
    if (call.trapped) leave_guest(store);
    go_on(store, call.landing, call.thrown);
  }
};

void trap(Call& call, VmContext* context, uint32_t code) {
  call.trap(static_cast<TrapCode>(code), "");
}

void stack_check_failed(Call& call, VmContext* context) {
  // A limit of ~0 seen by the guest means that the mark is seen here. Both stay until the outermost entry ends.
  const TrapCode asked = asked_to_end(store_of(context));
  call.trap(asked != TrapCode::kNone ? asked : TrapCode::kStackExhausted, "");
}

const void* compile_lazily(Call& call, VmContext* context, uint32_t func_index) {
  Instance& instance = instance_of(context);
  auto entry = instance.code().compile_first(instance, FuncIndex(func_index));
  if (entry) return *entry;
  call.trap(TrapCode::kOutOfResources, entry.error().describe().c_str());
  return nullptr;
}

uint64_t memory_grow(Call& call, VmContext* context, uint32_t memory, uint64_t delta_pages) {
  Instance& instance = instance_of(context);
  Memory& of = *instance.memory(memory);
  const auto old = of.grow(delta_pages);
  if (!old) return ~uint64_t{0};
  if (ThreadHooks* const hooks = store_of(context).services().hooks; hooks != nullptr && delta_pages != 0)
    hooks->memory_grown(instance.module().get(), reinterpret_cast<uint64_t>(of.base()),
                        *old * wasm::kPageBytes, (*old + delta_pages) * wasm::kPageBytes);
  return *old;
}

void memory_init(Call& call, VmContext* context, uint64_t data_memory, uint64_t dst, uint32_t src,
                 uint32_t n) {
  if (!instance_of(context).memory_init(static_cast<uint32_t>(data_memory >> 32),
                                        static_cast<uint32_t>(data_memory), dst, src, n))
    return call.trap(TrapCode::kMemoryOutOfBounds, "memory.init");
}

void data_drop(Call& call, VmContext* context, uint32_t data) {
  instance_of(context).drop_data(data);
}

// Memory is filled and copied in pieces, between which a thread that is to end is let go: some ms each.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;

// Calls for [at, at + bytes) of n, up or down, as long as the entry may go on. What has one piece does without: its
// callers' own code is what a short copy costs.
template <typename Piece>
[[gnu::noinline]] void in_pieces(VmContext* context, uint64_t n, bool downwards, const Piece& piece) {
  for (uint64_t done = 0; done < n;) {
    const uint64_t bytes = std::min(n - done, kPieceBytes);
    piece(downwards ? n - done - bytes : done, bytes);
    done += bytes;
    if (asked_to_end(store_of(context)) != TrapCode::kNone) return;  // Entry makes the trap
  }
}

// The two may be the same, also where their indices differ.
bool copy_memory(VmContext* context, const Memory& to, const Memory& from, uint64_t dst, uint64_t src,
                 uint64_t n) {
  if (!to.in_bounds(dst, n) || !from.in_bounds(src, n)) return false;
  uint8_t* const into = to.base() + dst;
  const uint8_t* const out_of = from.base() + src;
  if (n <= kPieceBytes) [[likely]] {
    std::memmove(into, out_of, n);
    return true;
  }
  const bool downwards = std::less<>()(out_of, into);  // what is read has not been written yet
  in_pieces(context, n, downwards,
            [=](uint64_t at, uint64_t bytes) { std::memmove(into + at, out_of + at, bytes); });
  return true;
}

void memory_copy(Call& call, VmContext* context, uint64_t memories, uint64_t dst, uint64_t src, uint64_t n) {
  const Instance& instance = instance_of(context);
  if (!copy_memory(context, *instance.memory(static_cast<uint32_t>(memories >> 32)),
                   *instance.memory(static_cast<uint32_t>(memories)), dst, src, n))
    return call.trap(TrapCode::kMemoryOutOfBounds, "memory.copy");
}

bool fill_memory(VmContext* context, const Memory& memory, uint64_t dst, uint32_t value, uint64_t n) {
  if (!memory.in_bounds(dst, n)) return false;
  uint8_t* const into = memory.base() + dst;
  const int byte = static_cast<int>(value & 0xff);
  if (n <= kPieceBytes) [[likely]] {
    std::memset(into, byte, n);
    return true;
  }
  in_pieces(context, n, /*downwards=*/false,
            [=](uint64_t at, uint64_t bytes) { std::memset(into + at, byte, bytes); });
  return true;
}

void memory_fill(Call& call, VmContext* context, uint32_t memory, uint64_t dst, uint32_t value, uint64_t n) {
  if (!fill_memory(context, *instance_of(context).memory(memory), dst, value, n))
    return call.trap(TrapCode::kMemoryOutOfBounds, "memory.fill");
}

// The place of an atomic access of `bytes` bytes; null, and `code` says why, if it may not be.
template <typename T>
T* atomic_place(const Memory& memory, uint64_t address, uint64_t offset, TrapCode& code) {
  uint64_t at = 0;
  const bool beyond = __builtin_add_overflow(address, offset, &at);
  code = (at & (sizeof(T) - 1)) != 0 ? TrapCode::kUnalignedAtomic : TrapCode::kMemoryOutOfBounds;
  if (code == TrapCode::kUnalignedAtomic || beyond || !memory.in_bounds(at, sizeof(T))) return nullptr;
  return reinterpret_cast<T*>(memory.base() + at);
}

uint32_t atomic_notify(Call& call, VmContext* context, uint32_t memory_index, uint64_t address,
                       uint64_t offset, uint32_t count) {
  Memory& memory = *instance_of(context).memory(memory_index);
  TrapCode code;
  const auto* place = atomic_place<uint32_t>(memory, address, offset, code);
  if (place == nullptr) {
    call.trap(code, "memory.atomic.notify");
    return {};
  }
  return memory.waiters().notify(place, count);
}

template <typename T>
uint32_t atomic_wait(Call& call, VmContext* context, uint32_t memory_index, uint64_t address, uint64_t offset,
                     T expected, int64_t timeout) {
  Memory& memory = *instance_of(context).memory(memory_index);
  TrapCode code;
  const auto* place = atomic_place<T>(memory, address, offset, code);
  if (place == nullptr) {
    call.trap(code, "memory.atomic.wait");
    return {};
  }
  if (!memory.type().shared) {
    call.trap(TrapCode::kExpectedShared, "memory.atomic.wait");
    return {};
  }
  const WaitQueue::End end = memory.waiters().wait(store_of(context).parker(), place, expected, timeout);
  // Invariant: the mark is there before whoever waits is told, and stays.
  if (end == WaitQueue::End::kInterrupted) {
    call.trap(asked_to_end(store_of(context)), "");
    return {};
  }
  return static_cast<uint32_t>(end);
}

uint32_t atomic_wait32(Call& call, VmContext* context, uint32_t memory, uint64_t address, uint64_t offset,
                       uint32_t expected, int64_t timeout) {
  return atomic_wait<uint32_t>(call, context, memory, address, offset, expected, timeout);
}

uint32_t atomic_wait64(Call& call, VmContext* context, uint32_t memory, uint64_t address, uint64_t offset,
                       uint64_t expected, int64_t timeout) {
  return atomic_wait<uint64_t>(call, context, memory, address, offset, expected, timeout);
}

void* table_get(Call& call, VmContext* context, uint32_t table, uint32_t index) {
  Table* t = instance_of(context).table(table);
  if (index >= t->size()) {
    call.trap(TrapCode::kTableOutOfBounds, "table.get");
    return {};
  }
  return t->get(index);
}

void table_set(Call& call, VmContext* context, uint32_t table, uint32_t index, void* value) {
  Table* t = instance_of(context).table(table);
  if (index >= t->size()) return call.trap(TrapCode::kTableOutOfBounds, "table.set");
  t->set(index, value);
}

uint32_t table_grow(Call& call, VmContext* context, uint32_t table, void* init, uint32_t delta) {
  const auto old = instance_of(context).table(table)->grow(delta, init);
  return old ? *old : ~0u;
}

bool fill_table(Table& table, uint32_t index, void* value, uint32_t n) {
  if (!table.in_bounds(index, n)) return false;
  for (uint32_t i = 0; i < n; i++) table.set(index + i, value);
  return true;
}

void table_fill(Call& call, VmContext* context, uint32_t table, uint32_t index, void* value, uint32_t n) {
  if (!fill_table(*instance_of(context).table(table), index, value, n))
    return call.trap(TrapCode::kTableOutOfBounds, "table.fill");
}

bool copy_table(Table& to, Table& from, uint32_t dst, uint32_t src, uint32_t n) {
  if (!to.in_bounds(dst, n) || !from.in_bounds(src, n)) return false;
  if (n != 0) std::memmove(to.record()->elements + dst, from.record()->elements + src, n * sizeof(void*));
  return true;
}

void table_copy(Call& call, VmContext* context, uint64_t tables, uint32_t dst, uint32_t src, uint32_t n) {
  Instance& instance = instance_of(context);
  if (!copy_table(*instance.table(static_cast<uint32_t>(tables >> 32)),
                  *instance.table(static_cast<uint32_t>(tables)), dst, src, n))
    return call.trap(TrapCode::kTableOutOfBounds, "table.copy");
}

void table_init(Call& call, VmContext* context, uint64_t elem_table, uint32_t dst, uint32_t src, uint32_t n) {
  if (!instance_of(context).table_init(static_cast<uint32_t>(elem_table >> 32),
                                       static_cast<uint32_t>(elem_table), dst, src, n))
    return call.trap(TrapCode::kTableOutOfBounds, "table.init");
}

void elem_drop(Call& call, VmContext* context, uint32_t elem) {
  instance_of(context).drop_elements(elem);
}

void throw_exception(Call& call, VmContext* context, uint32_t tag) {
  Store& store = store_of(context);
  jit::ExceptionRecord* const exception = make_exception(store, *instance_of(context).tag(tag), call.frame);
  if (exception == nullptr)
    call.trapped = true;
  else
    call.go_on_with(exception);
}

void throw_reference(Call& call, VmContext*, jit::ExceptionRecord* exception) {
  if (exception == nullptr)
    call.trap(TrapCode::kNullException, "");
  else
    call.go_on_with(exception);
}

LwpSink* sink_of(VmContext* context) {
  return static_cast<LwpSink*>(context->thread->lwp_unit);
}

void lwp_instructions_retired(Call& call, VmContext* context, const void* pc) {
  if (LwpSink* sink = sink_of(context))
    sink->instructions(*context->thread, pc);
  else
    context->thread->lwp_instructions = INT32_MAX;
}

void lwp_branch_retired(Call& call, VmContext* context, const void* pc, uint32_t taken, const void* target) {
  if (LwpSink* sink = sink_of(context))
    sink->branch(*context->thread, pc, taken != 0, target);
  else
    context->thread->lwp_branches = INT32_MAX;
}

void lwp_value_sampled(Call& call, VmContext* context, const void* pc, uint32_t wasm_offset, uint64_t value,
                       uint32_t site_flags) {
  if (LwpSink* sink = sink_of(context))
    sink->value(*context->thread, pc, wasm_offset, value, site_flags);
  else
    context->thread->lwp_values = INT32_MAX;
}

HINDSIGHT_PRESERVES_MOST void lwp_value_sampled_in_place(VmContext* context, const void* pc,
                                                         uint32_t wasm_offset, uint64_t value,
                                                         uint32_t site_flags) {
  Entry<lwp_value_sampled, AtItsEnd::kGoesOn>::call(context, pc != nullptr ? pc : __builtin_return_address(0),
                                                    wasm_offset, value, site_flags);
}

void trace_full(Call& call, VmContext* context) {
  // Invariant: a thread without a sink never runs instrumented code (see the tier manager).
  if (LwpSink* sink = sink_of(context)) sink->trace(*context->thread);
}

void strip_ended(Call& call, VmContext* context, jit::LoopCell* cell) {
  Store& store = store_of(context);
  if (store.services().hooks != nullptr) {
    store.services().hooks->strip_ended(store, context, cell);
    return;
  }
  // Nobody judges this loop: come back as rarely as possible.
  std::atomic_ref(cell->countdown).store(INT32_MAX, std::memory_order_relaxed);
}

}  // namespace

const jit::Builtins& builtins() {
  static constexpr jit::Builtins kTable{
      .trap = Entry<trap>::call_for_good,
      .stack_check_failed = Entry<stack_check_failed>::call,
      .compile_lazily = Entry<compile_lazily, AtItsEnd::kGoesOn>::call,
      .memory_grow = Entry<memory_grow>::call,
      .memory_init = Entry<memory_init>::call,
      .data_drop = Entry<data_drop>::call,
      .memory_copy = Entry<memory_copy>::call,
      .memory_fill = Entry<memory_fill>::call,
      .atomic_notify = Entry<atomic_notify>::call,
      .atomic_wait32 = Entry<atomic_wait32>::call,
      .atomic_wait64 = Entry<atomic_wait64>::call,
      .table_get = Entry<table_get>::call,
      .table_set = Entry<table_set>::call,
      .table_grow = Entry<table_grow>::call,
      .table_fill = Entry<table_fill>::call,
      .table_copy = Entry<table_copy>::call,
      .table_init = Entry<table_init>::call,
      .elem_drop = Entry<elem_drop>::call,
      .throw_exception = Entry<throw_exception>::call_for_good,
      .throw_reference = Entry<throw_reference>::call_for_good,
      .lwp_instructions_retired = Entry<lwp_instructions_retired, AtItsEnd::kGoesOn>::call,
      .lwp_branch_retired = Entry<lwp_branch_retired, AtItsEnd::kGoesOn>::call,
      .lwp_value_sampled = lwp_value_sampled_in_place,
      .trace_full = Entry<trace_full, AtItsEnd::kGoesOn>::call,
      .strip_ended = Entry<strip_ended, AtItsEnd::kGoesOn>::call,
  };
  return kTable;
}

}  // namespace hindsight::rt
