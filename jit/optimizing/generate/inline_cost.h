// Which callees are generated in place of their call. Deterministic, decided from sizes alone. Compilers of
// source languages have already inlined what is small *and* called from one place. What is left to gain are
// small leaves called in loops and across language boundaries.
#pragma once

#include <cstdint>

#include "jit/wasm/module.h"

namespace hindsight::jit::optimizing {

struct InlineSituation {
  uint32_t depth = 0;          // inlined bodies already open around the call
  uint32_t inlined_bytes = 0;  // wasm bytes inlined into this function so far
  bool in_loop = false;        // of the function that contains the call
  bool recursive = false;      // the callee is already open
};

bool worth_inlining(const wasm::FunctionBody& callee, const wasm::FunctionBody& compiled,
                    const InlineSituation& situation);

}  // namespace hindsight::jit::optimizing
