#include <llvm/IR/CFG.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include "jit/abi/loop_cell.h"
#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/changes/interleave/interleave_emission.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing {
namespace interleaving {
namespace {

// In iterations without a dry run, so that looking at the cell costs nothing next to them.
constexpr uint32_t kShortestDryRun = 32;
// Of a search. Longer ones are left to the loop: what they need first would be gone from the cache.
constexpr uint32_t kMostRounds = 128;
// Of loops within heads and steps, all of a group's together.
constexpr uint32_t kMostTurns = 4096;

class DryRun : private GroupCode {
 public:
  DryRun(IrModule& ir, llvm::Function& function, DryRunShape& shape, const llvm::LoopInfo& loops,
         llvm::ScalarEvolution& evolution, uint32_t cell, const llvm::DebugLoc& location)
      : GroupCode(ir, function, location),
        shape_(shape),
        parts_(shape.parts),
        loops_(loops),
        cell_(ir, function, cell),
        speculation_(ir, function, location),
        header_(shape.parts.outer->getHeader()),
        latch_(shape.parts.outer->getLoopLatch()),
        before_(shape.parts.outer->getLoopPreheader()) {
    parts_.outer->getUniqueExitBlocks(exits_);
    place_buffers(evolution);
  }

  // Copies come first, of the loop as it is. Then its header looks at the group.
  void emit() {
    group_ = new_block("dry.group");
    begin_ = new_block("dry.begin");
    heads_entry_ = new_block("dry.entry");
    round_ = new_block("dry.round");
    done_ = new_block("dry.done");
    without_ = new_block("dry.without");
    emit_group();
    emit_begin();
    if (!shape_.far.empty()) emit_warm();
    emit_heads();
    emit_steps();
    weave_in();
    llvm::removeUnreachableBlocks(function_);
  }

 private:
  // A copy of heads, as a loop of their own.
  struct Heads {
    Copies copies;
    PHINode* index = nullptr;
    std::map<const PHINode*, PHINode*> ahead;
    BasicBlock *first = nullptr, *end = nullptr, *out = nullptr, *stop = nullptr;
  };

  // Of a loop within the search: its turn, and where the next step begins with it.
  struct TurnWithin {
    BasicBlock *from = nullptr, *turn = nullptr, *resume = nullptr;
  };

  // A buffer in the frame: for the heads under way, and for each search what its head left.
  struct OwnBytes {
    Value *begin = nullptr,
          *first = nullptr;  // where the program has it, and what was in there when the group began
    llvm::AllocaInst *of_heads = nullptr, *of_searches = nullptr;
  };
  static constexpr uint32_t kBufferBytes = DryRunShape::Buffer::kBytes;

  llvm::Type* bytes() const { return llvm::FixedVectorType::get(ir_.i8, kBufferBytes); }
  void copy_bytes(Builder& b, Value* from, Value* to) const {
    b.CreateAlignedStore(b.CreateAlignedLoad(bytes(), from, llvm::Align(1)), to, llvm::Align(1));
  }
  // While analyses are good.
  void place_buffers(llvm::ScalarEvolution& evolution) {
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
  // A copy of an access goes to the bytes in the frame, if it is there that the original goes. Returns what a load brings.
  Value* access_own_bytes(Builder& b, size_t number_of_buffer, const Instruction& original,
                          Instruction& copy) {
    const OwnBytes& its = buffers_[number_of_buffer];
    Value* const place = b.CreateFreeze(llvm::getLoadStorePointerOperand(&copy));
    Value* const distance = b.CreateSub(b.CreatePtrToInt(place, i64()), b.CreatePtrToInt(its.begin, i64()));
    const uint64_t size = ir_.module.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&copy));
    Value* const inside = b.CreateICmpULE(distance, number(kBufferBytes - size));
    Value* const own = slot_ ? element(b, its.of_searches, slot_) : its.of_heads;
    if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&copy)) {
      Value* const to = b.CreateSelect(inside, distance, number(kBufferBytes));
      b.CreateAlignedStore(store->getValueOperand(), b.CreateGEP(ir_.i8, own, to), llvm::Align(1));
      return nullptr;
    }
    const uint32_t memory =
        Speculation::memory_of(ir_, llvm::getLoadStorePointerOperand(&original), function_).value_or(0);
    Value* const from =
        b.CreateSelect(inside, b.CreateGEP(ir_.i8, own, b.CreateSelect(inside, distance, number(0))),
                       speculation_.clamp(b, place, memory, size));
    return b.CreateAlignedLoad(copy.getType(), from, llvm::Align(1));
  }

  llvm::ConstantInt* word(uint32_t value) const { return llvm::ConstantInt::get(ir_.i32, value); }
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(ir_.context, name, &function_, latch_->getNextNode());
  }
  static BasicBlock* block_copy(const Copies& copies, BasicBlock* block) {
    return llvm::cast<BasicBlock>(copy_of(copies, block));
  }
  PHINode* phi_in(BasicBlock* block, llvm::Type* type) const {
    PHINode* const phi = PHINode::Create(type, 4, "", block->begin());
    phi->setDebugLoc(location_);
    return phi;
  }

  void emit_group() {
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

  void emit_begin() {
    Builder b = at(begin_);
    width64_ = b.CreateZExt(width_, i64());
    turns_ = in_frame(ir_.i32);
    b.CreateStore(word(kMostTurns), turns_);
    waiting_ = array(i64());
    if (!shape_.within.empty()) where_ = array(ir_.i32);
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
    b.CreateBr(heads_entry_);
  }
  // Heads up to the first load that may be far.
  void emit_warm() {
    BasicBlock* const entry = heads_entry_;
    heads_entry_ = new_block("dry.entry");
    Heads warm;
    copy_heads(warm, ".warm", entry, heads_entry_, heads_entry_);
    for (BasicBlock* block : parts_.head) {
      const auto far = std::ranges::find_if(
          *block, [&](const Instruction& instruction) { return shape_.far.contains(&instruction); });
      if (far == block->end()) continue;
      auto* const copy = llvm::cast<llvm::LoadInst>(copy_of(warm.copies, &*far));
      Builder b = at(copy);
      fetch(b, copy->getPointerOperand());  // which is clamped
      BasicBlock* const known = copy->getParent();
      known->splitBasicBlock(copy, "dry.unknown");
      known->getTerminator()->setSuccessor(0, warm.end);
    }
    for (BasicBlock* block : parts_.head)
      redirect(warm.copies, *block, parts_.chase->getHeader(), warm.end, warm.end, warm.stop);
    end_heads(warm);
  }

  void emit_heads() {
    BasicBlock* const entry = heads_entry_;
    BasicBlock* const stop = new_block("dry.stop");
    BasicBlock* const search = new_block("dry.search");
    BasicBlock* const skip = new_block("dry.skip");
    copy_heads(heads_, ".head", entry, round_, stop);
    PHINode* const active = phi_in(heads_.first, i64());
    active->addIncoming(number(0), entry);
    for (BasicBlock* block : parts_.head)
      redirect(heads_.copies, *block, parts_.chase->getHeader(), search, skip, stop);
    Builder b = at(search);
    emit_search(b, active);
    Value* const one_more = b.CreateAdd(active, number(1), "", true, true);
    b.CreateBr(heads_.end);
    at(skip).CreateBr(heads_.end);
    PHINode* const now = phi_in(heads_.end, i64());
    now->addIncoming(one_more, search);
    now->addIncoming(active, skip);
    active->addIncoming(now, heads_.end);
    at(stop).CreateBr(round_);
    active_in_round_ = phi_in(round_, i64());
    active_in_round_->addIncoming(active, stop);
    active_in_round_->addIncoming(now, heads_.end);
    end_heads(heads_);
  }

  void copy_heads(Heads& heads, const char* suffix, BasicBlock* entry, BasicBlock* out, BasicBlock* stop) {
    heads.out = out;
    heads.stop = stop;
    heads.first = new_block("dry.heads");
    heads.end = new_block("dry.heads.end");
    Builder before = at(entry);
    // What they keep beside memory is as memory has it.
    for (size_t i = 0; i < own_.size(); ++i) before.CreateStore(first_[i], own_[i]);
    for (const OwnBytes& its : buffers_) before.CreateAlignedStore(its.first, its.of_heads, llvm::Align(1));
    before.CreateBr(heads.first);
    Builder b = at(heads.first);
    heads.index = b.CreatePHI(i64(), 2);
    heads.index->addIncoming(number(0), entry);
    for (PHINode* phi : parts_.ahead) {
      heads.ahead[phi] = b.CreatePHI(phi->getType(), 2);
      heads.ahead[phi]->addIncoming(phi, entry);
    }
    const std::vector<BasicBlock*> made = copy_blocks(parts_.head, suffix, heads.copies);
    for (PHINode& phi : header_->phis())
      replace(heads.copies, phi, heads.ahead.contains(&phi) ? heads.ahead.at(&phi) : nullptr);
    llvm::remapInstructionsInBlocks(made, heads.copies);
    make_harmless(parts_.head, heads.copies);
    b.CreateBr(block_copy(heads.copies, header_));
  }

  void make_harmless(const std::vector<BasicBlock*>& originals, Copies& copies) {
    for (BasicBlock* block : originals) {
      for (Instruction& original : *block) {
        auto* const copy = llvm::dyn_cast<Instruction>(copy_of(copies, &original));
        if (copy == nullptr || copy == &original || copies.find(&original) == copies.end()) continue;
        make_harmless(original, *copy, copies);
      }
    }
  }
  void make_harmless(Instruction& original, Instruction& copy, Copies& copies) {
    copy.setDebugLoc(location_);
    if (llvm::isa<PHINode>(original)) return;
    if (const auto place = shape_.at_place.find(&original); place != shape_.at_place.end()) {
      Builder b = at(&copy);
      llvm::AllocaInst* const own = own_[place->second];
      if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&copy))
        b.CreateStore(store->getValueOperand(), own);
      else
        copy.replaceAllUsesWith(b.CreateLoad(copy.getType(), own));
      copy.eraseFromParent();
      return;
    }
    if (const auto buffer = shape_.in_buffer.find(&original); buffer != shape_.in_buffer.end()) {
      Builder b = at(&copy);
      if (Value* const loaded = access_own_bytes(b, buffer->second, original, copy))
        copy.replaceAllUsesWith(loaded);
      copy.eraseFromParent();
      return;
    }
    const auto guess = shape_.guesses.find(&original);
    if (guess != shape_.guesses.end()) {
      // Where it goes is looked up as of the others.
      for (BasicBlock* other : llvm::successors(&original))
        if (other != guess->second && copies.count(other) != 0)
          block_copy(copies, other)->removePredecessor(copy.getParent(), /*KeepOneInputPHIs=*/true);
      Builder b = at(&copy);
      copies[&original] = b.CreateBr(block_copy(copies, guess->second));
      copy.eraseFromParent();
      return;
    }
    const bool is_known = copy.isTerminator() || !shape_.unknown.contains(&original);
    const bool is_kept = copy.isTerminator() || llvm::isa<llvm::LoadInst>(original) ||
                         original.isIntDivRem() || only_computes(original);
    if (is_known && is_kept) return speculation_.make_harmless(copy, original);
    if (!copy.getType()->isVoidTy()) copy.replaceAllUsesWith(llvm::Constant::getNullValue(copy.getType()));
    copies.erase(&original);
    copy.eraseFromParent();
  }

  // Where a copy of a block leaves heads or steps: `inner`, a block of the original, is gone on with at
  // `continues`; what comes after the search, or instead, is `over`.
  void redirect(const Copies& copies, BasicBlock& original, BasicBlock* inner, BasicBlock* continues,
                BasicBlock* over, BasicBlock* out) {
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

  // A turn of a loop within is one of so many.
  void bound_turn(Instruction& end, unsigned successor, const Copies& copies, BasicBlock& original,
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
    llvm::BranchInst* const branch = b.CreateCondBr(b.CreateIsNotNull(rest), to, out);
    branch->setMetadata(llvm::LLVMContext::MD_loop, plain_loop_identity(ir_.context, nullptr));
    to->replacePhiUsesWith(end.getParent(), turn);
    end.setSuccessor(successor, turn);
  }

  // The next head's values, and whether there is one.
  void end_heads(Heads& heads) {
    Builder b = at(heads.end);
    Copies known;
    for (size_t i = 0; i < shape_.places.size(); ++i)
      if (Value* const next = shape_.places[i].next) b.CreateStore(at_end(next, b, heads, known), own_[i]);
    for (PHINode* phi : parts_.ahead)
      heads.ahead.at(phi)->addIncoming(at_end(phi->getIncomingValueForBlock(latch_), b, heads, known),
                                       heads.end);
    Value* const next = b.CreateAdd(heads.index, number(1), "", true, true);
    heads.index->addIncoming(next, heads.end);
    Value* again = b.CreateICmpULT(next, width64_);
    if (shape_.ends) {
      const auto* const end = llvm::cast<llvm::BranchInst>(latch_->getTerminator());
      Value* stays = b.CreateFreeze(at_end(shape_.ends, b, heads, known));
      if (end->getSuccessor(0) != header_) stays = b.CreateNot(stays);
      again = b.CreateAnd(again, stays);
    }
    end_loop(b, again, heads.first, heads.out);
  }
  void end_loop(Builder& b, Value* again, BasicBlock* first, BasicBlock* out) {
    b.CreateCondBr(again, first, out)
        ->setMetadata(llvm::LLVMContext::MD_loop, plain_loop_identity(ir_.context, nullptr));
  }

  // A value of the loop where a head is done. Recursion is bounded by the loop's instructions.
  Value* at_end(Value* value, Builder& b, Heads& heads, Copies& known) {
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !parts_.outer->contains(instruction)) return value;
    if (parts_.in_head.contains(instruction->getParent())) return copy_of(heads.copies, value);
    if (const auto found = known.find(value); found != known.end()) return found->second;
    Value* made = nullptr;
    if (const auto* phi = llvm::dyn_cast<PHINode>(instruction)) {
      made = at_end(shape_.ways.at(phi), b, heads, known);
    } else {
      Instruction* const copy = instruction->clone();
      for (llvm::Use& operand : copy->operands()) operand.set(at_end(operand.get(), b, heads, known));
      b.Insert(copy);
      speculation_.make_harmless(*copy, *instruction);
      made = copy;
    }
    known[value] = made;
    return made;
  }

  void fetch(Builder& b, Value* address) const {
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {ir_.ptr}, {address, word(0), word(3), word(1)});
  }
  // What the search's next step loads; `state` are its header's phis by then, `value` gives it what heads made.
  template <typename Other>
  void fetch_step(Builder& b, const std::vector<KnownLoad>& loads,
                  const std::map<const Value*, Value*>& state, const Other& of_other) {
    for (const KnownLoad& known : loads) {
      std::map<const Value*, Value*> copies = state;
      const auto of = [&](Value* original) -> Value* {
        Value* const value = known.first_of(original);
        if (const auto found = copies.find(value); found != copies.end()) return found->second;
        return of_other(value);
      };
      for (Instruction* operation : known.operations) {
        std::vector<Value*> operands;
        for (Value* operand : operation->operands()) operands.push_back(of(operand));
        Instruction* const copy = operation->clone();
        for (unsigned i = 0; i < operands.size(); ++i) copy->setOperand(i, operands[i]);
        b.Insert(copy);
        copies[operation] = copy;
        if (const auto buffer = shape_.in_buffer.find(operation); buffer != shape_.in_buffer.end()) {
          copies[operation] = access_own_bytes(b, buffer->second, *operation, *copy);
          copy->eraseFromParent();
        } else {
          speculation_.make_harmless(*copy, *operation);
        }
      }
      Value* const original = known.load->getPointerOperand();
      const uint32_t memory = Speculation::memory_of(ir_, original, function_).value_or(0);
      fetch(b, speculation_.clamp(b, of(original), memory, 1));
    }
  }

  // A search begins: its state into the slot, its number to the active ones.
  void emit_search(Builder& b, Value* active) {
    std::map<const Value*, Value*> state;
    for (PHINode& phi : parts_.chase->getHeader()->phis()) {
      Value* const start =
          copy_of(heads_.copies, phi.getIncomingValueForBlock(parts_.chase->getLoopPreheader()));
      state_[&phi] = array(phi.getType());
      b.CreateStore(start, element(b, state_.at(&phi), heads_.index));
      state[&phi] = start;
    }
    fetch_step(b, shape_.starts.steps, state, [&](Value* value) { return copy_of(heads_.copies, value); });
    for (const OwnBytes& its : buffers_)
      copy_bytes(b, its.of_heads, element(b, its.of_searches, heads_.index));
    if (where_) b.CreateStore(word(0), element(b, where_, heads_.index));
    b.CreateStore(heads_.index, element(b, waiting_, active));
  }

  // A value of the head goes through the frame, unless it is one of the iteration that goes on.
  Value* kept(Value* value, Builder& b, Value* slot) {
    Value* const made = copy_of(heads_.copies, value);
    auto* const instruction = llvm::dyn_cast<Instruction>(made);
    if (!instruction || made == value) return made;
    llvm::AllocaInst*& its = kept_[value];
    if (!its) {
      its = array(value->getType());
      Builder there = at(llvm::isa<PHINode>(instruction) ? &*instruction->getParent()->getFirstInsertionPt()
                                                         : instruction->getNextNode());
      there.CreateStore(made, element(there, its, heads_.index));
    }
    return load(b, its, slot);
  }

  void emit_steps() {
    BasicBlock* const step = new_block("dry.step");
    BasicBlock* const step_end = new_block("dry.step.end");
    BasicBlock* const over = new_block("dry.over");
    BasicBlock* const again = new_block("dry.again");
    PHINode* const rounds = phi_in(round_, i64());
    for (BasicBlock* from : {heads_.stop, heads_.end}) rounds->addIncoming(number(0), from);
    Builder b = at(round_);
    Value* const goes_on =
        b.CreateAnd(b.CreateIsNotNull(active_in_round_), b.CreateICmpULT(rounds, number(kMostRounds)));
    b.CreateCondBr(goes_on, step, done_);

    b.SetInsertPoint(step);
    b.SetCurrentDebugLocation(location_);
    PHINode* const index = b.CreatePHI(i64(), 2);
    index->addIncoming(number(0), round_);
    PHINode* const still = b.CreatePHI(i64(), 2);
    still->addIncoming(number(0), round_);
    Value* const slot = load(b, waiting_, index);
    slot_ = slot;
    Copies copies;
    const std::vector<BasicBlock*> made = copy_blocks(parts_.steps, ".step", copies);
    BasicBlock* const header = parts_.chase->getHeader();
    for (PHINode& phi : header->phis()) replace(copies, phi, load(b, state_.at(&phi), slot));
    std::map<const Value*, Value*> of_heads;
    const auto of_head = [&](Value* value) {
      Value*& its = of_heads[value];
      if (!its) its = kept(value, b, slot);
      return its;
    };
    for (BasicBlock* block : parts_.steps)
      for (Instruction& instruction : *block)
        for (Value* operand : instruction.operands()) {
          const auto* from = llvm::dyn_cast<Instruction>(operand);
          if (!from || !parts_.in_head.contains(from->getParent()) || copies.count(operand)) continue;
          if (llvm::isa<PHINode>(instruction) && block == header) continue;
          copies[operand] = of_head(operand);
        }
    for (PHINode& phi : header->phis()) {
      Value* const next = phi.getIncomingValueForBlock(parts_.chase->getLoopLatch());
      const auto* from = llvm::dyn_cast<Instruction>(next);
      if (from && parts_.in_head.contains(from->getParent()) && !copies.count(next))
        copies[next] = of_head(next);
    }
    llvm::remapInstructionsInBlocks(made, copies);
    make_harmless(parts_.steps, copies);
    turns_within_.resize(shape_.within.size());
    for (BasicBlock* block : parts_.steps) redirect(copies, *block, header, again, over, over);

    Builder in_again = at(again);
    std::map<const Value*, Value*> state;
    for (PHINode& phi : header->phis()) {
      Value* const next = copy_of(copies, phi.getIncomingValueForBlock(parts_.chase->getLoopLatch()));
      in_again.CreateStore(next, element(in_again, state_.at(&phi), slot));
      state[&phi] = next;
    }
    fetch_step(in_again, shape_.starts.steps, state, [&](Value* value) { return copy_of(copies, value); });
    if (where_) in_again.CreateStore(word(0), element(in_again, where_, slot));
    in_again.CreateStore(slot, element(in_again, waiting_, still));
    Value* const one_more = in_again.CreateAdd(still, number(1), "", true, true);
    in_again.CreateBr(step_end);
    at(over).CreateBr(step_end);
    PHINode* const still_now = phi_in(step_end, i64());
    still_now->addIncoming(one_more, again);
    still_now->addIncoming(still, over);

    // Where the step begins: at its beginning, or at a loop within.
    if (!where_) {
      b.CreateBr(block_copy(copies, header));
    } else {
      llvm::SwitchInst* const choice = b.CreateSwitch(load(b, where_, slot), block_copy(copies, header));
      for (size_t i = 0; i < shape_.within.size(); ++i) {
        if (!turns_within_[i].turn) continue;  // a guess goes elsewhere
        choice->addCase(word(static_cast<uint32_t>(i + 1)), emit_within(i, copies, slot, still));
        Builder turn = at(turns_within_[i].turn);
        still_now->addIncoming(turn.CreateAdd(still, number(1), "", true, true), turns_within_[i].turn);
        turn.CreateBr(step_end);
      }
      keep_live(copies, slot);
    }

    b.SetInsertPoint(step_end);
    b.SetCurrentDebugLocation(location_);
    Value* const next = b.CreateAdd(index, number(1), "", true, true);
    index->addIncoming(next, step_end);
    still->addIncoming(still_now, step_end);
    active_in_round_->addIncoming(still_now, step_end);
    rounds->addIncoming(b.CreateAdd(rounds, number(1), "", true, true), step_end);
    end_loop(b, b.CreateICmpULT(next, active_in_round_), step, round_);
  }

  // A turn of a loop within: its state into the slot. Returns the block in which the next step begins there.
  BasicBlock* emit_within(size_t i, const Copies& copies, Value* slot, Value* still) {
    const DryRunShape::Within& within = shape_.within[i];
    TurnWithin& its = turns_within_[i];
    its.resume = new_block("dry.resume");
    BasicBlock* const header = block_copy(copies, within.loop->getHeader());
    Builder turn = at(its.turn);
    Builder resume = at(its.resume);
    std::map<const Value*, Value*> state;
    for (PHINode& phi : within.loop->getHeader()->phis()) {
      auto* const copy = llvm::cast<PHINode>(copy_of(copies, &phi));
      llvm::AllocaInst* const kept = array(phi.getType());
      Value* const next = copy->getIncomingValueForBlock(its.from);
      turn.CreateStore(next, element(turn, kept, slot));
      copy->setIncomingValueForBlock(its.from, load(resume, kept, slot));
      state[&phi] = next;
    }
    resume.CreateBr(header);
    header->replacePhiUsesWith(its.from, its.resume);
    fetch_step(turn, within.steps, state, [&](Value* value) { return copy_of(copies, value); });
    turn.CreateStore(word(static_cast<uint32_t>(i + 1)), element(turn, where_, slot));
    turn.CreateStore(slot, element(turn, waiting_, still));
    return its.resume;
  }

  // What a step has computed in front of a loop within is there where the next one begins with that loop.
  void keep_live(const Copies& copies, Value* slot) {
    std::vector<Instruction*> live;
    for (const DryRunShape::Within& within : shape_.within)
      for (Instruction* value : within.live)
        if (!llvm::is_contained(live, value)) live.push_back(value);
    for (Instruction* original : live) {
      auto* const made = llvm::dyn_cast<Instruction>(copy_of(copies, original));
      if (made == nullptr || made == original) continue;
      std::vector<llvm::Use*> uses;
      for (llvm::Use& use : made->uses()) {
        const auto* user = llvm::cast<Instruction>(use.getUser());
        if (user->getParent() != made->getParent() || llvm::isa<PHINode>(user)) uses.push_back(&use);
      }
      llvm::AllocaInst* const kept = array(made->getType());
      Builder b =
          at(llvm::isa<PHINode>(made) ? &*made->getParent()->getFirstInsertionPt() : made->getNextNode());
      b.CreateStore(made, element(b, kept, slot));
      llvm::SSAUpdater values;
      values.Initialize(made->getType(), "");
      values.AddAvailableValue(made->getParent(), made);
      for (size_t i = 0; i < shape_.within.size(); ++i) {
        if (!turns_within_[i].resume || !llvm::is_contained(shape_.within[i].live, original)) continue;
        Builder resume = at(turns_within_[i].resume->getTerminator());
        values.AddAvailableValue(turns_within_[i].resume, load(resume, kept, slot));
      }
      for (llvm::Use* use : uses) values.RewriteUse(*use);
    }
  }

  // The loop's header looks whether a group is over, and the rest of it goes on.
  void weave_in() {
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

  DryRunShape& shape_;
  const InterleaveShape& parts_;
  const llvm::LoopInfo& loops_;
  const CellCode cell_;
  Speculation speculation_;
  BasicBlock *const header_, *const latch_, *const before_;
  llvm::SmallVector<BasicBlock*, 4> exits_;
  BasicBlock *group_ = nullptr, *begin_ = nullptr, *heads_entry_ = nullptr, *round_ = nullptr,
             *done_ = nullptr, *without_ = nullptr;
  Value *strip_ = nullptr, *width_ = nullptr, *width64_ = nullptr;
  llvm::AllocaInst *turns_ = nullptr, *waiting_ = nullptr;  // of loops within; the numbers of active searches
  std::vector<llvm::AllocaInst*> own_;                      // places, beside memory
  std::vector<Value*> first_;                               // what memory has there
  std::vector<OwnBytes> buffers_;
  Value* slot_ = nullptr;  // of the search whose step it is; null in heads
  Heads heads_;
  llvm::AllocaInst* where_ = nullptr;  // steps begin: 0, or one more than the number of a loop within
  std::vector<TurnWithin> turns_within_;
  PHINode* active_in_round_ = nullptr;
  std::map<const PHINode*, llvm::AllocaInst*> state_;  // by the search's header phi
  std::map<const Value*, llvm::AllocaInst*> kept_;     // by the head's value
};

}  // namespace
}  // namespace interleaving

void emit_dry_run(IrModule& ir, llvm::Function& function, DryRunShape& shape, const llvm::LoopInfo& loops,
                  llvm::ScalarEvolution& evolution, uint32_t cell, const llvm::DebugLoc& location) {
  interleaving::DryRun(ir, function, shape, loops, evolution, cell, location).emit();
}

}  // namespace hindsight::jit::optimizing
