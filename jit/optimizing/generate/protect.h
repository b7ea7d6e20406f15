// What has to happen between IR generation and LLVM's passes. Locals become SSA values, and three things are ruled out
// that LLVM's rules allow but WebAssembly's forbid.
//
// 1. LLVM executes a load only where its value is needed; in wasm it traps wherever it is out of bounds. So every wasm
//    load gets an empty inline assembly as a user, a pin, which takes the whole value. Nor does LLVM then load less
//    than the access is wide, whose last byte alone may be out of bounds. When LLVM has folded what it folds first,
//    UnpinPass removes the pins of loads whose last byte is needed wherever they are (needs.h). It removes more of them
//    when LLVM has simplified the function. Such a load may still be moved: its trap may come later. No store is
//    removed any more: what made a load needed has to stay. Of the pins that stay, those in loops that could be
//    vectorized are carried out of them (pin_loops.h).
// 2. For LLVM, x + 0, x - 0, x * 1, x / 1 and their negative kin are x. In wasm they turn a signaling NaN into a quiet
//    one. Such constants become opaque values, made once in the entry block so that loops stay vectorizable.
// 3. Demoting what was just promoted is x for LLVM, with the same problem and the same cure.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/generate/function_generator.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {

// Metadata of pins that UnpinPass has not judged at last.
inline constexpr const char* kPin = "hindsight.pin";

void protect_semantics(IrModule& ir, llvm::Function& function, const FunctionGenerator& generator);

// After the first round of simplification, and after the last: what is kept then stays for good.
class UnpinPass : public llvm::PassInfoMixin<UnpinPass> {
 public:
  enum class When : uint8_t { kFirst, kLast };
  explicit UnpinPass(When when) : when_(when) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  When when_;
};

}  // namespace hindsight::jit::optimizing
