// The order of accesses in code generation. A trap shows what was stored before it, and nothing that is stored behind
// it; but accesses that do not overlap may change places in LLVM's eyes, and neighbouring stores become one. Up to code
// generation the passes that do so are left out (pipeline.cc). For code generation an empty piece of assembly that may
// touch any memory stands between two accesses of a block wherever their order shows: loads between two of them
// are still made in any order.
#pragma once

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// In front of code generation.
void keep_order_of_accesses(IrModule& ir);

}  // namespace hindsight::jit::optimizing
