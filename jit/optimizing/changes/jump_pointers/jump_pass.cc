#include "jit/optimizing/changes/jump_pointers/jump_pass.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <algorithm>
#include <cstdlib>

#include "jit/code/cell_memory.h"
#include "jit/optimizing/changes/cache_line.h"
#include "jit/optimizing/changes/fetch_text.h"
#include "jit/optimizing/changes/jump_pointers/carried_place.h"
#include "jit/optimizing/changes/jump_pointers/jump_parameters.h"
#include "jit/optimizing/ir/copy_origin.h"
#include "jit/optimizing/ir/fetch_line.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_parts.h"
#include "jit/optimizing/versions/loop_versions.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

static_assert(traits_of(ChangeKind::kJumpPointers).knob.most == kMostTurnsAhead);

// What goes on trial together: the hinted loads whose address comes from the same pointer of one loop.
struct JumpGroup {
  llvm::Loop* loop = nullptr;
  LoopClaim claim;
  std::vector<CarriedPlace> places;  // the first is remembered, the others lie beside it
  std::vector<Slot*> slots;          // one a place
};

// Emits the versions of one loop, and the history into one of them.
class JumpEmitter {
 public:
  JumpEmitter(IrModule& ir, llvm::Function& function, const JumpGroup& group, uint32_t cell)
      : ir_(ir),
        group_(group),
        vmctx_(function.getArg(0)),
        code_(ir, function, cell),
        location_(loop_location(ir, function, group.claim.loop())) {}

  void emit() {
    BasicBlock* const header = group_.loop->getHeader();
    make_versions(
        *group_.loop, location_, [&](llvm::IRBuilder<>& b) { return choose(b); },
        [&](Instruction* before, Value* iterations) {
          end_strip(before, iterations);
          code_.emit_countdown(iterations, before, location_);
        });
    emit_turn(&*header->getFirstInsertionPt());
  }

 private:
  Value* field(llvm::IRBuilder<>& b, int32_t offset) const { return code_.field(b, kCellHistory + offset); }
  Value* load(llvm::IRBuilder<>& b, int32_t offset) const { return code_.load(b, kCellHistory + offset); }
  void store(llvm::IRBuilder<>& b, Value* value, int32_t offset) const {
    ir_.mark(b.CreateAlignedStore(value, field(b, offset), llvm::Align(4)), IrModule::World::kCells);
  }
  llvm::ConstantInt* int32(uint32_t value) const { return llvm::ConstantInt::get(ir_.i32, value); }
  Value* lesser(llvm::IRBuilder<>& b, Value* value, uint32_t most) const {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, value, int32(most));
  }
  // The place of an address in the memory, as the history has it.
  Value* place_of(llvm::IRBuilder<>& b, Value* address) const {
    Value* const base = b.CreatePtrToInt(group_.places.front().base, ir_.i64);
    return b.CreateTrunc(b.CreateSub(b.CreatePtrToInt(address, ir_.i64), base), ir_.i32);
  }

  // At the head's end, which moves on to another block.
  VersionChoice choose(llvm::IRBuilder<>& b) {
    BasicBlock* const head = b.GetInsertBlock();
    llvm::Function* const function = head->getParent();
    BasicBlock* const claimed =
        BasicBlock::Create(ir_.context, "history.claimed", function, head->getNextNode());
    BasicBlock* const chosen =
        BasicBlock::Create(ir_.context, "history.chosen", function, claimed->getNextNode());
    Value* const self = b.CreatePtrToInt(vmctx_, ir_.i64);
    Value* const nobody = llvm::ConstantInt::get(ir_.i64, 0);
    Value* const claim =
        b.CreateAtomicCmpXchg(field(b, kHistoryOwner), nobody, self, llvm::Align(8),
                              llvm::AtomicOrdering::Acquire, llvm::AtomicOrdering::Monotonic);
    Value* const owner = b.CreateExtractValue(claim, 0);
    mine_ = b.CreateOr(b.CreateExtractValue(claim, 1), b.CreateICmpEQ(owner, self));
    b.CreateCondBr(mine_, claimed, chosen);

    b.SetInsertPoint(claimed);
    Value* const here = place_of(b, group_.places.front().emit(b, values_in_head()));
    Value* const anchor = load(b, kHistoryAnchor);
    Value* const position = load(b, kHistoryPosition);
    Value* const is_first = b.CreateIsNull(anchor);
    Value* const arrived = b.CreateAnd(b.CreateICmpEQ(here, anchor), b.CreateIsNotNull(position));
    store(b, b.CreateSelect(is_first, here, anchor), kHistoryAnchor);
    store(b, b.CreateSelect(b.CreateAnd(arrived, b.CreateNot(is_first)), position, load(b, kHistoryPeriod)),
          kHistoryPeriod);
    Value* const begins = b.CreateSelect(b.CreateOr(is_first, arrived), int32(0), position);
    store(b, begins, kHistoryPosition);
    Value* const room = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, int32(kHistoryCapacity), begins);
    Value* const places = load_places(b);
    Value* const usable = b.CreateSelect(b.CreateIsNotNull(places), room, int32(0));
    b.CreateBr(chosen);

    b.SetInsertPoint(chosen);
    PHINode* const places_phi = b.CreatePHI(ir_.ptr, 2);
    places_phi->addIncoming(llvm::ConstantPointerNull::get(ir_.ptr), head);
    places_phi->addIncoming(places, claimed);
    PHINode* const room_phi = b.CreatePHI(ir_.i32, 2);
    room_phi->addIncoming(int32(0), head);
    room_phi->addIncoming(usable, claimed);
    places_ = places_phi;
    distance_ = b.CreateZExt(lesser(b, code_.load(b, kCellDistance), kMostTurnsAhead), ir_.i64);
    const VersionChoice choice = choice_of(code_, b);
    with_ = b.CreateAnd(choice.with, b.CreateIsNotNull(room_phi));
    // Invariant: turns with the history come to no entry beyond its capacity.
    Value* const in_room = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, choice.count, room_phi);
    return {.count = b.CreateSelect(with_, in_room, choice.count), .with = with_};
  }

  Value* load_places(llvm::IRBuilder<>& b) const {
    return ir_.mark(b.CreateAlignedLoad(ir_.ptr, field(b, kHistoryPlaces), llvm::Align(8)),
                    IrModule::World::kCells);
  }

  // What the header's phis are in a strip's first turn: by now what comes into the loop from outside.
  std::map<PHINode*, Value*> values_in_head() const {
    std::map<PHINode*, Value*> values;
    for (PHINode* phi : group_.places.front().carried)
      for (unsigned i = 0, n = phi->getNumIncomingValues(); i < n; ++i)
        if (!group_.loop->contains(phi->getIncomingBlock(i))) values[phi] = phi->getIncomingValue(i);
    return values;
  }

  void emit_turn(Instruction* rest) {
    llvm::IRBuilder<> b(rest);
    b.SetCurrentDebugLocation(location_);
    std::vector<Value*> addresses;
    for (const CarriedPlace& place : group_.places) addresses.push_back(place.emit(b, {}));
    Value* const here = place_of(b, addresses.front());
    Value* const position = load(b, kHistoryPosition);
    Value* const arrived =
        b.CreateAnd(b.CreateICmpEQ(here, load(b, kHistoryAnchor)), b.CreateIsNotNull(position));
    BasicBlock* const before = rest->getParent();
    Instruction* const anchored = llvm::SplitBlockAndInsertIfThen(arrived, rest, false, ir_.unlikely);
    anchored->setDebugLoc(location_);
    b.SetInsertPoint(anchored);
    store(b, position, kHistoryPeriod);
    b.SetInsertPoint(rest);
    b.SetCurrentDebugLocation(location_);
    PHINode* const turn = b.CreatePHI(ir_.i32, 2);
    turn->addIncoming(position, before);
    turn->addIncoming(int32(0), anchored->getParent());
    // Invariant: whatever the position, the entries are the history's own.
    Value* const index =
        b.CreateZExt(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, turn, load(b, kHistoryLast)), ir_.i64);
    Value* const entry = b.CreateGEP(ir_.i32, places_, index);
    Value* const last = load_entry(b, entry);
    store(b, b.CreateAdd(load(b, kHistoryValid), b.CreateZExt(b.CreateICmpEQ(last, here), ir_.i32)),
          kHistoryValid);
    ir_.mark(b.CreateAlignedStore(here, entry, llvm::Align(4)), IrModule::World::kCells);
    Value* const ahead = load_entry(b, b.CreateGEP(ir_.i32, places_, b.CreateAdd(index, distance_)));
    for (size_t i = 0; i < addresses.size(); ++i) {
      Value* const beside =
          b.CreateSub(b.CreatePtrToInt(addresses[i], ir_.i64), b.CreatePtrToInt(addresses.front(), ir_.i64));
      Value* const there = addresses[i] == addresses.front()
                               ? b.CreateZExt(ahead, ir_.i64)
                               : b.CreateAdd(b.CreateZExt(ahead, ir_.i64), beside);
      llvm::CallInst* const fetch = fetch_line(b, b.CreateGEP(ir_.i8, group_.places.front().base, there));
      tell_origin(ir_, *fetch, *group_.places[i].load);
    }
    store(b, b.CreateAdd(turn, int32(1)), kHistoryPosition);
  }
  Value* load_entry(llvm::IRBuilder<>& b, Value* entry) const {
    return ir_.mark(b.CreateAlignedLoad(ir_.i32, entry, llvm::Align(4)), IrModule::World::kCells);
  }

  void end_strip(Instruction* before, Value* iterations) const {
    Instruction* const end = llvm::SplitBlockAndInsertIfThen(mine_, before, false, ir_.likely);
    end->setDebugLoc(location_);
    llvm::IRBuilder<> b(end);
    b.SetCurrentDebugLocation(location_);
    Value* const position = load(b, kHistoryPosition);
    Value* const period = load(b, kHistoryPeriod);
    Value* const moved = b.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, position, iterations);
    // The anchor was passed unseen, if this goes as it went before.
    Value* const passed = b.CreateAnd(b.CreateIsNotNull(period), b.CreateICmpUGE(moved, period));
    Value* const unseen =
        lesser(b, b.CreateSelect(passed, b.CreateSub(moved, period), moved), kHistoryCapacity);
    store(b, b.CreateSelect(with_, position, unseen), kHistoryPosition);
    llvm::StoreInst* const release =
        b.CreateAlignedStore(llvm::ConstantInt::get(ir_.i64, 0), field(b, kHistoryOwner), llvm::Align(8));
    release->setAtomic(llvm::AtomicOrdering::Release);
  }

  IrModule& ir_;
  const JumpGroup& group_;
  Value* const vmctx_;
  const CellCode code_;
  const llvm::DebugLoc location_;
  Value *mine_ = nullptr, *with_ = nullptr, *places_ = nullptr, *distance_ = nullptr;  // in the head
};

// The loads that are asked about, by falling weight.
std::vector<std::pair<Slot*, llvm::LoadInst*>> loads_asked_about(ChangeSet& changes,
                                                                 llvm::Function& function) {
  std::vector<std::pair<Slot*, llvm::LoadInst*>> found;
  for (Slot& slot : changes.of(ChangeKind::kJumpPointers)) {
    for (Instruction& instruction : llvm::instructions(function)) {
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load == nullptr || load->isVolatile() || changes.ir.is_of(*load, IrModule::World::kRuntime))
        continue;
      const llvm::DILocation* const position = changes.ir.position_of(*load);
      if (position != nullptr && position->getLine() == slot.at().value) found.emplace_back(&slot, load);
    }
  }
  return found;
}

class JumpFinder {
 public:
  JumpFinder(ChangeSet& changes, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : changes_(changes),
        ir_(changes.ir),
        function_(function),
        analyses_(analyses),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)) {}

  bool run() {
    if (loads_asked_about(changes_, function_).empty()) return false;
    simplify_loops(function_, analyses_);
    std::vector<JumpGroup> groups;
    for (const auto& [slot, load] : loads_asked_about(changes_, function_)) judge(*slot, *load, groups);
    for (const JumpGroup& group : groups) {
      uint32_t cell = 0;  // the same for all
      for (Slot* slot : group.slots) cell = changes_.cell_of(group.claim, *slot);
      add_followers(group, cell);
      JumpEmitter(ir_, function_, group, cell).emit();
    }
    return true;
  }

 private:
  void judge(Slot& slot, llvm::LoadInst& load, std::vector<JumpGroup>& groups) {
    auto place = find_carried_place(load, loops_);
    if (!place) return slot.refuse(place.error());
    const uint32_t memory = ir_.memory_of(place->base, function_.getArg(0)).value_or(0);
    if (memory >= ir_.wasm.memories.size() || ir_.wasm.memories[memory].is64)
      return slot.refuse("the memory has 64-bit addresses");
    llvm::Loop& loop = *place->loop;
    if (const std::string_view why = why_not_twice(loop, dominators_); !why.empty()) return slot.refuse(why);
    if (const double turns = expected_turns(loop); turns != 0 && turns < kShortLoopTurns)
      return slot.refuse("the loop iterates only a few times");
    const auto claim = changes_.claim(slot, place_of(ir_, load, slot.at(), loops_, loop));
    if (!claim) return slot.wait(claim.error());
    // Copies of one loop (an OSR entry's) may come to different conclusions.
    if (slot.is_elsewhere(*claim)) return;
    auto group = std::ranges::find(groups, &loop, &JumpGroup::loop);
    if (group == groups.end()) {
      const bool nested = std::ranges::any_of(groups, [&](const JumpGroup& other) {
        return other.loop->contains(&loop) || loop.contains(other.loop);
      });
      if (nested) return slot.refuse("a loop inside or around it has jump pointers already");
      groups.push_back({.loop = &loop, .claim = *claim, .places = {}, .slots = {}});
      group = std::prev(groups.end());
    } else if (place->carried != group->places.front().carried) {
      return slot.refuse("the loop records another pointer");
    }
    apply(slot, *claim, *place);
    group->slots.push_back(&slot);
    if (group->places.size() < kMostLinesOfATurn && !covered(*place, *group))
      group->places.push_back(std::move(*place));
  }

  // On a line with one that is prefetched already.
  bool covered(const CarriedPlace& place, const JumpGroup& group) const {
    const auto parts = [&](const CarriedPlace& of) {
      const llvm::DataLayout& layout = function_.getParent()->getDataLayout();
      llvm::APInt offset(layout.getIndexTypeSizeInBits(ir_.ptr), 0);
      const Value* const from = of.load->getPointerOperand()->stripAndAccumulateConstantOffsets(
          layout, offset, /*AllowNonInbounds=*/true);
      return std::pair(from, offset.getSExtValue());
    };
    const auto [from, offset] = parts(place);
    return std::ranges::any_of(group.places, [&, from = from, offset = offset](const CarriedPlace& other) {
      const auto [other_from, other_offset] = parts(other);
      return from == other_from && std::abs(offset - other_offset) < kLineBytes;
    });
  }

  // Other loads of the same nodes are served with the hinted ones: what stalls there by now has been tried.
  void add_followers(const JumpGroup& group, uint32_t cell) {
    for (const BasicBlock* block : group.loop->blocks()) {
      for (const Instruction& instruction : *block) {
        const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        const llvm::DILocation* const position = load != nullptr ? ir_.position_of(*load) : nullptr;
        if (position == nullptr || load->isVolatile() || ir_.is_of(*load, IrModule::World::kRuntime))
          continue;
        const Site site{ChangeKind::kJumpPointers, WasmOffset(position->getLine())};
        if (changes_.is_known(site)) continue;
        const auto place = find_carried_place(*const_cast<llvm::LoadInst*>(load), loops_);
        if (!place || place->loop != group.loop || place->carried != group.places.front().carried ||
            !covered(*place, group))
          continue;
        changes_.add_follower(site, group.claim, cell, "on a cache line that is prefetched for another load");
      }
    }
  }

  static void apply(Slot& slot, const LoopClaim& claim, const CarriedPlace& place) {
    if (slot.answer.is_applied()) return;
    slot.apply(claim, "records the pointers of a traversal and prefetches from them in the next, up to " +
                          std::to_string(kHistoryCapacity >> 20) + "M iterations");
    slot.answer.operations = static_cast<uint32_t>(place.between.size());
  }

  ChangeSet& changes_;
  IrModule& ir_;
  llvm::Function& function_;
  llvm::FunctionAnalysisManager& analyses_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
};

}  // namespace

llvm::PreservedAnalyses KeepTurnsPass::run(llvm::Function& function,
                                           llvm::FunctionAnalysisManager& analyses) {
  const auto loads = loads_asked_about(*changes_, function);
  if (loads.empty()) return llvm::PreservedAnalyses::all();
  const auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  for (const auto& [slot, load] : loads)
    if (const auto place = find_carried_place(*load, loops); place && place->loop->getLoopLatch() != nullptr)
      place->loop->setLoopID(plain_loop_identity(function.getContext(), place->loop->getLoopID()));
  return llvm::PreservedAnalyses::all();
}

llvm::PreservedAnalyses JumpPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  return JumpFinder(*changes_, function, analyses).run() ? llvm::PreservedAnalyses::none()
                                                         : llvm::PreservedAnalyses::all();
}

void add_keep_turns(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(KeepTurnsPass(changes));
}

void add_jump(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  passes.addPass(JumpPass(changes));
  add_fetch_text(passes, changes);
}

}  // namespace hindsight::jit::optimizing
