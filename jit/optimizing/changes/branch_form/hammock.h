// Hammock: what lies between a branch and the place where all its ways meet again. It has no loop, nothing else leads into it,
// and it is left for that place alone. So it may be executed whole, and what its ways bring is chosen.
//
//     from ─┬─> a ─────────────┐        from ─┬────────────────┐        from ─┬─> c ─┬──────────┐
//           └─> b ─────────────┴─> join       └─> a ───────────┴─> join       └──────┴─> a ─────┴─> join
//
// On the way, the loop around it may be left, as each side of a merge does at the end of its input. Whether that is so is
// one condition more, which is asked where the ways meet (S. Mahlke et al., "Effective Compiler Support for Predicated
// Execution Using the Hyperblock", MICRO 1992, has such exits in its blocks).
//
//     from ─┬─> a ─┬───────────┐
//           └─> b ─┼─┬─────────┴─> join
//                  │ └> exit 2
//                  └> exit 1
//
// A way that is seldom gone, and that cannot be executed for nothing, is left out: as what a merge does with keys that are equal.
// It is gone instead of the join, where the ways meet, and leads there itself.
//
//     from ─┬─> a ─┬───────────┐
//           └─> b ─┼───────────┴─> join <─┐
//                  └> aside ──────────────┘
//
// Term: V. N. Kas'janov, "Distinguishing Hammocks in a Directed Graph", Soviet Mathematics Doklady, 1975.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace hindsight::jit::optimizing {

struct Hammock {
  llvm::BranchInst* branch = nullptr;
  std::vector<llvm::BasicBlock*> blocks;  // each after those that lead to it
  llvm::BasicBlock* join = nullptr;
  unsigned operations = 0;                // those that cost something
  unsigned accesses = 0;                  // loads and stores
  unsigned branches = 1;                  // conditional ones, with its own
  unsigned exits = 0;                     // edges that leave the loop, or lead aside
  std::vector<llvm::BasicBlock*> asides;  // where ways that are seldom gone begin
  double share_aside = 0;                 // of the executions of its branch, by weights

  llvm::BasicBlock& from() const { return *branch->getParent(); }
  bool contains(const llvm::BasicBlock* block) const;
  // What the branch's way to this successor may come to, that included: blocks, exits and the join.
  std::set<const llvm::BasicBlock*> come_to_by(const llvm::BasicBlock* way) const;
  // Of a block that a way of it comes to: it is out of the loop, or aside.
  bool is_exit(const llvm::BasicBlock* block) const { return block != join && !contains(block); }
};

// The hammock of a conditional branch of this innermost loop, or why it cannot be executed whole. Which ways are seldom gone say the
// weights of branches. `mispredict_cycles`: of a guess that one of them is not gone.
std::expected<Hammock, std::string_view> find_hammock(llvm::BranchInst& branch, const llvm::Loop& loop,
                                                      double mispredict_cycles);

// Those of a block that cost something.
unsigned operations_of(const llvm::BasicBlock& block);

// The share of executions of the hammock's branch that come to a block. `taken`: of a branch, the share that goes to its
// first successor.
using TakenShare = std::function<double(const llvm::BranchInst&)>;
// By the weights of the branch; nothing if it has none.
std::optional<double> weighed_share(const llvm::Instruction& instruction);
std::map<const llvm::BasicBlock*, double> shares_of_blocks(const Hammock& hammock, const TakenShare& taken);

}  // namespace hindsight::jit::optimizing
