// Numbers of 32 bits that are addresses elsewhere than where they are computed are extended to 64 bits where they are computed.
//
// Problem: an operation on 32 bits leaves zeros in the register's upper half, on x86-64 as on AArch64, and code generation knows
// that, within a block. What comes from another block is extended once more before it is an address. So a loop that carries a
// pointer, as most do in WebAssembly, spends an instruction an iteration on what is done already.
//
// Idea: the extension goes right behind the operation, where it costs nothing, and phis carry 64 bits. Who needs 32 of them uses the
// lower half of the same register.
//
// The last look at IR, after code generation has rewritten loops' counters and addresses in its own way.
#pragma once

#include <llvm/Pass.h>

namespace hindsight::jit::optimizing {

// Whose owner is the pass manager that it is added to.
llvm::FunctionPass* make_extend_early_pass();
// Whether it goes right before this pass of code generation, by the name that LLVM shows for it.
bool extend_early_goes_before(llvm::StringRef pass);

}  // namespace hindsight::jit::optimizing
