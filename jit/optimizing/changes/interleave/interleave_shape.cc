#include "jit/optimizing/changes/interleave/interleave_shape.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InlineAsm.h>

#include <algorithm>
#include <set>

#include "jit/optimizing/changes/interleave/chased_loops.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/ir/load_user.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// Nothing but a trap is to come, perhaps through blocks that LLVM put in between.
bool leads_to_trap(const BasicBlock& block) {
  const BasicBlock* at = &block;
  for (int i = 0; i < kMostBlocksToATrap && at; ++i) {
    if (llvm::isa<llvm::UnreachableInst>(at->getTerminator())) return true;
    at = at->size() == 1 + static_cast<size_t>(std::distance(at->phis().begin(), at->phis().end()))
             ? at->getSingleSuccessor()
             : nullptr;
  }
  return false;
}

// The operation that may be regrouped to which `instruction` adds a part; `partial` is the operand that the
// parts are in already.
std::optional<Instruction::BinaryOps> joining_operation(const Instruction& instruction,
                                                        const Value* partial) {
  if (!instruction.getType()->isIntegerTy()) return std::nullopt;
  switch (instruction.getOpcode()) {
    case Instruction::Add:
    case Instruction::Mul:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
      return static_cast<Instruction::BinaryOps>(instruction.getOpcode());
    case Instruction::Sub:
      if (instruction.getOperand(0) == partial) return Instruction::Add;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

class SearchFinder {
 public:
  SearchFinder(const IrModule& ir, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
               llvm::ScalarEvolution& evolution)
      : ir_(ir), loops_(loops), dominators_(dominators), evolution_(evolution) {}

  std::expected<InterleaveShape, std::string> find(llvm::LoadInst& load, llvm::Loop& chase) {
    shape_.chase = &chase;
    shape_.outer = chase.getParentLoop();
    if (!shape_.outer) return std::unexpected("there is no loop around the search");
    if (!check_outer() || !check_contents()) return std::unexpected(reason_);
    cut_blocks();
    find_reductions();
    if (!check_loops_within() || !check_traps() || !cut_values() || !check_frame(*load.getFunction()))
      return std::unexpected(reason_);
    return std::move(shape_);
  }

 private:
  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }

  bool check_outer() {
    llvm::Loop& outer = *shape_.outer;
    llvm::Loop& chase = *shape_.chase;
    if (!outer.isLoopSimplifyForm() || !chase.isLoopSimplifyForm() ||
        !outer.isRecursivelyLCSSAForm(dominators_, loops_))
      return refuse("the loop is not in simplified form");
    BasicBlock* const latch = outer.getLoopLatch();
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(latch->getTerminator());
    if (!branch || !branch->isConditional() || !outer.isLoopExiting(latch))
      return refuse("the loop around the search does not exit at its end");
    for (const BasicBlock* block : outer.blocks())
      for (const BasicBlock* next : llvm::successors(block))
        if (block != latch && !outer.contains(next) && !leads_to_trap(*next))
          return refuse("the loop around the search has an early exit");
    return true;
  }

  bool check_contents() {
    size_t instructions = 0;
    for (const BasicBlock* block : shape_.outer->blocks()) {
      for (const Instruction& instruction : *block) {
        if (++instructions > kMaxInterleavedInstructions)
          return refuse("the loop around the search is longer than " +
                        std::to_string(kMaxInterleavedInstructions) + " instructions");
        if (instruction.getType()->isTokenTy())
          return refuse("the loop around the search contains an instruction that cannot be copied");
        if (is_pin(instruction)) continue;
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
          if (load->isVolatile() || load->isAtomic())
            return refuse("the loop around the search contains an atomic access");
        } else if (llvm::isa<llvm::StoreInst>(instruction)) {
          return refuse(shape_.chase->contains(block) ? "the search stores"
                                                      : "the loop around the search stores");
        } else if (instruction.mayHaveSideEffects() || instruction.mayReadFromMemory()) {
          return refuse(llvm::isa<llvm::CallBase>(instruction)
                            ? "the loop around the search contains a call"
                            : "the loop around the search contains an operation with a side effect");
        }
        if (instruction.isTerminator() && !llvm::isa<llvm::BranchInst, llvm::SwitchInst>(instruction))
          return refuse("the loop around the search contains a branch that cannot be copied");
      }
    }
    return true;
  }

  void cut_blocks() {
    InterleaveShape& s = shape_;
    for (BasicBlock* block : s.chase->blocks()) s.in_steps.insert(block);
    for (BasicBlock* block : blocks_before(*s.chase)) s.in_head.insert(block);
    for (BasicBlock* block : s.outer->blocks()) {
      if (s.in_steps.contains(block)) {
        s.steps.push_back(block);
      } else if (s.in_head.contains(block)) {
        s.head.push_back(block);
      } else {
        s.in_tail.insert(block);
        s.tail.push_back(block);
      }
    }
  }

  // A group leaves those of which nobody knows that they come to an end after so many turns (interleave_pass.h).
  bool check_loops_within() {
    for (const llvm::Loop* loop : shape_.outer->getLoopsInPreorder()) {
      if (loop == shape_.outer || loop == shape_.chase || shape_.in_tail.contains(loop->getHeader()) ||
          !llvm::isa<llvm::SCEVCouldNotCompute>(evolution_.getSymbolicMaxBackedgeTakenCount(loop)))
        continue;
      if (!loop->isLoopSimplifyForm()) return refuse("the loop is not in simplified form");
      shape_.uncounted.push_back(loop);
    }
    return true;
  }

  // What traps but by its own loads out of bounds. Found out of order, in head or search, it is left to the
  // loop as it is (interleave_pass.h); of a tail it comes in order. But where loads fault by themselves, one
  // of a later head or search may come before the tail's trap. Only heads go in order up to the first that
  // traps.
  bool check_traps() {
    shape_.head_may_trap = may_trap(shape_.head);
    if (ir_.request.options.bounds == BoundsChecks::kExplicit) return true;
    if (may_trap(shape_.tail))
      return refuse("the code after the search can trap, and a later search's load could trap before it");
    if (may_trap(shape_.steps))
      return refuse("the search can trap, and a later search's load could trap before it");
    return true;
  }
  bool may_trap(const std::vector<BasicBlock*>& blocks) const {
    return std::any_of(blocks.begin(), blocks.end(), [&](const BasicBlock* block) {
      return block != shape_.outer->getLoopLatch() &&
             std::any_of(llvm::succ_begin(block), llvm::succ_end(block),
                         [&](const BasicBlock* next) { return !shape_.outer->contains(next); });
    });
  }

  // Sums in the search.
  void find_reductions() {
    for (PHINode& phi : shape_.chase->getHeader()->phis()) {
      Reduction reduction;
      reduction.phi = &phi;
      reduction.start = phi.getIncomingValueForBlock(shape_.chase->getLoopPreheader());
      if (!phi.getType()->isIntegerTy() || !collect(reduction)) continue;
      shape_.reductions.push_back(std::move(reduction));
    }
  }

  bool collect(Reduction& reduction) {
    const llvm::Loop& chase = *shape_.chase;
    std::optional<Instruction::BinaryOps> operation;
    std::vector<const Value*> work{reduction.phi};
    auto& members = reduction.members;
    members.insert(reduction.phi);
    while (!work.empty()) {
      const Value* const value = work.back();
      work.pop_back();
      for (const llvm::User* user : value->users()) {
        const auto* const by = llvm::cast<Instruction>(user);
        if (!chase.contains(by)) {
          if (!llvm::isa<PHINode>(by)) return false;
          continue;
        }
        if (by == reduction.phi) continue;
        if (const auto* phi = llvm::dyn_cast<PHINode>(by)) {
          if (phi->getParent() == chase.getHeader()) return false;
        } else if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(by)) {
          if (select->getCondition() == value) return false;
        } else {
          const std::optional<Instruction::BinaryOps> joins = joining_operation(*by, value);
          if (!joins || (operation && *operation != *joins)) return false;
          operation = joins;
        }
        if (members.insert(by).second) work.push_back(by);
      }
    }
    if (!operation) return false;
    // Each member is the sum so far, once: no way into it from elsewhere, and none added to itself.
    for (const Value* member : members) {
      const auto* const instruction = llvm::cast<Instruction>(member);
      if (instruction == reduction.phi) continue;
      size_t partial = 0;
      for (const Value* operand : instruction->operands()) partial += members.contains(operand) ? 1 : 0;
      const size_t wanted = llvm::isa<PHINode>(instruction)            ? instruction->getNumOperands()
                            : llvm::isa<llvm::SelectInst>(instruction) ? 2
                                                                       : 1;
      if (partial != wanted) return false;
      // The other part may not be the sum of another kind; its own operands are looked at like all others.
    }
    if (!members.contains(reduction.phi->getIncomingValueForBlock(chase.getLoopLatch()))) return false;
    reduction.operation = *operation;
    return true;
  }

  bool cut_values() {
    InterleaveShape& s = shape_;
    for (BasicBlock* block : s.head) {
      for (Instruction& instruction : *block) {
        const bool own = block == s.outer->getHeader() && llvm::isa<PHINode>(instruction);
        if (own || only_computes(instruction)) continue;
        if (!need(instruction)) return false;
      }
    }
    for (BasicBlock* block : s.steps) {
      for (Instruction& instruction : *block) {
        auto* const phi = llvm::dyn_cast<PHINode>(&instruction);
        const Reduction* const sum = phi ? s.reduction_of(phi) : nullptr;
        if (sum && sum->phi == phi) continue;
        for (Value* operand : instruction.operands())
          if (!need(*operand)) return false;
      }
    }
    for (PHINode& phi : s.outer->getHeader()->phis())
      if (std::find(s.ahead.begin(), s.ahead.end(), &phi) == s.ahead.end()) s.behind.push_back(&phi);
    return true;
  }

  // The group's arrays lie in the frame: not in one of which there may be thousands.
  bool check_frame(const llvm::Function& function) {
    if (is_recursive(function)) return refuse("the function is recursive");
    std::set<const Value*> carried;
    const auto add_uses = [&](const std::vector<BasicBlock*>& blocks) {
      for (const BasicBlock* block : blocks)
        for (const Instruction& instruction : *block)
          for (const Value* operand : instruction.operands())
            if (const auto* from = llvm::dyn_cast<Instruction>(operand);
                from && !from->isTerminator() && from->getParent() != block &&
                (shape_.in_head.contains(from->getParent()) ||
                 (shape_.in_steps.contains(from->getParent()) && shape_.in_tail.contains(block))))
              carried.insert(from);
    };
    add_uses(shape_.steps);
    add_uses(shape_.tail);
    for (const PHINode& phi : shape_.chase->getHeader()->phis()) carried.insert(&phi);
    if (carried.size() > kMaxInterleavedValues)
      return refuse("the search carries more than " + std::to_string(kMaxInterleavedValues) + " values");
    return true;
  }

  // Makes `value` one of those that heads have. Recursion is bounded by the loop's instructions.
  bool need(Value& value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(&value);
    if (!instruction || !shape_.outer->contains(instruction)) return true;
    if (shape_.in_steps.contains(instruction->getParent())) return true;  // by others of the search
    if (shape_.in_tail.contains(instruction->getParent()))
      return refuse("the search depends on the result of the one before it");
    if (instruction->getParent() == shape_.outer->getHeader() && llvm::isa<PHINode>(instruction))
      return run_ahead(*llvm::cast<PHINode>(instruction));
    if (!shape_.needed.insert(instruction).second) return true;
    for (Value* operand : instruction->operands())
      if (!need(*operand)) return false;
    return true;
  }

  bool run_ahead(PHINode& phi) {
    if (std::find(shape_.ahead.begin(), shape_.ahead.end(), &phi) != shape_.ahead.end()) return true;
    shape_.ahead.push_back(&phi);
    return advance(*phi.getIncomingValueForBlock(shape_.outer->getLoopLatch()));
  }

  bool advance(Value& value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(&value);
    if (!instruction || !shape_.outer->contains(instruction)) return true;
    if (shape_.in_head.contains(instruction->getParent())) return need(value);
    if (std::find(shape_.advance.begin(), shape_.advance.end(), instruction) != shape_.advance.end())
      return true;
    if (shape_.in_steps.contains(instruction->getParent()) || llvm::isa<PHINode>(instruction) ||
        !only_computes(*instruction))
      return refuse("the search depends on the result of the one before it");
    for (Value* operand : instruction->operands())
      if (!advance(*operand)) return false;
    shape_.advance.push_back(instruction);
    return true;
  }

  const IrModule& ir_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  InterleaveShape shape_;
  std::string reason_;
};

}  // namespace

bool only_computes(const Instruction& instruction) {
  return !llvm::isa<PHINode>(instruction) && !instruction.isTerminator() &&
         !instruction.mayReadOrWriteMemory() && llvm::isSafeToSpeculativelyExecute(&instruction);
}

std::expected<InterleaveShape, std::string> find_interleave_shape(const IrModule& ir, llvm::LoadInst& load,
                                                                  llvm::Loop& chase, llvm::LoopInfo& loops,
                                                                  llvm::DominatorTree& dominators,
                                                                  llvm::ScalarEvolution& evolution) {
  return SearchFinder(ir, loops, dominators, evolution).find(load, chase);
}

}  // namespace hindsight::jit::optimizing
