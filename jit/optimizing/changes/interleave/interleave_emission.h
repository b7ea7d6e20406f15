// What emits an interleaved loop (interleave_pass.h), in parts: the choice and the plain loop
// (interleave_code.cc), heads and searches (interleave_searches.cc), tails (interleave_tails.cc).
#pragma once

#include <llvm/Transforms/Utils/ValueMapper.h>

#include <map>

#include "jit/optimizing/changes/interleave/interleave_code.h"
#include "jit/optimizing/ir/copy_origin.h"
#include "jit/optimizing/ir/fetch_line.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing::interleaving {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// What values of the loop are in one of its parts' copies.
using Copies = llvm::ValueToValueMapTy;

struct Builder : llvm::IRBuilder<> {
  template <typename Place>
  Builder(Place* place, const llvm::DebugLoc& location) : IRBuilder(place) {
    SetCurrentDebugLocation(location);
  }
};

// A group of searches as code: what its searches keep in the frame, and what became of the loop's values in copies.
class GroupCode {
 protected:
  GroupCode(IrModule& ir, llvm::Function& function, const llvm::DebugLoc& location)
      : ir_(ir), function_(function), location_(location) {}
  ~GroupCode() = default;

  llvm::IntegerType* i64() const { return ir_.i64; }
  llvm::ConstantInt* number(uint64_t value) const { return llvm::ConstantInt::get(ir_.i64, value); }
  Builder at(BasicBlock* block) const { return Builder(block, location_); }
  Builder at(Instruction* before) const { return Builder(before, location_); }

  llvm::AllocaInst* in_frame(llvm::Type* type) {
    llvm::IRBuilder<> b(&*function_.getEntryBlock().getFirstInsertionPt());
    return b.CreateAlloca(type);
  }
  // One element a search of the group.
  llvm::AllocaInst* array(llvm::Type* type) {
    return in_frame(llvm::ArrayType::get(type, kMaxInterleaveWidth));
  }
  Value* element(Builder& b, llvm::AllocaInst* array, Value* index) const {
    return b.CreateInBoundsGEP(array->getAllocatedType(), array, {number(0), index});
  }
  Value* load(Builder& b, llvm::AllocaInst* array, Value* index) const {
    return b.CreateLoad(array->getAllocatedType()->getArrayElementType(), element(b, array, index));
  }

  // The line at `place`, where the load will look.
  void fetch(Builder& b, Value* place, const Instruction& load) const {
    tell_origin(ir_, *fetch_line(b, place), load);
  }

  static Value* copy_of(const Copies& copies, Value* value) {
    const auto found = copies.find(value);
    return found == copies.end() ? value : static_cast<Value*>(found->second);
  }
  // Before operands are mapped: nothing uses the copy yet.
  static void replace(Copies& copies, Instruction& original, Value* by) {
    auto* const copy = llvm::cast<Instruction>(static_cast<Value*>(copies[&original]));
    copies.erase(&original);
    copy->eraseFromParent();
    if (by) copies[&original] = by;
  }

  IrModule& ir_;
  llvm::Function& function_;
  const llvm::DebugLoc location_;
};

class Emission : private GroupCode {
 public:
  Emission(IrModule& ir, llvm::Function& function, const InterleaveShape& shape,
           const InterleaveStarts& starts, uint32_t cell, const llvm::DebugLoc& location);

  void emit(Value* backedges);

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(ir_.context, name, &function_, header_);
  }
  void move(Builder& b, BasicBlock* block) const {
    b.SetInsertPoint(block);
    b.SetCurrentDebugLocation(location_);
  }

  // A loop of the group: neither worth vectors nor copies of its body.
  void end_loop(BasicBlock* block, Value* next, Value* end, BasicBlock* again, BasicBlock* out) {
    Builder b = at(block);
    llvm::BranchInst* const branch = b.CreateCondBr(b.CreateICmpULT(next, end), again, out);
    branch->setMetadata(llvm::LLVMContext::MD_loop, plain_loop_identity(ir_.context, nullptr));
  }

  // interleave_code.cc
  void emit_group(Value* backedges);

  // Returns the block in which a group begins.
  BasicBlock* emit_warm();

  // At the place that the load will have for these values of its header's phis.
  void prefetch(Builder& b, const KnownLoad& known, const Copies& values);

  // A way from head or search into a tail.
  struct Way {
    const BasicBlock* from;
    BasicBlock* to;
    BasicBlock* leave;  // in the copy of head or search: notes that this way was taken; of lanes none
    std::map<const PHINode*, llvm::AllocaInst*> results;  // of the search, by the tail's phi
  };
  Way& way(const BasicBlock* from, BasicBlock* to);

  // interleave_searches.cc
  void emit_heads();

  size_t ways_upper_bound() const;

  // Where a copy of a block of head or search leaves them: to `inner`, which continues at `continues`; to a
  // tail; to a trap.
  void redirect(BasicBlock* copy, const BasicBlock* original, const BasicBlock* inner, BasicBlock* continues);

  // A search begins: its state into the slot, its number to the active ones.
  void emit_begin(BasicBlock* begin, Value* active);

  // What a known load's operations need that the search does not make.
  std::vector<std::pair<Value*, Value*>> outside_of(const KnownLoad& known, const Copies& copies) const;

  // A value of the head goes through the frame: an element an iteration.
  llvm::AllocaInst* kept_array(Value* value);
  Value* kept(Value* value, Builder& b, Value* index) { return load(b, kept_array(value), index); }

  // At the end of `round_`. Returns the block from which a round's steps begin, if there are searches left.
  BasicBlock* begin_round(Value* are_left);

  // In copies of a part, each turn of a loop of which nobody knows the end is one of so many.
  void bound_turns(const llvm::SmallPtrSetImpl<const BasicBlock*>& part, const Copies& copies);

  void emit_steps();

  void emit_leave(Way& way, Value* slot, const Copies& in_step);

  void emit_again(BasicBlock* again, Value* slot, Value* still, const Copies& in_step);

  // interleave_lanes.cc: the same with a lane of vectors for each search.
  Value* lanes_from(Builder& b, llvm::AllocaInst* array, Value* base) const;
  void lanes_to(Builder& b, Value* lanes, llvm::AllocaInst* array, Value* base) const;
  Value* lanes_of(Value* value, Builder& b, Value* base, Copies& in_lanes);
  Value* emit_lanes(Instruction& operation, Builder& b, Value* base, Value* mask, Copies& in_lanes);
  void emit_lane_steps();

  // interleave_tails.cc. A value of head or of what follows it, in the tail under way; made at the tail's
  // beginning. Recursion is bounded by the loop's instructions.
  Value* tail_value(Value* value);

  void emit_tails();

  void fix_tail_block(BasicBlock* copy, BasicBlock* original);

  BasicBlock* emit_entry(const Way& way);

  // Each tail begins where its head or search ended.
  void choose_entry(const std::vector<BasicBlock*>& entries);
  // The load that `step_` begins with, after its phis.
  Value* slot_of_step() const {
    for (Instruction& instruction : *step_)
      if (llvm::isa<llvm::LoadInst>(instruction)) return &instruction;
    return nullptr;
  }

  void emit_group_end();

  // The loop as it was, for as many iterations as it is told.
  void turn_plain();

  // The latch iterates `count_` times instead of asking its old condition.
  void count_iterations(BasicBlock* exit);

  const InterleaveShape& shape_;
  const InterleaveStarts& starts_;
  const CellCode cell_;
  BasicBlock *const header_, *const latch_, *const before_;
  BasicBlock* after_ = nullptr;
  BasicBlock *group_ = nullptr, *plain_ = nullptr, *abandon_ = nullptr, *entry_of_heads_ = nullptr;
  BasicBlock *heads_ = nullptr, *heads_end_ = nullptr, *round_ = nullptr, *step_ = nullptr,
             *step_end_ = nullptr, *tails_ = nullptr, *tails_end_ = nullptr, *group_end_ = nullptr;
  PHINode *remaining_ = nullptr, *count_ = nullptr;
  Value* width_ = nullptr;
  std::map<const PHINode*, PHINode*> carried_;  // by the outer header's phi
  PHINode *head_index_ = nullptr, *tail_index_ = nullptr;
  const unsigned lanes_;                               // searches a vector; 0: one at a time
  llvm::AllocaInst* searching_ = nullptr;              // with lanes: a byte each, not zero while it is active
  BasicBlock* begin_ = nullptr;                        // of a search, after its head
  Value* active_now_ = nullptr;                        // searches that the heads began
  llvm::AllocaInst* turns_ = nullptr;                  // left to loops within; null: they come to an end
  llvm::AllocaInst* waiting_ = nullptr;                // the numbers of the active searches
  std::map<const PHINode*, llvm::AllocaInst*> state_;  // by the search's header phi
  std::map<const Value*, llvm::AllocaInst*> kept_;     // by the head's value
  std::vector<Way> ways_;                              // those out of heads come first
  size_t ways_of_heads_ = 0;
  std::map<const PHINode*, Value*> next_behind_;
  Copies in_head_, in_tail_;
};

}  // namespace hindsight::jit::optimizing::interleaving
