#include "jit/optimizing/changes/prefetch/prefetch_pass.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>

#include "jit/optimizing/changes/prefetch/prefetch_slice.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_walk.h"
#include "jit/optimizing/versions/strips.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// In iterations. Entering a vectorized loop (its checks, a remainder) should not be seen in its time.
constexpr uint32_t kShortestStrip = 4096;
// How many iterations ahead a load is timed. This is beyond what the core has in flight at the end of a
// strip, and beyond most prefetch distances. A loop with fewer iterations left than the least is not timed.
// One whose rest is not known is timed, at the risk of a place past its end, now and then.
constexpr uint32_t kTimedAhead = 512;
constexpr uint32_t kLeastTimedAhead = 128;
constexpr uint32_t kTimedAheadBlindly = 256;

// All slices of one loop.
struct LoopWork {
  llvm::Loop* loop = nullptr;
  LoopClaim claim;
  std::vector<PrefetchSlice> slices;
  std::vector<Slot*> slots;  // one a slice
};

// Emits the instrumentation of one loop.
class Emitter {
 public:
  Emitter(ChangeSet& changes, llvm::Function& function, LoopWork& work, uint32_t cell)
      : changes_(changes),
        ir_(changes.ir),
        function_(function),
        work_(work),
        b_(ir_.context),
        cell_(ir_, function, cell) {
    location_ = loop_location(ir_, function, work.claim.loop());
    for (const PrefetchSlice& slice : work.slices)
      for (const Instruction* operation : slice.operations)
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(operation);
            load && !ir_.is_of(*load, IrModule::World::kRuntime))
          lengths_.emplace(memory_of(*load), nullptr);
    for (const PrefetchSlice& slice : work.slices)
      for (const auto& [load, level] : slice.levels) lengths_.emplace(memory_of(*load), nullptr);
    if (lengths_.empty()) lengths_.emplace(0, nullptr);
  }

  // Once an iteration: a look at the cell, and the end of a strip.
  void emit_in_loop() {
    llvm::BasicBlock* const header = work_.loop->getHeader();
    Instruction* const rest = &*header->getFirstInsertionPt();
    llvm::BasicBlock* const before = work_.loop->getLoopPreheader();
    at(before ? before->getTerminator() : rest);
    load_lengths();
    at(rest);
    Value* const enabled = b_.CreateIsNotNull(cell_load(kCellEnabled));
    // Clamped loads read address 0, which must exist.
    Value* const go = has_a_page() ? enabled : b_.CreateAnd(enabled, nothing_is_empty());
    Instruction* const slice_end = llvm::SplitBlockAndInsertIfThen(go, rest, false, ir_.likely);
    slice_end->setDebugLoc(location_);
    at(slice_end);
    distance_ = cell_load(kCellDistance);
    for (const PrefetchSlice& slice : work_.slices) emit_slice(slice);
    emit_countdown(llvm::ConstantInt::get(ir_.i32, 1), rest, nullptr);
  }

  // Once a strip.
  void emit_in_strips(Backedges backedges) {
    const Strips strips =
        make_strips(*work_.loop, backedges, location_, [&](llvm::IRBuilder<>& head) -> StripChoice {
          b_.SetInsertPoint(head.GetInsertBlock());
          b_.SetCurrentDebugLocation(location_);
          // Negative if another thread of this cell has just ended its strip.
          Value* const countdown = cell_load(kCellCountdown);
          Value* const most =
              b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, countdown, int32(kShortestStrip - 1));
          Value* const enabled = b_.CreateIsNotNull(cell_load(kCellEnabled));
          return {.most_backedges = b_.CreateZExt(most, ir_.i64), .with = enabled};
        });
    at(strips.with_entry->getTerminator());
    load_lengths();
    if (!has_a_page()) {
      // Clamped loads read address 0, which must exist.
      Instruction* const rest = strips.with_entry->getTerminator();
      llvm::BasicBlock* const check = strips.with_entry;
      llvm::BasicBlock* const entry = check->splitBasicBlock(rest, "with.entry");
      check->getTerminator()->eraseFromParent();
      b_.SetInsertPoint(check);
      b_.SetCurrentDebugLocation(location_);
      b_.CreateCondBr(nothing_is_empty(), entry, strips.without_entry);
      at(rest);
    }
    distance_ = cell_load(kCellDistance);
    at(&*work_.loop->getHeader()->getFirstInsertionPt());
    for (const PrefetchSlice& slice : work_.slices) emit_slice(slice);
    // After the strip, so that what the countdown says has happened when its time is taken.
    Instruction* const end = strips.tail->getTerminator();
    at(end);
    emit_countdown(b_.CreateTrunc(strips.count, ir_.i32), end, &strips);
  }

 private:
  void at(Instruction* before) {
    b_.SetInsertPoint(before);
    b_.SetCurrentDebugLocation(location_);
  }
  Value* cell_load(int32_t offset) { return cell_.load(b_, offset); }
  Value* runtime_load(llvm::Type* type, Value* base, int64_t offset, bool invariant) {
    return cell_.runtime_load(b_, type, base, offset, invariant);
  }

  // Memory only grows: a length stays good.
  void load_lengths() {
    for (auto& [memory, length] : lengths_) {
      Value* const record =
          runtime_load(ir_.ptr, function_.getArg(0), ir_.layout.memory_record(memory), true);
      length = runtime_load(ir_.i64, record, offsetof(MemoryRecord, byte_length), false);
    }
  }
  // Asks about the memories that clamped loads read.
  bool has_a_page() const {
    return std::all_of(lengths_.begin(), lengths_.end(), [&](const auto& entry) {
      return entry.first < ir_.wasm.memories.size() && ir_.wasm.memories[entry.first].limits.min > 0;
    });
  }
  Value* nothing_is_empty() {
    Value* all = nullptr;
    for (const auto& [memory, length] : lengths_) {
      Value* const one = b_.CreateIsNotNull(length);
      all = all ? b_.CreateAnd(all, one) : one;
    }
    return all;
  }
  uint32_t memory_of(const llvm::LoadInst& load) const {
    const Value* base = llvm::getUnderlyingObject(load.getPointerOperand(), 0);
    return ir_.memory_of(base, function_.getArg(0)).value_or(0);
  }

  // Where the hinted loads will look, into the cell. In the block that ends strips; `strips`: those of a
  // counted loop, else the place is the loop's header.
  void emit_upcoming(const Strips* strips) {
    if (!has_a_page()) return;  // clamped loads need one, and a check costs more than it is worth
    Value* go = nullptr;
    if (strips) {
      load_lengths();
      next_ = &strips->next;
      go = b_.CreateICmpUGE(strips->left, llvm::ConstantInt::get(ir_.i64, kLeastTimedAhead));
      Value* const last = b_.CreateSub(strips->left, llvm::ConstantInt::get(ir_.i64, 1));
      distance_ = b_.CreateTrunc(
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, last, llvm::ConstantInt::get(ir_.i64, kTimedAhead)),
          ir_.i32);
    } else {
      distance_ = int32(kTimedAheadBlindly);
    }
    for (size_t i = 0; i < work_.slices.size(); ++i) {
      const PrefetchSlice& slice = work_.slices[i];
      const std::optional<uint32_t> slot = changes_.timed_slot(*work_.slots[i]);
      if (!slot) continue;
      std::map<Value*, Value*> clones;
      Value* place = b_.CreatePtrToInt(clone(slice.target->getPointerOperand(), slice, 1, clones), ir_.i64);
      if (go) place = b_.CreateSelect(go, place, llvm::ConstantInt::get(ir_.i64, 0));
      ir_.mark(b_.CreateAlignedStore(
                   place, cell_.field(b_, kCellUpcoming + static_cast<int32_t>(sizeof(uint64_t) * *slot)),
                   llvm::Align(8)),
               IrModule::World::kCells);
    }
    next_ = nullptr;
  }

  // Before `rest`.
  void emit_countdown(Value* iterations, Instruction* rest, const Strips* strips) {
    cell_.emit_countdown(iterations, rest, location_, [&](Instruction* before) {
      at(before);
      emit_upcoming(strips);
    });
  }

  // Emits one copy of the slice's computation for each level of missing loads. The last copy runs one
  // distance ahead, and finds what the copies before it, further ahead, had fetched in earlier iterations.
  void emit_slice(const PrefetchSlice& slice) {
    for (uint32_t level = slice.target_level; level >= 1; --level) {
      const uint32_t multiplier = slice.target_level - level + 1;
      for (const auto& [load, load_level] : slice.levels) {
        if (load_level != level || !done_.insert({load, multiplier}).second) continue;
        std::map<Value*, Value*> clones;
        Value* place = clone(load->getPointerOperand(), slice, multiplier, clones);
        if (!stays_near(*place)) {
          auto* const base = const_cast<Value*>(llvm::getUnderlyingObject(load->getPointerOperand(), 0));
          // A base that changes in the loop is none to measure from.
          if (const auto* made = llvm::dyn_cast<Instruction>(base); made && slice.loop->contains(made))
            continue;
          place = clamp(place, base, lengths_.at(memory_of(*load)));
        }
        b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {ir_.ptr}, {place, int32(0), int32(3), int32(1)});
      }
    }
  }

  Value* clone(const Value* original, const PrefetchSlice& slice, uint32_t multiplier,
               std::map<Value*, Value*>& clones) {
    auto* const value = const_cast<Value*>(original);
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !is_varying(instruction, slice)) return value;
    if (const auto found = clones.find(value); found != clones.end()) return found->second;
    Value* made = nullptr;
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
      if (const auto start = slice.starts.find(phi); start != slice.starts.end()) {
        made = clone(start->second, slice, multiplier, clones);
      } else {
        made = run_ahead(*phi, slice.steps.at(phi), multiplier);
      }
    } else {
      // Depth is bounded by the slice's length.
      std::vector<Value*> operands;
      for (Value* operand : instruction->operands())
        operands.push_back(clone(operand, slice, multiplier, clones));
      Instruction* const copy = instruction->clone();
      // What held for the original need not hold further ahead.
      copy->dropPoisonGeneratingFlags();
      copy->setMetadata("hindsight.position", nullptr);  // it is not the load that it copies
      copy->setDebugLoc(location_);
      for (unsigned i = 0; i < operands.size(); ++i) copy->setOperand(i, operands[i]);
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(copy);
      if (load && !ir_.is_of(*load, IrModule::World::kRuntime)) {
        load->setOperand(0, clamp(load->getPointerOperand(), *llvm::cast<llvm::LoadInst>(instruction)));
        load->setMetadata(llvm::LLVMContext::MD_range, nullptr);
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
        load->setMetadata(llvm::LLVMContext::MD_noundef, nullptr);
      }
      b_.Insert(copy);
      copy->setDebugLoc(location_);
      made = copy;
    }
    clones[value] = made;
    return made;
  }

  bool is_varying(Instruction* instruction, const PrefetchSlice& slice) const {
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction))
      return slice.steps.contains(phi) || slice.starts.contains(phi);
    return std::find(slice.operations.begin(), slice.operations.end(), instruction) != slice.operations.end();
  }

  Value* run_ahead(llvm::PHINode& phi, Value* step, uint32_t multiplier) {
    llvm::Type* const type = step->getType();
    Value* amount = b_.CreateZExtOrTrunc(distance_, type);
    amount = b_.CreateMul(amount, step);
    if (multiplier != 1) amount = b_.CreateMul(amount, llvm::ConstantInt::get(type, multiplier));
    Value* const from = next_ ? next_->at(&phi) : &phi;
    return phi.getType()->isPointerTy() ? b_.CreateGEP(ir_.i8, from, amount) : b_.CreateAdd(from, amount);
  }

  // Invariant: the result is readable for the load's bytes, whatever `place` is, because memory has at least
  // a page here. An unsigned comparison refuses places below the base as well. What LLVM made of the original
  // (a shift whose amount it knew to be small) may be poison further ahead. A load's address must not be
  // poison.
  Value* clamp(Value* place, llvm::LoadInst& original) {
    place = b_.CreateFreeze(place);
    Value* const base = llvm::getUnderlyingObject(original.getPointerOperand(), 0);
    const uint64_t bytes = function_.getParent()->getDataLayout().getTypeStoreSize(original.getType());
    Value* const offset = b_.CreateSub(b_.CreatePtrToInt(place, ir_.i64), b_.CreatePtrToInt(base, ir_.i64));
    Value* const length = lengths_.at(memory_of(original));
    Value* const last = b_.CreateSub(length, llvm::ConstantInt::get(ir_.i64, bytes));
    return b_.CreateSelect(b_.CreateICmpULE(offset, last), place, base);
  }

  // A prefetch faults nowhere, but outside the guest's memory it would fetch what is the host's. So it stays
  // in the memory too, or near it, where 32 bits of index lead.
  Value* clamp(Value* place, Value* base, Value* length) {
    Value* const offset = b_.CreateSub(b_.CreatePtrToInt(place, ir_.i64), b_.CreatePtrToInt(base, ir_.i64));
    return b_.CreateSelect(b_.CreateICmpULT(offset, length), place, base);
  }
  // A memory's base, an index of up to 32 bits, and offsets of as many: inside the reservation.
  bool stays_near(const Value& place) const {
    const Value* at = &place;
    bool has_index = false;
    while (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(at)) {
      if (!step->getSourceElementType()->isIntegerTy(8) || step->getNumIndices() != 1) return false;
      const Value* const index = step->getOperand(1);
      const llvm::KnownBits known = llvm::computeKnownBits(index, ir_.module.getDataLayout());
      if (known.countMaxActiveBits() > 32) return false;
      if (!llvm::isa<llvm::ConstantInt>(index) && std::exchange(has_index, true)) return false;
      at = step->getPointerOperand();
    }
    const std::optional<uint32_t> memory = ir_.memory_of(at, function_.getArg(0));
    // With 64-bit addresses a memory may have a smaller reservation.
    return memory && !ir_.wasm.memories[*memory].is64;
  }

  llvm::ConstantInt* int32(uint32_t value) { return llvm::ConstantInt::get(ir_.i32, value); }

  ChangeSet& changes_;
  IrModule& ir_;
  llvm::Function& function_;
  LoopWork& work_;
  llvm::IRBuilder<> b_;
  CellCode cell_;
  llvm::DebugLoc location_;
  std::map<uint32_t, Value*> lengths_;  // of the memories that clamped loads read
  Value* distance_ = nullptr;
  const std::map<llvm::PHINode*, Value*>* next_ = nullptr;  // in place of the header's phis
  std::set<std::pair<const llvm::LoadInst*, uint32_t>> done_;
};

std::string count_of(size_t count, const char* what) {
  std::string text = std::to_string(count);
  text.append(" ").append(what);
  if (count != 1) text.push_back('s');
  return text;
}

std::string describe(const PrefetchSlice& slice) {
  std::string text =
      count_of(slice.loads, "load").append(", ").append(count_of(slice.operations.size(), "operation"));
  if (slice.loads > 0) text.append(", clamped");
  if (slice.target_level > 1) text.append(", in ").append(count_of(slice.target_level, "stage"));
  if (!slice.starts.empty()) text.append(", first element of an inner loop");
  return text;
}

// The value that clamps measure from must be there, and not a phi of two memories.
bool has_one_base(const IrModule& ir, const PrefetchSlice& slice) {
  for (const Instruction* operation : slice.operations) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(operation);
    if (!load) continue;
    const Value* base = llvm::getUnderlyingObject(load->getPointerOperand(), 0);
    if (ir.is_of(*load, IrModule::World::kRuntime)) continue;
    // What a pass keeps in the frame, as searches that are interleaved do, is not the guest's.
    if (llvm::isa<llvm::AllocaInst>(base)) return false;
    const auto* instruction = llvm::dyn_cast<Instruction>(base);
    if (instruction && slice.loop->contains(instruction)) return false;
    if (ir.wasm.memories.size() > 1 && !ir.memory_of(base, load->getFunction()->getArg(0))) return false;
  }
  return true;
}

// Does the loop's length come from memory anew for each iteration of the loop around it, as a sparse row's or
// a bucket's does? Such loops are short, and entering two copies of them by strips costs more than a prefetch
// in them returns. Measured: 0.82x-0.98x on rows of 8. A loop around them may still carry the slice. Two
// versions of the loop around, with prefetches in the short one that run on into the next row, lose as well.
// Rows already keep as many misses under way as the core can have (measured: 3 % to 11 % on spmv and
// pagerank).
bool length_is_looked_up(const llvm::Loop& loop) {
  const llvm::Loop* around = loop.getParentLoop();
  if (!around) return false;
  llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
  loop.getExitingBlocks(exiting);
  constexpr size_t kEnough = 64;
  LoopWalk walk(*around, kEnough);
  for (const llvm::BasicBlock* block : exiting) {
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (branch && branch->isConditional()) walk.add(branch->getCondition());
  }
  while (const Instruction* const instruction = walk.next()) {
    if (!llvm::isa<llvm::LoadInst>(instruction))
      walk.follow(*instruction);
    else if (!loop.contains(instruction))
      return true;
    // Else a search or a chain, not a counted row.
  }
  return false;
}

}  // namespace

llvm::PreservedAnalyses PrefetchPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  ChangeSet& changes = *changes_;
  IrModule& ir = changes.ir;
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  // The loads are found below; what kept them apart until now has done its work.
  remove_temporary_users(function);
  std::vector<LoopWork> works;
  for (Slot& slot : changes.of(ChangeKind::kPrefetch)) {
    if (slot.answer.waits()) continue;
    for (Instruction& instruction : llvm::instructions(function)) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (!load || load->isVolatile() || ir.is_of(*load, IrModule::World::kRuntime)) continue;
      const llvm::DILocation* const position = ir.position_of(*load);
      if (!position || position->getLine() != slot.at().value) continue;
      auto slice = find_prefetch_slice(ir, *load, loops, evolution, slot.setting());
      if (slice && !has_one_base(ir, *slice))
        slice = std::unexpected("the address is not based on one memory");
      LoopPlace place{.loop = slot.at(), .around = {}, .loads = {}};
      if (slice) {
        place = place_of(ir, *load, slot.at(), loops, *slice->loop);
        // An OSR entry's copy of the loop stands outside the loop around it and cannot tell: the whole
        // function, which came first, has.
        if (length_is_looked_up(*slice->loop)) changes.short_loops.insert(place.loop.value);
        if (changes.short_loops.contains(place.loop.value))
          slice = std::unexpected(
              "the trip count is loaded for each iteration of the loop around it: too short to pay");
      }
      if (!slice) {
        slot.refuse(slice.error());
        continue;
      }
      const auto claim = changes.claim(slot, place);
      if (!claim) {
        slot.wait(claim.error());
        continue;
      }
      if (!slot.answer.is_applied()) {
        slot.apply(*claim, describe(*slice));
        slot.answer.slice_loads = slice->loads;
        slot.answer.operations = static_cast<uint32_t>(slice->operations.size());
      }
      auto work = std::ranges::find(works, slice->loop, &LoopWork::loop);
      if (work == works.end()) {
        works.push_back({.loop = slice->loop, .claim = *claim, .slices = {}, .slots = {}});
        work = std::prev(works.end());
      }
      work->slices.push_back(std::move(*slice));
      work->slots.push_back(&slot);
    }
  }
  if (works.empty()) return llvm::PreservedAnalyses::none();
  // Trip counts come first, while the analyses are true. Strips are next, which need the analyses no more but
  // for the loops' own blocks. The rest comes last: outer and inner loops may both have work.
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  std::vector<Backedges> backedges;
  for (const LoopWork& work : works)
    backedges.push_back(
        emit_backedges(*work.loop, dominators, evolution, loop_location(ir, function, work.claim.loop())));
  for (const bool in_strips : {true, false}) {
    for (size_t i = 0; i < works.size(); ++i) {
      LoopWork& work = works[i];
      if ((backedges[i].count != nullptr) != in_strips) continue;
      uint32_t cell = 0;  // the same for all slots of a loop
      for (Slot* slot : work.slots) cell = changes.cell_of(work.claim, *slot);
      Emitter emitter(changes, function, work, cell);
      if (in_strips) {
        emitter.emit_in_strips(backedges[i]);
      } else {
        emitter.emit_in_loop();
      }
    }
  }
  return llvm::PreservedAnalyses::none();
}

void add_prefetch(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  passes.addPass(PrefetchPass(changes));
  // Dead counters that a strip carries to the next only ADCE sees as dead.
  passes.addPass(llvm::ADCEPass());
}

}  // namespace hindsight::jit::optimizing
