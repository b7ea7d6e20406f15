#include "jit/optimizing/generate/pin_loops.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <algorithm>

#include "jit/optimizing/generate/protect.h"
#include "jit/optimizing/ir/loop_values.h"
#include "jit/optimizing/versions/loop_exits.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::Value;

// Whether the loop does anything that LLVM would not do for several iterations at once, the pins aside.
bool calls_anything(const Loop& loop) {
  for (const BasicBlock* block : loop.blocks()) {
    for (const Instruction& instruction : *block) {
      const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call == nullptr || llvm::isa<llvm::IntrinsicInst>(call)) continue;
      // Where a loop is left for other code is between its iterations, and most often between strips of them.
      if (is_exit_marker(*call) && block == loop.getHeader()) continue;
      if (!call->getMetadata(kPin) && !call->getMetadata(kTemporaryUser)) return true;
    }
  }
  return false;
}

// Whether it depends on what differs from iteration to iteration whether the loop is left. What does not is known in the first of them, and
// LLVM may find that the others have no end.
bool may_end_late(const Loop& loop) {
  llvm::SmallVector<Loop::Edge, 8> exits;
  loop.getExitEdges(exits);
  return llvm::any_of(exits,
                      [&](const Loop::Edge& exit) { return varies_in(loop, *exit.first->getTerminator()); });
}

llvm::Type* bits_of(llvm::Type* type) {
  if (auto* const vector = llvm::dyn_cast<llvm::VectorType>(type))
    return llvm::VectorType::getInteger(vector);
  return llvm::Type::getIntNTy(type->getContext(), static_cast<unsigned>(type->getPrimitiveSizeInBits()));
}

// The loads of one type in one loop: what is carried from iteration to iteration, and each state of it within one.
class Carried {
 public:
  // `pins` in the order in which an iteration comes to them.
  Carried(Loop& loop, const llvm::DominatorTree& dominators, const std::vector<Pin*>& pins)
      : loop_(loop), dominators_(dominators), type_(bits_of(pins.front()->load->getType())) {
    llvm::IRBuilder<> b(&loop.getHeader()->front());
    llvm::PHINode* const begin = b.CreatePHI(type_, 2);
    states_.push_back(begin);
    for (const Pin* pin : pins) {
      b.SetInsertPoint(pin->load->getNextNode());
      b.SetCurrentDebugLocation(pin->load->getDebugLoc());
      Value* const bits = b.CreateBitCast(pin->load, type_);
      states_.push_back(llvm::cast<Instruction>(b.CreateOr(states_.back(), bits)));
    }
    begin->addIncoming(llvm::Constant::getNullValue(type_), loop.getLoopPreheader());
    begin->addIncoming(states_.back(), loop.getLoopLatch());
  }

  // So do those who leave the loop for other code before an iteration.
  void use_at_exits() {
    BasicBlock& header = *loop_.getHeader();
    for (Instruction& instruction : llvm::make_early_inc_range(header))
      if (is_exit_marker(instruction))
        add_exit_need(llvm::cast<llvm::CallInst>(instruction), *states_.front());
  }

  // `user` makes nothing of the loop's value but that it is needed.
  void use_at(BasicBlock& exit, llvm::CallInst& pin) {
    llvm::IRBuilder<> b(&exit.front());
    llvm::PHINode* const phi = b.CreatePHI(type_, 2);
    for (BasicBlock* from : llvm::predecessors(&exit)) phi->addIncoming(state_at(*from), from);
    b.SetInsertPoint(&exit, exit.getFirstInsertionPt());
    b.SetCurrentDebugLocation(pin.getDebugLoc());
    Value* value = phi;
    if (type_->isIntegerTy() && type_->getIntegerBitWidth() < 32) value = b.CreateZExt(value, b.getInt32Ty());
    auto* const type = llvm::FunctionType::get(b.getVoidTy(), {value->getType()}, false);
    llvm::CallInst* const user = b.CreateCall(
        llvm::InlineAsm::get(type, "", type_->isVectorTy() ? "x" : "r", /*hasSideEffects=*/true), {value});
    user->setAttributes(pin.getAttributes());
  }

 private:
  Instruction* state_at(const BasicBlock& block) const {
    for (size_t i = states_.size(); i-- > 1;)
      if (dominators_.dominates(states_[i], block.getTerminator())) return states_[i];
    return states_.front();
  }

  Loop& loop_;
  const llvm::DominatorTree& dominators_;
  llvm::Type* const type_;
  std::vector<Instruction*> states_;  // from the header's phi to what the last load has made of it
};

// Returns whether anything changed.
bool carry(Loop& loop, const std::vector<Pin*>& pins, llvm::LoopInfo& loops,
           llvm::DominatorTree& dominators) {
  if (!loop.isInnermost() || calls_anything(loop)) return false;
  const auto each_turn = [&](const Pin* pin) {
    llvm::SmallVector<BasicBlock*, 4> latches;
    loop.getLoopLatches(latches);
    return std::all_of(latches.begin(), latches.end(), [&](const BasicBlock* latch) {
      return dominators.dominates(pin->load, latch->getTerminator());
    });
  };
  if (!std::all_of(pins.begin(), pins.end(), each_turn)) return false;
  const bool simplified =
      !loop.isLoopSimplifyForm() &&
      llvm::simplifyLoop(&loop, &dominators, &loops, nullptr, nullptr, nullptr, /*PreserveLCSSA=*/false);
  // One loop may have become two.
  if (!loop.isLoopSimplifyForm() || !loop.isInnermost()) return simplified;
  if (!std::all_of(pins.begin(), pins.end(),
                   [&](const Pin* pin) { return loop.contains(pin->load) && each_turn(pin); }))
    return simplified;
  llvm::SmallVector<BasicBlock*, 8> exits;
  loop.getUniqueExitBlocks(exits);
  // A loop without an end ends by a trap alone.
  if (!may_end_late(loop) || llvm::any_of(exits, [](const BasicBlock* exit) { return exit->isEHPad(); }))
    return simplified;

  llvm::MapVector<llvm::Type*, std::vector<Pin*>> of_type;
  for (Pin* pin : pins) of_type[bits_of(pin->load->getType())].push_back(pin);
  for (auto& [type, same] : of_type) {
    std::sort(same.begin(), same.end(),
              [&](const Pin* a, const Pin* b) { return dominators.dominates(a->load, b->load); });
    Carried carried(loop, dominators, same);
    for (BasicBlock* exit : exits) carried.use_at(*exit, *same.front()->user);
    carried.use_at_exits();
    for (Pin* pin : same) {
      pin->user->eraseFromParent();
      pin->user = nullptr;
    }
  }
  return true;
}

}  // namespace

bool carry_pins(std::vector<Pin>& pins, llvm::LoopInfo& loops, llvm::DominatorTree& dominators) {
  llvm::MapVector<Loop*, std::vector<Pin*>> of_loop;
  for (Pin& pin : pins)
    if (Loop* const loop = loops.getLoopFor(pin.load->getParent())) of_loop[loop].push_back(&pin);
  bool changed = false;
  for (auto& [loop, of_this] : of_loop) changed |= carry(*loop, of_this, loops, dominators);
  std::erase_if(pins, [](const Pin& pin) { return pin.user == nullptr; });
  return changed;
}

}  // namespace hindsight::jit::optimizing
