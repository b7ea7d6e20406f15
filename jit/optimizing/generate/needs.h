// Which loads may LLVM be trusted with? It executes a load where its value is needed. It removes what nothing
// needs. What is needed on some ways only, or after a loop only, it moves to these places. Neither can happen
// where an effect that stays needs the value on every way from the load. The effect comes before the load
// comes again and before the function ends.
//
// A value that is joined with others in a phi is needed where it comes in, if the phi is needed everywhere. A
// phi of a loop's header may hang on itself, which is what a sum does. Each iteration's value is in it until
// the loop ends. So the phis that are needed are the largest set in which each needs nothing but effects and
// others of the set. A branch needs what it is decided by, where LLVM cannot find that its two ways do the
// same (is_firm_branch). A `select` needs that where its two values cannot turn out to be one. What a
// `select` only might choose is not needed: LLVM makes branches of selects, and moves loads into them.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <functional>
#include <optional>
#include <vector>

#include "jit/optimizing/generate/last_byte.h"

namespace hindsight::jit::optimizing {

class Needs {
 public:
  // `ignored`: users that are to be no need, such as pins.
  using Ignored = std::function<bool(const llvm::Instruction&)>;
  // Looks at these loads, in time linear in the function's size. Where that is not enough, a load is not
  // needed.
  Needs(const llvm::Function& function, const llvm::LoopInfo& loops,
        const std::vector<llvm::LoadInst*>& loads, Ignored ignored);

  // Precondition: one of `loads`.
  bool everywhere(const llvm::LoadInst& load) const;

 private:
  // Bits of a value: a load's last byte, or where some show in a phi that they come into.
  struct Bits {
    const llvm::Instruction* value;
    BitSet set;
  };
  struct Edge {
    const llvm::BasicBlock* from;
    const llvm::PHINode* phi;
    BitSet set;
    size_t to = 0;  // index of the phi's bits
  };
  // Where bits of a value are needed, through whatever computes.
  struct Places {
    bool at_once = false;  // after it in its own block
    llvm::SmallPtrSet<const llvm::BasicBlock*, 4> blocks;
    std::vector<Edge> edges;  // joined there with others
  };

  std::optional<size_t> add(const llvm::Instruction& value, BitSet set);
  Places find_places(const Bits& bits);
  bool is_firm(const llvm::Instruction& need, const llvm::Instruction& value);
  using BlockSet = llvm::SmallPtrSet<const llvm::BasicBlock*, 16>;
  bool is_firm_branch(const llvm::Instruction& branch);
  bool is_distinct_exit(const llvm::Instruction& branch, const llvm::Loop& loop);
  bool is_used_outside(const llvm::Loop& loop);
  bool reach(const llvm::BasicBlock& begin, const llvm::Instruction& branch, BlockSet& reached);
  bool on_every_way(const llvm::Instruction& value, const Places& places);
  bool step() { return ++steps_ <= limit_; }

  const llvm::LoopInfo& loops_;
  const llvm::DataLayout& layout_;
  const Ignored ignored_;
  const size_t limit_;
  size_t steps_ = 0;
  std::vector<Bits> values_;  // of loads, and of the phis that they come into
  llvm::DenseMap<const llvm::Instruction*, llvm::SmallVector<size_t, 1>> index_;
  std::vector<Places> places_;
  std::vector<std::vector<size_t>> users_;  // of a phi's bits: whose places they are in
  std::vector<bool> needed_;
  llvm::DenseMap<const llvm::Loop*, bool> used_outside_;
};

}  // namespace hindsight::jit::optimizing
