// Throwing WebAssembly exceptions: making one, finding who catches it, going on there. Internal to the room.
//
// The search and everything else that allocates happens in functions that return. What then abandons frames
// has no destructors, as for traps (trap.h). jit/abi/exception.h is the contract with generated code.
#pragma once

#include "jit/abi/exception.h"
#include "runtime/exec/trap.h"

namespace hindsight::rt {

// Makes an exception of the tag with the values in ThreadState::arguments. `frame` is that of the builtin:
// what is below it on the stack is not looked at for references. Null: no memory; the trap is recorded.
jit::ExceptionRecord* make_exception(Store& store, const Tag& tag, void* frame);

// Where a thrown exception goes on; null pc: it leaves the entry, and the trap is recorded.
struct Landing {
  const void* pc = nullptr;
  uintptr_t sp = 0;
  uintptr_t fp = 0;
};
// `frame`: the frame address (rbp) of the builtin or host call from whose guest caller on frames are
// searched.
Landing find_landing(Store& store, jit::ExceptionRecord& exception, uintptr_t frame);
// Goes on there, or leaves the guest. Only from under generated code of the innermost entry.
[[noreturn]] void go_on(Store& store, const Landing& landing, jit::ExceptionRecord* exception);

}  // namespace hindsight::rt
