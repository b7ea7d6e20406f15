// What has to happen between IR generation and LLVM's passes. Locals become SSA values, and three things are ruled out
// that LLVM's rules allow but WebAssembly's forbid.
//
// 1. LLVM executes a load only where its value is needed; in wasm it traps wherever it is out of bounds. So every wasm
//    load gets an empty inline assembly as a user, a pin, which takes the whole value. Nor does LLVM then load less
//    than the access is wide, whose last byte alone may be out of bounds. When LLVM has simplified the function, and unrolled what it
//    unrolls for good, UnpinPass removes the pins of loads whose last byte is needed wherever they are (needs.h). Not before: what an unrolled
//    loop computes may be what nobody foresaw, and then a branch decides nothing any more. Such a load may still be moved: its trap may
//    come later. Of the pins that stay, those in loops that could be
//    vectorized are carried out of them (pin_loops.h).
// 2. For LLVM, x + 0, x - 0, x * 1, x / 1 and their negative kin are x. In wasm they turn a signaling NaN into a quiet
//    one. Such constants become opaque values, made once in the entry block so that loops stay vectorizable.
// 3. Demoting what was just promoted is x for LLVM, with the same problem and the same cure.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/generate/function_generator.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {

// Metadata of pins that UnpinPass has not judged.
inline constexpr const char* kPin = "hindsight.pin";

void protect_semantics(IrModule& ir, llvm::Function& function, const FunctionGenerator& generator);

// After simplification: what is kept then stays for good.
struct UnpinPass : llvm::PassInfoMixin<UnpinPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace hindsight::jit::optimizing
