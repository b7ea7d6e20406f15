#include "jit/optimizing/changes/prefetch/prefetch_pass.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Scalar/ADCE.h>

#include <algorithm>

#include "jit/optimizing/changes/prefetch/prefetch_code.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

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
  if (!slice.choices.empty()) text.append(", both ways of a branch");
  if (!slice.ways.empty()) text.append(", one way of a branch");
  if (!slice.delayed.empty()) text.append(", as the iteration before computes it");
  if (!slice.recurrences.next.empty())
    text.append(", ").append(count_of(slice.recurrences.next.size(), "recurrence"));
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
// a bucket's does?
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

// A load or store of the guest's.
bool may_stall(const IrModule& ir, const Instruction& instruction) {
  return llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction) && !instruction.isVolatile() &&
         !ir.is_of(instruction, IrModule::World::kRuntime) && !ir.is_of(instruction, IrModule::World::kCells);
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
      if (!may_stall(ir, instruction)) continue;
      const llvm::DILocation* const position = ir.position_of(instruction);
      if (!position || position->getLine() != slot.at().value) continue;
      auto slice = find_prefetch_slice(ir, instruction, loops, evolution, slot.setting());
      if (slice && !has_one_base(ir, *slice))
        slice = std::unexpected("the address is not based on one memory");
      if (!slice) {
        slot.refuse(slice.error());
        continue;
      }
      const LoopPlace place = place_of(ir, instruction, slot.at(), loops, *slice->loop);
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
      // An OSR entry's copy of the loop stands outside the loop around it and cannot tell: the whole function,
      // which came first, has.
      if (length_is_looked_up(*slice->loop)) changes.short_loops.insert(place.loop.value);
      auto work = std::ranges::find(works, slice->loop, &LoopWork::loop);
      if (work == works.end()) {
        works.push_back({.loop = slice->loop,
                         .claim = *claim,
                         .has_rows = changes.short_loops.contains(place.loop.value),
                         .slices = {},
                         .slots = {}});
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
      emit_prefetches(changes, function, work, cell, backedges[i]);
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
