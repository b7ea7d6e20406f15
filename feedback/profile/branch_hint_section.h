// A profile as branch hints: a copy of the module with the custom section "metadata.code.branch_hint" in
// front of its code. Engines and compilers of WebAssembly read it (the branch hinting proposal).
//
// An `if` or `br_if` gets a hint where it was seen often enough and nearly always went one way. Hints that
// the module had stay where the profile says nothing; nothing else of the module changes but its hash.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"

namespace hindsight::feedback {

inline constexpr uint64_t kMinHintOutcomes = 64;
// What compilers take a hint for: LLVM's likely branch is nearly always taken, so a side that has less is
// better left to them.
inline constexpr double kMinHintShare = 0.90;

struct HintedModule {
  std::vector<uint8_t> bytes;
  uint32_t likely = 0, unlikely = 0;  // hints of the profile
  uint32_t kept = 0;                  // of the module's own
  uint32_t unclear = 0;               // branches seen that went both ways, or too seldom
};

// Error kUsage: the profile is of another module. kInternal: our bug.
Result<HintedModule> with_branch_hints(const ModuleProfile& profile, const wasm::Module& module);

}  // namespace hindsight::feedback
