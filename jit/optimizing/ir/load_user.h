// The user that a load is given where LLVM alone would see none: it executes the load where it stands, and at its full width.
#pragma once

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include <numeric>

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

// How wide a vector may be that one register holds.
inline unsigned register_bits(const llvm::Function& function) {
  llvm::SmallVector<llvm::StringRef, 64> features;
  function.getFnAttribute("target-features").getValueAsString().split(features, ',');
  return llvm::is_contained(features, "+avx512f") ? 512 : llvm::is_contained(features, "+avx") ? 256 : 128;
}

// One of the load's value, as wide as that is: an extension would be the one that computes with it, which then has another user and is not
// made narrower. LLVM also makes vectors that need several registers, where assembly takes one: each part has a user then. Returns the last.
// Vectors of fewer bits than a register has are numbers to assembly.
inline llvm::CallInst* add_load_user(llvm::LoadInst& load) {
  llvm::IRBuilder<> b(load.getNextNode());
  b.SetCurrentDebugLocation(load.getDebugLoc());
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(load.getType());
  if (vector != nullptr && vector->getPrimitiveSizeInBits() < 128)
    return add_user(
        b, *b.CreateBitCast(&load, b.getIntNTy(static_cast<unsigned>(vector->getPrimitiveSizeInBits()))));
  const unsigned most =
      vector == nullptr ? 0 : register_bits(*load.getFunction()) / vector->getScalarSizeInBits();
  if (vector == nullptr || vector->getNumElements() <= most) return add_user(b, load);
  llvm::CallInst* user = nullptr;
  unsigned lane = 0;
  for (; lane + most <= vector->getNumElements(); lane += most) {
    llvm::SmallVector<int, 64> part(most);
    std::iota(part.begin(), part.end(), static_cast<int>(lane));
    user = add_user(b, *b.CreateShuffleVector(&load, part));
  }
  if (lane < vector->getNumElements()) user = add_user(b, *b.CreateExtractElement(&load, lane));
  return user;
}

// Whether it is such a user. It goes where its load goes.
inline bool is_pin(const llvm::Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (call == nullptr || !call->isInlineAsm() || !call->getType()->isVoidTy() || call->arg_empty())
    return false;
  return llvm::cast<llvm::InlineAsm>(call->getCalledOperand())->getAsmString().empty();
}

}  // namespace hindsight::jit::optimizing
