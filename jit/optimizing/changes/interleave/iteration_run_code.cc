#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include <algorithm>

#include "jit/optimizing/changes/interleave/dry_run_emission.h"
#include "jit/optimizing/changes/interleave/iteration_run.h"

namespace hindsight::jit::optimizing {
namespace interleaving {
namespace {

class IterationRun : private DryRunCode {
 public:
  IterationRun(IrModule& ir, llvm::Function& function, IterationRunShape& shape, const llvm::LoopInfo& loops,
               llvm::ScalarEvolution& evolution, uint32_t cell, const llvm::DebugLoc& location)
      : DryRunCode(ir, function, shape.common, loops, evolution, cell, location), its_(shape) {}

  // Copies come first, of the loop as it is. Then its header looks at the group.
  void emit() {
    emit_group();
    emit_begin();
    where_ = array(ir_.i32);
    for (const DryRunShape::Place& place : shape_.places) own_of_searches_.push_back(array(place.type));
    for (const PHINode* phi : parts_.ahead) state_[phi] = array(phi->getType());
    emit_starts();
    emit_rounds();
    weave_in();
    llvm::removeUnreachableBlocks(function_);
  }

 private:
  // Where an iteration gives way, and where it goes on.
  struct Wait {
    BasicBlock *pause = nullptr, *resume = nullptr;
  };

  struct Kept {
    llvm::AllocaInst* array = nullptr;
    std::set<const Wait*> across;
  };

  // Copies of all blocks, of which the header's phis are `of_header` and what is left out is gone.
  void copy_iteration(const char* suffix, const std::map<const PHINode*, Value*>& of_header,
                      const Unknown& left_out, const Guesses& guesses, bool is_round, Copies& copies) {
    const std::vector<BasicBlock*> made = copy_blocks(parts_.head, suffix, copies);
    for (PHINode& phi : header_->phis()) {
      const auto its = of_header.find(&phi);
      replace(copies, phi, its == of_header.end() ? nullptr : its->second);
    }
    llvm::remapInstructionsInBlocks(made, copies);
    if (is_round) {
      for (const llvm::LoadInst* wait : its_.waits) {
        if (!left_out.contains(wait)) continue;
        auto* const copy = llvm::cast<llvm::LoadInst>(copy_of(copies, const_cast<llvm::LoadInst*>(wait)));
        Builder b = at(copy);
        fetch(b, speculation_.clamp(b, copy->getPointerOperand(), memory_of(*wait), 1), *wait);
        fetch_node(b, copy->getPointerOperand(), *wait);
      }
    } else {
      keep_as_before(copies);
    }
    std::vector<PHINode*> unused;
    for (BasicBlock* block : parts_.head)
      for (PHINode& phi : block->phis())
        if (block != header_ && left_out.contains(&phi))
          unused.push_back(llvm::cast<PHINode>(copy_of(copies, &phi)));
    unknown_ = &left_out;
    guesses_ = &guesses;
    make_harmless(parts_.head, copies);
    for (PHINode* phi : unused) phi->replaceAllUsesWith(llvm::Constant::getNullValue(phi->getType()));
    for (PHINode* phi : unused) phi->eraseFromParent();
  }
  void fetch_node(Builder& b, Value* address, const llvm::LoadInst& original) {
    const auto its = its_.nodes.with.find(&original);
    if (its != its_.nodes.with.end())
      fetch_rest_of_node(b, address, memory_of(original), its->second, original);
  }
  uint32_t memory_of(const llvm::LoadInst& load) const {
    return Speculation::memory_of(ir_, load.getPointerOperand(), function_).value_or(0);
  }
  // A way that brings what starts do not know brings what was there before.
  void keep_as_before(Copies& copies) const {
    for (const auto& [phi, before] : its_.as_before) {
      auto* const copy = llvm::cast<PHINode>(copy_of(copies, const_cast<PHINode*>(phi)));
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        const auto* way = llvm::dyn_cast<Instruction>(phi->getIncomingValue(i));
        if (way && parts_.outer->contains(way) && way->getParent() != header_ &&
            its_.not_in_starts.contains(way))
          copy->setIncomingValue(i, copy_of(copies, before));
      }
    }
  }

  void emit_starts() {
    BasicBlock* const first = new_block("dry.starts");
    BasicBlock* const end = new_block("dry.starts.end");
    BasicBlock* const stop = new_block("dry.stop");
    Builder before = at(begin_);
    start_own(before);
    before.CreateBr(first);

    Builder b = at(first);
    PHINode* const index = b.CreatePHI(i64(), 2);
    index->addIncoming(number(0), begin_);
    std::map<const PHINode*, Value*> ahead;
    for (PHINode* phi : parts_.ahead) {
      PHINode* const own = b.CreatePHI(phi->getType(), 2);
      own->addIncoming(phi, begin_);
      ahead[phi] = own;
    }
    for (const PHINode* phi : parts_.ahead) b.CreateStore(ahead.at(phi), element(b, state_.at(phi), index));
    for (size_t i = 0; i < own_.size(); ++i)
      b.CreateStore(b.CreateLoad(shape_.places[i].type, own_[i]), element(b, own_of_searches_[i], index));
    for (const OwnBytes& its : buffers_) copy_bytes(b, its.of_heads, element(b, its.of_searches, index));
    b.CreateStore(word(0), element(b, where_, index));
    b.CreateStore(index, element(b, waiting_, index));

    Copies copies;
    copy_iteration(".start", ahead, its_.not_in_starts, its_.guesses_of_starts, /*is_round=*/false, copies);
    b.CreateBr(block_copy(copies, header_));
    for (BasicBlock* block : parts_.head) redirect(copies, *block, header_, end, stop, stop);

    b.SetInsertPoint(end);
    b.SetCurrentDebugLocation(location_);
    for (PHINode* phi : parts_.ahead)
      llvm::cast<PHINode>(ahead.at(phi))
          ->addIncoming(copy_of(copies, phi->getIncomingValueForBlock(latch_)), end);
    Value* const next = b.CreateAdd(index, number(1), "", true, true);
    index->addIncoming(next, end);
    end_loop(b, b.CreateICmpULT(next, width64_), first, round_);
    Builder in_stop = at(stop);
    Value* const all = in_stop.CreateAdd(index, number(1), "", true, true);
    in_stop.CreateBr(round_);
    begun_ = {{end, next}, {stop, all}};
  }

  void emit_rounds() {
    BasicBlock* const entry = new_block("dry.iteration");
    const Rounds rounds = begin_rounds(begun_);
    Builder b = at(rounds.step);
    llvm::SwitchInst* const choice = b.CreateSwitch(load(b, where_, slot_), entry);

    Builder in_entry = at(entry);
    std::map<const PHINode*, Value*> starts;
    for (PHINode* phi : parts_.ahead) starts[phi] = load(in_entry, state_.at(phi), slot_);
    Copies copies;
    copy_iteration(".round", starts, its_.not_in_rounds, its_.guesses_of_rounds, /*is_round=*/true, copies);
    in_entry.CreateBr(block_copy(copies, header_));
    for (BasicBlock* block : parts_.head)
      redirect(copies, *block, header_, rounds.over, rounds.over, rounds.over);

    // Not where no guess comes.
    const std::vector<BasicBlock*> reached = blocks_from({entry}, rounds.step_end);
    std::vector<Wait> waits;
    for (llvm::LoadInst* wait : its_.waits) {
      if (its_.not_in_rounds.contains(wait)) continue;
      auto* const copy = llvm::cast<llvm::LoadInst>(copy_of(copies, wait));
      if (!llvm::is_contained(reached, copy->getParent())) continue;
      waits.push_back(give_way(*copy, *wait, static_cast<uint32_t>(waits.size() + 1), rounds));
      choice->addCase(word(static_cast<uint32_t>(waits.size())), waits.back().resume);
    }
    keep_across(entry, rounds.step_end, waits);
    end_rounds(rounds);
  }

  // In front of a load: fetches what it loads. It goes on in the next round.
  Wait give_way(llvm::LoadInst& load, const llvm::LoadInst& original, uint32_t number_of_wait,
                const Rounds& rounds) {
    Wait wait{.pause = load.getParent(), .resume = new_block("dry.resume")};
    BasicBlock* const rest = wait.pause->splitBasicBlock(&load, "dry.rest");
    wait.pause->getTerminator()->eraseFromParent();
    Builder b = at(wait.pause);
    fetch(b, load.getPointerOperand(), original);  // which is clamped
    fetch_node(b, load.getPointerOperand(), original);
    b.CreateStore(word(number_of_wait), element(b, where_, slot_));
    stay_active(rounds, wait.pause);
    at(wait.resume).CreateBr(rest);
    return wait;
  }

  // In the order in which they are come to: what is made for them is the same each time.
  static std::vector<BasicBlock*> blocks_from(const std::vector<BasicBlock*>& begins, const BasicBlock* end) {
    std::vector<BasicBlock*> blocks = begins;
    std::set<const BasicBlock*> found(blocks.begin(), blocks.end());
    for (size_t i = 0; i < blocks.size(); ++i)
      for (BasicBlock* to : llvm::successors(blocks[i]))
        if (to != end && found.insert(to).second) blocks.push_back(to);
    return blocks;
  }

  // What an iteration has computed before it gives way is there when it goes on.
  void keep_across(BasicBlock* entry, BasicBlock* step_end, const std::vector<Wait>& waits) {
    std::map<const BasicBlock*, const Wait*> by_resume;
    std::vector<BasicBlock*> begins{entry};
    for (const Wait& wait : waits) {
      by_resume[wait.resume] = &wait;
      begins.push_back(wait.resume);
    }
    std::vector<Instruction*> values;
    for (BasicBlock* block : blocks_from(begins, step_end))
      for (Instruction& instruction : *block) values.push_back(&instruction);
    for (Instruction* value : values) {
      const std::vector<const Wait*> crossed = waits_before(*value, by_resume);
      if (crossed.empty()) continue;
      llvm::AllocaInst* const kept = array_for(*value, crossed);
      llvm::SSAUpdater updater;
      updater.Initialize(value->getType(), "");
      updater.AddAvailableValue(value->getParent(), value);
      for (const Wait* wait : crossed) {
        Builder pause = at(wait->pause->getTerminator());
        pause.CreateStore(value, element(pause, kept, slot_));
        Builder resume = at(wait->resume->getTerminator());
        updater.AddAvailableValue(wait->resume, load(resume, kept, slot_));
      }
      for (llvm::Use* use : uses_elsewhere(*value)) updater.RewriteUse(*use);
    }
  }
  static std::vector<llvm::Use*> uses_elsewhere(Instruction& value) {
    std::vector<llvm::Use*> uses;
    for (llvm::Use& use : value.uses()) {
      const auto* user = llvm::cast<Instruction>(use.getUser());
      if (user->getParent() != value.getParent() || llvm::isa<PHINode>(user)) uses.push_back(&use);
    }
    return uses;
  }
  // Values that are not carried across the same wait share an array.
  llvm::AllocaInst* array_for(const Instruction& value, const std::vector<const Wait*>& crossed) {
    const auto is_free = [&](const Kept& kept) {
      return kept.array->getAllocatedType()->getArrayElementType() == value.getType() &&
             llvm::none_of(crossed, [&](const Wait* wait) { return kept.across.contains(wait); });
    };
    auto found = std::ranges::find_if(kept_, is_free);
    if (found == kept_.end())
      found = kept_.insert(kept_.end(), {.array = array(value.getType()), .across = {}});
    found->across.insert(crossed.begin(), crossed.end());
    return found->array;
  }
  // Where the iteration gives way between the value and one of its uses.
  static std::vector<const Wait*> waits_before(Instruction& value,
                                               const std::map<const BasicBlock*, const Wait*>& by_resume) {
    std::vector<const BasicBlock*> work;
    for (const llvm::Use* use : uses_elsewhere(value)) {
      const auto* user = llvm::cast<Instruction>(use->getUser());
      const auto* phi = llvm::dyn_cast<PHINode>(user);
      work.push_back(phi ? phi->getIncomingBlock(*use) : user->getParent());
    }
    std::vector<const Wait*> crossed;
    std::set<const BasicBlock*> seen;
    while (!work.empty()) {
      const BasicBlock* const block = work.back();
      work.pop_back();
      if (block == value.getParent() || !seen.insert(block).second) continue;
      if (const auto found = by_resume.find(block); found != by_resume.end()) {
        crossed.push_back(found->second);
        work.push_back(found->second->pause);
        continue;
      }
      work.insert(work.end(), llvm::pred_begin(block), llvm::pred_end(block));
    }
    return crossed;
  }

  IterationRunShape& its_;
  llvm::AllocaInst* where_ = nullptr;  // it goes on: 0, at its beginning, or the number of a wait
  std::vector<std::pair<BasicBlock*, Value*>> begun_;  // where rounds begin, and with how many iterations
  std::vector<Kept> kept_;
  std::map<const PHINode*, llvm::AllocaInst*> state_;  // by the header's phi: what an iteration begins with
};

}  // namespace
}  // namespace interleaving

void emit_iteration_run(IrModule& ir, llvm::Function& function, IterationRunShape& shape,
                        const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution, uint32_t cell,
                        const llvm::DebugLoc& location) {
  interleaving::IterationRun(ir, function, shape, loops, evolution, cell, location).emit();
}

}  // namespace hindsight::jit::optimizing
