#include "jit/optimizing/changes/interleave/interleave_pass.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <algorithm>
#include <memory>

#include "jit/optimizing/changes/interleave/interleave_code.h"
#include "jit/optimizing/changes/interleave/interleave_shape.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_exits.h"
#include "jit/optimizing/versions/strips.h"

namespace hindsight::jit::optimizing {
namespace {

// On the loads of a loop that was interleaved, in all its copies: the wasm loop.
constexpr const char* kInterleaved = "hindsight.interleaved";

void mark_interleaved(const IrModule& ir, const llvm::Loop& loop, WasmOffset wasm_loop) {
  llvm::MDNode* const mark = llvm::MDNode::get(
      ir.context, llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(ir.i32, wasm_loop.value)));
  for (llvm::BasicBlock* block : loop.blocks())
    for (llvm::Instruction& instruction : *block)
      if (llvm::isa<llvm::LoadInst>(instruction)) instruction.setMetadata(kInterleaved, mark);
}

// The loads that a hint means: copies of one wasm load.
std::vector<llvm::LoadInst*> loads_of(const IrModule& ir, llvm::Function& function, WasmOffset offset) {
  std::vector<llvm::LoadInst*> loads;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (!load || ir.is_of(*load, IrModule::World::kRuntime)) continue;
    const llvm::DILocation* const position = ir.position_of(*load);
    if (position && position->getLine() == offset.value) loads.push_back(load);
  }
  return loads;
}

std::string describe(const IrModule& ir, const InterleaveShape& shape) {
  size_t step = 0;
  for (const llvm::BasicBlock* block : shape.steps) step += block->size();
  std::string text = "searches of " + std::to_string(step) + " operations a step";
  if (!shape.reductions.empty()) text += ", with a reduction";
  if (const unsigned lanes = search_lanes(ir, shape); lanes != 0)
    text += ", " + std::to_string(lanes) + " lanes in a vector";
  return text;
}

class Interleaver {
 public:
  Interleaver(ChangeSet& changes, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : changes_(changes), ir_(changes.ir), function_(function), analyses_(analyses) {}

  bool run() {
    for (Slot& slot : changes_.of(ChangeKind::kInterleave))
      for (llvm::LoadInst* load : loads_of(ir_, function_, slot.at())) try_load(*load, slot);
    return changed_;
  }

 private:
  void try_load(llvm::LoadInst& load, Slot& slot) {
    if (load.getMetadata(kInterleaved) != nullptr) {
      if (slot.answer.is_applied()) return;
      const auto* loop =
          llvm::mdconst::extract<llvm::ConstantInt>(load.getMetadata(kInterleaved)->getOperand(0));
      const LoopPlace place{
          .loop = WasmOffset(static_cast<uint32_t>(loop->getZExtValue())), .around = {}, .loads = {}};
      if (const auto claim = changes_.claim(slot, place)) changes_.follow(slot, *claim, kFollows);
      return;
    }
    auto& loops = analyses_.getResult<llvm::LoopAnalysis>(function_);
    auto& dominators = analyses_.getResult<llvm::DominatorTreeAnalysis>(function_);
    auto& evolution = analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_);
    auto shape = find_interleave_shape(ir_, load, loops, dominators, evolution);
    Backedges backedges;
    LoopPlace place{.loop = slot.at(), .around = {}, .loads = {}};
    if (shape) {
      place = place_of(ir_, load, slot.at(), loops, *shape->outer);
      backedges = emit_latch_backedges(*shape->outer, evolution, loop_location(ir_, function_, place.loop));
      if (!backedges.count) shape = std::unexpected("the number of searches is not known before they begin");
    }
    if (!shape) return slot.refuse(shape.error());
    place.loads = loads_in(*shape->outer);
    const auto claim = changes_.claim(slot, place);
    if (!claim) return slot.wait(claim.error());
    if (!slot.answer.is_applied()) slot.apply(*claim, describe(ir_, *shape));
    const uint32_t cell = changes_.cell_of(*claim, slot);
    // All loads of the loop share the change, also those that have not stalled yet.
    for (const WasmOffset other : in_order_of_code(*shape->outer))
      if (const Site site{ChangeKind::kInterleave, other}; !changes_.is_known(site))
        changes_.add_follower(site, *claim, cell, kFollows);
    mark_interleaved(ir_, *shape->outer, place.loop);
    const InterleaveStarts starts = find_interleave_starts(ir_, *shape, dominators, evolution);
    emit_interleaved(ir_, function_, *shape, starts, backedges.count, cell,
                     loop_location(ir_, function_, place.loop));
    changed_ = true;
    analyses_.invalidate(function_, llvm::PreservedAnalyses::none());
  }

  // The program's loads in a loop.
  std::vector<WasmOffset> in_order_of_code(const llvm::Loop& loop) const {
    std::vector<WasmOffset> loads;
    for (const llvm::BasicBlock* block : loop.blocks()) {
      for (const llvm::Instruction& instruction : *block) {
        const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        const llvm::DILocation* const position =
            load && !ir_.is_of(*load, IrModule::World::kRuntime) ? ir_.position_of(*load) : nullptr;
        if (position && position->getLine() != 0) loads.emplace_back(position->getLine());
      }
    }
    return loads;
  }
  std::set<WasmOffset> loads_in(const llvm::Loop& loop) const {
    const std::vector<WasmOffset> loads = in_order_of_code(loop);
    return {loads.begin(), loads.end()};
  }

  static constexpr std::string_view kFollows = "interleaved with the other loads of its search";

  ChangeSet& changes_;
  IrModule& ir_;
  llvm::Function& function_;
  llvm::FunctionAnalysisManager& analyses_;
  bool changed_ = false;
};

}  // namespace

llvm::PreservedAnalyses InterleavePass::run(llvm::Function& function,
                                            llvm::FunctionAnalysisManager& analyses) {
  if (!changes_->asks_for(ChangeKind::kInterleave)) return llvm::PreservedAnalyses::all();
  remove_temporary_users(function);
  return Interleaver(*changes_, function, analyses).run() ? llvm::PreservedAnalyses::none()
                                                          : llvm::PreservedAnalyses::all();
}

void add_interleave(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  const auto parked = std::make_shared<ParkedExits>();
  passes.addPass(ParkExitsPass(parked));
  passes.addPass(InterleavePass(changes));
  passes.addPass(UnparkExitsPass(changes.ir, parked, [&changes] { return changes.has_interleaved(); }));
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
}

}  // namespace hindsight::jit::optimizing
