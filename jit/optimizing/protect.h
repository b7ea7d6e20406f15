// What has to happen between IR generation and LLVM's passes: locals become SSA values, and three things
// that LLVM's rules allow but WebAssembly's forbid are ruled out.
//
// 1. A load whose value nobody uses may be deleted in LLVM; in wasm it still traps out of bounds. Every wasm
//    load from which no effect is reachable gets an empty inline assembly as a user. (A load with users may
//    still be *moved*; a trap may then come later or, if the only user is on another path, not at all.)
// 2. x + 0, x - 0, x * 1, x / 1 and their negative kin are x for LLVM; in wasm they turn a signaling NaN into
//    a quiet one. Such constants become opaque values, made once in the entry block so that loops stay
//    vectorizable.
// 3. Demoting what was just promoted is x for LLVM, with the same problem and the same cure.
#pragma once

#include "jit/optimizing/function_generator.h"

namespace hindsight::jit::optimizing {

// Metadata of the users that hinted loads have until the prefetch pass has found them.
inline constexpr const char* kTemporaryUser = "hindsight.temporary";

void protect_semantics(IrModule& ir, llvm::Function& function, const FunctionGenerator& generator);

}  // namespace hindsight::jit::optimizing
