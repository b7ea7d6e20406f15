// Builtins: the runtime functions that generated code calls, through VmContext::builtins. System V
// convention. They may clobber every caller-saved register, unless it is said of one that it preserves most.
// The runtime (runtime/exec) defines the one table; tests may define others.
//
// A builtin that fails does not return: it sets ThreadState::pending_trap and unwinds to the innermost guest
// entry. The wasm position of the trap is the call's return address. So generated code calls a trapping
// builtin with an ordinary call, never shared between different wasm positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jit/abi/vm_context.h"

namespace hindsight::jit {

struct LoopCell;
struct ExceptionRecord;

// What the value of a value record is: its 16 flag bits. 0 is left to records that no generated code made.
inline constexpr uint32_t kValueSiteCallIndirect = 1;  // call_indirect: the table index, within bounds
inline constexpr uint32_t kValueSiteDivisor = 2;       // integer div and rem: the divisor, never 0
inline constexpr uint32_t kValueSiteByteCount = 3;     // memory.copy, .fill and .init: the bytes asked for
inline constexpr uint32_t kValueSiteCallRef = 4;       // call_ref: the callee's index in its own module
inline constexpr uint32_t kValueSiteSelect =
    5;  // select in an innermost loop: 1 if it chose its first operand, else 0
inline constexpr uint32_t kValueSiteLoop = 6;  // an innermost loop that is left at its end: its trip count
inline constexpr uint32_t kLastValueSite = kValueSiteLoop;

// Of a function that saves every general register which it, or what it calls, changes.
#define HINDSIGHT_PRESERVES_MOST [[gnu::no_caller_saved_registers, gnu::target("general-regs-only")]]

struct Builtins {
  [[noreturn]] void (*trap)(VmContext*, uint32_t trap_code);
  // The check at function entry failed: the stack is exhausted, or an interruption was requested. It traps. Only the optimizing
  // tier makes use of that: in baseline code the function goes on where it returns.
  void (*stack_check_failed)(VmContext*);
  // First call of a function: compiles and publishes it; returns its entry. Called by the lazy stub.
  const void* (*compile_lazily)(VmContext*, uint32_t func_index);
  // Addresses and sizes in memories of 32 bits are zero-extended.
  uint64_t (*memory_grow)(VmContext*, uint32_t memory, uint64_t delta_pages);  // old size in pages, or ~0
  void (*memory_init)(VmContext*, uint64_t data_memory /* data in the high half */, uint64_t dst,
                      uint32_t src, uint32_t n);
  void (*data_drop)(VmContext*, uint32_t data_index);
  void (*memory_copy)(VmContext*, uint64_t dst_memory_src_memory /* dst in the high half */, uint64_t dst,
                      uint64_t src, uint64_t n);
  void (*memory_fill)(VmContext*, uint32_t memory, uint64_t dst, uint32_t value, uint64_t n);
  // The effective address is address + offset, which may be beyond 2^64 and is checked. Wakes at most `count`
  // threads; how many.
  uint32_t (*atomic_notify)(VmContext*, uint32_t memory, uint64_t address, uint64_t offset, uint32_t count);
  // 0: woken, 1: the memory held another value, 2: `timeout` nanoseconds (negative: endless) have passed.
  uint32_t (*atomic_wait32)(VmContext*, uint32_t memory, uint64_t address, uint64_t offset, uint32_t expected,
                            int64_t timeout);
  uint32_t (*atomic_wait64)(VmContext*, uint32_t memory, uint64_t address, uint64_t offset, uint64_t expected,
                            int64_t timeout);
  void* (*table_get)(VmContext*, uint32_t table, uint32_t index);
  void (*table_set)(VmContext*, uint32_t table, uint32_t index, void* value);
  uint32_t (*table_grow)(VmContext*, uint32_t table, void* init, uint32_t delta);  // old size or ~0
  void (*table_fill)(VmContext*, uint32_t table, uint32_t index, void* value, uint32_t n);
  void (*table_copy)(VmContext*, uint64_t dst_table_src_table /* dst in the high half */, uint32_t dst,
                     uint32_t src, uint32_t n);
  void (*table_init)(VmContext*, uint64_t elem_table /* elem in the high half */, uint32_t dst, uint32_t src,
                     uint32_t n);
  void (*elem_drop)(VmContext*, uint32_t elem_index);
  // Throw an exception with the values in ThreadState::arguments, and an exception that was caught (null
  // traps). Neither returns: see jit/abi/exception.h.
  [[noreturn]] void (*throw_exception)(VmContext*, uint32_t tag_index);
  [[noreturn]] void (*throw_reference)(VmContext*, ExceptionRecord*);
  // LWP events of counting code at `pc`, the first byte after the code that counts. Null (for a value only)
  // means the return address. Each reloads its counter.
  void (*lwp_instructions_retired)(VmContext*, const void* pc);
  void (*lwp_branch_retired)(VmContext*, const void* pc, uint32_t taken, const void* target);
  // wasm_offset is the sampled instruction's; value is zero-extended; site_flags is one of the constants
  // below.
  // Changes no general register but r11 (LLVM's preserve_most), so that code which comes by here once in thousands of times need not
  // keep its values out of the others: see HINDSIGHT_PRESERVES_MOST.
  void (*lwp_value_sampled)(VmContext*, const void* pc, uint32_t wasm_offset, uint64_t value,
                            uint32_t site_flags);
  // The trace buffer of instrumented code has no more than its slack left: takes the words out, resets trace_at.
  void (*trace_full)(VmContext*);
  // A strip of a trial loop ended (LoopCell::countdown became negative): measures, re-arms the cell.
  void (*strip_ended)(VmContext*, LoopCell*);
};

}  // namespace hindsight::jit
