// The builtins table. Each builtin that can fail does its work in a function that returns, and leaves the
// guest only afterwards (see trap.h).
#include <climits>
#include <cstring>
#include <span>

#include "runtime/exec/enter.h"
#include "runtime/exec/exceptions.h"
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

// In a builtin: its frame's return address is the wasm position.
#define HINDSIGHT_TRAP_FROM_BUILTIN(context, code, detail)                           \
  do {                                                                               \
    record_trap_at(store_of(context), (code), (detail), __builtin_frame_address(0)); \
    leave_guest(store_of(context));                                                  \
  } while (0)

HINDSIGHT_UNWOUND void trap(VmContext* context, uint32_t code) {
  HINDSIGHT_TRAP_FROM_BUILTIN(context, static_cast<TrapCode>(code), "");
}

HINDSIGHT_UNWOUND void stack_check_failed(VmContext* context) {
  // Acquire pairs with interrupt()'s release store of stack_limit, which comes after the flag: a limit of ~0
  // seen by the guest means that the flag is seen here. Both stay until the outermost entry ends.
  const bool asked = context->thread->interrupt_requested.load(std::memory_order_acquire) != 0;
  HINDSIGHT_TRAP_FROM_BUILTIN(context, asked ? TrapCode::kInterrupted : TrapCode::kStackExhausted, "");
}

// Null: failed, and the trap is recorded.
[[gnu::noinline]] const void* compile_or_record(VmContext* context, uint32_t func_index, void* frame) {
  Instance& instance = instance_of(context);
  auto entry = instance.code().compile_first(instance, FuncIndex(func_index));
  if (entry) return *entry;
  record_trap(store_of(context), TrapCode::kOutOfResources, entry.error().describe(),
              {.exact_pc = 0, .return_pc = 0, .fp = reinterpret_cast<uintptr_t>(frame)});
  return nullptr;
}

HINDSIGHT_UNWOUND const void* compile_lazily(VmContext* context, uint32_t func_index) {
  const void* entry = compile_or_record(context, func_index, __builtin_frame_address(0));
  if (entry == nullptr) leave_guest(store_of(context));
  return entry;
}

uint64_t memory_grow(VmContext* context, uint32_t memory, uint64_t delta_pages) {
  const auto old = instance_of(context).memory(memory)->grow(delta_pages);
  return old ? *old : ~uint64_t{0};
}

HINDSIGHT_UNWOUND void memory_init(VmContext* context, uint64_t data_memory, uint64_t dst, uint32_t src,
                                   uint32_t n) {
  if (!instance_of(context).memory_init(static_cast<uint32_t>(data_memory >> 32),
                                        static_cast<uint32_t>(data_memory), dst, src, n))
    HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kMemoryOutOfBounds, "memory.init");
}

void data_drop(VmContext* context, uint32_t data) {
  instance_of(context).drop_data(data);
}

// The two may be the same, also where their indices differ.
bool copy_memory(const Memory& to, const Memory& from, uint64_t dst, uint64_t src, uint64_t n) {
  if (!to.in_bounds(dst, n) || !from.in_bounds(src, n)) return false;
  std::memmove(to.base() + dst, from.base() + src, n);
  return true;
}

HINDSIGHT_UNWOUND void memory_copy(VmContext* context, uint64_t memories, uint64_t dst, uint64_t src,
                                   uint64_t n) {
  const Instance& instance = instance_of(context);
  if (!copy_memory(*instance.memory(static_cast<uint32_t>(memories >> 32)),
                   *instance.memory(static_cast<uint32_t>(memories)), dst, src, n))
    HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kMemoryOutOfBounds, "memory.copy");
}

bool fill_memory(const Memory& memory, uint64_t dst, uint32_t value, uint64_t n) {
  if (!memory.in_bounds(dst, n)) return false;
  std::memset(memory.base() + dst, static_cast<int>(value & 0xff), n);
  return true;
}

HINDSIGHT_UNWOUND void memory_fill(VmContext* context, uint32_t memory, uint64_t dst, uint32_t value,
                                   uint64_t n) {
  if (!fill_memory(*instance_of(context).memory(memory), dst, value, n))
    HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kMemoryOutOfBounds, "memory.fill");
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

HINDSIGHT_UNWOUND uint32_t atomic_notify(VmContext* context, uint32_t memory_index, uint64_t address,
                                         uint64_t offset, uint32_t count) {
  Memory& memory = *instance_of(context).memory(memory_index);
  TrapCode code;
  const auto* place = atomic_place<uint32_t>(memory, address, offset, code);
  if (place == nullptr) HINDSIGHT_TRAP_FROM_BUILTIN(context, code, "memory.atomic.notify");
  return memory.waiters().notify(place, count);
}

template <typename T>
[[gnu::always_inline]] HINDSIGHT_UNWOUND inline uint32_t atomic_wait(VmContext* context, uint32_t memory_index,
                                                   uint64_t address, uint64_t offset, T expected,
                                                   int64_t timeout) {
  Memory& memory = *instance_of(context).memory(memory_index);
  TrapCode code;
  const auto* place = atomic_place<T>(memory, address, offset, code);
  if (place == nullptr) HINDSIGHT_TRAP_FROM_BUILTIN(context, code, "memory.atomic.wait");
  if (!memory.type().shared)
    HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kExpectedShared, "memory.atomic.wait");
  const WaitQueue::End end =
      memory.waiters().wait(store_of(context).parker(), place, expected, timeout);
  if (end == WaitQueue::End::kInterrupted) HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kInterrupted, "");
  return static_cast<uint32_t>(end);
}

HINDSIGHT_UNWOUND uint32_t atomic_wait32(VmContext* context, uint32_t memory, uint64_t address,
                                         uint64_t offset, uint32_t expected, int64_t timeout) {
  return atomic_wait<uint32_t>(context, memory, address, offset, expected, timeout);
}

HINDSIGHT_UNWOUND uint32_t atomic_wait64(VmContext* context, uint32_t memory, uint64_t address,
                                         uint64_t offset, uint64_t expected, int64_t timeout) {
  return atomic_wait<uint64_t>(context, memory, address, offset, expected, timeout);
}

HINDSIGHT_UNWOUND void* table_get(VmContext* context, uint32_t table, uint32_t index) {
  Table* t = instance_of(context).table(table);
  if (index >= t->size()) HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kTableOutOfBounds, "table.get");
  return t->get(index);
}

HINDSIGHT_UNWOUND void table_set(VmContext* context, uint32_t table, uint32_t index, void* value) {
  Table* t = instance_of(context).table(table);
  if (index >= t->size()) HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kTableOutOfBounds, "table.set");
  t->set(index, value);
}

uint32_t table_grow(VmContext* context, uint32_t table, void* init, uint32_t delta) {
  const auto old = instance_of(context).table(table)->grow(delta, init);
  return old ? *old : ~0u;
}

bool fill_table(Table& table, uint32_t index, void* value, uint32_t n) {
  if (!table.in_bounds(index, n)) return false;
  for (uint32_t i = 0; i < n; i++) table.set(index + i, value);
  return true;
}

HINDSIGHT_UNWOUND void table_fill(VmContext* context, uint32_t table, uint32_t index, void* value,
                                  uint32_t n) {
  if (!fill_table(*instance_of(context).table(table), index, value, n))
    HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kTableOutOfBounds, "table.fill");
}

bool copy_table(Table& to, Table& from, uint32_t dst, uint32_t src, uint32_t n) {
  if (!to.in_bounds(dst, n) || !from.in_bounds(src, n)) return false;
  if (n != 0) std::memmove(to.record()->elements + dst, from.record()->elements + src, n * sizeof(void*));
  return true;
}

HINDSIGHT_UNWOUND void table_copy(VmContext* context, uint64_t tables, uint32_t dst, uint32_t src,
                                  uint32_t n) {
  Instance& instance = instance_of(context);
  if (!copy_table(*instance.table(static_cast<uint32_t>(tables >> 32)),
                  *instance.table(static_cast<uint32_t>(tables)), dst, src, n))
    HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kTableOutOfBounds, "table.copy");
}

HINDSIGHT_UNWOUND void table_init(VmContext* context, uint64_t elem_table, uint32_t dst, uint32_t src,
                                  uint32_t n) {
  if (!instance_of(context).table_init(static_cast<uint32_t>(elem_table >> 32),
                                       static_cast<uint32_t>(elem_table), dst, src, n))
    HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kTableOutOfBounds, "table.init");
}

void elem_drop(VmContext* context, uint32_t elem) {
  instance_of(context).drop_elements(elem);
}

HINDSIGHT_UNWOUND void throw_exception(VmContext* context, uint32_t tag) {
  Store& store = store_of(context);
  void* const frame = __builtin_frame_address(0);
  jit::ExceptionRecord* const exception = make_exception(store, *instance_of(context).tag(tag), frame);
  if (exception == nullptr) leave_guest(store);
  go_on(store, find_landing(store, *exception, reinterpret_cast<uintptr_t>(frame)), exception);
}

HINDSIGHT_UNWOUND void throw_reference(VmContext* context, jit::ExceptionRecord* exception) {
  if (exception == nullptr) HINDSIGHT_TRAP_FROM_BUILTIN(context, TrapCode::kNullException, "");
  Store& store = store_of(context);
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  go_on(store, find_landing(store, *exception, frame), exception);
}

LwpSink* sink_of(VmContext* context) {
  return static_cast<LwpSink*>(context->thread->lwp_unit);
}

void lwp_instructions_retired(VmContext* context, const void* pc) {
  if (LwpSink* sink = sink_of(context))
    sink->instructions(*context->thread, pc);
  else
    context->thread->lwp_instructions = INT32_MAX;
}

void lwp_branch_retired(VmContext* context, const void* pc, uint32_t taken, const void* target) {
  if (LwpSink* sink = sink_of(context))
    sink->branch(*context->thread, pc, taken != 0, target);
  else
    context->thread->lwp_branches = INT32_MAX;
}

void lwp_value_sampled(VmContext* context, const void* pc, uint32_t wasm_offset, uint64_t value,
                       uint32_t site_flags) {
  if (LwpSink* sink = sink_of(context))
    sink->value(*context->thread, pc != nullptr ? pc : __builtin_return_address(0), wasm_offset, value, site_flags);
  else
    context->thread->lwp_values = INT32_MAX;
}

void trace_full(VmContext* context) {
  // Invariant: a thread without a sink never runs instrumented code (see the tier manager).
  if (LwpSink* sink = sink_of(context)) sink->trace(*context->thread);
}

void strip_ended(VmContext* context, jit::LoopCell* cell) {
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
      .trap = trap,
      .stack_check_failed = stack_check_failed,
      .compile_lazily = compile_lazily,
      .memory_grow = memory_grow,
      .memory_init = memory_init,
      .data_drop = data_drop,
      .memory_copy = memory_copy,
      .memory_fill = memory_fill,
      .atomic_notify = atomic_notify,
      .atomic_wait32 = atomic_wait32,
      .atomic_wait64 = atomic_wait64,
      .table_get = table_get,
      .table_set = table_set,
      .table_grow = table_grow,
      .table_fill = table_fill,
      .table_copy = table_copy,
      .table_init = table_init,
      .elem_drop = elem_drop,
      .throw_exception = throw_exception,
      .throw_reference = throw_reference,
      .lwp_instructions_retired = lwp_instructions_retired,
      .lwp_branch_retired = lwp_branch_retired,
      .lwp_value_sampled = lwp_value_sampled,
      .trace_full = trace_full,
      .strip_ended = strip_ended,
  };
  return kTable;
}

}  // namespace hindsight::rt
