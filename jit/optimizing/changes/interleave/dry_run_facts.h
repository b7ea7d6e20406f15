// What is to be known of a loop before a dry run of any form (dry_run.h, iteration_run.h): what cannot be had in it, and what
// it keeps beside memory.
#pragma once

#include <llvm/Analysis/ScalarEvolution.h>

#include <optional>
#include <string_view>

#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {

class DryRunFacts {
 protected:
  DryRunFacts(const IrModule& ir, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
              llvm::ScalarEvolution& evolution)
      : ir_(ir), loops_(loops), dominators_(dominators), evolution_(evolution) {}
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

  // In 32 bits.
  const llvm::SCEV* guest_address(const llvm::Value& address) const;

  // An address that iterations come to one after the other, or that is the same for all.
  bool is_in_order(const llvm::SCEV& address) const;

  const IrModule& ir_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  const llvm::Function* function_ = nullptr;
  DryRunShape shape_;
  std::string reason_;

 private:
  const llvm::SCEV* part_that_stays(const llvm::SCEV& address, unsigned depth) const;
  std::optional<DryRunShape::Place> place_of(llvm::Instruction& access) const;
  std::optional<size_t> known_place(const DryRunShape::Place& place) const;
};

}  // namespace hindsight::jit::optimizing
