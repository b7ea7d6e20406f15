#include "jit/optimizing/changes/interleave/dry_run_emission.h"

#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include "jit/abi/loop_cell.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"

namespace hindsight::jit::optimizing::interleaving {

DryRunCode::DryRunCode(IrModule& ir, llvm::Function& function, DryRunShape& shape,
                       const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution, uint32_t cell,
                       const llvm::DebugLoc& location)
    : GroupCode(ir, function, location),
      shape_(shape),
      parts_(shape.parts),
      loops_(loops),
      cell_(ir, function, cell),
      speculation_(ir, function, location),
      header_(shape.parts.outer->getHeader()),
      latch_(shape.parts.outer->getLoopLatch()),
      before_(shape.parts.outer->getLoopPreheader()),
      unknown_(&shape.unknown),
      guesses_(&shape.guesses) {
  parts_.outer->getUniqueExitBlocks(exits_);
  place_buffers(evolution);
}

void DryRunCode::place_buffers(llvm::ScalarEvolution& evolution) {
  llvm::SCEVExpander expander(evolution, ir_.module.getDataLayout(), "dry");
  for (const DryRunShape::Buffer& buffer : shape_.buffers) {
    Value* const offset = expander.expandCodeFor(buffer.begin, ir_.i32, before_->getTerminator());
    Builder b = at(before_->getTerminator());
    OwnBytes& its = buffers_.emplace_back();
    its.begin = b.CreateGEP(ir_.i8, buffer.base, b.CreateZExt(offset, i64()));
    // Beside its bytes, what is stored elsewhere.
    its.of_heads = in_frame(llvm::ArrayType::get(ir_.i8, 2 * kBufferBytes));
    its.of_searches = array(llvm::ArrayType::get(ir_.i8, kBufferBytes));
  }
}

Value* DryRunCode::access_own_bytes(Builder& b, size_t number_of_buffer, const Instruction& original,
                                    Instruction& copy) {
  const OwnBytes& its = buffers_[number_of_buffer];
  Value* const place = b.CreateFreeze(llvm::getLoadStorePointerOperand(&copy));
  Value* const distance = b.CreateSub(b.CreatePtrToInt(place, i64()), b.CreatePtrToInt(its.begin, i64()));
  const uint64_t size = ir_.module.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&copy));
  Value* const inside = b.CreateICmpULE(distance, number(kBufferBytes - size));
  Value* const own = slot_ ? element(b, its.of_searches, slot_) : its.of_heads;
  if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&copy)) {
    // Invariant: in the frame, whatever the address is. What goes elsewhere goes behind the heads' bytes, where there is room.
    Value* const in_bytes = b.CreateGEP(ir_.i8, own, b.CreateSelect(inside, distance, number(0)));
    Value* const beside = b.CreateConstInBoundsGEP1_64(ir_.i8, its.of_heads, kBufferBytes);
    b.CreateAlignedStore(store->getValueOperand(), b.CreateSelect(inside, in_bytes, beside), llvm::Align(1));
    return nullptr;
  }
  const uint32_t memory =
      Speculation::memory_of(ir_, llvm::getLoadStorePointerOperand(&original), function_).value_or(0);
  Value* const from =
      b.CreateSelect(inside, b.CreateGEP(ir_.i8, own, b.CreateSelect(inside, distance, number(0))),
                     speculation_.clamp(b, place, memory, size));
  return b.CreateAlignedLoad(copy.getType(), from, llvm::Align(1));
}

void DryRunCode::fetch_rest_of_node(Builder& b, Value* address, uint32_t memory,
                                    const std::vector<int64_t>& bytes, const Instruction& load) {
  if (bytes.empty()) return;
  const auto [least, most] = std::ranges::minmax(bytes);
  // A node is in memory as a whole, or it is none.
  Value* const first =
      speculation_.clamp(b, further_by(b, address, least), memory, static_cast<uint64_t>(most - least + 1));
  for (const int64_t at : bytes) fetch(b, further_by(b, first, at - least), load);
}

void DryRunCode::emit_group() {
  group_ = new_block("dry.group");
  begin_ = new_block("dry.begin");
  round_ = new_block("dry.round");
  done_ = new_block("dry.done");
  without_ = new_block("dry.without");
  Builder b = at(group_);
  const auto bounded = [&](llvm::Intrinsic::ID operation, Value* value, uint32_t bound) {
    return b.CreateBinaryIntrinsic(operation, value, word(bound));
  };
  // Negative if another thread of this cell has just ended its strip.
  Value* const strip = b.CreateAdd(
      bounded(llvm::Intrinsic::smax, cell_.load(b, kCellCountdown), kShortestDryRun - 1), word(1));
  // Invariant: 1 <= width <= kMaxInterleaveWidth, whatever the cell says: it indexes the frame.
  Value* const width =
      bounded(llvm::Intrinsic::umin, bounded(llvm::Intrinsic::umax, cell_.load(b, kCellDistance), 1),
              kMaxInterleaveWidth);
  Value* go = b.CreateIsNotNull(cell_.load(b, kCellEnabled));
  for (const uint32_t memory : shape_.memories)
    if (Value* const is_there = speculation_.use_memory(b, memory)) go = b.CreateAnd(go, is_there);
  b.CreateCondBr(go, begin_, without_);
  strip_ = strip;
  width_ = width;
}

void DryRunCode::emit_begin() {
  Builder b = at(begin_);
  width64_ = b.CreateZExt(width_, i64());
  turns_ = in_frame(ir_.i32);
  b.CreateStore(word(kMostTurnsOfADryRun), turns_);
  waiting_ = array(i64());
  const llvm::DataLayout& layout = ir_.module.getDataLayout();
  for (const DryRunShape::Place& place : shape_.places) {
    own_.push_back(in_frame(place.type));
    Value* const from =
        speculation_.clamp(b, place.address, place.memory, layout.getTypeStoreSize(place.type));
    first_.push_back(
        ir_.mark(b.CreateAlignedLoad(place.type, from, llvm::Align(1)), IrModule::World::kMemory));
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    Value* const from = speculation_.clamp(b, buffers_[i].begin, shape_.buffers[i].memory, kBufferBytes);
    buffers_[i].first =
        ir_.mark(b.CreateAlignedLoad(bytes(), from, llvm::Align(1)), IrModule::World::kMemory);
  }
}

void DryRunCode::start_own(Builder& b) {
  for (size_t i = 0; i < own_.size(); ++i) b.CreateStore(first_[i], own_[i]);
  for (const OwnBytes& its : buffers_) b.CreateAlignedStore(its.first, its.of_heads, llvm::Align(1));
}

void DryRunCode::make_harmless(const std::vector<BasicBlock*>& originals, Copies& copies) {
  for (BasicBlock* block : originals) {
    for (Instruction& original : *block) {
      auto* const copy = llvm::dyn_cast<Instruction>(copy_of(copies, &original));
      if (copy == nullptr || copy == &original || copies.find(&original) == copies.end()) continue;
      make_harmless(original, *copy, copies);
    }
  }
}
void DryRunCode::make_harmless(Instruction& original, Instruction& copy, Copies& copies) {
  copy.setDebugLoc(location_);
  if (llvm::isa<PHINode>(original)) return;
  const bool is_left_out = !copy.isTerminator() && unknown_->contains(&original);
  if (const auto place = shape_.at_place.find(&original); place != shape_.at_place.end() && !is_left_out) {
    Builder b = at(&copy);
    Value* const own = slot_ && !own_of_searches_.empty() ? element(b, own_of_searches_[place->second], slot_)
                                                          : own_[place->second];
    if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&copy))
      b.CreateStore(store->getValueOperand(), own);
    else
      copy.replaceAllUsesWith(b.CreateLoad(copy.getType(), own));
    copy.eraseFromParent();
    return;
  }
  if (const auto buffer = shape_.in_buffer.find(&original);
      buffer != shape_.in_buffer.end() && !is_left_out) {
    Builder b = at(&copy);
    if (Value* const loaded = access_own_bytes(b, buffer->second, original, copy))
      copy.replaceAllUsesWith(loaded);
    copy.eraseFromParent();
    return;
  }
  const auto guess = guesses_->find(&original);
  if (guess != guesses_->end()) {
    // Where it goes is looked up as of the others.
    bool is_taken = false;
    for (BasicBlock* other : llvm::successors(&original)) {
      const bool stays = other == guess->second && !is_taken;
      is_taken |= stays;
      if (!stays && copies.count(other) != 0)
        block_copy(copies, other)->removePredecessor(copy.getParent(), /*KeepOneInputPHIs=*/true);
    }
    Builder b = at(&copy);
    copies[&original] = b.CreateBr(block_copy(copies, guess->second));
    copy.eraseFromParent();
    return;
  }
  const bool is_kept = copy.isTerminator() || llvm::isa<llvm::LoadInst>(original) || original.isIntDivRem() ||
                       only_computes(original);
  if (!is_left_out && is_kept) return speculation_.make_harmless(copy, original);
  // Others may still ask for what is not known: where ways meet of which one is.
  llvm::Constant* const nothing =
      copy.getType()->isVoidTy() ? nullptr : llvm::Constant::getNullValue(copy.getType());
  if (nothing) copy.replaceAllUsesWith(nothing);
  copies.erase(&original);
  if (nothing) copies[&original] = nothing;
  copy.eraseFromParent();
}

void DryRunCode::redirect(const Copies& copies, BasicBlock& original, BasicBlock* inner,
                          BasicBlock* continues, BasicBlock* over, BasicBlock* out) {
  Instruction* const end = llvm::cast<Instruction>(copy_of(copies, original.getTerminator()));
  for (unsigned i = 0; i < end->getNumSuccessors(); ++i) {
    BasicBlock* const to = end->getSuccessor(i);
    if (to == block_copy(copies, inner)) {
      end->setSuccessor(i, continues);
    } else if (parts_.in_tail.contains(to)) {
      end->setSuccessor(i, over);
    } else if (llvm::is_contained(llvm::successors(&original), to)) {  // was not copied: not of the loop
      end->setSuccessor(i, out);
    } else {
      bound_turn(*end, i, copies, original, out);
    }
  }
}

void DryRunCode::bound_turn(Instruction& end, unsigned successor, const Copies& copies, BasicBlock& original,
                            BasicBlock* out) {
  BasicBlock* const to = end.getSuccessor(successor);
  const llvm::Loop* turns = nullptr;
  for (BasicBlock* next : llvm::successors(&original)) {
    const llvm::Loop* const loop = loops_.getLoopFor(next);
    if (copy_of(copies, next) == to && loop && loop->getHeader() == next && loop->contains(&original))
      turns = loop;
  }
  if (!turns) return;
  end.setMetadata(llvm::LLVMContext::MD_loop, nullptr);
  for (size_t i = 0; i < shape_.within.size(); ++i) {
    if (shape_.within[i].loop != turns) continue;
    turns_within_[i] = {.from = end.getParent(), .turn = new_block("dry.turn")};
    end.setSuccessor(successor, turns_within_[i].turn);
    return;
  }
  BasicBlock* const turn = new_block("dry.turn");
  Builder b = at(turn);
  Value* const rest = b.CreateSub(b.CreateLoad(ir_.i32, turns_), word(1));
  b.CreateStore(rest, turns_);
  // None is left for those that come after one that went round for ever.
  llvm::BranchInst* const branch = b.CreateCondBr(b.CreateICmpSGT(rest, word(0)), to, out);
  branch->setMetadata(llvm::LLVMContext::MD_loop, plain_loop_identity(ir_.context, nullptr));
  to->replacePhiUsesWith(end.getParent(), turn);
  end.setSuccessor(successor, turn);
}

DryRunCode::Rounds DryRunCode::begin_rounds(const std::vector<std::pair<BasicBlock*, Value*>>& from) {
  Rounds rounds{
      .step = new_block("dry.step"), .step_end = new_block("dry.step.end"), .over = new_block("dry.over")};
  rounds.active = phi_in(round_, i64());
  rounds.number = phi_in(round_, i64());
  for (const auto& [block, active] : from) {
    rounds.active->addIncoming(active, block);
    rounds.number->addIncoming(number(0), block);
  }
  Builder b = at(round_);
  Value* const goes_on = b.CreateAnd(b.CreateIsNotNull(rounds.active),
                                     b.CreateICmpULT(rounds.number, number(kMostRoundsOfADryRun)));
  b.CreateCondBr(goes_on, rounds.step, done_);

  Builder in_step = at(rounds.step);
  rounds.index = in_step.CreatePHI(i64(), 2);
  rounds.still = in_step.CreatePHI(i64(), 2);
  for (PHINode* phi : {rounds.index, rounds.still}) phi->addIncoming(number(0), round_);
  slot_ = load(in_step, waiting_, rounds.index);

  rounds.still_now = phi_in(rounds.step_end, i64());
  at(rounds.over).CreateBr(rounds.step_end);
  rounds.still_now->addIncoming(rounds.still, rounds.over);
  return rounds;
}

void DryRunCode::stay_active(const Rounds& rounds, BasicBlock* block) {
  Builder b = at(block);
  b.CreateStore(slot_, element(b, waiting_, rounds.still));
  rounds.still_now->addIncoming(b.CreateAdd(rounds.still, number(1), "", true, true), block);
  b.CreateBr(rounds.step_end);
}

void DryRunCode::end_rounds(const Rounds& rounds) {
  Builder b = at(rounds.step_end);
  Value* const next = b.CreateAdd(rounds.index, number(1), "", true, true);
  rounds.index->addIncoming(next, rounds.step_end);
  rounds.still->addIncoming(rounds.still_now, rounds.step_end);
  rounds.active->addIncoming(rounds.still_now, rounds.step_end);
  rounds.number->addIncoming(b.CreateAdd(rounds.number, number(1), "", true, true), rounds.step_end);
  end_loop(b, b.CreateICmpULT(next, rounds.active), rounds.step, round_);
}

void DryRunCode::weave_in() {
  llvm::Type* const type = ir_.i32;
  PHINode* const left = phi_in(header_, type);
  PHINode* const size = phi_in(header_, type);
  BasicBlock* const rest = header_->splitBasicBlock(header_->getFirstInsertionPt(), "dry.rest");
  BasicBlock* const latch = latch_ == header_ ? rest : latch_;
  PHINode* const left_now = phi_in(rest, type);
  PHINode* const size_now = phi_in(rest, type);
  const auto goes_on = [&](BasicBlock* from, Value* with_left, Value* of) {
    left_now->addIncoming(with_left, from);
    size_now->addIncoming(of, from);
  };
  BasicBlock* const account = new_block("dry.account");
  header_->getTerminator()->eraseFromParent();
  Builder b = at(header_);
  b.CreateCondBr(b.CreateIsNull(left), account, rest, ir_.unlikely);
  at(without_).CreateBr(rest);
  at(done_).CreateBr(rest);
  goes_on(header_, left, size);
  goes_on(without_, strip_, strip_);
  goes_on(done_, width_, width_);
  left->addIncoming(at(latch->getTerminator()).CreateSub(left_now, word(1)), latch);
  size->addIncoming(size_now, latch);
  for (PHINode* phi : {left, size}) phi->addIncoming(word(0), before_);

  // Iterations since the last group: at the next one, and where the loop is left.
  Instruction* const end = at(account).CreateBr(group_);
  cell_.emit_countdown(size, end, location_);
  for (BasicBlock* exit : exits_) {
    if (llvm::isa<llvm::UnreachableInst>(exit->getTerminator()) || exit->isEHPad()) continue;
    PHINode* const still = phi_in(exit, type);
    PHINode* const of = phi_in(exit, type);
    for (BasicBlock* from : llvm::predecessors(exit)) {
      still->addIncoming(left_now, from);
      of->addIncoming(size_now, from);
    }
    Instruction* const after = &*exit->getFirstInsertionPt();
    Builder in_exit = at(after);
    cell_.emit_countdown(in_exit.CreateAdd(in_exit.CreateSub(of, still), word(1)), after, location_);
  }
}

}  // namespace hindsight::jit::optimizing::interleaving
