// Trampolines: the generated bridges between C++ and guest code. One set an engine (they live in its code
// arena). The asmjit implementation is in jit/baseline/trampolines.cc (make_trampolines).
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "jit/abi/vm_context.h"
#include "jit/wasm/types.h"

namespace hindsight::jit {

// What a host function's FuncRef::callee_context points to. dispatch reads its arguments from
// slots[0..params) and writes its results to slots[0..results). Slots have 8 bytes, two slots for a v128. The
// trampoline zero-extends an i32; an f32 is in the low 4 bytes. It returns 0, or nonzero after setting
// thread->pending_trap: the trampoline then unwinds to the innermost guest entry. If a wasm exception is to
// pass beyond the host function, dispatch does not return (jit/abi/exception.h). It never throws a C++
// exception.
struct HostCallee {
  uint32_t (*dispatch)(HostCallee*, uint64_t* slots);
  ThreadState* thread;
};
static_assert(offsetof(HostCallee, dispatch) == 0 && offsetof(HostCallee, thread) == 8);

// Calls guest `code` with `context`. slots: arguments in, results out (as above; must hold call_words(type)).
// Returns 0, or 1 if the guest was unwound (thread->pending_trap says why). Saves and restores all
// callee-saved registers and the previous thread->entry_sp, so entries nest.
using InvokeFn = uint32_t (*)(ThreadState* thread, const void* code, void* context, uint64_t* slots);

class Trampolines {
 public:
  virtual ~Trampolines() = default;
  // Thread-safe; cached by canonical type. Valid as long as the Trampolines live.
  virtual Result<InvokeFn> invoke(const wasm::FuncType& type) = 0;
  virtual Result<const void*> host_call(const wasm::FuncType& type) = 0;  // FuncRef::code of a host function
  virtual Result<const void*> lazy_stub(uint32_t func_index) = 0;  // FuncRef::code before the first compile
  // Unwinds: jump here with rdi = ThreadState*. Used by builtins (noreturn call) and by signal handlers (as
  // new rip).
  virtual const void* unwind() const = 0;
  // Fills in what generated code calls through a ThreadState, before any runs with it.
  virtual void prepare(ThreadState& thread) const = 0;
};

}  // namespace hindsight::jit
