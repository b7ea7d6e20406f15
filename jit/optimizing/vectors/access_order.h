// The order of accesses in code generation. A trap shows what was stored before it, and nothing that is stored after
// it. But in LLVM's eyes accesses that do not overlap may change places, and neighbouring stores become one. Up to code
// generation the passes that do so are left out (pipeline.cc). For code generation an empty piece of assembly that may
// touch any memory stands between two accesses of a block wherever their order shows. Loads between two of these pieces
// are still made in any order.
#pragma once

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// Runs before code generation.
void keep_order_of_accesses(IrModule& ir);

}  // namespace hindsight::jit::optimizing
