// Addresses and accesses in bytes, as generated code has them.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <cstdint>

namespace hindsight::jit::optimizing {

// Whether it is a place and so many bytes, the index.
inline bool is_of_bytes(const llvm::GEPOperator& step) {
  return step.getSourceElementType()->isIntegerTy(8) && step.getNumIndices() == 1;
}

// How many a load or store reads or writes.
inline int64_t bytes_of(const llvm::Instruction& access) {
  const llvm::DataLayout& layout = access.getModule()->getDataLayout();
  return static_cast<int64_t>(
      layout.getTypeStoreSize(llvm::getLoadStoreType(const_cast<llvm::Instruction*>(&access)))
          .getFixedValue());
}

}  // namespace hindsight::jit::optimizing
