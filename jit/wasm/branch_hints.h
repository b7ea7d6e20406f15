// The custom section "metadata.code.branch_hint" (the branch hinting proposal): which way the if and br_if
// instructions of the code section, which follows, mostly go. It is advice and may be wrong without making
// the module wrong: a malformed section is counted and passed over as a whole.
#pragma once

#include <cstdint>
#include <span>

#include "jit/wasm/module.h"

namespace hindsight::wasm {

inline constexpr const char* kBranchHintSection = "metadata.code.branch_hint";

// Reads the section's contents, bytes [begin, end) of the module, into Module::branch_hints, where offsets
// count from the body's first byte for now.
void read_branch_hints(Module& module, uint32_t begin, uint32_t end);

// Called after the code section. `body_starts[i]` is where the bytes of body i begin, its local declarations.
// Makes offsets those of the module, sorts the hints, and drops those that lie in no body and all but the
// first of an instruction.
void finish_branch_hints(Module& module, std::span<const uint32_t> body_starts);

}  // namespace hindsight::wasm
