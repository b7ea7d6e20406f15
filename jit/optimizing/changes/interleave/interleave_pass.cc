#include "jit/optimizing/changes/interleave/interleave_pass.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>

#include <algorithm>

#include "jit/optimizing/changes/interleave/interleave_code.h"
#include "jit/optimizing/changes/interleave/interleave_shape.h"
#include "jit/optimizing/versions/cell_code.h"
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
  if (!shape.reductions.empty()) text += ", with a sum of their own";
  if (const unsigned lanes = search_lanes(ir, shape); lanes != 0)
    text += ", " + std::to_string(lanes) + " in a vector";
  return text;
}

class Interleaver {
 public:
  Interleaver(PrefetchPlan& plan, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : plan_(plan), function_(function), analyses_(analyses) {}

  bool run() {
    const size_t end = plan_.hints.size() + plan_.interleaves.size();
    for (size_t site = plan_.hints.size(); site < end; ++site)
      for (llvm::LoadInst* load : loads_of(plan_.ir, function_, plan_.sites[site].load))
        try_load(*load, site);
    return changed_;
  }

 private:
  void try_load(llvm::LoadInst& load, size_t site_index) {
    PrefetchSite& site = plan_.sites[site_index];
    if (const llvm::MDNode* done = load.getMetadata(kInterleaved)) {
      if (site.applied) return;
      const auto* loop = llvm::mdconst::extract<llvm::ConstantInt>(done->getOperand(0));
      site.applied = true;
      site.loop = WasmOffset(static_cast<uint32_t>(loop->getZExtValue()));
      follow(site_index);
      return;
    }
    auto& loops = analyses_.getResult<llvm::LoopAnalysis>(function_);
    auto& dominators = analyses_.getResult<llvm::DominatorTreeAnalysis>(function_);
    auto& evolution = analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_);
    auto shape = find_interleave_shape(plan_.ir, load, loops, dominators, evolution);
    Backedges backedges;
    const std::vector<WasmOffset> around = wasm_loops_around(plan_.ir.wasm, plan_.ir.position_of(load));
    WasmOffset wasm_loop = site.load;
    if (shape) {
      const size_t levels_up = loops.getLoopDepth(load.getParent()) - shape->outer->getLoopDepth();
      if (!around.empty()) wasm_loop = around[std::min(levels_up, around.size() - 1)];
      backedges =
          emit_latch_backedges(*shape->outer, evolution, loop_location(plan_.ir, function_, wasm_loop));
      if (!backedges.count) shape = std::unexpected("how many searches there are is not known before them");
    }
    if (!shape) {
      if (!site.applied) site.reason = shape.error();
      return;
    }
    if (!site.applied) {
      site.applied = true;
      site.loop = wasm_loop;
      site.reason = describe(plan_.ir, *shape);
    }
    const uint32_t cell = plan_.cell_of(wasm_loop, site_index);
    supersede_prefetches(*shape->outer);
    add_followers(*shape->outer, wasm_loop);
    mark_interleaved(plan_.ir, *shape->outer, wasm_loop);
    const InterleaveStarts starts = find_interleave_starts(plan_.ir, *shape, dominators, evolution);
    emit_interleaved(plan_.ir, function_, *shape, starts, backedges.count, cell,
                     loop_location(plan_.ir, function_, wasm_loop));
    changed_ = true;
    analyses_.invalidate(function_, llvm::PreservedAnalyses::none());
  }

  void follow(size_t site_index) {
    PrefetchSite& site = plan_.sites[site_index];
    site.follows = true;
    site.reason = "with the other loads of its search";
    plan_.cell_of(site.loop, site_index);
  }

  // All loads of the loop share the change, also those that have not stalled yet.
  void add_followers(const llvm::Loop& loop, WasmOffset wasm_loop) {
    for (const llvm::BasicBlock* block : loop.blocks()) {
      for (const llvm::Instruction& instruction : *block) {
        const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        const llvm::DILocation* const position =
            load && !plan_.ir.is_of(*load, IrModule::World::kRuntime) ? plan_.ir.position_of(*load) : nullptr;
        if (!position || position->getLine() == 0) continue;
        const WasmOffset offset(position->getLine());
        const bool known =
            std::any_of(plan_.sites.begin(), plan_.sites.end(), [&](const PrefetchSite& other) {
              return other.kind == ChangeKind::kInterleave && other.load == offset;
            });
        if (known) continue;
        PrefetchSite site;
        site.kind = ChangeKind::kInterleave;
        site.load = offset;
        site.loop = wasm_loop;
        site.applied = true;
        plan_.sites.push_back(std::move(site));
        follow(plan_.sites.size() - 1);
      }
    }
  }

  // One change of a loop at a time: prefetches in it would be judged with and without the other.
  void supersede_prefetches(const llvm::Loop& loop) {
    for (size_t i = 0; i < plan_.hints.size(); ++i) {
      PrefetchSite& site = plan_.sites[i];
      if (site.applied) continue;
      for (const llvm::LoadInst* load : loads_of(plan_.ir, function_, site.load)) {
        if (!loop.contains(load)) continue;
        site.superseded = true;
        site.reason = "its loop is interleaved instead";
      }
    }
  }

  PrefetchPlan& plan_;
  llvm::Function& function_;
  llvm::FunctionAnalysisManager& analyses_;
  bool changed_ = false;
};

}  // namespace

llvm::PreservedAnalyses InterleavePass::run(llvm::Function& function,
                                            llvm::FunctionAnalysisManager& analyses) {
  if (plan_->interleaves.empty()) return llvm::PreservedAnalyses::all();
  remove_temporary_users(function);
  return Interleaver(*plan_, function, analyses).run() ? llvm::PreservedAnalyses::none()
                                                       : llvm::PreservedAnalyses::all();
}

}  // namespace hindsight::jit::optimizing
