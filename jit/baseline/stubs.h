// What generated code calls when something rare happens: an LWP counter became negative, the stack is used up, a
// trace's buffer is full, a trap. Written once, in assembly, so that each place in the code is no more than a near call.
//
// A stub saves every register that C++ may change, the flags included, and gives all of them back. To the code around it the call is a nop.
// What it needs besides, it reads from the code at its return address:
//     instructions    call stub; ...
//     branch          call stub; jmp to a comparison and its conditional jumps (comparison.h). Two stubs: the jump is
//                     WebAssembly's branch taken, or not taken
//     jump            call stub; jmp to a jmp to the target
//     run and ...     the same without the first jmp where instructions were counted just before: see
//                     Emitter::count_run_and_branch
//     computed jump   target in r11; call stub; jmp on
//     stack check     in a prologue, with the VmContext* in rdi: call stub; returns if the function may go on
//     trap            push code; call stub, which does not return: its return address is the trap's position
//     value           value in r11; push site_flags; push wasm_offset; call stub; lea rsp, [rsp + 16]
// rbx is the VmContext*. The return address is the record's pc.
#pragma once

#include "jit/abi/vm_context.h"

namespace hindsight::jit::baseline {

// The entry of a stub. All but two are called through the ThreadState (Trampolines::prepare).
const void* rare_stub(RareStub stub);

extern "C" {
// Not to be called from C++.
void hindsight_stub_value();
void hindsight_stub_trace_full();
}

}  // namespace hindsight::jit::baseline
