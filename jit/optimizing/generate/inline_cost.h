// Which callees are generated in place of their call. Deterministic, decided from sizes and from what is asked for. Compilers of
// source languages have already inlined what is small *and* called from one place. What is left to gain are
// small leaves called in loops and across language boundaries. And loads of a callee that stall: what runs ahead of them, or goes
// side by side, has to see the loop around the call.
#pragma once

#include <cstdint>

#include "jit/optimizing/optimizer.h"
#include "jit/wasm/module.h"

namespace hindsight::jit::optimizing {

struct InlineSituation {
  uint32_t depth = 0;           // inlined bodies already open around the call
  uint32_t inlined_bytes = 0;   // wasm bytes inlined into this function so far
  uint32_t growth = 0;          // the most of these
  bool in_loop = false;         // of the function that contains the call
  bool recursive = false;       // the callee is already open
  bool has_asked_load = false;  // in_loop, and a change of one of the callee's loads is asked for, or was
};

// The wasm bytes that may be inlined into what the request compiles. A nest is to be there soon: it has a smaller share.
uint32_t inlined_growth(const OptimizeRequest& request);
// Whether a change of a load in this body is asked for, or the callee stays inlined for one that was.
bool has_asked_load(const OptimizeRequest& request, FuncIndex callee, const wasm::FunctionBody& body);
bool worth_inlining(const wasm::FunctionBody& callee, const InlineSituation& situation);

}  // namespace hindsight::jit::optimizing
