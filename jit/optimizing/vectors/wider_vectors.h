// Makes loops on vectors of 128 bits, as WebAssembly has them, into loops on the host's. Several iterations
// of a loop of one block become one, in which each vector is the concatenation of what it was in these
// iterations.
//
//     before:  ... count, guard (guarded_loop.h) ...
//              if (guard) goto wider.entry else goto loop
//     wider:   for each `chunk` of iterations: <8 x float> where the loop has <4 x float>
//     loop:    as it was; what is left of the iterations, or all of them
//
// All operators of WebAssembly's vectors work lane by lane or within 128 bits, where x86's wider instructions
// do the same in each half. Values carried from iteration to iteration are made wider only if they are sums
// and the like of integers. Those of floating-point numbers have an order.
#pragma once

#include <llvm/IR/PassManager.h>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

struct WiderVectorsPass : llvm::PassInfoMixin<WiderVectorsPass> {
  WiderVectorsPass(const IrModule& module, uint32_t bits) : ir(module), vector_bits(bits) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  const IrModule& ir;
  uint32_t vector_bits;  // of the host, to be used
};

}  // namespace hindsight::jit::optimizing
