// Looks at the thread's mark (ThreadState::interrupt_requested) in loops that became calls of memset, memcpy and memmove.
// A thread that is to end is redirected where it is in generated code (runtime/exec/interrupt.h). A guest's loop around such a call spends
// nearly all of its time elsewhere, and would go on for minutes.
#pragma once

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// Runs before code generation.
void look_at_mark_beside_long_calls(IrModule& ir);

}  // namespace hindsight::jit::optimizing
