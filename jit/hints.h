// What a profile may tell a compiler. The jit owns these types and knows nothing of where they come from;
// feedback fills them. Hints tune, they never change meaning: any hint, however wrong, gives correct code.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace hindsight::jit {

// "This load stalls: compute its address some iterations ahead and prefetch it."
struct PrefetchHint {
  WasmOffset load;
  double stall_share = 0;          // of the function's time, 0..1; orders the work
  uint32_t initial_distance = 16;  // iterations
  bool initially_enabled = true;
};

// "This load stalls, and if its address comes from what the search that it belongs to has just loaded, run
// several of these searches at once": the loop around the search in groups of iterations.
struct InterleaveHint {
  WasmOffset load;
  double stall_share = 0;       // of the function's time, 0..1; orders the work
  uint32_t initial_width = 16;  // searches at once
  bool initially_enabled = true;
};

// "This call_indirect mostly goes through these elements of its table", the most frequent one first. Of a
// call_ref the functions themselves, by their indices.
struct CallHint {
  struct Target {
    uint32_t element = 0;
    double share = 0;  // of the calls seen, 0..1
  };
  WasmOffset call;
  std::vector<Target> targets;
  bool by_reference = false;  // a call_ref
};

struct FunctionHints {
  std::vector<PrefetchHint> prefetches;
  std::vector<InterleaveHint> interleaves;
  std::vector<CallHint> calls;
};

}  // namespace hindsight::jit
