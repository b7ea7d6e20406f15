// Which locals still matter at the header of a loop: those that may be read before they are written, in the
// loop or after it. What code that is left there has to hand over; keeping more alive would cost registers in
// every iteration.
#pragma once

#include <vector>

#include "jit/wasm/module.h"

namespace hindsight::jit::optimizing {

// By LoopIndex, then by local. Of a function without handlers (FunctionBody::has_handlers). A function that
// would take too long says that every local matters.
std::vector<std::vector<bool>> locals_live_at_loops(const wasm::Module& module,
                                                    const wasm::FunctionBody& body);

}  // namespace hindsight::jit::optimizing
