// What changes the meaning or shape of generated code (CompileOptions) apart from what only tunes it
// (Tuning). Code compiled under different CompileOptions is never mixed in one engine.
#pragma once

#include <cstdint>

namespace hindsight {
class TraceDirectory;
}

namespace hindsight::jit {

enum class BoundsChecks : uint8_t {
  kGuardPages,  // 8 GiB + reserve mapped inaccessible; faults become traps; no check in code
  kExplicit,    // address + offset + size compared with MemoryRecord::byte_length
};

struct CompileOptions {
  BoundsChecks bounds = BoundsChecks::kGuardPages;
  bool lwp_counting = true;       // baseline: count branches and values for the thread's LWP unit
  bool lwp_instructions = false;  // and instructions, which costs more than both
  bool osr_polls = true;          // baseline: poll osr_slots at loop headers
  // Baseline: make osr_entries, by which a running loop comes back from optimized code. Of functions with handlers or
  // tail calls, and of traced code, there are none.
  bool loop_entries = false;
  // Baseline: report every access, branch and instruction (base/trace.h) to ThreadState::trace_at, and describe the
  // runs here; null: do not. Must outlive the code. Much slower; for units that model a processor.
  TraceDirectory* trace = nullptr;
};

struct Tuning {
  bool use_host_features = true;  // vector width, bmi, ...
  bool vectorize = true;
  bool inline_functions = true;
  bool align_loops = true;
  uint32_t optimization_level = 3;

  friend bool operator==(const Tuning&, const Tuning&) = default;
};

}  // namespace hindsight::jit
