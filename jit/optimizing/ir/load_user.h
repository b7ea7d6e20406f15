// The user that a load is given where LLVM alone would see none: it executes the load where it stands, and at its full width.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

namespace hindsight::jit::optimizing {

// An empty piece of assembly that has the value as operand and stays. It touches no memory that LLVM
// knows of, so loads and stores may move across it.
inline llvm::CallInst* add_user(llvm::IRBuilder<>& b, llvm::Value& value) {
  const char* constraint = value.getType()->isFloatingPointTy() || value.getType()->isVectorTy() ? "x" : "r";
  llvm::CallInst* const user = b.CreateCall(
      llvm::InlineAsm::get(llvm::FunctionType::get(b.getVoidTy(), {value.getType()}, false), "", constraint,
                           /*hasSideEffects=*/true),
      {&value});
  user->setDoesNotThrow();
  user->setOnlyAccessesInaccessibleMemory();
  user->addFnAttr(llvm::Attribute::WillReturn);
  return user;
}

// One of the load's value, as wide as that is: an extension would be the one that computes with it, which then has another user and is not
// made narrower.
inline llvm::CallInst* add_load_user(llvm::LoadInst& load) {
  llvm::IRBuilder<> b(load.getNextNode());
  b.SetCurrentDebugLocation(load.getDebugLoc());
  return add_user(b, load);
}

// Whether it is such a user. It goes where its load goes.
inline bool is_pin(const llvm::Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (call == nullptr || !call->isInlineAsm() || !call->getType()->isVoidTy()) return false;
  return llvm::cast<llvm::InlineAsm>(call->getCalledOperand())->getAsmString().empty();
}

}  // namespace hindsight::jit::optimizing
