// What generated code calls when something rare happens: an LWP counter became negative, the stack is used up, a
// trace's buffer is full, a trap. Written once, in assembly, so that each place in the code is no more than a near call.
//
// A stub saves every register that C++ may change, the flags included, and gives all of them back: to the code around
// it the call is a nop. What it needs besides, it reads from the code at its return address:
//   instructions    call stub; ...
//   branch          compare; call stub; the conditional jumps; jmp fall     all long but one jp over the others
//   jump            call stub; jmp target                                   long
//   computed jump   target in r11; call stub
//   value           value in r11; push site_flags; push wasm_offset; call stub; lea rsp, [rsp + 16]
// rbx is the VmContext*. The return address is the record's pc.
#pragma once

namespace hindsight::jit::baseline {

extern "C" {
// Not to be called from C++.
void hindsight_stub_instructions();
void hindsight_stub_branch();
void hindsight_stub_jump();
void hindsight_stub_computed_jump();
void hindsight_stub_value();
void hindsight_stub_trace_full();
// In a prologue, with the VmContext* in rdi: returns if the function may go on.
void hindsight_stub_stack_check();
// esi: the TrapCode. Does not return; the return address is the trap's position.
void hindsight_stub_trap();
}

// The address of one of them.
inline const void* stub(void (*function)()) {
  return reinterpret_cast<const void*>(function);
}

}  // namespace hindsight::jit::baseline
