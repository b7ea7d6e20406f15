#include "jit/optimizing/changes/interleave/interleave_code.h"

#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "jit/abi/loop_cell.h"
#include "jit/optimizing/changes/interleave/interleave_emission.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"

namespace hindsight::jit::optimizing {
namespace interleaving {

Emission::Emission(IrModule& ir, llvm::Function& function, const InterleaveShape& shape,
                   const InterleaveStarts& starts, uint32_t cell, const llvm::DebugLoc& location)
    : GroupCode(ir, function, location),
      shape_(shape),
      starts_(starts),
      cell_(ir, function, cell),
      header_(shape.outer->getHeader()),
      latch_(shape.outer->getLoopLatch()),
      before_(shape.outer->getLoopPreheader()),
      lanes_(search_lanes(ir, shape)) {
  const auto* branch = llvm::cast<llvm::BranchInst>(latch_->getTerminator());
  after_ = branch->getSuccessor(branch->getSuccessor(0) == header_ ? 1 : 0);
}

void Emission::emit(Value* backedges) {
  group_ = new_block("group");
  plain_ = new_block("plain");
  abandon_ = new_block("abandon");
  heads_ = new_block("heads");
  heads_end_ = new_block("heads.end");
  round_ = new_block("round");
  step_ = new_block("step");
  step_end_ = new_block("step.end");
  tails_ = new_block("tails");
  tails_end_ = new_block("tails.end");
  group_end_ = new_block("group.end");
  waiting_ = array(i64());
  if (lanes_ != 0) searching_ = array(ir_.i8);
  if (!shape_.uncounted.empty()) turns_ = in_frame(ir_.i32);
  emit_group(backedges);
  emit_heads();
  if (lanes_ != 0)
    emit_lane_steps();
  else
    emit_steps();
  emit_tails();
  emit_group_end();
  turn_plain();
  if (llvm::pred_empty(abandon_)) {
    count_->removeIncomingValue(abandon_);
    abandon_->eraseFromParent();
  }
}

void Emission::emit_group(Value* backedges) {
  Builder b = at(group_);
  remaining_ = b.CreatePHI(i64(), 3, "remaining");
  remaining_->addIncoming(backedges, before_);
  for (PHINode& phi : header_->phis()) {
    PHINode* const here = b.CreatePHI(phi.getType(), 3);
    here->addIncoming(phi.getIncomingValueForBlock(before_), before_);
    carried_[&phi] = here;
  }
  // Negative if another thread of this cell has just ended its strip.
  Value* const countdown = cell_.load(b, kCellCountdown);
  Value* const most =
      b.CreateZExt(b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, countdown,
                                           llvm::ConstantInt::get(ir_.i32, kShortestPlain - 1)),
                   i64());
  Value* const plain_count = b.CreateAdd(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, remaining_, most),
                                         number(1), "", true, true);
  // Invariant: 1 <= width <= kMaxInterleaveWidth, whatever the cell says: it indexes the frame.
  const auto bounded = [&](llvm::Intrinsic::ID operation, Value* value, uint32_t bound) {
    return b.CreateBinaryIntrinsic(operation, value, llvm::ConstantInt::get(ir_.i32, bound));
  };
  width_ = b.CreateZExt(
      bounded(llvm::Intrinsic::umin, bounded(llvm::Intrinsic::umax, cell_.load(b, kCellDistance), 1),
              kMaxInterleaveWidth),
      i64(), "width");
  Value* const enabled = b.CreateIsNotNull(cell_.load(b, kCellEnabled));
  Value* const go = b.CreateAnd(enabled, b.CreateICmpUGE(remaining_, width_));
  if (turns_) b.CreateStore(llvm::ConstantInt::get(ir_.i32, kMostTurnsOfGroup), turns_);
  if (searching_) b.CreateStore(llvm::Constant::getNullValue(searching_->getAllocatedType()), searching_);
  b.CreateCondBr(go, emit_warm(), plain_);

  move(b, plain_);
  count_ = b.CreatePHI(i64(), 2, "count");
  count_->addIncoming(plain_count, group_);
  count_->addIncoming(width_, abandon_);
  b.CreateBr(header_);
  at(abandon_).CreateBr(plain_);
}

BasicBlock* Emission::emit_warm() {
  entry_of_heads_ = group_;
  if (starts_.heads.empty()) return heads_;
  BasicBlock* const warm = new_block("warm");
  Builder b = at(warm);
  PHINode* const index = b.CreatePHI(i64(), 2);
  Copies copies;
  for (const auto& [phi, step] : starts_.inductions) {
    Value* const amount = b.CreateMul(b.CreateZExtOrTrunc(index, step->getType()), step);
    Value* const start = carried_.at(phi);
    copies[phi] =
        phi->getType()->isPointerTy() ? b.CreateGEP(ir_.i8, start, amount) : b.CreateAdd(start, amount);
  }
  for (const KnownLoad& known : starts_.heads) prefetch(b, known, copies);
  Value* const next = b.CreateAdd(index, number(1), "", true, true);
  index->addIncoming(number(0), group_);
  index->addIncoming(next, warm);
  end_loop(warm, next, width_, warm, heads_);
  entry_of_heads_ = warm;
  return warm;
}

void Emission::prefetch(Builder& b, const KnownLoad& known, const Copies& values) {
  Copies copies;
  for (Instruction* operation : known.operations) {
    Instruction* const copy = operation->clone();
    copy->dropPoisonGeneratingFlags();
    copy->setMetadata("hindsight.position", nullptr);  // it is not the load that it copies
    for (llvm::Use& operand : copy->operands()) {
      Value* const value = known.first_of(operand.get());
      Value* const own = copy_of(copies, value);
      operand.set(own != value ? own : copy_of(values, value));
    }
    b.Insert(copy);
    copy->setDebugLoc(location_);
    if (llvm::isa<llvm::LoadInst>(operation)) tell_origin(ir_, *copy, *operation);
    copies[operation] = copy;
  }
  Value* const original = known.first_of(known.load->getPointerOperand());
  Value* place = copy_of(copies, original);
  if (place == original) place = copy_of(values, original);
  fetch(b, place, *known.load);
  for (const int64_t bytes : known.rest_of_node) fetch(b, further_by(b, place, bytes), *known.load);
}

void Emission::emit_group_end() {
  Builder b = at(group_end_);
  Value* const rest = b.CreateSub(remaining_, width_);
  Instruction* const end = b.CreateBr(group_);
  cell_.emit_countdown(llvm::CastInst::CreateTruncOrBitCast(width_, ir_.i32, "", end), end, location_);
  BasicBlock* const last = end->getParent();
  remaining_->addIncoming(rest, last);
  for (PHINode* phi : shape_.ahead)
    carried_.at(phi)->addIncoming(copy_of(in_head_, phi->getIncomingValueForBlock(latch_)), last);
  for (PHINode* phi : shape_.behind) carried_.at(phi)->addIncoming(next_behind_.at(phi), last);
}

void Emission::turn_plain() {
  BasicBlock* const tail = new_block("plain.end");
  before_->getTerminator()->replaceSuccessorWith(header_, group_);
  // Values live on through phis (LCSSA).
  std::map<Value*, PHINode*> closed;
  const auto behind_loop = [&](Value* value) -> Value* {
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !shape_.outer->contains(instruction)) return value;
    PHINode*& phi = closed[value];
    if (!phi) {
      phi = PHINode::Create(value->getType(), 1, "", tail->begin());
      phi->setDebugLoc(location_);
      phi->addIncoming(value, latch_);
    }
    return phi;
  };
  std::vector<std::pair<PHINode*, Value*>> next;
  for (PHINode& phi : header_->phis()) {
    next.emplace_back(carried_.at(&phi), behind_loop(phi.getIncomingValueForBlock(latch_)));
    const int index = phi.getBasicBlockIndex(before_);
    phi.setIncomingValue(static_cast<unsigned>(index), carried_.at(&phi));
    phi.setIncomingBlock(static_cast<unsigned>(index), plain_);
  }
  std::vector<PHINode*> results;
  for (PHINode& phi : after_->phis()) {
    const int index = phi.getBasicBlockIndex(latch_);
    phi.setIncomingValue(static_cast<unsigned>(index),
                         behind_loop(phi.getIncomingValue(static_cast<unsigned>(index))));
    phi.setIncomingBlock(static_cast<unsigned>(index), tail);
  }
  count_iterations(tail);

  Builder b = at(tail);
  Value* const rest = b.CreateSub(remaining_, count_);
  Value* const ends = b.CreateICmpULT(remaining_, count_);
  Instruction* const end = b.CreateCondBr(ends, after_, group_);
  remaining_->addIncoming(rest, tail);
  for (auto& [phi, value] : next) phi->addIncoming(value, tail);
  // Splits the block, and tells the phis.
  cell_.emit_countdown(llvm::CastInst::CreateTruncOrBitCast(count_, ir_.i32, "", end), end, location_);
}

void Emission::count_iterations(BasicBlock* exit) {
  auto* const branch = llvm::cast<llvm::BranchInst>(latch_->getTerminator());
  PHINode* const done = PHINode::Create(i64(), 2, "", header_->begin());
  done->setDebugLoc(location_);
  llvm::IRBuilder<> b(branch);
  Value* const next = b.CreateAdd(done, number(1), "", /*NUW=*/true);
  done->addIncoming(number(0), plain_);
  done->addIncoming(next, latch_);
  const unsigned leaves = branch->getSuccessor(0) == header_ ? 1 : 0;
  branch->setCondition(leaves == 1 ? b.CreateICmpNE(next, count_) : b.CreateICmpEQ(next, count_));
  branch->setSuccessor(leaves, exit);
}

}  // namespace interleaving

void emit_interleaved(IrModule& ir, llvm::Function& function, const InterleaveShape& shape,
                      const InterleaveStarts& starts, llvm::Value* backedges, uint32_t cell,
                      const llvm::DebugLoc& location) {
  interleaving::Emission(ir, function, shape, starts, cell, location).emit(backedges);
}

}  // namespace hindsight::jit::optimizing
