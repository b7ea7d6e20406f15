// Which locals still matter at a place: those that may be read before they are written, from there on. What code that is left there has
// to hand over; keeping more alive would cost registers in every iteration.
#pragma once

#include <vector>

#include "jit/wasm/module.h"

namespace hindsight::jit::optimizing {

// At the headers of loops: by LoopIndex, then by local. Of a function without handlers (FunctionBody::has_handlers). A function that
// would take too long says that every local matters.
std::vector<std::vector<bool>> locals_live_at_loops(const wasm::Module& module,
                                                    const wasm::FunctionBody& body);

// Around one loop. `ways_out`: [0] is after its end, [k] the label of the k-th frame around it, up to kMostNestLevels.
struct LiveAround {
  std::vector<std::vector<uint32_t>> ways_out;
  std::vector<uint32_t> header;
};
// Of the locals asked about, which ascend. In a function with handlers, or one that would take too long, they all matter. Linear in the
// function's bytes from the outermost loop around on: some milliseconds for a megabyte at the most.
LiveAround locals_live_around(const wasm::Module& module, const wasm::FunctionBody& body, LoopIndex loop,
                              const std::vector<uint32_t>& asked);

}  // namespace hindsight::jit::optimizing
