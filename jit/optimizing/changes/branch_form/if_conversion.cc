#include "jit/optimizing/changes/branch_form/if_conversion.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "jit/optimizing/changes/branch_form/form_parameters.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr const char* kNowhere = "nowhere";  // the frame's place for stores that are not chosen

// Readable, and near: the beginning of the linear memory itself, which has that much, or the VmContext.
Value* anywhere(IrModule& ir, const llvm::LoadInst& load, const BasicBlock& arm) {
  Value* const vmctx = const_cast<BasicBlock&>(arm).getParent()->getArg(0);
  Value* const base = const_cast<Value*>(llvm::getUnderlyingObject(load.getPointerOperand(), 0));
  const std::optional<uint32_t> memory = ir.memory_of(base, vmctx);
  const auto* const made = llvm::dyn_cast<Instruction>(base);
  const bool is_there = made == nullptr || made->getParent() != &arm;
  return memory && ir.wasm.memories[*memory].limits.min > 0 && is_there ? base : vmctx;
}

// Writable by whoever likes.
Value* nowhere(IrModule& ir, llvm::Function& function) {
  BasicBlock& entry = function.getEntryBlock();
  for (Instruction& instruction : entry)
    if (llvm::isa<llvm::AllocaInst>(instruction) && instruction.getName().starts_with(kNowhere))
      return &instruction;
  llvm::IRBuilder<> b(&entry, entry.begin());
  llvm::AllocaInst* const made =
      b.CreateAlloca(llvm::ArrayType::get(ir.i8, kMostAccessBytes), nullptr, kNowhere);
  made->setAlignment(llvm::Align(16));
  return made;
}

llvm::MDNode* no_guess(IrModule& ir) {
  return llvm::MDNode::get(ir.context, {});
}

// What held of the value where the program comes to the load need not hold where it is loaded for nothing.
void forget_what_held(llvm::LoadInst& load) {
  for (const unsigned kind :
       {llvm::LLVMContext::MD_range, llvm::LLVMContext::MD_noundef, llvm::LLVMContext::MD_nonnull,
        llvm::LLVMContext::MD_invariant_load, llvm::LLVMContext::MD_align})
    load.setMetadata(kind, nullptr);
}

class Converter {
 public:
  Converter(IrModule& ir, const Hammock& hammock)
      : ir_(ir), hammock_(hammock), from_(hammock.from()), b_(hammock.branch) {
    b_.SetCurrentDebugLocation(hammock.branch->getDebugLoc());
  }

  void convert() {
    for (BasicBlock* block : hammock_.blocks) copy_for_asides(*block);
    const double leaves = kRarelyLeft + hammock_.share_aside;
    BasicBlock* const leaving = way_out();
    for (BasicBlock* block : hammock_.blocks) move(*block);
    join();
    if (leaving != nullptr)
      b_.CreateCondBr(brought(
                          *hammock_.join, [&](BasicBlock&) { return b_.getFalse(); }, b_.getTrue()),
                      leaving, hammock_.join, ir_.branch_weights(leaves, 1 - leaves));
    else
      b_.CreateBr(hammock_.join);
    hammock_.branch->eraseFromParent();
    for (BasicBlock* block : hammock_.blocks) block->getTerminator()->eraseFromParent();
    for (BasicBlock* block : hammock_.blocks) block->eraseFromParent();
    llvm::MergeBlockIntoPredecessor(hammock_.join);
  }

 private:
  using ByLast = std::function<Value*(BasicBlock& last)>;

  // Of what the hammock shares with ways aside these get a copy.
  void copy_for_asides(BasicBlock& block) {
    std::vector<BasicBlock*> from_aside;
    for (BasicBlock* before : llvm::predecessors(&block))
      if (before != &from_ && !hammock_.contains(before)) from_aside.push_back(before);
    for (BasicBlock* before : from_aside) {
      BasicBlock* const copy = BasicBlock::Create(ir_.context, "aside", from_.getParent(), hammock_.join);
      llvm::ValueToValueMapTy copies;
      for (llvm::PHINode& phi : block.phis()) {
        copies[&phi] = phi.getIncomingValueForBlock(before);
        phi.removeIncomingValue(before, /*DeletePHIIfEmpty=*/false);
      }
      for (const Instruction& instruction : llvm::make_range(block.getFirstNonPHIIt(), block.end())) {
        Instruction* const made = instruction.clone();
        made->insertInto(copy, copy->end());
        llvm::RemapInstruction(made, copies, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
        copies[&instruction] = made;
      }
      for (llvm::PHINode& phi : block.getUniqueSuccessor()->phis()) {
        Value* const value = phi.getIncomingValueForBlock(&block);
        const auto copied = copies.find(value);
        phi.addIncoming(copied == copies.end() ? value : static_cast<Value*>(copied->second), copy);
      }
      before->getTerminator()->replaceSuccessorWith(&block, copy);
    }
  }

  // The branches of the hammock once more, for those ways alone that leave the loop or lead aside: where the first of them is. What
  // they ask for is known by then. Null: no way does.
  BasicBlock* way_out() {
    if (hammock_.exits == 0) return nullptr;
    std::map<const BasicBlock*, BasicBlock*> again;  // by the block whose branch it has
    const auto repeat = [&](BasicBlock& block) {
      auto& end = llvm::cast<llvm::BranchInst>(*block.getTerminator());
      std::vector<BasicBlock*> ways;
      // In the order of its condition: its own range has another.
      for (BasicBlock* to : llvm::successors(&end)) {
        const auto known = again.find(to);
        BasicBlock* const way = known != again.end() ? known->second : hammock_.is_exit(to) ? to : nullptr;
        if (way != nullptr) ways.push_back(way);
      }
      if (ways.empty()) return;
      BasicBlock* const made = BasicBlock::Create(ir_.context, "leave", from_.getParent(), hammock_.join);
      again[&block] = made;
      llvm::IRBuilder<> b(made);
      b.SetCurrentDebugLocation(end.getDebugLoc());
      if (ways.size() > 1)
        b.CreateCondBr(end.getCondition(), ways[0], ways[1]);
      else
        b.CreateBr(ways[0]);
      for (BasicBlock* to : llvm::successors(&end))
        if (hammock_.is_exit(to)) to->replacePhiUsesWith(&block, made);
    };
    for (BasicBlock* block : llvm::reverse(hammock_.blocks)) repeat(*block);
    repeat(from_);
    return again.at(&from_);
  }

  Value* choose(const llvm::BranchInst& by, Value* yes, Value* no) {
    if (yes == no) return yes;
    if (yes == b_.getTrue() && no == b_.getFalse()) return by.getCondition();
    if (yes == b_.getFalse() && no == b_.getTrue()) return b_.CreateNot(by.getCondition());
    Value* const chosen = b_.CreateSelect(by.getCondition(), yes, no, "", hammock_.branch);
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(chosen))
      select->setMetadata(llvm::LLVMContext::MD_unpredictable, no_guess(ir_));
    return chosen;
  }

  // What the ways that come to `to` bring, each known by its last block. `else_`: what the others bring; null: that does
  // not matter.
  Value* brought(const BasicBlock& to, const ByLast& by_last, Value* else_) {
    std::map<const BasicBlock*, Value*> by_block;
    const auto over = [&](BasicBlock& last, BasicBlock* next) {
      if (next == &to) return by_last(last);
      const auto known = by_block.find(next);
      return known == by_block.end() ? else_ : known->second;
    };
    const auto at_end_of = [&](BasicBlock& block) {
      const auto& end = llvm::cast<llvm::BranchInst>(*block.getTerminator());
      Value* const first = over(block, end.getSuccessor(0));
      if (!end.isConditional()) return first;
      Value* const second = over(block, end.getSuccessor(1));
      return !first ? second : !second ? first : choose(end, first, second);
    };
    // Those before it may lead there.
    const auto end = llvm::find(hammock_.blocks, &to);
    for (auto it = end; it != hammock_.blocks.begin();) {
      BasicBlock* const block = *--it;
      if (Value* const its = at_end_of(*block)) by_block[block] = its;
    }
    return at_end_of(from_);
  }

  void move(BasicBlock& block) {
    for (llvm::PHINode& phi : llvm::make_early_inc_range(block.phis())) {
      phi.replaceAllUsesWith(brought(
          block, [&](BasicBlock& last) { return phi.getIncomingValueForBlock(&last); }, nullptr));
      phi.eraseFromParent();
    }
    for (Instruction& instruction : llvm::make_early_inc_range(block)) {
      if (instruction.isTerminator()) break;
      Value* harmless = nullptr;
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
        harmless = anywhere(ir_, *load, block);
        forget_what_held(*load);
      } else if (llvm::isa<llvm::StoreInst>(instruction)) {
        harmless = nowhere(ir_, *from_.getParent());
      }
      if (harmless != nullptr) {
        const unsigned operand = llvm::isa<llvm::LoadInst>(instruction) ? 0 : 1;
        Value* const place = instruction.getOperand(operand);
        instruction.setOperand(operand, brought(
                                            block, [&](BasicBlock&) { return place; }, harmless));
      }
      instruction.moveBefore(hammock_.branch);
    }
  }

  // One edge takes the place of several.
  void join() {
    for (llvm::PHINode& phi : hammock_.join->phis()) {
      Value* const chosen = brought(
          *hammock_.join, [&](BasicBlock& last) { return phi.getIncomingValueForBlock(&last); }, nullptr);
      for (const BasicBlock* block : hammock_.blocks)
        if (phi.getBasicBlockIndex(block) >= 0)
          phi.removeIncomingValue(phi.getBasicBlockIndex(block), /*DeletePHIIfEmpty=*/false);
      if (const int direct = phi.getBasicBlockIndex(&from_); direct >= 0)
        phi.setIncomingValue(static_cast<unsigned>(direct), chosen);
      else
        phi.addIncoming(chosen, &from_);
    }
  }

  IrModule& ir_;
  const Hammock& hammock_;
  BasicBlock& from_;
  llvm::IRBuilder<> b_;
};

}  // namespace

void convert_to_selects(IrModule& ir, const Hammock& hammock) {
  Converter(ir, hammock).convert();
}

bool is_choice(const Instruction& instruction) {
  if (llvm::isa<llvm::MinMaxIntrinsic>(instruction)) return instruction.getType()->isIntegerTy();
  const auto* const select = llvm::dyn_cast<llvm::SelectInst>(&instruction);
  return select != nullptr && select->getCondition()->getType()->isIntegerTy(1);
}

bool is_choice_or_flag(const Instruction& instruction) {
  const bool is_flag = llvm::isa<llvm::ZExtInst, llvm::SExtInst>(instruction) &&
                       instruction.getOperand(0)->getType()->isIntegerTy(1);
  return is_flag || is_choice(instruction);
}

namespace {

// A minimum or maximum as comparison and choice, a condition as a choice of two numbers.
llvm::SelectInst* as_select(Instruction& choice) {
  if (auto* const select = llvm::dyn_cast<llvm::SelectInst>(&choice)) return select;
  if (llvm::isa<llvm::CastInst>(choice)) {
    auto* const type = llvm::cast<llvm::IntegerType>(choice.getType());
    llvm::Constant* const yes = llvm::isa<llvm::SExtInst>(choice) ? llvm::Constant::getAllOnesValue(type)
                                                                  : llvm::ConstantInt::get(type, 1);
    auto* const select = llvm::SelectInst::Create(
        choice.getOperand(0), yes, llvm::Constant::getNullValue(type), "", choice.getIterator());
    select->setDebugLoc(choice.getDebugLoc());
    choice.replaceAllUsesWith(select);
    choice.eraseFromParent();
    return select;
  }
  auto& least = llvm::cast<llvm::MinMaxIntrinsic>(choice);
  llvm::IRBuilder<> b(&choice);
  Value* const first = b.CreateICmp(least.getPredicate(), least.getLHS(), least.getRHS());
  auto* const select =
      llvm::SelectInst::Create(first, least.getLHS(), least.getRHS(), "", choice.getIterator());
  select->setDebugLoc(choice.getDebugLoc());
  choice.replaceAllUsesWith(select);
  choice.eraseFromParent();
  return select;
}

// Moves in front of `end` what computes `value` for nobody else, in the block of the branch.
void sink(Value* value, const BasicBlock& from, Instruction* end, unsigned& moved) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (instruction == nullptr || instruction->getParent() != &from || !instruction->hasOneUse() ||
      llvm::isa<llvm::PHINode, llvm::CallBase>(instruction) || instruction->mayReadOrWriteMemory() ||
      moved >= kMostSunk)
    return;
  ++moved;
  instruction->moveBefore(end);
  for (Value* operand : instruction->operands()) sink(operand, from, instruction, moved);
}

}  // namespace

void convert_to_branch(IrModule& ir, Instruction& choice, std::optional<double> likely) {
  llvm::SelectInst* const first = as_select(choice);
  BasicBlock& from = *first->getParent();
  Value* const condition = first->getCondition();
  llvm::MDNode* weights = first->getMetadata(llvm::LLVMContext::MD_prof);
  uint64_t yes_weight = 0, no_weight = 0;
  if (weights == nullptr || !llvm::extractBranchWeights(*first, yes_weight, no_weight))
    weights = likely ? ir.branch_weights(*likely, 1 - *likely) : nullptr;
  // All of the block on the same condition that need nothing in between.
  std::vector<llvm::SelectInst*> together;
  for (Instruction& instruction : llvm::make_range(first->getIterator(), from.end())) {
    auto* const select = llvm::dyn_cast<llvm::SelectInst>(&instruction);
    if (select == nullptr || select->getCondition() != condition) continue;
    const bool is_early = std::ranges::all_of(select->operands(), [&](const llvm::Use& operand) {
      const auto* const made = llvm::dyn_cast<Instruction>(operand.get());
      return made == nullptr || made->getParent() != &from || made->comesBefore(first);
    });
    if (is_early) together.push_back(select);
  }
  llvm::IRBuilder<> b(first);
  b.SetCurrentDebugLocation(first->getDebugLoc());
  // A branch must know its condition; a choice need not.
  Value* const known =
      llvm::isGuaranteedNotToBeUndefOrPoison(condition) ? condition : b.CreateFreeze(condition);
  Instruction *yes_end = nullptr, *no_end = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(known, first, &yes_end, &no_end, weights);
  from.getTerminator()->setDebugLoc(first->getDebugLoc());
  BasicBlock& join = *first->getParent();
  for (llvm::SelectInst* select : together) {
    llvm::PHINode* const phi = llvm::PHINode::Create(select->getType(), 2, "", join.begin());
    phi->setDebugLoc(select->getDebugLoc());
    phi->addIncoming(select->getTrueValue(), yes_end->getParent());
    phi->addIncoming(select->getFalseValue(), no_end->getParent());
    Value* const yes = select->getTrueValue();
    Value* const no = select->getFalseValue();
    select->replaceAllUsesWith(phi);
    select->eraseFromParent();
    unsigned moved = 0;
    sink(yes, from, yes_end, moved);
    sink(no, from, no_end, moved);
  }
}

}  // namespace hindsight::jit::optimizing
