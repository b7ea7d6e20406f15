// How far two values are from each other, in scalar evolution.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>

namespace hindsight::jit::optimizing {

// Loops that values change in are one within the other. Scalar evolution knows no sum of values that change in two loops beside each
// other: each means another time. LLVM's release builds do not check that they are not asked for one.
inline bool change_in_one_nest(const llvm::SCEV& a, const llvm::SCEV& b) {
  llvm::SmallPtrSet<const llvm::Loop*, 4> loops;
  const auto collect = [&](const llvm::SCEV* part) {
    if (const auto* turns = llvm::dyn_cast<llvm::SCEVAddRecExpr>(part)) loops.insert(turns->getLoop());
    return false;
  };
  llvm::SCEVExprContains(&a, collect);
  llvm::SCEVExprContains(&b, collect);
  for (const llvm::Loop* one : loops)
    for (const llvm::Loop* other : loops)
      if (!one->contains(other) && !other->contains(one)) return false;
  return true;
}

// a - b. Null: they have no distance.
inline const llvm::SCEV* distance_between(const llvm::SCEV& a, const llvm::SCEV& b,
                                          llvm::ScalarEvolution& evolution) {
  if (!change_in_one_nest(a, b)) return nullptr;
  const llvm::SCEV* const distance = evolution.getMinusSCEV(&a, &b);
  return llvm::isa<llvm::SCEVCouldNotCompute>(distance) ? nullptr : distance;
}

}  // namespace hindsight::jit::optimizing
