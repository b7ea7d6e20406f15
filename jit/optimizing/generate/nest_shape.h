// What a nest needs to know of its function: which locals it uses, and which of those that it writes are read after it. Reading
// that off the wasm code is the only part of a nest's compile that looks at the rest of the function.
#pragma once

#include <vector>

#include "jit/wasm/module.h"

namespace hindsight::jit::optimizing {

struct NestShape {
  std::vector<uint32_t> used;     // locals that the loop's code names, ascending
  std::vector<uint32_t> written;  // those of them that it sets
  // Those of `written` that may be read where the nest goes on: [0] after the loop's end, [k] at the label of the k-th frame around it.
  // No more levels than kMostNestLevels (jit/abi/nest_exits.h).
  std::vector<std::vector<uint32_t>> live;
  std::vector<uint32_t> live_at_header;  // the same where it begins
};

// Linear in the function, but for what local_liveness.h bounds.
NestShape shape_of_nest(const wasm::Module& module, const wasm::FunctionBody& body, LoopIndex root);

}  // namespace hindsight::jit::optimizing
