// What a plan says of each place. The compiler is asked in its own words (requests.cc, jit/change.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "jit/change.h"

namespace hindsight::jit {

// "This load stalls: compute its address some iterations ahead and prefetch it."
struct PrefetchHint {
  WasmOffset load;
  double stall_share = 0;  // of the function's time, 0..1; orders the work
  uint32_t initial_distance = traits_of(ChangeKind::kPrefetch).knob.first;  // iterations
  bool initially_enabled = true;
};

// "This load stalls, and if its address comes from what the search that it belongs to has just loaded, run
// several of these searches at once": the loop around the search in groups of iterations.
struct InterleaveHint {
  WasmOffset load;
  double stall_share = 0;  // of the function's time, 0..1; orders the work
  uint32_t initial_width = traits_of(ChangeKind::kInterleave).knob.first;  // searches at once
  bool initially_enabled = true;
};

// "This load stalls, and if its address comes from a pointer that the loop has just loaded, remember where
// the loop goes, and prefetch from that when it goes the same way again."
struct JumpHint {
  WasmOffset load;
  double stall_share = 0;  // of the function's time, 0..1; orders the work
  uint32_t initial_distance = traits_of(ChangeKind::kJumpPointers).knob.first;  // turns ahead
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

// What was seen of a br_if, an if, or a select, whose condition held (`taken`) so often and failed so often.
struct BranchHint {
  // What it is to be in the code, whatever it is in the program. kAsItComes: as the compiler thinks best with
  // these numbers.
  enum class Form : uint8_t {
    kAsItComes,
    kSelect,  // "it is mispredicted: compute both sides and choose"
    kBranch,  // "it is predicted: go ahead with one side, if otherwise a chain of values waits for the choice"
  };
  WasmOffset branch;
  uint64_t taken = 0;
  uint64_t not_taken = 0;
  double mispredicted = 0;  // share of its executions, 0..1; an estimate, or what it cannot be above
  bool weigh = true;        // the numbers are for the compiler, not for the form alone
  // One side was never seen: outside of loops, and if the request asks for it (OptimizeRequest::split_cold), its code lies
  // apart from what runs.
  bool one_sided = false;
  Form form = Form::kAsItComes;
};

// "This operand is mostly that number": the divisor of an integer division or remainder, or the byte count of a
// memory.copy or memory.fill. Or "this loop mostly goes round so often", at least once, whenever it is entered.
struct ValueHint {
  WasmOffset at;       // the instruction; the loop
  uint64_t value = 0;  // an i32 is zero-extended
  double share = 1;    // of the executions seen, 0..1
};

struct FunctionHints {
  std::vector<PrefetchHint> prefetches;
  std::vector<InterleaveHint> interleaves;
  std::vector<JumpHint> jumps;
  std::vector<CallHint> calls;
  std::vector<BranchHint> branches;
  std::vector<ValueHint> values;
};

}  // namespace hindsight::jit
