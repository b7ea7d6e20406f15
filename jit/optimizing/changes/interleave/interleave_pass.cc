#include "jit/optimizing/changes/interleave/interleave_pass.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <algorithm>
#include <memory>

#include "jit/optimizing/changes/interleave/chased_loops.h"
#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/changes/interleave/interleave_code.h"
#include "jit/optimizing/changes/interleave/interleave_shape.h"
#include "jit/optimizing/changes/prefetch/prefetch_slice.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_exits.h"
#include "jit/optimizing/versions/loop_versions.h"
#include "jit/optimizing/versions/strips.h"

namespace hindsight::jit::optimizing {
namespace {

// On the loads of a loop that was interleaved, in all its copies: the wasm loop.
constexpr const char* kInterleaved = "hindsight.interleaved";

// Of a search. In fewer, a dry run costs more than it saves beyond a prefetch of the first.
constexpr double kStepsOfADryRun = 2;

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

std::string describe(const DryRunShape& shape, const std::string& not_at_once) {
  size_t step = 0;
  for (const llvm::BasicBlock* block : shape.parts.steps) step += block->size();
  std::string text = "a dry run of searches of " + std::to_string(step) + " operations a step";
  if (!shape.within.empty()) text += ", turns of loops within among them";
  if (!shape.far.empty()) text += ", heads first";
  if (!shape.at_place.empty()) text += ", with words of memory beside it";
  if (!shape.buffers.empty()) text += ", with bytes of memory beside it";
  if (!shape.guesses.empty()) text += ", which guesses what calls return";
  return text + ", as " + not_at_once;
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
    if (!loops.getLoopFor(load.getParent())) return slot.refuse("it is in no loop");
    const std::vector<llvm::Loop*> chases = chased_loops(ir_, load, loops);
    if (chases.empty()) return slot.refuse("the address does not depend on an earlier iteration's load");
    std::vector<std::string> not_at_once;
    for (llvm::Loop* chase : chases) {
      not_at_once.push_back(run_at_once(load, slot, *chase));
      if (not_at_once.back().empty()) return;
    }
    std::string reason;
    for (size_t i = 0; i < chases.size(); ++i) {
      const std::string why = run_dry(load, slot, *chases[i], not_at_once[i]);
      if (why.empty()) return;
      if (reason.empty()) reason = why;
    }
    slot.refuse(reason);
  }

  // Returns why not; empty: this is done with.
  std::string run_at_once(llvm::LoadInst& load, Slot& slot, llvm::Loop& chase) {
    auto& loops = analyses_.getResult<llvm::LoopAnalysis>(function_);
    auto& dominators = analyses_.getResult<llvm::DominatorTreeAnalysis>(function_);
    auto& evolution = analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_);
    const auto shape = find_interleave_shape(ir_, load, chase, loops, dominators, evolution);
    if (!shape) return shape.error();
    const LoopPlace place = place_in(load, slot, loops, *shape->outer);
    const llvm::DebugLoc location = loop_location(ir_, function_, place.loop);
    const Backedges backedges = emit_latch_backedges(*shape->outer, evolution, location);
    if (!backedges.count) return "the number of searches is not known before they begin";
    const auto cell = claim(slot, place, *shape->outer, [&] { return describe(ir_, *shape); });
    if (!cell) return {};
    const InterleaveStarts starts = find_interleave_starts(ir_, *shape, dominators, evolution);
    emit_interleaved(ir_, function_, *shape, starts, backedges.count, *cell, location);
    changes_.has_regrouped_searches = true;
    has_changed();
    return {};
  }

  // The same, since they cannot go at once.
  std::string run_dry(llvm::LoadInst& load, Slot& slot, llvm::Loop& chase, const std::string& not_at_once) {
    auto& loops = analyses_.getResult<llvm::LoopAnalysis>(function_);
    auto& dominators = analyses_.getResult<llvm::DominatorTreeAnalysis>(function_);
    auto& evolution = analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_);
    auto shape = find_dry_run_shape(ir_, load, chase, loops, dominators, evolution);
    if (!shape) return shape.error();
    const LoopPlace place = place_in(load, slot, loops, *shape->parts.outer);
    if (is_prefetched_instead(load, place, *shape)) {
      slot.wait("searches of a step or two are prefetched instead");
      return {};
    }
    const auto cell = claim(slot, place, *shape->parts.outer, [&] { return describe(*shape, not_at_once); });
    if (!cell) return {};
    emit_dry_run(ir_, function_, *shape, loops, evolution, *cell, loop_location(ir_, function_, place.loop));
    has_changed();
    return {};
  }

  // A prefetch finds a search's first step at no such cost. Nor does it need the search to be executed twice.
  bool is_prefetched_instead(llvm::LoadInst& load, const LoopPlace& place, const DryRunShape& shape) {
    const double steps = expected_turns(*shape.parts.chase);
    if (steps == 0 || steps >= kStepsOfADryRun) return false;
    const auto its = changes_.of(ChangeKind::kPrefetch);
    const bool asked =
        std::ranges::any_of(its, [&](const Slot& other) { return place.loads.contains(other.at()); });
    if (!asked) return false;
    auto& loops = analyses_.getResult<llvm::LoopAnalysis>(function_);
    auto& evolution = analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_);
    const auto slice =
        find_prefetch_slice(ir_, load, loops, evolution, traits_of(ChangeKind::kPrefetch).knob.first);
    return slice && slice->loop == shape.parts.outer;
  }

  LoopPlace place_in(const llvm::LoadInst& load, const Slot& slot, const llvm::LoopInfo& loops,
                     const llvm::Loop& outer) const {
    LoopPlace place = place_of(ir_, load, slot.at(), loops, outer);
    place.loads = loads_in(outer);
    return place;
  }

  // The loop's cell, if it is to be had. All its loads share the change, also those that have not stalled yet.
  template <typename Describe>
  std::optional<uint32_t> claim(Slot& slot, const LoopPlace& place, const llvm::Loop& outer,
                                const Describe& describe) {
    const auto claim = changes_.claim(slot, place);
    if (!claim) {
      slot.wait(claim.error());
      return std::nullopt;
    }
    if (!slot.answer.is_applied()) slot.apply(*claim, describe());
    const uint32_t cell = changes_.cell_of(*claim, slot);
    for (const WasmOffset other : in_order_of_code(outer))
      if (const Site site{ChangeKind::kInterleave, other}; !changes_.is_known(site))
        changes_.add_follower(site, *claim, cell, kFollows);
    mark_interleaved(ir_, outer, place.loop);
    return cell;
  }

  void has_changed() {
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
  passes.addPass(UnparkExitsPass(changes.ir, parked, [&changes] { return changes.has_regrouped_searches; }));
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
}

}  // namespace hindsight::jit::optimizing
