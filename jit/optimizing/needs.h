// Which loads may LLVM be trusted with? It executes a load where its value is needed: it removes what nothing
// needs, and moves what is needed on some ways only, or after a loop only, to these places. Where an effect
// that stays needs the value on every way from the load, before the load comes again and before the function
// ends, neither can happen.
//
// A value that is joined with others in a phi is needed where it comes in, if the phi is needed everywhere; a
// phi of a loop's header may hang on itself, which is what a sum does: each turn's value is in it until the
// loop ends. So the phis that are needed are the largest set in which each needs nothing but effects and
// others of the set. What a `select` only might choose is not needed: LLVM makes branches of selects, and
// moves loads into them.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <functional>
#include <vector>

namespace hindsight::jit::optimizing {

class Needs {
 public:
  // `ignored`: users that are to be no need, such as pins.
  using Ignored = std::function<bool(const llvm::Instruction&)>;
  // Of these loads, in time linear in the function's size; where that is not enough, a load is not needed.
  Needs(const llvm::Function& function, const llvm::LoopInfo& loops,
        const std::vector<llvm::LoadInst*>& loads, Ignored ignored);

  // Precondition: one of `loads`.
  bool everywhere(const llvm::LoadInst& load) const { return needed_.lookup(&load); }

 private:
  struct Edge {
    const llvm::BasicBlock* from;
    const llvm::PHINode* to;
  };
  // Where a value itself is needed, through whatever computes.
  struct Places {
    bool at_once = false;  // behind it in its own block
    llvm::SmallPtrSet<const llvm::BasicBlock*, 4> blocks;
    std::vector<Edge> edges;  // joined there with others
  };

  void add(const llvm::Instruction& value);
  Places find_places(const llvm::Instruction& value);
  bool is_firm(const llvm::Instruction& need, const llvm::Instruction& value);
  bool varies(const llvm::Value& value, const llvm::Loop& loop);
  bool on_every_way(const llvm::Instruction& value, const Places& places);
  bool step() { return ++steps_ <= limit_; }

  const llvm::LoopInfo& loops_;
  const Ignored ignored_;
  const size_t limit_;
  size_t steps_ = 0;
  std::vector<const llvm::Instruction*> values_;  // loads, and the phis that they come into
  llvm::DenseMap<const llvm::Instruction*, size_t> index_;
  std::vector<Places> places_;
  std::vector<std::vector<size_t>> users_;  // of a phi: whose places it is in
  llvm::DenseMap<const llvm::Instruction*, bool> needed_;
};

}  // namespace hindsight::jit::optimizing
