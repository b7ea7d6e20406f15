// The data that generated code reads and writes directly: one layout, used by both tiers and the runtime.
//
//     VmContext     one per instance: header, then FuncRef[all functions], GlobalCell[defined globals],
//                   MemoryCell[all memories] and the identities of all tags, a pointer each
//     ThreadState   one per store: what belongs to the thread that is inside the guest
//     FuncRef       what a funcref value points to; also the entry slot of a function of this instance
//
// Native calling convention of every wasm function, both tiers: the registers of System V AMD64. The first
// integer argument is the callee's VmContext* (or, for a host function, its HostCallee*). The wasm parameters
// follow in order: i32, i64 and references as integers, f32 and f64 as floating point, v128 as __m128.
// Parameters beyond the registers are in ThreadState::arguments, to be read by the callee before anything
// else runs; nothing is ever passed on the stack. So every function leaves its caller's frame as it found it,
// whatever it was called with. A tail call of any function from any other is therefore a jump. i32 arguments,
// results and slots have UNDEFINED upper halves: the user of an i32 as an address zero-extends it, always.
// One result: rax or xmm0. Two or more: the function returns nothing, and the results are in
// ThreadState::results, to be read by the caller before anything else runs. They lie one after the other, 8
// bytes each, small ones in the low bytes; a v128 has 16. Both tiers keep rbp frames (push rbp; mov rbp,
// rsp).
//
// Entry slots: a call to function i of the same module is `call [vmctx + offset of funcs[i].code]`.
// Publishing new code is one release store of FuncRef::code; on x86-64 the guest's plain load observes code
// and everything written before. All offsets below are part of the contract with generated code;
// static_asserts hold them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jit/abi/trap_code.h"

namespace hindsight::wasm {
class Module;
}

namespace hindsight::jit {

struct VmContext;
struct ThreadState;
struct Builtins;

struct FuncRef {
  std::atomic<const void*> code;  // published entry; never null in a live instance (a lazy stub at first)
  void* callee_context;           // first argument: VmContext* of the owner, or HostCallee*
  uint32_t type_id;               // process-wide canonical signature id (see type_registry.h)
  uint32_t func_index;            // in the owner's module
  void* owner;                    // runtime's Instance; not read by generated code
};
static_assert(sizeof(FuncRef) == 32 && offsetof(FuncRef, callee_context) == 8 &&
              offsetof(FuncRef, type_id) == 16);

struct MemoryRecord {
  uint8_t* base;                      // never moves while the memory lives
  std::atomic<uint64_t> byte_length;  // accessible bytes; only grows
  uint64_t reserved_bytes;            // address range from base, inaccessible after byte_length
  uint64_t max_pages;
};
static_assert(offsetof(MemoryRecord, byte_length) == 8);

// What code needs of a memory, without going through its record. Constant while the instance lives. Memory 0,
// which is the only one of most modules, has its base and record in the header besides.
struct MemoryCell {
  uint8_t* base;
  MemoryRecord* record;
  // For a memory with 64-bit addresses under guard pages. For every index up to here, base + index +
  // kGuardedOffset bytes lie in the reservation. So one comparison with a constant of the instance, and then
  // a fault, tell what is in bounds.
  uint64_t index_limit;
  uint64_t reserved;
};
static_assert(sizeof(MemoryCell) == 32 && offsetof(MemoryCell, record) == 8 &&
              offsetof(MemoryCell, index_limit) == 16);
inline constexpr uint64_t kGuardedOffset = uint64_t{1} << 31;

// References: funcref = FuncRef* (null = 0); externref = embedder's handle + 1 (null = 0); exnref =
// ExceptionRecord* (jit/abi/exception.h).
struct TableRecord {
  void** elements;
  uint64_t size;  // entries
  uint64_t max;
};
static_assert(offsetof(TableRecord, size) == 8);

struct alignas(16) GlobalCell {
  uint8_t bytes[16];
};

inline constexpr uint32_t kMaxResults = 1000;  // the decoder refuses more
inline constexpr uint32_t kMaxArguments = 1000;

// What code of the first tier calls, through its ThreadState, when something rare happens (jit/baseline/stubs.h).
enum class RareStub : uint32_t {
  kInstructions,
  kBranch,
  kBranchNotTaken,
  kJump,
  kRunAndBranch,  // instructions, then a branch
  kRunAndBranchNotTaken,
  kRunAndJump,
  kComputedJump,
  kStackCheck,
  kTrap,
};
inline constexpr uint32_t kRareStubs = 10;

struct ThreadState {
  // Stack check at every function entry: if (rsp - frame < stack_limit) call builtins->stack_check_failed.
  // An interruption request sets it to ~0, so that the next function entry notices.
  std::atomic<uint64_t> stack_limit;
  // LWP event counters of the thread's unit, decremented by counting baseline code. When one becomes negative
  // the code calls the builtin of that event, which writes a record and reloads the counter.
  int32_t lwp_instructions;
  int32_t lwp_branches;
  int32_t lwp_values;
  std::atomic<uint32_t> interrupt_requested;  // the TrapCode to end with; 0: go on
  // What code of the first tier calls is near the start, within a displacement of 8 bits. By RareStub; set by
  // Trampolines::prepare() before guest code runs.
  const void* rare_stubs[kRareStubs];
  // rsp of the innermost guest entry (see jit/abi/trampolines.h); 0 outside the guest. Read by signal
  // handlers of this thread and, as a hint only, by other threads.
  std::atomic<uint64_t> entry_sp;
  uint64_t native_stack_limit;  // stack_limit without interruption
  void* store;                  // runtime's owner
  void* lwp_unit;               // feedback's per-thread unit; null while none is attached
  TrapCode pending_trap;        // set before unwinding
  uint32_t pending_exit_code;
  uint64_t results[2 * kMaxResults];
  // Code compiled with CompileOptions::trace appends words here (base/trace.h) and calls the builtin trace_full at
  // the end of a run that finds trace_at >= trace_end.
  uint64_t* trace_at;
  uint64_t* trace_end;
  uint64_t arguments[2 * kMaxArguments];  // those that have no register (see call_layout.h)
};
inline constexpr int32_t kThreadStackLimit = 0;
inline constexpr int32_t kThreadLwpInstructions = 8;
inline constexpr int32_t kThreadLwpBranches = 12;
inline constexpr int32_t kThreadLwpValues = 16;
inline constexpr int32_t kThreadInterrupt = 20;
inline constexpr int32_t kThreadRareStubs = 24;
inline constexpr int32_t kThreadEntrySp = kThreadRareStubs + 8 * static_cast<int32_t>(kRareStubs);
inline constexpr int32_t kThreadResults = kThreadEntrySp + 40;
inline constexpr int32_t kThreadTraceAt = kThreadResults + 16 * static_cast<int32_t>(kMaxResults);
inline constexpr int32_t kThreadTraceEnd = kThreadTraceAt + 8;
inline constexpr int32_t kThreadArguments = kThreadTraceEnd + 8;
static_assert(offsetof(ThreadState, stack_limit) == kThreadStackLimit);
static_assert(offsetof(ThreadState, lwp_instructions) == kThreadLwpInstructions);
static_assert(offsetof(ThreadState, lwp_branches) == kThreadLwpBranches);
static_assert(offsetof(ThreadState, lwp_values) == kThreadLwpValues);
static_assert(offsetof(ThreadState, interrupt_requested) == kThreadInterrupt);
static_assert(offsetof(ThreadState, entry_sp) == kThreadEntrySp);
static_assert(offsetof(ThreadState, rare_stubs) == kThreadRareStubs);
static_assert(offsetof(ThreadState, results) == kThreadResults);
static_assert(offsetof(ThreadState, trace_at) == kThreadTraceAt);
static_assert(offsetof(ThreadState, trace_end) == kThreadTraceEnd);
static_assert(offsetof(ThreadState, arguments) == kThreadArguments);

struct VmContext {
  ThreadState* thread;            // constant while the instance lives
  uint8_t* memory_base;           // constant; null without a memory
  MemoryRecord* memory;           // constant
  const Builtins* builtins;       // constant
  TableRecord** tables;           // constant array, one pointer a table of the index space
  const uint32_t* type_ids;       // constant array: canonical id of each type of the module
  GlobalCell** imported_globals;  // constant array
  void* instance;                 // runtime's owner
  // FuncRef funcs[module.function_count()];  GlobalCell globals[defined globals];  MemoryCell memories[all];
  // const void* tags[all];
};
inline constexpr int32_t kVmThread = 0;
inline constexpr int32_t kVmMemoryBase = 8;
inline constexpr int32_t kVmMemory = 16;
inline constexpr int32_t kVmBuiltins = 24;
inline constexpr int32_t kVmTables = 32;
inline constexpr int32_t kVmTypeIds = 40;
inline constexpr int32_t kVmImportedGlobals = 48;
inline constexpr int32_t kVmInstance = 56;
static_assert(sizeof(VmContext) == 64 && offsetof(VmContext, instance) == kVmInstance);

// Where the variable parts of a VmContext lie for one module.
class VmLayout {
 public:
  explicit VmLayout(const wasm::Module& module);

  int32_t func(uint32_t func_index) const {
    return static_cast<int32_t>(sizeof(VmContext) + sizeof(FuncRef) * func_index);
  }
  int32_t func_code(uint32_t f) const { return func(f) + static_cast<int32_t>(offsetof(FuncRef, code)); }
  int32_t func_context(uint32_t f) const {
    return func(f) + static_cast<int32_t>(offsetof(FuncRef, callee_context));
  }
  // Precondition: a defined global (global index space, >= imported_globals).
  int32_t global(uint32_t global_index) const {
    return globals_ + static_cast<int32_t>(sizeof(GlobalCell) * (global_index - imported_globals_));
  }
  int32_t memory_cell(uint32_t memory) const {
    return memories_ + static_cast<int32_t>(sizeof(MemoryCell) * memory);
  }
  // Where code reads a memory's base and record.
  int32_t memory_base(uint32_t memory) const { return memory == 0 ? kVmMemoryBase : memory_cell(memory); }
  int32_t memory_record(uint32_t memory) const {
    return memory == 0 ? kVmMemory : memory_cell(memory) + static_cast<int32_t>(offsetof(MemoryCell, record));
  }
  int32_t memory_limit(uint32_t memory) const {
    return memory_cell(memory) + static_cast<int32_t>(offsetof(MemoryCell, index_limit));
  }
  // The place of a tag's identity, which is the same in all instances that share the tag.
  int32_t tag(uint32_t tag_index) const { return tags_ + static_cast<int32_t>(8 * tag_index); }
  bool global_is_imported(uint32_t global_index) const { return global_index < imported_globals_; }
  size_t total_bytes() const { return total_; }

 private:
  int32_t globals_ = 0;
  int32_t memories_ = 0;
  int32_t tags_ = 0;
  uint32_t imported_globals_ = 0;
  size_t total_ = 0;
};

inline FuncRef* func_refs(VmContext* context) {
  return reinterpret_cast<FuncRef*>(context + 1);
}

}  // namespace hindsight::jit
