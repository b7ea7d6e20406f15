// Hammock: what lies between a branch and the place where all its ways meet again. It has no loop, nothing else leads into it,
// and it is left for that place alone. So it may be executed whole, and what its ways bring is chosen.
//
//     from ─┬─> a ─────────────┐        from ─┬────────────────┐        from ─┬─> c ─┬──────────┐
//           └─> b ─────────────┴─> join       └─> a ───────────┴─> join       └──────┴─> a ─────┴─> join
//
// Term: V. N. Kas'janov, "Distinguishing Hammocks in a Directed Graph", Soviet Mathematics Doklady, 1975.
#pragma once

#include <llvm/IR/Instructions.h>

#include <expected>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

namespace hindsight::jit::optimizing {

struct Hammock {
  llvm::BranchInst* branch = nullptr;
  std::vector<llvm::BasicBlock*> blocks;  // each after those that lead to it
  llvm::BasicBlock* join = nullptr;
  unsigned operations = 0;  // those that cost something
  unsigned accesses = 0;    // loads and stores
  unsigned branches = 1;    // conditional ones, with its own

  llvm::BasicBlock& from() const { return *branch->getParent(); }
  bool contains(const llvm::BasicBlock* block) const;
};

// The hammock of a conditional branch, or why it cannot be executed whole.
std::expected<Hammock, std::string_view> find_hammock(llvm::BranchInst& branch);

// Those of a block that cost something.
unsigned operations_of(const llvm::BasicBlock& block);

// The share of executions of the hammock's branch that come to a block. `taken`: of a branch, the share that goes to its
// first successor.
using TakenShare = std::function<double(const llvm::BranchInst&)>;
std::map<const llvm::BasicBlock*, double> shares_of_blocks(const Hammock& hammock, const TakenShare& taken);

}  // namespace hindsight::jit::optimizing
