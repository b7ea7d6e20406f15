#include "jit/optimizing/changes/interleave/interleave_pass.h"

#include <fmt/format.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <algorithm>
#include <expected>
#include <memory>
#include <span>
#include <utility>

#include "jit/optimizing/changes/fetch_text.h"
#include "jit/optimizing/changes/interleave/chased_loops.h"
#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/changes/interleave/interleave_code.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/changes/interleave/interleave_shape.h"
#include "jit/optimizing/changes/interleave/iteration_run.h"
#include "jit/optimizing/changes/prefetch/prefetch_slice.h"
#include "jit/optimizing/versions/cell_code.h"
#include "jit/optimizing/versions/loop_exits.h"
#include "jit/optimizing/versions/loop_versions.h"
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

bool has_nodes(const InterleaveStarts& starts) {
  return std::ranges::any_of(starts.steps,
                             [](const KnownLoad& known) { return !known.rest_of_node.empty(); });
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
  std::string text = fmt::format("a dry run of searches of {} operations a step", shape.step_instructions);
  if (!shape.within.empty()) text += ", turns of loops within among them";
  if (!shape.far.empty()) text += ", heads first";
  if (!shape.at_place.empty()) text += ", with words of memory beside it";
  if (!shape.buffers.empty()) text += ", with bytes of memory beside it";
  if (has_nodes(shape.starts)) text += ", at whole nodes";
  const bool guesses_calls = std::ranges::any_of(
      shape.guesses, [&](const auto& guess) { return shape.unknown.contains(guess.first); });
  if (guesses_calls)
    text += ", which guesses what calls return";
  else if (!shape.guesses.empty())
    text += ", past what it does not go on with";
  return text + ", as " + not_at_once;
}

std::string describe(const IterationRunShape& shape, const std::string& not_at_once) {
  std::string text =
      fmt::format("a dry run of whole iterations, which wait in {} places", shape.waits.size());
  if (!shape.common.at_place.empty()) text += ", with words of memory beside it";
  if (!shape.common.buffers.empty()) text += ", with bytes of memory beside it";
  if (!shape.nodes.with.empty()) text += ", at whole nodes";
  return text + ", as " + not_at_once;
}

class Interleaver {
 public:
  Interleaver(ChangeSet& changes, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : changes_(changes), ir_(changes.ir), function_(function), analyses_(analyses) {}

  bool run() {
    for (Slot& slot : changes_.of(ChangeKind::kInterleave))
      for (llvm::LoadInst* load : loads_of(ir_, function_, slot.at())) try_load(*load, slot);
    if (changed_) follow_later_ones();
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
    if (chases.empty()) {
      const char* const why = "the address does not depend on an earlier iteration's load";
      if (!run_any_iterations(load, slot, why)) slot.refuse(why);
      return;
    }
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
    if (!run_any_iterations(load, slot, reason)) slot.refuse(reason);
  }

  // Loads that nothing could be done about, in loops that a later slot's load was reason enough to interleave: they share what comes
  // of it, and are tried again if they stall more.
  void follow_later_ones() {
    for (Slot& slot : changes_.of(ChangeKind::kInterleave)) {
      if (slot.answer.is_applied() || slot.answer.waits()) continue;
      for (llvm::LoadInst* load : loads_of(ir_, function_, slot.at()))
        if (load->getMetadata(kInterleaved) != nullptr) try_load(*load, slot);
    }
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
    InterleaveStarts starts = find_interleave_starts(ir_, *shape, dominators, evolution);
    std::vector<KnownLoad*> steps;
    for (KnownLoad& known : starts.steps) steps.push_back(&known);
    add_node_lines(
        ir_, loops, dominators, *shape->outer, [this](const llvm::LoadInst& other) { return stalls(other); },
        steps);
    const auto cell = claim(slot, place, *shape->outer, [&] {
      return describe(ir_, *shape) + (has_nodes(starts) ? ", at whole nodes" : "");
    });
    if (!cell) return {};
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
    auto shape = find_dry_run_shape(
        ir_, load, chase, [this](const llvm::LoadInst& other) { return stalls(other); }, loops, dominators,
        analyses_.getResult<llvm::PostDominatorTreeAnalysis>(function_), evolution);
    if (!shape) return shape.error();
    const LoopPlace place = place_in(load, slot, loops, *shape->parts.outer);
    if (const std::string why = prefetched_instead(load, place, *shape); !why.empty()) {
      slot.wait(why);
      return {};
    }
    if (run_iterations_instead(load, slot, *shape)) return {};
    const auto cell = claim(slot, place, *shape->parts.outer, [&] { return describe(*shape, not_at_once); });
    if (!cell) return {};
    emit_dry_run(ir_, function_, *shape, loops, evolution, *cell, loop_location(ir_, function_, place.loop));
    has_changed();
    return {};
  }

  // Iterations that wait outside of these searches too, elsewhere than at a first load which heads fetch.
  bool run_iterations_instead(llvm::LoadInst& load, Slot& slot, const DryRunShape& searches) {
    auto& loops = analyses_.getResult<llvm::LoopAnalysis>(function_);
    const auto& shape = iterations_of(*searches.parts.outer);
    if (!shape || !is_worth_it(*searches.parts.outer)) return false;
    const bool waits_elsewhere = llvm::any_of(shape->waits, [&](const llvm::LoadInst* wait) {
      const bool is_first =
          searches.far.contains(wait) && loops.getLoopFor(wait->getParent()) == searches.parts.outer;
      return !is_first && !searches.parts.in_steps.contains(wait->getParent());
    });
    return waits_elsewhere && run_iterations(load, slot, *shape, "they wait beside their searches");
  }
  // Of a loop around, the innermost one that can. Not where a prefetch finds the load in time.
  bool run_any_iterations(llvm::LoadInst& load, Slot& slot, const std::string& instead_of) {
    if (is_prefetched(load, slot.at())) return false;
    for (llvm::Loop* outer = analyses_.getResult<llvm::LoopAnalysis>(function_).getLoopFor(load.getParent());
         outer; outer = outer->getParentLoop()) {
      const auto& shape = iterations_of(*outer);
      if (shape && shape->is_waited_for(load) && is_worth_it(*outer)) {
        const bool has_rival = may_prefetch_in(*outer);
        run_iterations(load, slot, *shape, instead_of);
        slot.answer.has_rival = has_rival && slot.answer.is_applied();
        return true;
      }
    }
    return false;
  }
  // Whether that finds a load in time, or in a copy of its loop: LLVM has a loop twice where a divisor that stays might be 0, and knows
  // nothing about how long a copy runs that never does.
  bool is_prefetched(llvm::LoadInst& load, WasmOffset at) {
    if (finds_in_time(slice_of(load))) return true;
    const auto& loops = analyses_.getResult<llvm::LoopAnalysis>(function_);
    const llvm::Loop* const own = loops.getLoopFor(load.getParent());
    return llvm::any_of(loads_of(ir_, function_, at), [&](llvm::LoadInst* copy) {
      const llvm::Loop* const its = loops.getLoopFor(copy->getParent());
      return its != nullptr && !its->contains(own) && !own->contains(its) &&
             place_of(ir_, *copy, at, loops, *its).loop == place_of(ir_, load, at, loops, *own).loop &&
             finds_in_time(slice_of(*copy));
    });
  }
  // Without a guess at what a search finds, or at which way a branch goes.
  bool finds_in_time(const std::expected<PrefetchSlice, std::string>& slice) {
    return slice && !ends_before(*slice) && !guesses_a_way(*slice) &&
           !guesses_what_is_found(*slice, analyses_.getResult<llvm::LoopAnalysis>(function_));
  }
  // Whether the loop mostly ends before it comes to what is prefetched in it, as one that probes a hash table.
  static bool ends_before(const PrefetchSlice& slice) {
    const double turns = expected_turns(*slice.loop);
    return turns != 0 && turns < kTurnsOfAPrefetch && !slice.runs_on;
  }
  const std::expected<IterationRunShape, std::string>& iterations_of(llvm::Loop& outer) {
    const auto found = iterations_.find(&outer);
    if (found != iterations_.end()) return found->second;
    const double most = largest_share_in(outer);
    const auto stall_of_most = [&](const llvm::LoadInst& load) {
      const Slot* const slot = slot_of(load);
      if (slot == nullptr) return 0.0;
      return most > 0 ? slot->request.weight / most : 1.0;
    };
    return iterations_
        .emplace(&outer, find_iteration_run_shape(
                             ir_, outer, stall_of_most, analyses_.getResult<llvm::LoopAnalysis>(function_),
                             analyses_.getResult<llvm::DominatorTreeAnalysis>(function_),
                             analyses_.getResult<llvm::PostDominatorTreeAnalysis>(function_),
                             analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_)))
        .first->second;
  }
  bool stalls(const llvm::LoadInst& load) const { return slot_of(load) != nullptr; }
  const Slot* slot_of(const llvm::LoadInst& load) const {
    const llvm::DILocation* const position = ir_.position_of(load);
    if (!position) return nullptr;
    const std::span<const Slot> slots = std::as_const(changes_).of(ChangeKind::kInterleave);
    const auto found =
        llvm::find_if(slots, [&](const Slot& slot) { return slot.at().value == position->getLine(); });
    return found == slots.end() ? nullptr : &*found;
  }
  // Of the loads that are asked for.
  double largest_share_in(const llvm::Loop& outer) const {
    const std::set<WasmOffset> loads = loads_in(outer);
    double most = 0;
    for (const Slot& slot : std::as_const(changes_).of(ChangeKind::kInterleave))
      if (loads.contains(slot.at())) most = std::max(most, slot.request.weight);
    return most;
  }
  // What they need is executed up to three times. Where little is waited for that cannot pay.
  bool is_worth_it(const llvm::Loop& outer) {
    const std::set<WasmOffset> loads = loads_in(outer);
    double waits = 0;
    for (const Slot& slot : changes_.of(ChangeKind::kInterleave))
      if (loads.contains(slot.at())) waits += slot.request.weight;
    return waits == 0 || waits >= kLeastWaitsOfIterations;
  }
  bool run_iterations(llvm::LoadInst& load, Slot& slot, IterationRunShape shape,
                      const std::string& instead_of) {
    auto& loops = analyses_.getResult<llvm::LoopAnalysis>(function_);
    const LoopPlace place = place_in(load, slot, loops, *shape.common.parts.outer);
    const auto cell =
        claim(slot, place, *shape.common.parts.outer, [&] { return describe(shape, instead_of); });
    if (cell) {
      emit_iteration_run(ir_, function_, shape, loops,
                         analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_), *cell,
                         loop_location(ir_, function_, place.loop));
      has_changed();
    }
    return true;
  }
  std::expected<PrefetchSlice, std::string> slice_of(llvm::LoadInst& load) {
    return find_prefetch_slice(ir_, load, analyses_.getResult<llvm::LoopAnalysis>(function_),
                               analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_),
                               traits_of(ChangeKind::kPrefetch).knob.first);
  }

  // Whether loads of the loop could be prefetched that this is asked for, if by a guess.
  bool may_prefetch_in(const llvm::Loop& outer) {
    const std::set<WasmOffset> loads = loads_in(outer);
    return std::ranges::any_of(changes_.of(ChangeKind::kPrefetch), [&](const Slot& slot) {
      return loads.contains(slot.at()) &&
             std::ranges::any_of(loads_of(ir_, function_, slot.at()), [&](llvm::LoadInst* load) {
               return outer.contains(load) && slice_of(*load).has_value();
             });
    });
  }

  // Why the search waits for a prefetch; empty: it does not. A prefetch finds a search's first step without executing it twice,
  // and all that may be its next step. The next searches of a heap go through what this one moves.
  std::string prefetched_instead(llvm::LoadInst& load, const LoopPlace& place, const DryRunShape& shape) {
    const auto its = changes_.of(ChangeKind::kPrefetch);
    const bool asked =
        std::ranges::any_of(its, [&](const Slot& other) { return place.loads.contains(other.at()); });
    const double steps = expected_turns(*shape.parts.chase);
    const bool is_short = steps != 0 && steps < kStepsOfADryRun;
    const bool moves = stores(*shape.parts.chase);
    if (!asked || (!is_short && !moves)) return {};
    const auto slice = slice_of(load);
    if (slice && slice->forks)
      return moves ? "both ways of a search that moves what it passes are prefetched instead" : "";
    return is_short && finds_first_step(shape) ? "searches of a step or two are prefetched instead" : "";
  }
  // Whether a prefetch that is asked for fetches what a search's first step loads. What else that step loads is near it.
  bool finds_first_step(const DryRunShape& shape) {
    return std::ranges::any_of(changes_.of(ChangeKind::kPrefetch), [&](const Slot& slot) {
      return std::ranges::any_of(loads_of(ir_, function_, slot.at()), [&](llvm::LoadInst* first) {
        if (!shape.parts.chase->contains(first)) return false;
        const auto slice = slice_of(*first);
        return slice && !slice->forks && slice->loop == shape.parts.outer;
      });
    });
  }
  static bool stores(const llvm::Loop& loop) {
    return llvm::any_of(loop.blocks(), [](const llvm::BasicBlock* block) {
      return llvm::any_of(*block, [](const llvm::Instruction& instruction) {
        return llvm::isa<llvm::StoreInst>(instruction);
      });
    });
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
    iterations_.clear();
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
  std::map<const llvm::Loop*, std::expected<IterationRunShape, std::string>>
      iterations_;  // as long as analyses are good
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
  add_fetch_text(passes, changes);
  passes.addPass(UnparkExitsPass(changes.ir, parked, [&changes] { return changes.has_regrouped_searches; }));
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
}

}  // namespace hindsight::jit::optimizing
