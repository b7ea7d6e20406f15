// Tails, in order.
#include <llvm/Transforms/Utils/Cloning.h>

#include "jit/optimizing/changes/interleave/interleave_emission.h"
#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace interleaving {

Value* Emission::tail_value(Value* value) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (!instruction || !shape_.outer->contains(instruction)) return value;
  if (const auto found = in_tail_.find(value); found != in_tail_.end()) return found->second;
  Value* made = nullptr;
  if (shape_.is_late(*instruction)) {
    Instruction* const copy = instruction->clone();
    for (llvm::Use& operand : copy->operands()) operand.set(tail_value(operand.get()));
    Builder b = at(tails_);
    b.Insert(copy);
    made = copy;
  } else {
    Builder b = at(tails_);
    made = kept(value, b, tail_index_);
  }
  in_tail_[value] = made;
  return made;
}

void Emission::emit_tails() {
  Builder b = at(tails_);
  tail_index_ = b.CreatePHI(i64(), 2);
  tail_index_->addIncoming(number(0), round_);
  std::map<PHINode*, PHINode*> behind;
  for (PHINode* phi : shape_.behind) {
    behind[phi] = b.CreatePHI(phi->getType(), 2);
    behind[phi]->addIncoming(carried_.at(phi), round_);
    in_tail_[phi] = behind.at(phi);
  }
  const std::vector<BasicBlock*> copies = copy_blocks(shape_.tail, ".tail", in_tail_);
  for (BasicBlock* block : shape_.tail) {
    for (Instruction& instruction : *block) {
      auto* const phi = llvm::dyn_cast<PHINode>(&instruction);
      for (unsigned i = 0; i < instruction.getNumOperands(); ++i) {
        const auto* made = llvm::dyn_cast<Instruction>(instruction.getOperand(i));
        if (!made || !shape_.in_head.contains(made->getParent())) continue;
        if (!phi || shape_.in_tail.contains(phi->getIncomingBlock(i))) tail_value(instruction.getOperand(i));
      }
    }
  }
  llvm::remapInstructionsInBlocks(copies, in_tail_);
  for (size_t i = 0; i < copies.size(); ++i) fix_tail_block(copies[i], shape_.tail[i]);
  std::vector<BasicBlock*> entries;
  for (const Way& way : ways_) entries.push_back(emit_entry(way));

  move(b, tails_end_);
  Value* const next = b.CreateAdd(tail_index_, number(1), "", true, true);
  tail_index_->addIncoming(next, tails_end_);
  for (PHINode* phi : shape_.behind) {
    Value* const value = tail_value(phi->getIncomingValueForBlock(latch_));
    behind.at(phi)->addIncoming(value, tails_end_);
    next_behind_[phi] = value;
  }
  end_loop(tails_end_, next, width_, tails_, group_end_);
  choose_entry(entries);
}

void Emission::fix_tail_block(BasicBlock* copy, BasicBlock* original) {
  for (PHINode& phi : original->phis()) {
    auto* const its = llvm::cast<PHINode>(static_cast<Value*>(in_tail_[&phi]));
    for (unsigned i = its->getNumIncomingValues(); i-- > 0;)
      if (!shape_.in_tail.contains(phi.getIncomingBlock(i))) its->removeIncomingValue(i, false);
  }
  if (original == latch_) {
    copy->getTerminator()->eraseFromParent();
    at(copy).CreateBr(tails_end_);
    return;
  }
  // Traps have one more way in.
  for (BasicBlock* to : llvm::successors(original)) {
    if (shape_.outer->contains(to)) continue;
    for (PHINode& phi : to->phis()) phi.addIncoming(tail_value(phi.getIncomingValueForBlock(original)), copy);
  }
}

BasicBlock* Emission::emit_entry(const Way& way) {
  BasicBlock* const entry = new_block("enter");
  Builder b = at(entry);
  for (PHINode& phi : way.to->phis()) {
    Value* const original = phi.getIncomingValueForBlock(way.from);
    Value* value = nullptr;
    if (const auto result = way.results.find(&phi); result != way.results.end()) {
      value = load(b, result->second, tail_index_);
      if (const Reduction* sum = shape_.reduction_of(original))
        value = b.CreateBinOp(sum->operation, tail_value(sum->start), value);
    } else {
      value = tail_value(original);
    }
    llvm::cast<PHINode>(static_cast<Value*>(in_tail_[&phi]))->addIncoming(value, entry);
  }
  b.CreateBr(llvm::cast<BasicBlock>(static_cast<Value*>(in_tail_[way.to])));
  return entry;
}

void Emission::choose_entry(const std::vector<BasicBlock*>& entries) {
  Builder b = at(tails_);
  if (entries.size() == 1) {
    b.CreateBr(entries.front());
    return;
  }
  llvm::AllocaInst* const taken = array(ir_.i16);
  for (size_t i = 0; i < ways_.size(); ++i) {
    const bool of_head = i < ways_of_heads_;
    // With lanes there is one way out of the search, known when it begins.
    BasicBlock* const notes = of_head || lanes_ == 0 ? ways_[i].leave : begin_;
    Builder there = at(notes->getTerminator());
    there.CreateStore(llvm::ConstantInt::get(ir_.i16, i),
                      element(there, taken, of_head || lanes_ != 0 ? head_index_ : slot_of_step()));
  }
  llvm::SwitchInst* const choice = b.CreateSwitch(load(b, taken, tail_index_), entries.back());
  for (size_t i = 0; i + 1 < entries.size(); ++i)
    choice->addCase(llvm::ConstantInt::get(ir_.i16, i), entries[i]);
}

}  // namespace interleaving
}  // namespace hindsight::jit::optimizing
