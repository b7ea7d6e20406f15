// Chains of values that a loop carries from iteration to iteration, and how a choice lengthens them.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace hindsight::jit::optimizing {

// The ways by which a value of one side of a choice comes about.
struct Sides {
  const llvm::Value* condition = nullptr;  // null: the comparison of a pair's two values
  struct Pair {
    const llvm::Value* yes = nullptr;
    const llvm::Value* no = nullptr;
    const llvm::Instruction* joined = nullptr;  // the phi or select
  };
  std::vector<Pair> pairs;
};

// Takes the longest chain that goes from a header's phi of `loop` through a pair and back to that phi.
// Returns how many cycles longer it takes with a select for the pair than with a predicted branch, which goes
// ahead with its likely side. 0: no chain goes through. `likely`: the share of true conditions.
double cycles_waited(const llvm::Loop& loop, const Sides& sides, double likely);

}  // namespace hindsight::jit::optimizing
