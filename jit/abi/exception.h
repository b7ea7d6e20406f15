// What a caught exception is to generated code: an exnref is the address of an ExceptionRecord, null for
// none.
//
// Throwing. Generated code stores the values to ThreadState::arguments, one after the other, 8 bytes each (a
// v128 has 16), and calls Builtins::throw_exception. Whoever has an exnref calls Builtins::throw_reference.
// Neither returns. The runtime walks the frames of the innermost guest entry and looks each return address up
// in its version's handlers (jit/code/code_version.h). It goes on at the first landing it finds with
//     rsp, rbp  as they were in that frame when it made the call,
//     rax       the exnref,
//     all other registers undefined.
// So a call from which an exception is caught preserves no register, and a function that catches saves all
// callee-saved registers for its own caller. The code at the landing decides which clause an exception is
// for, by comparing tags. What no clause takes is thrown on from there with throw_reference. With no handler
// left in the entry, the guest is left as by a trap (TrapCode::kUncaughtException).
//
// References are neither counted nor traced. The store that made an exception frees it when no word may
// still be a reference to it. It looks on the thread's stack, in tables, globals and other exceptions. So a reference
// must lie in such a place, or in a register, whenever a builtin is called: it always does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hindsight::jit {

struct alignas(16) ExceptionRecord {
  const void* tag;  // the tag's identity: VmContext's tag of each instance that has the tag
  void* runtime;    // the runtime's data of this exception
  // uint64_t values[words_of(the tag's parameters)];
};
inline constexpr int32_t kExceptionTag = 0;
inline constexpr int32_t kExceptionValues = 16;
static_assert(sizeof(ExceptionRecord) == kExceptionValues && offsetof(ExceptionRecord, tag) == kExceptionTag);

// As they were thrown; of an i32 or f32 the rest of its word is zero.
inline uint64_t* exception_values(ExceptionRecord* exception) {
  return reinterpret_cast<uint64_t*>(exception + 1);
}

}  // namespace hindsight::jit
