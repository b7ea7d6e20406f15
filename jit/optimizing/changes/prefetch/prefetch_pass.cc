#include "jit/optimizing/changes/prefetch/prefetch_pass.h"

#include <fmt/format.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>

#include <algorithm>

#include "jit/optimizing/changes/fetch_text.h"
#include "jit/optimizing/changes/prefetch/address_origins.h"
#include "jit/optimizing/changes/prefetch/prefetch_code.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/changes/prefetch/recursion_code.h"
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

std::string slice_words(const PrefetchSlice& slice) {
  if (slice.node)
    return "as soon as the node is known, with its other lines: " +
           count_of(slice.node->places.size(), "place");
  std::string text =
      count_of(slice.loads, "load").append(", ").append(count_of(slice.operations.size(), "operation"));
  if (slice.loads > 0) text.append(", clamped");
  if (slice.target_level > 1 && !slice.forks)
    text.append(", in ").append(count_of(slice.target_level, "stage"));
  if (slice.row)
    text.append(", first ")
        .append(count_of(elements_at_once(*slice.row), "element"))
        .append(" of a row, and the rest from within it");
  else if (!slice.starts.empty())
    text.append(", first element of an inner loop");
  if (!slice.choices.empty()) text.append(", both ways of a branch");
  const auto is_stored = [](const auto& way) { return llvm::isa<llvm::LoadInst>(way.first); };
  if (llvm::any_of(slice.ways, is_stored)) text.append(", what was stored before");
  if (!llvm::all_of(slice.ways, is_stored)) text.append(", one way of a branch");
  if (!slice.delayed.empty()) text.append(", as the iteration before computes it");
  if (slice.forks) text.append(", whichever way the iteration goes");
  if (!slice.recurrences.next.empty())
    text.append(", ").append(count_of(slice.recurrences.next.size(), "recurrence"));
  return text;
}

// Some way was taken that may not be gone. In a walk of several nodes that is a path nobody takes: what is known of a node is better.
bool is_doubtful(const PrefetchSlice& slice) {
  return slice.forks.has_value() ||
         llvm::any_of(slice.ways, [](const auto& way) { return !llvm::isa<llvm::LoadInst>(way.first); });
}

PrefetchSlice slice_of(Instruction& access, NodeFetch node) {
  PrefetchSlice slice;
  slice.target = &access;
  slice.loop = node.loop;
  slice.levels[&access] = 1;
  slice.node = std::move(node);
  return slice;
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
  LoopWalk walk(*around, kMostWalkedToALength);
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

// Is it known to iterate a few times only, or is that looked up anew each time?
bool may_be_short(const llvm::Loop& loop) {
  const double turns = expected_turns(loop);
  return turns != 0 ? turns < kShortLoopTurns : length_is_looked_up(loop);
}

// Or nobody knows.
bool ends_at_once(const llvm::Loop& loop) {
  return expected_turns(loop) == 0 || ends_before_prefetches(loop);
}

// As long as nothing is tried here, the loop that calls this function is asked.
std::string why_too_short(const llvm::Loop& loop) {
  if (loop.getParentLoop() != nullptr || !ends_before_prefetches(loop)) return {};
  return fmt::format("the loop is left after {:.1f} iterations in the mean, and no loop is around it here",
                     expected_turns(loop));
}

std::string recursion_words(const RecursionFetch& fetch) {
  std::string words = "the recursion's nodes";
  if (!fetch.links.empty())
    words += ", " + std::to_string(fetch.links.size()) +
             (fetch.links.size() == 1 ? " that is" : " that are") + " known once the one before is there";
  if (!fetch.rows.empty()) words += ", the next " + std::to_string(kNodesAheadInARow) + " of a row with each";
  return words;
}

// One load or store with its slice, and the loop that is had twice for it.
struct Found {
  Slot* slot = nullptr;
  Instruction* access = nullptr;
  PrefetchSlice slice;
  llvm::Loop* around = nullptr;  // null: the slice's own loop is no loop for versions
};

class Placer {
 public:
  Placer(ChangeSet& changes, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : changes_(changes),
        ir_(changes.ir),
        function_(function),
        analyses_(analyses),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)) {}

  void run() {
    std::vector<Found> all = find_slices();
    take_what_is_inside(all);
    for (Found& found : all) place(std::move(found));
    for (LoopWork& work : works_) work.places = find_record_places(*work.loop, work.slices, loops_);
    for (VersionedWorks& group : groups_)
      for (LoopWork& work : group.works) work.places = find_record_places(*work.loop, work.slices, loops_);
    // Trip counts come first, while the analyses are true. Next are versions of loops and strips, which need the analyses
    // no more but for the loops' own blocks. The rest comes last: outer and inner loops may both have work.
    for (auto& [node, work] : recursions_)
      choose_places(work, dominators_, loops_, analyses_.getResult<llvm::BlockFrequencyAnalysis>(function_));
    std::vector<Backedges> backedges;
    for (const LoopWork& work : works_)
      backedges.push_back(emit_backedges(*work.loop, dominators_, evolution_,
                                         loop_location(ir_, function_, work.claim.loop())));
    for (VersionedWorks& group : groups_) {
      uint32_t cell = 0;
      for (const LoopWork& work : group.works)
        for (Slot* slot : work.slots) cell = changes_.cell_of(group.claim, *slot);
      emit_prefetches_in_versions(changes_, function_, group, cell);
    }
    for (const bool in_strips : {true, false}) {
      for (size_t i = 0; i < works_.size(); ++i) {
        LoopWork& work = works_[i];
        if ((backedges[i].count != nullptr) != in_strips) continue;
        uint32_t cell = 0;  // the same for all slots of a loop
        for (Slot* slot : work.slots) cell = changes_.cell_of(work.claim, *slot);
        emit_prefetches(changes_, function_, work, cell, backedges[i]);
      }
    }
    for (const auto& [node, work] : recursions_) emit_recursion_fetches(changes_, function_, work);
  }

 private:
  std::vector<Found> find_slices() {
    const std::vector<std::pair<Slot*, Instruction*>> asked = asked_for();
    CarriedWords words;
    std::set<llvm::Loop*> looked_at;
    for (const auto& [slot, access] : asked)
      for (llvm::Loop* loop = loops_.getLoopFor(access->getParent()); loop && looked_at.insert(loop).second;
           loop = loop->getParentLoop())
        add_carried_words(ir_, function_, *loop, loops_, evolution_, words);
    std::vector<Found> all;
    std::optional<NodeWalks> walks;
    std::optional<RecursionNodes> recursion;
    for (const auto& [slot, access] : asked) {
      auto slice = find_prefetch_slice(ir_, *access, loops_, evolution_, slot->setting(), words);
      if (!slice || is_doubtful(*slice)) {
        if (!walks) walks.emplace(ir_, loops_);
        const auto place = walks->place_of(*access);
        if (slice && place && !ends_at_once(walks->loop_of(*place)))
          slice = std::unexpected("the address depends on the previous iteration's load");
        auto node = slice || !place ? std::nullopt : walks->fetch_for(*access, *place);
        // Else the loop that calls this function may run several walks at once, which gives more.
        if (node && walks->is_repeated(*place))
          slice = slice_of(*access, std::move(*node));
        else if (node)
          slice = std::unexpected("the address is in a node of a walk that no loop here begins anew");
      }
      if (!slice || is_doubtful(*slice)) {
        if (!recursion) recursion.emplace(ir_, function_, loops_, evolution_);
        if (auto fetch = recursion->fetch_for(*access)) {
          place(*slot, *access, std::move(*fetch));
          continue;
        }
      }
      if (slice && !has_one_base(ir_, *slice))
        slice = std::unexpected("the address is not based on one memory");
      if (!slice) {
        slot->refuse(slice.error());
        continue;
      }
      if (const std::string why = why_too_short(*slice->loop); !why.empty()) {
        slot->refuse(why);
        continue;
      }
      llvm::Loop* const around = loop_for_versions(*slice);
      // It has no time for a look at the cell in each iteration.
      if (slice->node && around == nullptr && !can_be_in_strips(*slice->loop, dominators_, evolution_)) {
        slot->refuse("its loop cannot be had in two versions");
        continue;
      }
      // What is in a row is fetched by its own loop too, which has no time for a look at the cell.
      const bool has_rest = slice->row && around != nullptr && has_one_base(ir_, slice->rest_of_row.front());
      if (!has_rest) slice->row.reset();
      all.push_back({.slot = slot, .access = access, .slice = std::move(*slice), .around = around});
      if (!has_rest) continue;
      PrefetchSlice rest = std::move(all.back().slice.rest_of_row.front());
      all.push_back({.slot = slot, .access = access, .slice = std::move(rest), .around = around});
    }
    return all;
  }

  // Accesses by their slots.
  std::vector<std::pair<Slot*, Instruction*>> asked_for() {
    std::vector<std::pair<Slot*, Instruction*>> asked;
    for (Slot& slot : changes_.of(ChangeKind::kPrefetch)) {
      if (slot.answer.waits()) continue;
      for (Instruction& instruction : llvm::instructions(function_)) {
        if (!is_of_guest(ir_, instruction)) continue;
        const llvm::DILocation* const position = ir_.position_of(instruction);
        if (position && position->getLine() == slot.at().value) asked.emplace_back(&slot, &instruction);
      }
    }
    return asked;
  }

  // A long counted loop goes in strips, of which the copy without is what LLVM would have made of it. Others are had twice
  // as they are. A short one goes with the loop around it: it has no time for a choice.
  llvm::Loop* loop_for_versions(const PrefetchSlice& slice) const {
    const bool is_short = may_be_short(*slice.loop) && slice.loop->getParentLoop() != nullptr;
    if (!is_short && can_be_in_strips(*slice.loop, dominators_, evolution_)) return nullptr;
    if (!why_not_twice(*slice.loop, dominators_).empty()) return nullptr;
    // What runs ahead of a loop of a few iterations begins anew for each run of it.
    if (!is_short || !slice.recurrences.next.empty()) return slice.loop;
    llvm::Loop* const parent = slice.loop->getParentLoop();
    if (!why_not_twice(*parent, dominators_).empty()) return nullptr;
    return &with_short_loops(*parent, dominators_, expected_turns);
  }

  // What is in a loop that is had twice goes with it.
  static void take_what_is_inside(std::vector<Found>& all) {
    for (Found& found : all)
      for (const Found& other : all)
        if (other.around != nullptr && other.around->contains(found.slice.loop) &&
            (found.around == nullptr || other.around->contains(found.around)))
          found.around = other.around;
  }

  void place(Found found) {
    const bool runs_ahead = !found.slice.recurrences.next.empty();
    if (runs_ahead && found.around != nullptr && found.around != found.slice.loop)
      return found.slot->wait("a loop around it is had in two versions for other loads");
    llvm::Loop& loop = found.around ? *found.around : *found.slice.loop;
    const Instruction& at = found.slice.node ? *found.slice.node->links.front() : *found.access;
    const LoopPlace place = place_of(ir_, at, found.slot->at(), loops_, loop);
    const auto claim = changes_.claim(*found.slot, place);
    if (!claim) return found.slot->wait(claim.error());
    // A copy of the loop that stands elsewhere: one change has one cell.
    if (found.slot->is_elsewhere(*claim)) return;
    if (!found.slot->answer.is_applied()) {
      found.slot->apply(*claim, slice_words(found.slice));
      found.slot->answer.slice_loads = found.slice.loads;
      found.slot->answer.operations = static_cast<uint32_t>(found.slice.operations.size());
      found.slot->answer.has_distance = !found.slice.node;
    }
    // An OSR entry's copy of the loop stands outside the loop around it and cannot tell: the whole function,
    // which came first, has.
    const WasmOffset its_loop = place_of(ir_, at, found.slot->at(), loops_, *found.slice.loop).loop;
    if (length_is_looked_up(*found.slice.loop)) changes_.short_loops.insert(its_loop.value);
    std::vector<LoopWork>& works = found.around ? group_of(*found.around, *claim).works : works_;
    auto work = std::ranges::find(works, found.slice.loop, &LoopWork::loop);
    if (work == works.end()) {
      works.push_back({.loop = found.slice.loop,
                       .claim = *claim,
                       .has_rows = changes_.short_loops.contains(its_loop.value),
                       .slices = {},
                       .slots = {}});
      work = std::prev(works.end());
    }
    work->slices.push_back(std::move(found.slice));
    work->slots.push_back(found.slot);
  }

  // In the function, which stands for a loop of which each call is an iteration. Its body's last byte is what it is known by: no loop
  // begins there.
  void place(Slot& slot, Instruction& access, RecursionFetch fetch) {
    const LoopPlace place{.loop = WasmOffset(ir_.wasm.body(ir_.request.function).end.value - 1),
                          .around = wasm_loops_around(ir_.wasm, ir_.position_of(access)),
                          .loads = {}};
    const auto claim = changes_.claim(slot, place);
    if (!claim) return slot.wait(claim.error());
    if (slot.is_elsewhere(*claim)) return;
    if (!slot.answer.is_applied()) {
      slot.apply(*claim, recursion_words(fetch));
      slot.answer.slice_loads = static_cast<uint32_t>(fetch.links.size());
      slot.answer.has_distance = false;
    }
    RecursionWork& work = recursions_.try_emplace(fetch.node, RecursionWork{.claim = *claim}).first->second;
    work.cell = changes_.cell_of(*claim, slot);
    work.fetches.push_back({.access = &access, .what = std::move(fetch)});
  }

  VersionedWorks& group_of(llvm::Loop& loop, const LoopClaim& claim) {
    const auto found = std::ranges::find(groups_, &loop, &VersionedWorks::loop);
    return found != groups_.end() ? *found : groups_.emplace_back(VersionedWorks{&loop, claim});
  }

  ChangeSet& changes_;
  IrModule& ir_;
  llvm::Function& function_;
  llvm::FunctionAnalysisManager& analyses_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  std::vector<LoopWork> works_;  // of loops in strips, and of those that look at their cell in each iteration
  std::vector<VersionedWorks> groups_;
  std::map<size_t, RecursionWork> recursions_;  // by node
};

}  // namespace

llvm::PreservedAnalyses PrefetchPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  // The loads are found below; what kept them apart until now has done its work.
  remove_temporary_users(function);
  Placer(*changes_, function, analyses).run();
  return llvm::PreservedAnalyses::none();
}

void add_prefetch(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  passes.addPass(PrefetchPass(changes));
  add_fetch_text(passes, changes);
  // Dead counters that a strip carries to the next only ADCE sees as dead.
  passes.addPass(llvm::ADCEPass());
  // What the kept loads were kept out of, before loops are widened.
  passes.addPass(llvm::InstCombinePass());
}

}  // namespace hindsight::jit::optimizing
