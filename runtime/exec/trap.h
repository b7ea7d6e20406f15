// Recording a trap and leaving the guest. Internal to the room.
//
// Leaving jumps over C++ frames without running their destructors. Rule: whatever needs a destructor lives in
// record_trap or in a builtin's worker, which have returned before leave_guest is called. Between leave_guest and
// the trampoline there are only functions whose locals are trivial.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/exec/guest_thread.h"
#include "runtime/instance/store.h"

namespace hindsight::rt {

// Unwound functions never report their exit to ThreadSanitizer, whose shadow stack would fill up.
#define HINDSIGHT_UNWOUND [[gnu::no_sanitize("thread")]]

// Where a backtrace starts.
struct WalkStart {
  uintptr_t exact_pc = 0;   // interrupted instruction, if it is in generated code
  uintptr_t return_pc = 0;  // a return address that no frame pointer leads to (prologue, epilogue)
  uintptr_t fp = 0;         // first frame
};

// Sets thread->pending_trap and store.trap, with a backtrace, as far as there is memory for it. Returns.
void record_trap(Store& store, jit::TrapCode code, std::string detail, const WalkStart& start) noexcept;
// The same from a builtin or host call whose frame address is `frame`.
void record_trap_at(Store& store, jit::TrapCode code, const char* detail, void* frame) noexcept;
// Appends the frames from `start` through nested entries.
void walk_stack(Store& store, const WalkStart& start, GuestTrap& trap);

// Appends the functions whose code is at `pc` of this version, inlined ones first; counts those for which
// there is no room.
void add_frames(const jit::RegisteredCode& code, uintptr_t pc, std::vector<GuestFrame>& frames,
                uint64_t& left_out);

// Whether the frame with this return address into `code` has gone on in the code that it called: it is no activation
// of its own.
bool goes_on_in_callee(const jit::RegisteredCode& code, uintptr_t return_pc);

// To the innermost guest entry. Only from under generated code of that entry.
[[noreturn]] void leave_guest(Store& store);

}  // namespace hindsight::rt
