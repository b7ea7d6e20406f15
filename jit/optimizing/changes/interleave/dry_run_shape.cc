#include <fmt/format.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "jit/optimizing/changes/interleave/chased_loops.h"
#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/changes/interleave/dry_run_facts.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/changes/interleave/node_lines.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

class DryRunFinder : private DryRunFacts {
 public:
  DryRunFinder(const IrModule& ir, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
               const llvm::PostDominatorTree& postdominators, llvm::ScalarEvolution& evolution)
      : DryRunFacts(ir, loops, dominators, postdominators, evolution) {}

  std::expected<DryRunShape, std::string> find(llvm::LoadInst& load, llvm::Loop& chase,
                                               const StallsAt& stalls) {
    shape_.parts.chase = &chase;
    shape_.parts.outer = chase.getParentLoop();
    function_ = load.getFunction();
    if (!shape_.parts.outer) return std::unexpected("there is no loop around the search");
    if (!check_loops() || !cut_blocks()) return std::unexpected(reason_);
    find_unknown();
    find_buffers();
    find_places();
    run_ahead();
    find_controls();
    find_controls_of_turns();
    if (!find_course(load, stalls)) return std::unexpected(reason_);
    go_past_the_rest();
    if (!guess_branches() || !check_size() || !find_steps()) return std::unexpected(reason_);
    find_within();
    if (!check_searches() || !check_frame()) return std::unexpected(reason_);
    find_far();
    find_nodes(stalls);
    find_memories();
    return std::move(shape_);
  }

 private:
  llvm::Loop& chase() const { return *shape_.parts.chase; }

  bool check_loops() {
    if (!outer().isLoopSimplifyForm() || !chase().isLoopSimplifyForm() ||
        !outer().isRecursivelyLCSSAForm(dominators_, loops_))
      return refuse("the loop is not in simplified form");
    if (is_recursive(*function_)) return refuse("the function is recursive");
    return true;
  }

  bool cut_blocks() {
    InterleaveShape& parts = shape_.parts;
    for (BasicBlock* block : chase().blocks()) parts.in_steps.insert(block);
    for (BasicBlock* block : blocks_before(chase())) parts.in_head.insert(block);
    size_t instructions = 0;
    for (BasicBlock* block : outer().blocks()) {
      if (!is_copied(block)) {
        parts.in_tail.insert(block);
        parts.tail.push_back(block);
        continue;
      }
      (parts.in_steps.contains(block) ? parts.steps : parts.head).push_back(block);
      instructions += block->size();
      if (!check_block(*block, "search")) return false;
    }
    return instructions <= kMostCopiedInstructions ||
           refuse(fmt::format("the search is longer than {} instructions", kMostCopiedInstructions));
  }

  // Which branches decide whether a block is come to in a turn of the search, if that is not its last. The search may be left
  // in several places, and all that comes after hangs on each of them. What leaves it hardly ever is not to count there.
  void find_controls_of_turns() {
    const auto goes_on_to = [&](const BasicBlock* to) {
      return to != chase().getHeader() && chase().contains(to);
    };
    for (const BasicBlock* block : shape_.parts.steps) {
      auto& its = controls_[block];
      its.remove_if([&](const Instruction* end) { return chase().contains(end); });
      std::set<const BasicBlock*> past;  // from where the turn may come to its end without this block
      std::vector<const BasicBlock*> work{chase().getLoopLatch()};
      while (!work.empty()) {
        const BasicBlock* const at = work.back();
        work.pop_back();
        if (at == block || !past.insert(at).second || at == chase().getHeader()) continue;
        llvm::copy_if(llvm::predecessors(at), std::back_inserter(work),
                      [&](const BasicBlock* from) { return chase().contains(from); });
      }
      for (const BasicBlock* from : shape_.parts.steps)
        if (past.contains(from) && llvm::any_of(llvm::successors(from), [&](const BasicBlock* to) {
              return goes_on_to(to) && !past.contains(to);
            }))
          its.insert(from->getTerminator());
    }
  }

  // What the search goes on with and ends by, and what its loads that stall need.
  bool find_course(llvm::LoadInst& load, const StallsAt& stalls) {
    std::vector<const Instruction*> work;
    add_ways_to(load, work);
    bool ends = false;
    if (add_to_course(std::move(work)))
      for (BasicBlock* block : shape_.parts.steps)
        if (chase().isLoopExiting(block)) ends |= add_to_course({block->getTerminator()});
    if (!ends) return refuse("the search depends on the result of the one before it");
    for (BasicBlock* block : shape_.parts.steps)
      for (const Instruction& instruction : *block)
        if (const auto* other = llvm::dyn_cast<llvm::LoadInst>(&instruction); other && stalls(*other)) {
          std::vector<const Instruction*> ways;
          add_ways_to(*other, ways);
          add_to_course(std::move(ways));
        }
    return true;
  }
  // Unless that hangs on the result of the search before.
  bool add_to_course(std::vector<const Instruction*> work) {
    Kept more;
    close(std::move(work), shape_.unknown, more);
    for (const PHINode* phi : shape_.parts.behind)
      if (more.contains(phi)) return false;
    course_.insert(more.begin(), more.end());
    return true;
  }
  // On to the search's next turn, by the shortest way.
  void go_past_the_rest() {
    const auto distance = distances_to_latch(chase());
    for (BasicBlock* block : shape_.parts.steps) {
      Instruction* const end = block->getTerminator();
      if (end->getNumSuccessors() < 2 || course_.contains(end)) continue;
      const auto branches_to_next = [&](const BasicBlock* to) {
        return to == chase().getHeader() ? 0 : distance.at(to) + 1;
      };
      BasicBlock* past = nullptr;
      for (BasicBlock* to : llvm::successors(end))
        if (chase().contains(to) && (past == nullptr || branches_to_next(to) < branches_to_next(past)))
          past = to;
      shape_.guesses[end] = past;  // a block of the search has a way to its next turn
    }
  }
  bool check_size() {
    reached_ = blocks_of_guesses();
    size_t instructions = 0;
    for (const BasicBlock* block : reached_) {
      instructions += block->size();
      if (shape_.parts.in_steps.contains(block)) shape_.step_instructions += block->size();
    }
    if (shape_.step_instructions == 0) return refuse("whether it searches depends on a call");
    return instructions <= kMaxInterleavedInstructions ||
           refuse(fmt::format("the search is longer than {} instructions", kMaxInterleavedInstructions));
  }

  // On to the search; out of it. Where both ways stay in the search, only if nobody comes there.
  bool guess_branches() {
    std::vector<Instruction*> undecided;
    for (const auto* blocks : {&shape_.parts.head, &shape_.parts.steps}) {
      for (BasicBlock* block : *blocks) {
        Instruction* const end = block->getTerminator();
        if (!shape_.unknown.contains(end) || shape_.guesses.contains(end)) continue;
        if (!llvm::isa<llvm::BranchInst>(end))
          return refuse("the search contains a branch that cannot be copied");
        if (BasicBlock* const taken = guess(*end))
          shape_.guesses[end] = taken;
        else
          undecided.push_back(end);
      }
    }
    if (undecided.empty()) return true;
    const std::set<const BasicBlock*> reached = blocks_of_guesses();
    for (Instruction* end : undecided) {
      if (reached.contains(end->getParent())) return refuse("what the search does next depends on a call");
      shape_.guesses[end] = end->getSuccessor(0);
    }
    return true;
  }
  BasicBlock* guess(Instruction& end) const {
    const bool in_search = shape_.parts.in_steps.contains(end.getParent());
    BasicBlock* taken = nullptr;
    for (BasicBlock* to : llvm::successors(&end)) {
      const bool wanted = in_search ? !shape_.parts.in_steps.contains(to)
                                    : shape_.parts.in_head.contains(to) || shape_.parts.in_steps.contains(to);
      if (!taken || wanted) taken = to;
      if (wanted) break;
    }
    return in_search && shape_.parts.in_steps.contains(taken) ? nullptr : taken;
  }
  // Of head and steps, where a dry run comes that goes as guessed.
  std::set<const BasicBlock*> blocks_of_guesses() const {
    std::set<const BasicBlock*> reached;
    std::vector<const BasicBlock*> work = {outer().getHeader()};
    while (!work.empty()) {
      const BasicBlock* const block = work.back();
      work.pop_back();
      if (!is_copied(block) || !reached.insert(block).second) continue;
      if (const auto guessed = shape_.guesses.find(block->getTerminator()); guessed != shape_.guesses.end())
        work.push_back(guessed->second);
      else
        work.insert(work.end(), llvm::succ_begin(block), llvm::succ_end(block));
    }
    return reached;
  }

  void run_ahead() {
    BasicBlock* const latch = outer().getLoopLatch();
    for (PHINode& phi : outer().getHeader()->phis()) {
      if (can_know(*phi.getIncomingValueForBlock(latch)))
        shape_.parts.ahead.push_back(&phi);
      else
        shape_.parts.behind.push_back(&phi);
    }
    for (DryRunShape::Place& place : shape_.places)
      if (place.next && !can_know(*place.next)) place.next = nullptr;
    const auto* const end = llvm::dyn_cast<llvm::BranchInst>(latch->getTerminator());
    if (end && end->isConditional() && outer().isLoopExiting(latch) && can_know(*end->getCondition()))
      shape_.ends = end->getCondition();
  }

  // Whether it can be computed when the head is done, without the search. Recursion is bounded by the loop's
  // instructions.
  bool can_know(Value& value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(&value);
    if (!instruction || !outer().contains(instruction)) return true;
    if (is_header_phi(*instruction)) return true;
    if (shape_.unknown.contains(instruction)) return false;
    const BasicBlock* const block = instruction->getParent();
    if (shape_.parts.in_steps.contains(block)) return false;
    if (shape_.parts.in_head.contains(block)) {
      const bool always = dominators_.dominates(block, outer().getLoopLatch());
      if (always) from_heads_.insert(instruction);
      return always;
    }
    const auto [known, is_new] = can_know_.emplace(instruction, false);
    if (!is_new) return known->second;
    bool can = false;
    if (auto* const phi = llvm::dyn_cast<PHINode>(instruction)) {
      // Neither what stays as it is brings the next search on, nor what a loop begins with.
      const bool begins_loop = loops_.isLoopHeader(phi->getParent());
      for (Value* way : phi->incoming_values()) {
        const auto* made = llvm::dyn_cast<Instruction>(way);
        if (begins_loop || (made && is_header_phi(*made)) || !can_know(*way)) continue;
        shape_.ways[phi] = way;
        can = true;
        break;
      }
    } else {
      can = (llvm::isa<llvm::LoadInst>(instruction) ? !is_source_of_unknown(*instruction)
                                                    : only_computes(*instruction)) &&
            std::ranges::all_of(instruction->operands(), [&](Value* operand) { return can_know(*operand); });
    }
    return can_know_[instruction] = can;
  }

  bool find_steps() {
    shape_.starts = find_interleave_starts(ir_, shape_.parts, dominators_, evolution_,
                                           [this](const llvm::LoadInst& load) { return is_near(load); });
    shape_.starts.heads.clear();
    shape_.starts.inductions.clear();
    std::erase_if(shape_.starts.steps, [&](const KnownLoad& known) {
      const auto* address = llvm::dyn_cast<Instruction>(known.load->getPointerOperand());
      return !can_fetch(known) || !address || !add_to_course({address});
    });
    for (PHINode& phi : chase().getHeader()->phis())
      if (course_.contains(&phi)) shape_.carried.push_back(&phi);
    return !shape_.starts.steps.empty() || refuse("the search's next step is not known before it begins");
  }

  // What the dry run keeps beside memory, and what the search goes through in order, as the letters of a word.
  bool is_near(const llvm::LoadInst& load) const {
    if (shape_.in_buffer.contains(&load)) return true;
    if (is_source_of_unknown(load) || shape_.unknown.contains(&load) ||
        ir_.is_among(load, IrModule::World::kRuntime))
      return false;
    const auto* const turns = llvm::dyn_cast<llvm::SCEVAddRecExpr>(guest_address(*load.getPointerOperand()));
    const auto* const by = turns && turns->getLoop() == &chase()
                               ? llvm::dyn_cast<llvm::SCEVConstant>(turns->getStepRecurrence(evolution_))
                               : nullptr;
    return by && by->getAPInt().abs().ule(kLongestStrideNear) && !is_written_meanwhile(*turns);
  }
  // Before the next search, by what the dry run leaves out.
  bool is_written_meanwhile(const llvm::SCEV& address) const {
    const llvm::SCEV* const place = part_that_stays(address);
    return place && !place->isZero() && llvm::any_of(shape_.parts.tail, [&](const BasicBlock* block) {
             return llvm::any_of(*block, [&](const Instruction& instruction) {
               const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
               return store && part_that_stays(*guest_address(*store->getPointerOperand())) == place;
             });
           });
  }

  // Loops within, the innermost ones alone, in which each turn waits for the one before.
  void find_within() {
    for (llvm::Loop* loop : chase().getLoopsInPreorder()) {
      if (loop == &chase() || !loop->isInnermost() || !loop->isLoopSimplifyForm() ||
          !reached_.contains(loop->getLoopLatch()))
        continue;
      DryRunShape::Within within{.loop = loop, .steps = find_turn_starts(*loop, evolution_), .live = {}};
      std::erase_if(within.steps, [&](const KnownLoad& known) { return !can_fetch(known); });
      if (within.steps.empty()) continue;
      for (BasicBlock* block : shape_.parts.steps)
        for (Instruction& instruction : *block)
          if (course_.contains(&instruction) && dominators_.properlyDominates(block, loop->getHeader()) &&
              is_used_elsewhere(instruction) &&
              !(llvm::isa<PHINode>(instruction) && block == chase().getHeader()))
            within.live.push_back(&instruction);
      shape_.within.push_back(std::move(within));
    }
  }
  static bool is_used_elsewhere(const Instruction& instruction) {
    return llvm::any_of(instruction.users(), [&](const llvm::User* user) {
      const auto* by = llvm::cast<Instruction>(user);
      return by->getParent() != instruction.getParent() || llvm::isa<PHINode>(by);
    });
  }

  void find_nodes(const StallsAt& stalls) {
    std::vector<KnownLoad*> steps;
    for (KnownLoad& known : shape_.starts.steps) steps.push_back(&known);
    for (DryRunShape::Within& within : shape_.within)
      for (KnownLoad& known : within.steps) steps.push_back(&known);
    add_node_lines(ir_, loops_, dominators_, outer(), stalls, steps);
  }

  bool can_fetch(const KnownLoad& known) const {
    const auto* address = llvm::dyn_cast<Instruction>(known.load->getPointerOperand());
    return !(address && shape_.unknown.contains(address)) &&
           Speculation::memory_of(ir_, known.load->getPointerOperand(), *function_);
  }

  // Asks what the search's course depends on. Each has to be another one, and none may wait for the one before.
  bool check_searches() {
    std::vector<const Value*> work;
    for (const BasicBlock* block : shape_.parts.steps) {
      const Instruction* const end = block->getTerminator();
      if (!reached_.contains(block) || shape_.guesses.contains(end)) continue;
      if (const auto* branch = llvm::dyn_cast<llvm::BranchInst>(end)) {
        if (branch->isConditional()) work.push_back(branch->getCondition());
      } else {
        work.push_back(end->getOperand(0));
      }
    }
    for (const KnownLoad& known : shape_.starts.steps) work.push_back(known.load->getPointerOperand());
    llvm::SmallPtrSet<const Instruction*, 32> seen;
    bool differs = false;
    while (!work.empty()) {
      const auto* const instruction = llvm::dyn_cast<Instruction>(work.back());
      work.pop_back();
      if (!instruction || !outer().contains(instruction) || !seen.insert(instruction).second) continue;
      if (shape_.unknown.contains(instruction)) continue;  // guessed, whatever it depends on
      if (is_header_phi(*instruction)) {
        if (std::ranges::find(shape_.parts.behind, instruction) != shape_.parts.behind.end())
          return refuse("the search depends on the result of the one before it");
        differs = true;
        continue;
      }
      differs |= shape_.at_place.contains(instruction) || shape_.in_buffer.contains(instruction);
      for (const Value* operand : instruction->operands()) work.push_back(operand);
    }
    return differs || refuse("all searches would be the same one");
  }

  // As in interleave_shape.cc: the group's arrays lie in the frame.
  bool check_frame() {
    std::set<const Value*> carried;
    for (const BasicBlock* block : shape_.parts.steps)
      for (const Instruction& instruction : *block)
        for (const Value* operand : instruction.operands())
          if (const auto* from = llvm::dyn_cast<Instruction>(operand);
              from && reached_.contains(block) && shape_.parts.in_head.contains(from->getParent()))
            carried.insert(from);
    carried.insert(shape_.carried.begin(), shape_.carried.end());
    for (const DryRunShape::Within& within : shape_.within) {
      carried.insert(within.live.begin(), within.live.end());
      for (const PHINode& phi : within.loop->getHeader()->phis()) carried.insert(&phi);
    }
    return carried.size() <= kMaxInterleavedValues ||
           refuse(fmt::format("the search carries more than {} values", kMaxInterleavedValues));
  }

  void find_far() {
    auto& far = shape_.far;
    if (!shape_.buffers.empty()) return;  // what is stored there may say where they are
    for (BasicBlock* block : shape_.parts.head)
      for (Instruction& instruction : *block) {
        auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        if (!load || ir_.is_among(*load, IrModule::World::kRuntime) || shape_.unknown.contains(load) ||
            shape_.at_place.contains(load))
          continue;
        if (!is_in_order(*evolution_.getSCEV(load->getPointerOperand()))) far.insert(load);
      }
    // What the next head needs has to be there before.
    const auto is_before_all = [&](const Instruction* needed) {
      return llvm::all_of(far, [&](const Instruction* load) { return dominators_.dominates(needed, load); });
    };
    const bool in_time =
        llvm::all_of(from_heads_, is_before_all) && llvm::all_of(shape_.at_place, [&](const auto& access) {
          return !llvm::isa<llvm::StoreInst>(access.first) || is_before_all(access.first);
        });
    if (!in_time) far.clear();
  }

  Kept course_;                          // what the search's course hangs on
  std::set<const BasicBlock*> reached_;  // blocks_of_guesses(), when all are made
  std::map<const Instruction*, bool> can_know_;
  std::set<const Instruction*> from_heads_;  // that the next head needs
};

}  // namespace

std::expected<DryRunShape, std::string> find_dry_run_shape(const IrModule& ir, llvm::LoadInst& load,
                                                           llvm::Loop& chase, const StallsAt& stalls,
                                                           llvm::LoopInfo& loops,
                                                           llvm::DominatorTree& dominators,
                                                           const llvm::PostDominatorTree& postdominators,
                                                           llvm::ScalarEvolution& evolution) {
  return DryRunFinder(ir, loops, dominators, postdominators, evolution).find(load, chase, stalls);
}

}  // namespace hindsight::jit::optimizing
