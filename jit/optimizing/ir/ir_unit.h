// What a pass is about to run on, as LLVM's callbacks tell it.
//
// An llvm::Any compares the addresses of variables, one a type, which a loader is to merge. Ours are not: nothing but one function
// leaves our library. So they are not made here at all, and LLVM's are used.
#pragma once

#include <llvm/ADT/Any.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>

extern template struct llvm::Any::TypeId<const llvm::Function*>;
extern template struct llvm::Any::TypeId<const llvm::Loop*>;

namespace hindsight::jit::optimizing {

// The function that the pass runs on, or on a loop of which. Null: it runs on something else.
inline const llvm::Function* function_of(const llvm::Any& unit) {
  if (const auto* const* function = llvm::any_cast<const llvm::Function*>(&unit)) return *function;
  if (const auto* const* loop = llvm::any_cast<const llvm::Loop*>(&unit))
    return (*loop)->getHeader()->getParent();
  return nullptr;
}

}  // namespace hindsight::jit::optimizing
