#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include "jit/optimizing/changes/interleave/dry_run_emission.h"

namespace hindsight::jit::optimizing {
namespace interleaving {
namespace {

class DryRun : private DryRunCode {
 public:
  using DryRunCode::DryRunCode;

  // Copies come first, of the loop as it is. Then its header looks at the group.
  void emit() {
    emit_group();
    emit_begin();
    heads_entry_ = new_block("dry.entry");
    if (!shape_.within.empty()) where_ = array(ir_.i32);
    at(begin_).CreateBr(heads_entry_);
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
      fetch(b, copy->getPointerOperand(), *far);  // which is clamped
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
    begun_ = {{stop, active}, {heads_.end, now}};
    end_heads(heads_);
  }

  void copy_heads(Heads& heads, const char* suffix, BasicBlock* entry, BasicBlock* out, BasicBlock* stop) {
    heads.out = out;
    heads.stop = stop;
    heads.first = new_block("dry.heads");
    heads.end = new_block("dry.heads.end");
    Builder before = at(entry);
    // What they keep beside memory is as memory has it.
    start_own(before);
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
      Value* const place = of(original);
      fetch(b, speculation_.clamp(b, place, memory, 1), *known.load);
      fetch_rest_of_node(b, place, memory, known.rest_of_node, *known.load);
    }
  }

  // A search begins: its state into the slot, its number to the active ones.
  void emit_search(Builder& b, Value* active) {
    std::map<const Value*, Value*> state;
    for (const PHINode* phi : shape_.carried) {
      Value* const start =
          copy_of(heads_.copies, phi->getIncomingValueForBlock(parts_.chase->getLoopPreheader()));
      state_[phi] = array(phi->getType());
      b.CreateStore(start, element(b, state_.at(phi), heads_.index));
      state[phi] = start;
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
    BasicBlock* const again = new_block("dry.again");
    const Rounds rounds = begin_rounds(begun_);
    Value* const slot = slot_;
    Builder b = at(rounds.step);
    Copies copies;
    const std::vector<BasicBlock*> made = copy_blocks(parts_.steps, ".step", copies);
    BasicBlock* const header = parts_.chase->getHeader();
    for (PHINode& phi : header->phis()) {
      const auto its = state_.find(&phi);
      replace(copies, phi,
              its != state_.end() ? load(b, its->second, slot) : llvm::Constant::getNullValue(phi.getType()));
    }
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
    for (const PHINode* phi : shape_.carried) {
      Value* const next = phi->getIncomingValueForBlock(parts_.chase->getLoopLatch());
      const auto* from = llvm::dyn_cast<Instruction>(next);
      if (from && parts_.in_head.contains(from->getParent()) && !copies.count(next))
        copies[next] = of_head(next);
    }
    llvm::remapInstructionsInBlocks(made, copies);
    make_harmless(parts_.steps, copies);
    turns_within_.resize(shape_.within.size());
    for (BasicBlock* block : parts_.steps) redirect(copies, *block, header, again, rounds.over, rounds.over);

    Builder in_again = at(again);
    std::map<const Value*, Value*> state;
    for (const PHINode* phi : shape_.carried) {
      Value* const next = copy_of(copies, phi->getIncomingValueForBlock(parts_.chase->getLoopLatch()));
      in_again.CreateStore(next, element(in_again, state_.at(phi), slot));
      state[phi] = next;
    }
    fetch_step(in_again, shape_.starts.steps, state, [&](Value* value) { return copy_of(copies, value); });
    if (where_) in_again.CreateStore(word(0), element(in_again, where_, slot));
    stay_active(rounds, again);

    // Where the step begins: at its beginning, or at a loop within.
    if (!where_) {
      b.CreateBr(block_copy(copies, header));
    } else {
      llvm::SwitchInst* const choice = b.CreateSwitch(load(b, where_, slot), block_copy(copies, header));
      for (size_t i = 0; i < shape_.within.size(); ++i) {
        if (!turns_within_[i].turn) continue;  // a guess goes elsewhere
        choice->addCase(word(static_cast<uint32_t>(i + 1)), emit_within(i, copies, slot));
        stay_active(rounds, turns_within_[i].turn);
      }
      keep_live(copies, slot);
    }

    end_rounds(rounds);
  }

  // A turn of a loop within: its state into the slot. Returns the block in which the next step begins there.
  BasicBlock* emit_within(size_t i, const Copies& copies, Value* slot) {
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

  BasicBlock* heads_entry_ = nullptr;
  Heads heads_;
  llvm::AllocaInst* where_ = nullptr;  // steps begin: 0, or one more than the number of a loop within
  std::vector<std::pair<BasicBlock*, Value*>> begun_;  // where rounds begin, and with how many searches
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
