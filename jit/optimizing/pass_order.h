// LLVM's own passes between generated IR and code generation, in their order. It is the order of LLVM's pipeline for -O3
// (PassBuilderPipelines.cpp, LLVM 19) without what one function out of a compiled WebAssembly module has no use for.
// Whoever made the module has optimized it already, so much of what that pipeline repeats finds nothing here.
//
// A pass, or one of its repetitions, was left out where hardly any code was another without it: of 3,782 functions and loops of 52
// programs, by the text of their assembly (compile_cost --code, docs/MEASURING.md). What is left takes two thirds of the time
// that LLVM's order took in these, and three quarters in first compiles of suite elsewhere (Zen 5).
#pragma once

#include <llvm/IR/PassManager.h>
#include <llvm/Passes/OptimizationLevel.h>

#include "jit/compile_options.h"
#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// To a form in which loops can be reasoned about: rotated, their counters known, what is invariant in front of them.
llvm::FunctionPassManager simplifying_passes(const IrModule& ir, llvm::OptimizationLevel level);
// What makes code larger for speed: vectors, unrolling. And what cleans up after it.
llvm::FunctionPassManager lowering_passes(const CompileOptions& options, const Tuning& tuning,
                                          llvm::OptimizationLevel level);

}  // namespace hindsight::jit::optimizing
