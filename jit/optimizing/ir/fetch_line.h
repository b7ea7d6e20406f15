// The prefetch instruction, as all that fetch ahead emit it.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>

namespace hindsight::jit::optimizing {

// To be read, into the nearest cache. Faults nowhere.
inline llvm::CallInst* fetch_line(llvm::IRBuilderBase& b, llvm::Value* place) {
  return b.CreateIntrinsic(llvm::Intrinsic::prefetch, {place->getType()},
                           {place, b.getInt32(0), b.getInt32(3), b.getInt32(1)});
}

// A place so many bytes further, or before.
inline llvm::Value* further_by(llvm::IRBuilderBase& b, llvm::Value* place, int64_t bytes) {
  return b.CreateGEP(b.getInt8Ty(), place, b.getInt64(static_cast<uint64_t>(bytes)));
}

}  // namespace hindsight::jit::optimizing
