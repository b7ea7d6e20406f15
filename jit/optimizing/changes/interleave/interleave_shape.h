// InterleaveShape: a loop of searches, taken apart so that several of its iterations can run at once.
//
// A search (a walk down a tree, along a chain, through halves of a table) waits for memory at each step. Each
// step's address is known only when the one before has arrived, so no prefetch helps. But where one search
// does not depend on the result of another, the waiting of many can overlap. An iteration of the loop around
// is cut in three:
//
//     head    from the loop's header to the search: what is looked for, and where it starts
//     chase   the search itself, a loop of its own
//     tail    the rest: what is done with what was found
//
// Heads and chases of different iterations may run in any order, and again, if they change nothing and need
// nothing that a tail computes. Tails run one after another, in order, and may carry anything from one to the
// next. So a sum, even of floating-point numbers, is added up as before.
//
// Values are cut like blocks. `needed`: what heads and chases have to have, all of it computed by heads
// alone. `late`: what stands in a head block and only tails need, because nothing kept LLVM from moving it
// there. The outer loop's phis are `ahead` if heads need them. Then the next iteration's value must be
// computable without search or tail (`advance`). Otherwise tails carry them.
//
// A sum that is added to in the search itself would tie each search to the one before. It may be made of
// operations that can be regrouped (integers' add, and, or, xor, multiply). Then the search begins with the
// operation's neutral element, and the tail joins its part to the rest (Reduction).
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

#include <expected>
#include <string>
#include <vector>

#include "jit/change.h"
#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

struct Reduction {
  llvm::PHINode* phi = nullptr;  // in the chase's header
  llvm::Instruction::BinaryOps operation = llvm::Instruction::Add;
  llvm::Value* start = nullptr;  // what the parts are joined to, as the program has it in front of the chase
  llvm::SmallPtrSet<const llvm::Value*, 8> members;  // partial values, in the chase
};

struct InterleaveShape {
  llvm::Loop* outer = nullptr;
  llvm::Loop* chase = nullptr;
  std::vector<llvm::BasicBlock*> head, steps, tail;  // of `outer`: all its blocks, each in one of them
  llvm::SmallPtrSet<const llvm::BasicBlock*, 16> in_head, in_steps, in_tail;
  std::vector<llvm::PHINode*> ahead, behind;  // the outer header's phis
  llvm::SmallPtrSet<const llvm::Instruction*, 32> needed;
  std::vector<llvm::Instruction*> advance;  // operands before users; outside of the head, without effects
  std::vector<Reduction> reductions;
  std::vector<const llvm::Loop*> uncounted;  // within head or search: nobody knows that they come to an end
  bool head_may_trap = false;                // in another way than by a load out of bounds

  bool is_late(const llvm::Instruction& instruction) const {
    return in_head.contains(instruction.getParent()) && !needed.contains(&instruction) &&
           !llvm::isa<llvm::PHINode>(instruction);
  }
  const Reduction* reduction_of(const llvm::Value* value) const {
    for (const Reduction& reduction : reductions)
      if (reduction.members.contains(value)) return &reduction;
    return nullptr;
  }
  llvm::BasicBlock* chase_preheader() const { return chase->getLoopPreheader(); }
};

// More searches at once than this no processor has lines under way for.
inline constexpr uint32_t kMaxInterleaveWidth = traits_of(ChangeKind::kInterleave).knob.most;

// The shape of the searches that `load` belongs to, if `chase` is one (chased_loops.h), or why they cannot run
// at once. Changes nothing.
std::expected<InterleaveShape, std::string> find_interleave_shape(const IrModule& ir, llvm::LoadInst& load,
                                                                  llvm::Loop& chase, llvm::LoopInfo& loops,
                                                                  llvm::DominatorTree& dominators,
                                                                  llvm::ScalarEvolution& evolution);

// Whether nothing happens when it is executed but that its value is there, wherever its operands are.
bool only_computes(const llvm::Instruction& instruction);

}  // namespace hindsight::jit::optimizing
