// What has to happen between IR generation and LLVM's passes: locals become SSA values, and three things
// that LLVM's rules allow but WebAssembly's forbid are ruled out.
//
// 1. LLVM executes a load only where its value is needed; in wasm it traps wherever it is out of bounds. So
//    every wasm load gets an empty inline assembly as a user, a pin. When LLVM has folded what it folds
//    first, and removed the stores that others overwrite, UnpinPass removes the pins of loads that are needed
//    wherever they are (needs.h). Such a load may still be moved: its trap may come later. From then on no
//    store is removed any more: what made a load needed has to stay. Of the pins that stay, those in loops
//    that could be vectorized are carried out of them (pin_loops.h).
// 2. x + 0, x - 0, x * 1, x / 1 and their negative kin are x for LLVM; in wasm they turn a signaling NaN into
//    a quiet one. Such constants become opaque values, made once in the entry block so that loops stay
//    vectorizable.
// 3. Demoting what was just promoted is x for LLVM, with the same problem and the same cure.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/function_generator.h"

namespace hindsight::jit::optimizing {

// Metadata of the users that hinted loads have until the prefetch pass has found them.
inline constexpr const char* kTemporaryUser = "hindsight.temporary";
// Metadata of pins that UnpinPass has not judged.
inline constexpr const char* kPin = "hindsight.pin";

void protect_semantics(IrModule& ir, llvm::Function& function, const FunctionGenerator& generator);

// After the first round of simplification.
struct UnpinPass : llvm::PassInfoMixin<UnpinPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace hindsight::jit::optimizing
