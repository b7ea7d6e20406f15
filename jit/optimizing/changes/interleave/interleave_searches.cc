// Heads, and searches step by step.
#include <llvm/Transforms/Utils/Cloning.h>

#include "jit/optimizing/changes/interleave/interleave_emission.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace interleaving {

Emission::Way& Emission::way(const BasicBlock* from, BasicBlock* to) {
  for (Way& known : ways_)
    if (known.from == from && known.to == to) return known;
  ways_.push_back({from, to, new_block("leave"), {}});
  return ways_.back();
}

size_t Emission::ways_upper_bound() const {
  size_t edges = 0;
  for (const BasicBlock* block : shape_.outer->blocks()) edges += block->getTerminator()->getNumSuccessors();
  return edges;
}

void Emission::emit_heads() {
  ways_.reserve(ways_upper_bound());
  Builder b = at(heads_);
  head_index_ = b.CreatePHI(i64(), 2);
  head_index_->addIncoming(number(0), entry_of_heads_);
  PHINode* const active = b.CreatePHI(i64(), 2);
  active->addIncoming(number(0), entry_of_heads_);
  std::map<PHINode*, PHINode*> ahead;
  for (PHINode* phi : shape_.ahead) {
    ahead[phi] = b.CreatePHI(phi->getType(), 2);
    ahead[phi]->addIncoming(carried_.at(phi), entry_of_heads_);
  }
  const std::vector<BasicBlock*> copies = copy_blocks(shape_.head, ".head", in_head_);
  for (PHINode& phi : header_->phis())
    replace(in_head_, phi, ahead.contains(&phi) ? ahead.at(&phi) : nullptr);
  for (BasicBlock* block : shape_.head)
    for (Instruction& instruction : llvm::reverse(*block))
      if (shape_.is_late(instruction)) replace(in_head_, instruction, nullptr);
  llvm::remapInstructionsInBlocks(copies, in_head_);
  b.CreateBr(llvm::cast<BasicBlock>(static_cast<Value*>(in_head_[header_])));

  BasicBlock* const begin = begin_ = new_block("begin");
  for (size_t i = 0; i < copies.size(); ++i)
    redirect(copies[i], shape_.head[i], shape_.chase->getHeader(), begin);
  bound_turns(shape_.in_head, in_head_);
  move(b, heads_end_);
  PHINode* const active_now = b.CreatePHI(i64(), 4);
  for (Way& way : ways_) {
    at(way.leave).CreateBr(heads_end_);
    active_now->addIncoming(active, way.leave);
  }
  ways_of_heads_ = ways_.size();
  emit_begin(begin, active);
  active_now->addIncoming(llvm::BinaryOperator::CreateNUWAdd(active, number(1), "", begin->getTerminator()),
                          begin);

  for (Instruction* operation : shape_.advance) {
    Instruction* const copy = operation->clone();
    b.Insert(copy);
    llvm::RemapInstruction(copy, in_head_, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
    in_head_[operation] = copy;
  }
  for (PHINode* phi : shape_.ahead)
    ahead.at(phi)->addIncoming(copy_of(in_head_, phi->getIncomingValueForBlock(latch_)), heads_end_);
  Value* const next = b.CreateAdd(head_index_, number(1), "", true, true);
  head_index_->addIncoming(next, heads_end_);
  active->addIncoming(active_now, heads_end_);
  end_loop(heads_end_, next, width_, heads_, round_);
  active_now_ = active_now;
}

void Emission::redirect(BasicBlock* copy, const BasicBlock* original, const BasicBlock* inner,
                        BasicBlock* continues) {
  Instruction* const end = copy->getTerminator();
  for (unsigned i = 0; i < end->getNumSuccessors(); ++i) {
    BasicBlock* const to = end->getSuccessor(i);
    if (to == inner) {
      end->setSuccessor(i, continues);
    } else if (shape_.in_tail.contains(to)) {
      end->setSuccessor(i, way(original, to).leave);
    } else if (original->getTerminator()->getSuccessor(i) == to) {
      end->setSuccessor(i, abandon_);  // was not copied: not of the loop
    }
  }
}

void Emission::emit_begin(BasicBlock* begin, Value* active) {
  Builder b = at(begin);
  Copies state;
  for (PHINode& phi : shape_.chase->getHeader()->phis()) {
    const Reduction* const sum = shape_.reduction_of(&phi);
    Value* start;
    if (sum) {
      start = llvm::ConstantExpr::getBinOpIdentity(sum->operation, phi.getType());
    } else {
      start = copy_of(in_head_, phi.getIncomingValueForBlock(shape_.chase_preheader()));
    }
    state_[&phi] = array(phi.getType());
    b.CreateStore(start, element(b, state_.at(&phi), head_index_));
    state[&phi] = start;
  }
  if (lanes_ != 0) {
    b.CreateStore(llvm::ConstantInt::get(ir_.i8, 1), element(b, searching_, head_index_));
    b.CreateBr(heads_end_);
    return;
  }
  for (const KnownLoad& known : starts_.steps) {
    for (const auto& [from, to] : outside_of(known, in_head_)) state[from] = to;
    prefetch(b, known, state);
  }
  b.CreateStore(head_index_, element(b, waiting_, active));
  b.CreateBr(heads_end_);
}

std::vector<std::pair<Value*, Value*>> Emission::outside_of(const KnownLoad& known,
                                                            const Copies& copies) const {
  std::vector<std::pair<Value*, Value*>> values;
  const auto add = [&](Value* value) {
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (instruction && shape_.in_head.contains(instruction->getParent()))
      values.emplace_back(value, copy_of(copies, value));
  };
  for (Instruction* operation : known.operations)
    for (Value* operand : operation->operands()) add(known.first_of(operand));
  add(known.first_of(known.load->getPointerOperand()));
  return values;
}

llvm::AllocaInst* Emission::kept_array(Value* value) {
  llvm::AllocaInst*& its = kept_[value];
  if (!its) {
    its = array(value->getType());
    auto* const made = llvm::cast<Instruction>(copy_of(in_head_, value));
    Builder there =
        at(llvm::isa<PHINode>(made) ? &*made->getParent()->getFirstInsertionPt() : made->getNextNode());
    there.CreateStore(made, element(there, its, head_index_));
  }
  return its;
}

BasicBlock* Emission::begin_round(Value* are_left) {
  PHINode* const done = PHINode::Create(i64(), 2, "", round_->begin());
  done->setDebugLoc(location_);
  BasicBlock* const going_on = new_block("going.on");
  Builder b = at(round_);
  done->addIncoming(number(0), heads_end_);
  done->addIncoming(b.CreateAdd(done, number(1), "", true, true), step_end_);
  b.CreateCondBr(are_left, going_on, tails_);
  move(b, going_on);
  b.CreateCondBr(b.CreateICmpULT(done, number(kMostRoundsOfGroup)), step_, abandon_, ir_.likely);
  return going_on;
}

void Emission::bound_turns(const llvm::SmallPtrSetImpl<const BasicBlock*>& part, const Copies& copies) {
  for (const llvm::Loop* loop : shape_.uncounted) {
    if (!part.contains(loop->getHeader())) continue;
    auto* const header = llvm::cast<BasicBlock>(copy_of(copies, loop->getHeader()));
    auto* const latch = llvm::cast<BasicBlock>(copy_of(copies, loop->getLoopLatch()));
    BasicBlock* const turn = new_block("turn");
    latch->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop, nullptr);
    latch->getTerminator()->replaceSuccessorWith(header, turn);
    header->replacePhiUsesWith(latch, turn);
    Builder b = at(turn);
    Value* const rest = b.CreateSub(b.CreateLoad(ir_.i32, turns_), llvm::ConstantInt::get(ir_.i32, 1));
    b.CreateStore(rest, turns_);
    b.CreateCondBr(b.CreateIsNotNull(rest), header, abandon_, ir_.likely)
        ->setMetadata(llvm::LLVMContext::MD_loop, plain_loop_identity(ir_.context, nullptr));
  }
}

void Emission::emit_steps() {
  Builder b = at(round_);
  PHINode* const active = b.CreatePHI(i64(), 2);
  active->addIncoming(active_now_, heads_end_);
  BasicBlock* const going_on = begin_round(b.CreateIsNotNull(active));

  move(b, step_);
  PHINode* const index = b.CreatePHI(i64(), 2);
  index->addIncoming(number(0), going_on);
  PHINode* const still = b.CreatePHI(i64(), 2);
  still->addIncoming(number(0), going_on);
  Value* const slot = load(b, waiting_, index);
  Copies in_step;
  const std::vector<BasicBlock*> copies = copy_blocks(shape_.steps, ".step", in_step);
  for (PHINode& phi : shape_.chase->getHeader()->phis())
    replace(in_step, phi, load(b, state_.at(&phi), slot));
  for (BasicBlock* block : shape_.steps)
    for (Instruction& instruction : *block)
      for (Value* operand : instruction.operands()) {
        const auto* made = llvm::dyn_cast<Instruction>(operand);
        if (!made || !shape_.in_head.contains(made->getParent()) || in_step.count(operand)) continue;
        // A sum's start is the tail's business.
        if (llvm::isa<PHINode>(instruction) && block == shape_.chase->getHeader()) continue;
        in_step[operand] = kept(operand, b, slot);
      }
  // What the search goes on with may be the head's too, and nothing else in the step may need it.
  for (PHINode& phi : shape_.chase->getHeader()->phis()) {
    Value* const next = phi.getIncomingValueForBlock(shape_.chase->getLoopLatch());
    const auto* made = llvm::dyn_cast<Instruction>(next);
    if (made && shape_.in_head.contains(made->getParent()) && !in_step.count(next))
      in_step[next] = kept(next, b, slot);
  }
  llvm::remapInstructionsInBlocks(copies, in_step);
  // A part of a sum may overflow where the whole does not.
  for (const Reduction& sum : shape_.reductions)
    for (const Value* member : sum.members)
      if (member != sum.phi)
        llvm::cast<Instruction>(copy_of(in_step, const_cast<Value*>(member)))->dropPoisonGeneratingFlags();
  auto* const header = llvm::cast<BasicBlock>(static_cast<Value*>(in_step[shape_.chase->getHeader()]));
  b.CreateBr(header);

  BasicBlock* const again = new_block("again");
  for (size_t i = 0; i < copies.size(); ++i) redirect(copies[i], shape_.steps[i], header, again);
  bound_turns(shape_.in_steps, in_step);
  move(b, step_end_);
  PHINode* const still_now = b.CreatePHI(i64(), 4);
  for (size_t i = ways_of_heads_; i < ways_.size(); ++i) {
    emit_leave(ways_[i], slot, in_step);
    still_now->addIncoming(still, ways_[i].leave);
  }
  emit_again(again, slot, still, in_step);
  still_now->addIncoming(llvm::BinaryOperator::CreateNUWAdd(still, number(1), "", again->getTerminator()),
                         again);

  Value* const next = b.CreateAdd(index, number(1), "", true, true);
  index->addIncoming(next, step_end_);
  still->addIncoming(still_now, step_end_);
  active->addIncoming(still_now, step_end_);
  end_loop(step_end_, next, active, step_, round_);
}

void Emission::emit_leave(Way& way, Value* slot, const Copies& in_step) {
  Builder b = at(way.leave);
  for (PHINode& phi : way.to->phis()) {
    Value* const result = phi.getIncomingValueForBlock(way.from);
    const auto* made = llvm::dyn_cast<Instruction>(result);
    if (!made || !shape_.in_steps.contains(made->getParent())) continue;
    way.results[&phi] = array(phi.getType());
    b.CreateStore(copy_of(in_step, result), element(b, way.results.at(&phi), slot));
  }
  b.CreateBr(step_end_);
}

void Emission::emit_again(BasicBlock* again, Value* slot, Value* still, const Copies& in_step) {
  Builder b = at(again);
  Copies state;
  for (PHINode& phi : shape_.chase->getHeader()->phis()) {
    Value* const next = copy_of(in_step, phi.getIncomingValueForBlock(shape_.chase->getLoopLatch()));
    b.CreateStore(next, element(b, state_.at(&phi), slot));
    state[&phi] = next;
  }
  for (const KnownLoad& known : starts_.steps) {
    for (const auto& [from, to] : outside_of(known, in_step)) state[from] = to;
    prefetch(b, known, state);
  }
  b.CreateStore(slot, element(b, waiting_, still));
  b.CreateBr(step_end_);
}

}  // namespace interleaving
}  // namespace hindsight::jit::optimizing
