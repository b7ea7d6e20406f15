// Wall: a piece of assembly that touches no memory but may not return, to LLVM. So nothing that may trap is made earlier than it
// where it was not sure to run. It stands in the IR while a pass runs, and never in code.
#pragma once

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>

namespace hindsight::jit::optimizing {

// What all walls of a context call.
inline llvm::InlineAsm* wall_of(llvm::LLVMContext& context) {
  return llvm::InlineAsm::get(llvm::FunctionType::get(llvm::Type::getVoidTy(context), false), "# wall", "",
                              /*hasSideEffects=*/true);
}

inline llvm::CallInst* add_wall(llvm::Instruction& before) {
  llvm::CallInst* const wall = llvm::CallInst::Create(wall_of(before.getContext()), "", before.getIterator());
  wall->setDoesNotAccessMemory();
  wall->setDebugLoc(before.getDebugLoc());
  return wall;
}

}  // namespace hindsight::jit::optimizing
