// What is to be known of a loop before a dry run of any form (dry_run.h, iteration_run.h): what cannot be had in it, and what
// it keeps beside memory.
#pragma once

#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>

#include <optional>
#include <string_view>

#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {

class DryRunFacts {
 protected:
  using Kept = llvm::SmallPtrSet<const llvm::Instruction*, 16>;

  DryRunFacts(const IrModule& ir, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
              const llvm::PostDominatorTree& postdominators, llvm::ScalarEvolution& evolution)
      : ir_(ir),
        loops_(loops),
        dominators_(dominators),
        postdominators_(postdominators),
        evolution_(evolution) {}
  ~DryRunFacts() = default;

  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }
  llvm::Loop& outer() const { return *shape_.parts.outer; }
  bool is_copied(const llvm::BasicBlock* block) const {
    return shape_.parts.in_head.contains(block) || shape_.parts.in_steps.contains(block);
  }
  bool is_header_phi(const llvm::Instruction& instruction) const {
    return optimizing::is_header_phi(instruction, outer());
  }

  // Refuses where a block of the `part` cannot be copied.
  bool check_block(const llvm::BasicBlock& block, std::string_view part);

  // Its value is not to be had in a dry run: what a call returns, say.
  bool is_source_of_unknown(const llvm::Instruction& instruction) const;
  // Fills `unknown`, of head and steps.
  void find_unknown();
  // Stores by an index and loads from the same place on.
  void find_buffers();
  void find_places();
  void find_memories();

  // Which branches decide whether a block is come to in an iteration (J. Ferrante, K. Ottenstein, J. Warren, 1987).
  void find_controls();
  // What `kept` needs to have, without what is not to be had. Branches that hang on that are kept, and guessed. After
  // find_controls().
  void close(std::vector<const llvm::Instruction*> work, const Kept& without, Kept& kept) const;
  // Adds what a load's address, and the way to it, begin with.
  void add_ways_to(const llvm::LoadInst& load, std::vector<const llvm::Instruction*>& work) const;
  // In branches, to the loop's latch on ways that do not leave it or begin a further turn of it.
  static std::map<const llvm::BasicBlock*, size_t> distances_to_latch(const llvm::Loop& loop);

  // In 32 bits.
  const llvm::SCEV* guest_address(const llvm::Value& address) const;

  // What of an address is the same in all iterations, and what loops within begin with. Null: not known, or it goes on with
  // the iterations.
  const llvm::SCEV* part_that_stays(const llvm::SCEV& address, unsigned depth = 0) const;

  // An address that iterations come to one after the other, or that is the same for all.
  bool is_in_order(const llvm::SCEV& address) const;

  const IrModule& ir_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  const llvm::PostDominatorTree& postdominators_;
  llvm::ScalarEvolution& evolution_;
  const llvm::Function* function_ = nullptr;
  std::map<const llvm::BasicBlock*, llvm::SmallPtrSet<const llvm::Instruction*, 4>> controls_;
  DryRunShape shape_;
  std::string reason_;

 private:
  // Of the search. Whether there is another one is no matter of what it begins with.
  bool begins_turn(const llvm::BasicBlock& from, const llvm::BasicBlock& header) const;
  const llvm::SCEV* begins_anew_with(const llvm::PHINode& index) const;
  std::optional<DryRunShape::Place> place_of(llvm::Instruction& access) const;
  std::optional<size_t> known_place(const DryRunShape::Place& place) const;
};

}  // namespace hindsight::jit::optimizing
