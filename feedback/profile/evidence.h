// Evidence: everything the policy may look at when it decides about one function, as plain numbers. It is
// filled from the profile at the moment of a decision, kept with the decision, saved with it, and enough to
// replay it: same evidence, same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace hindsight::feedback {

// What became of a prefetch that was tried on a load.
enum class PrefetchOutcome : uint8_t { kNone, kInTrial, kKept, kRolledBack, kNoSlice };
const char* to_string(PrefetchOutcome outcome);

struct LoadEvidence {
  WasmOffset load;                     // of the wasm load (or store) instruction
  double stall_samples = 0;            // clock samples that stood right behind it
  double stall_samples_optimized = 0;  // of these, in optimized code
  uint64_t addresses = 0;              // of these, with a known data address
  uint64_t address_span_bytes = 0;     // highest - lowest address seen
  uint64_t distinct_pages = 0;         // 4 KiB pages among the addresses seen (exact up to kMaxPagesSeen)
  PrefetchOutcome outcome = PrefetchOutcome::kNone;
  friend bool operator==(const LoadEvidence&, const LoadEvidence&) = default;
};

struct LoopEvidence {
  LoopIndex loop;
  WasmOffset offset;
  uint32_t depth = 0;
  double samples = 0;  // with those of inner loops
  int32_t parent = -1;
  friend bool operator==(const LoopEvidence&, const LoopEvidence&) = default;
};

struct FunctionEvidence {
  FuncIndex function;
  std::string name;
  uint32_t code_bytes = 0;       // wasm
  double samples_baseline = 0;   // clock samples in its baseline code
  double samples_optimized = 0;  // clock samples in its current optimized code
  double seconds_baseline = 0;   // the same as CPU time (samples x their period)
  double seconds_optimized = 0;
  double total_samples = 0;         // of all functions: the denominator of "hot"
  bool optimized = false;           // an optimized version is published or being made
  uint32_t optimize_count = 0;      // compiles so far
  std::vector<LoadEvidence> loads;  // by descending stall_samples, at most kMaxLoads
  std::vector<LoopEvidence> loops;  // in LoopIndex order
  friend bool operator==(const FunctionEvidence&, const FunctionEvidence&) = default;
};

inline constexpr size_t kMaxLoads = 32;
inline constexpr size_t kMaxPagesSeen = 512;

}  // namespace hindsight::feedback
