#include <fmt/format.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/ProfDataUtils.h>

#include <algorithm>
#include <utility>

#include "jit/optimizing/changes/cache_line.h"
#include "jit/optimizing/changes/interleave/chased_loops.h"
#include "jit/optimizing/changes/interleave/dry_run_facts.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/changes/interleave/iteration_run.h"
#include "jit/optimizing/versions/loop_walk.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

class IterationRunFinder : private DryRunFacts {
 public:
  IterationRunFinder(const IrModule& ir, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
                     const llvm::PostDominatorTree& postdominators, llvm::ScalarEvolution& evolution)
      : DryRunFacts(ir, loops, dominators, postdominators, evolution) {}

  std::expected<IterationRunShape, std::string> find(llvm::Loop& outer, const StallOfMost& stall) {
    shape_.parts.outer = &outer;
    function_ = outer.getHeader()->getParent();
    if (!check_loop()) return std::unexpected(reason_);
    find_unknown();
    find_buffers();
    find_places();
    if (!find_waits(stall)) return std::unexpected(reason_);
    find_controls();
    distance_ = distances_to_latch(outer);
    do {
      find_ways_to_waits();
      if (!find_rounds()) return std::unexpected(reason_);
      find_undetermined();
    } while (!find_starts() && wait_less());
    if (!reason_.empty() || !check_size()) return std::unexpected(reason_);
    leave_out();
    find_memories();
    found_.common = std::move(shape_);
    return std::move(found_);
  }

 private:
  BasicBlock* latch() const { return outer().getLoopLatch(); }

  bool check_loop() {
    if (!outer().isLoopSimplifyForm() || !outer().isRecursivelyLCSSAForm(dominators_, loops_))
      return refuse("the loop is not in simplified form");
    if (is_recursive(*function_)) return refuse("the function is recursive");
    size_t instructions = 0;
    llvm::LoopBlocksDFS order(&outer());
    order.perform(&loops_);
    for (BasicBlock* block : llvm::make_range(order.beginRPO(), order.endRPO())) {
      shape_.parts.head.push_back(block);
      shape_.parts.in_head.insert(block);
      instructions += block->size();
      if (!check_block(*block, "iteration")) return false;
    }
    return instructions <= kMostCopiedInstructions ||
           refuse(fmt::format("the iteration is longer than {} instructions", kMostCopiedInstructions));
  }

  // Where an iteration would wait: at loads that stall much, at those of its searches, and at what pointers that come from there
  // lead to. Also at what stalls in front of these: the program's iterations overlap there, as their first load waits for
  // nothing, and copies that give way behind it would not. Of those of a line, at the first.
  bool find_waits(const StallOfMost& stall) {
    const auto stalls = [&](const llvm::LoadInst& load) { return stall(load) >= kMuchOfTheMost; };
    std::vector<llvm::LoadInst*> candidates;
    for (BasicBlock* block : shape_.parts.head)
      for (Instruction& instruction : *block)
        if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && may_wait(*load))
          candidates.push_back(load);
    const auto add = [&](const auto& waits) {
      for (llvm::LoadInst* load : candidates)
        if (waits(*load) && llvm::none_of(found_.waits, [&](const llvm::LoadInst* wait) {
              return wait == load || (dominators_.dominates(wait, load) && are_near(*wait, *load));
            }))
          found_.waits.push_back(load);
    };
    add(stalls);
    add([&](const llvm::LoadInst& load) { return is_of_search(load) && pointer_of(load); });
    add([&](const llvm::LoadInst& load) { return is_of_search(load) && !is_in_node_waited_for(load); });
    if (found_.waits.empty()) return refuse("nothing in an iteration waits for memory");
    const Pointers far = far_pointers(candidates);
    add([&](const llvm::LoadInst& load) {
      const Value* const pointer = pointer_of(load);
      return pointer && far.contains(pointer) && !may_be_waited_for(*pointer);
    });
    add([&](const llvm::LoadInst& load) {
      return stall(load) >= kSomeOfTheMost && waits_for_nothing(load) &&
             llvm::any_of(found_.waits,
                          [&](const llvm::LoadInst* wait) { return dominators_.dominates(&load, wait); });
    });
    wait_once_a_node(stalls);
    // In the order of code: a block that has several is cut at its first one first.
    std::vector<llvm::LoadInst*> in_order;
    llvm::copy_if(candidates, std::back_inserter(in_order),
                  [&](const llvm::LoadInst* load) { return llvm::is_contained(found_.waits, load); });
    found_.waits = std::move(in_order);
    for (llvm::LoadInst* load : candidates)
      if (is_beside_wait(*load))
        found_.beside.insert(load);
      else if (is_waited_for_before(*load, far))
        before_.push_back(load);
    return found_.waits.size() <= kMostWaits ||
           refuse(fmt::format("an iteration waits in more than {} places", kMostWaits));
  }

  // Whether its address is known as soon as the iteration begins.
  bool waits_for_nothing(const llvm::LoadInst& load) {
    if (loops_.getLoopFor(load.getParent()) != &outer()) return false;
    LoopWalk walk(outer(), kMaxInterleavedInstructions, load.getPointerOperand());
    while (const Instruction* const instruction = walk.next()) {
      if (const auto* other = llvm::dyn_cast<llvm::LoadInst>(instruction);
          other != nullptr && may_wait(const_cast<llvm::LoadInst&>(*other)))
        return false;
      if (!optimizing::is_header_phi(*instruction, outer())) walk.follow(*instruction);
    }
    return true;
  }

  void wait_once_a_node(const StallsAt& stalls) {
    found_.nodes = find_node_lines(ir_, loops_, dominators_, outer(), stalls, found_.waits);
    std::erase_if(found_.waits,
                  [&](const llvm::LoadInst* wait) { return found_.nodes.covered.contains(wait); });
  }

  using Pointers = llvm::SmallPtrSet<const Value*, 16>;

  bool is_beside_wait(const llvm::LoadInst& load) const {
    return llvm::any_of(found_.waits,
                        [&](const llvm::LoadInst* wait) { return wait != &load && are_near(*wait, load); });
  }
  // At what the iteration before has waited for.
  bool is_waited_for_before(const llvm::LoadInst& load, const Pointers& far) const {
    return llvm::any_of(outer().getHeader()->phis(), [&](const PHINode& phi) {
      const Value* const next = phi.getIncomingValueForBlock(latch());
      return (far.contains(next) || is_waited_for(*next)) && reaches(load.getPointerOperand(), &phi, outer());
    });
  }

  // What a load's address is but for a few bytes on; null: it is computed in another way.
  const Value* pointer_of(const llvm::LoadInst& load) const {
    const llvm::SCEV* const address = evolution_.getSCEV(const_cast<Value*>(load.getPointerOperand()));
    const llvm::SCEV* part = evolution_.getMinusSCEV(address, evolution_.getPointerBase(address));
    for (;;) {
      if (const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(part);
          sum && sum->getNumOperands() == 2 && llvm::isa<llvm::SCEVConstant>(sum->getOperand(0)))
        part = sum->getOperand(1);
      else if (const auto* extended = llvm::dyn_cast<llvm::SCEVZeroExtendExpr>(part))
        part = extended->getOperand();
      else
        break;
    }
    const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part);
    return unknown ? unknown->getValue() : nullptr;
  }
  // What waits bring, and what comes from there.
  Pointers far_pointers(const std::vector<llvm::LoadInst*>& loads) const {
    Pointers far(found_.waits.begin(), found_.waits.end());
    for (size_t seen = 0; seen != far.size();) {
      seen = far.size();
      for (const llvm::LoadInst* load : loads)
        if (const Value* pointer = pointer_of(*load);
            pointer && (far.contains(pointer) || is_waited_for(*pointer)))
          far.insert(load);
      for (const BasicBlock* block : shape_.parts.head)
        for (const PHINode& phi : block->phis())
          if (!is_header_phi(phi) &&
              llvm::any_of(phi.incoming_values(), [&](const Value* way) { return far.contains(way); }))
            far.insert(&phi);
    }
    return far;
  }
  bool is_waited_for(const Value& pointer, unsigned depth = 0) const {
    if (llvm::any_of(found_.waits, [&](const llvm::LoadInst* wait) { return pointer_of(*wait) == &pointer; }))
      return true;
    const auto* phi = llvm::dyn_cast<PHINode>(&pointer);
    return phi && depth < kDeepestPointer && !is_header_phi(*phi) &&
           llvm::all_of(phi->incoming_values(), [&](const Value* way) {
             return llvm::isa<llvm::Constant>(way) || is_waited_for(*way, depth + 1);
           });
  }
  // By an index into a node, as of a pointer on a level of a skip list, that begins near what is waited for there.
  bool is_in_node_waited_for(const llvm::LoadInst& load) const {
    const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(guest_address(*load.getPointerOperand()));
    if (!sum || pointer_of(load)) return false;
    return llvm::any_of(sum->operands(), [&](const llvm::SCEV* part) {
      const auto* node = llvm::dyn_cast<llvm::SCEVUnknown>(part);
      return node && llvm::any_of(found_.waits, [&](const llvm::LoadInst* wait) {
               return may_wait_at(*wait, *node->getValue()) &&
                      std::abs(number_in(load) - number_in(*wait)) < kLineBytes;
             });
    });
  }
  // What a sum that is an address begins with.
  int64_t number_in(const llvm::LoadInst& load) const {
    const llvm::SCEV* part = guest_address(*load.getPointerOperand());
    int64_t number = 0;
    if (const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(part)) {
      for (const llvm::SCEV* operand : sum->operands())
        if (const auto* turns = llvm::dyn_cast<llvm::SCEVAddRecExpr>(operand))
          number += constant_of(*turns->getStart());
        else
          number += constant_of(*operand);
    }
    return number;
  }
  static int64_t constant_of(const llvm::SCEV& part) {
    const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(&part);
    const auto* number = llvm::dyn_cast<llvm::SCEVConstant>(sum ? sum->getOperand(0) : &part);
    return number ? number->getAPInt().getSExtValue() : 0;
  }
  // On one of the ways by which it may have come.
  bool may_be_waited_for(const Value& pointer) const {
    return llvm::any_of(found_.waits,
                        [&](const llvm::LoadInst* wait) { return may_wait_at(*wait, pointer); });
  }
  bool may_wait_at(const llvm::LoadInst& wait, const Value& pointer, unsigned depth = 0) const {
    if (pointer_of(wait) == &pointer) return true;
    const auto* phi = llvm::dyn_cast<PHINode>(&pointer);
    return phi && depth < kDeepestPointer && !is_header_phi(*phi) &&
           llvm::any_of(phi->incoming_values(),
                        [&](const Value* way) { return may_wait_at(wait, *way, depth + 1); });
  }
  bool may_wait(llvm::LoadInst& load) const {
    const auto* address = llvm::dyn_cast<Instruction>(load.getPointerOperand());
    if (!load.isSimple() || ir_.is_among(load, IrModule::World::kRuntime) ||
        ir_.is_among(load, IrModule::World::kCells) || shape_.at_place.contains(&load) ||
        shape_.in_buffer.contains(&load) || (address && shape_.unknown.contains(address)) ||
        !Speculation::memory_of(ir_, load.getPointerOperand(), *function_))
      return false;
    const llvm::SCEV* const at = evolution_.getSCEV(load.getPointerOperand());
    if (is_in_order(*at)) return false;
    // Of what is gone through in order, the hardware fetches the next.
    const auto* stride = llvm::dyn_cast<llvm::SCEVAddRecExpr>(at);
    const auto* by =
        stride ? llvm::dyn_cast<llvm::SCEVConstant>(stride->getStepRecurrence(evolution_)) : nullptr;
    return !by || by->getAPInt().abs().uge(kLineBytes);
  }
  bool is_of_search(const llvm::LoadInst& load) const {
    for (llvm::Loop* loop = loops_.getLoopFor(load.getParent()); loop != &outer();
         loop = loop->getParentLoop())
      if (is_chased(load, *loop)) return true;
    return false;
  }
  // Scalar evolution sums only what changes in loops of which one is always come to before the other: it orders the parts of a sum so.
  // LLVM's release builds do not check it.
  bool change_in_order(const llvm::SCEV& a, const llvm::SCEV& b) const {
    llvm::SmallPtrSet<const llvm::Loop*, 4> loops;
    const auto collect = [&](const llvm::SCEV* part) {
      if (const auto* turns = llvm::dyn_cast<llvm::SCEVAddRecExpr>(part)) loops.insert(turns->getLoop());
      return false;
    };
    llvm::SCEVExprContains(&a, collect);
    llvm::SCEVExprContains(&b, collect);
    for (const llvm::Loop* one : loops)
      for (const llvm::Loop* other : loops)
        if (!dominators_.dominates(one->getHeader(), other->getHeader()) &&
            !dominators_.dominates(other->getHeader(), one->getHeader()))
          return false;
    return true;
  }
  bool are_near(const llvm::LoadInst& a, const llvm::LoadInst& b) const {
    const llvm::SCEV* const of_a = guest_address(*a.getPointerOperand());
    const llvm::SCEV* const of_b = guest_address(*b.getPointerOperand());
    if (!change_in_order(*of_a, *of_b)) return false;
    const llvm::ConstantRange distance = evolution_.getSignedRange(evolution_.getMinusSCEV(of_a, of_b));
    return distance.getSignedMin().sgt(-kLineBytes) && distance.getSignedMax().slt(kLineBytes);
  }

  void find_ways_to_waits() {
    leads_to_wait_.clear();
    std::vector<const BasicBlock*> work;
    for (const llvm::LoadInst* wait : found_.waits) work.push_back(wait->getParent());
    for (size_t i = 0; i < work.size(); ++i)
      if (leads_to_wait_.insert(work[i]).second && work[i] != outer().getHeader())
        for (const BasicBlock* from : llvm::predecessors(work[i])) work.push_back(from);
  }

  // What leads from one place to wait to the next.
  bool find_rounds() {
    for (;;) {
      std::vector<const Instruction*> work;
      for (const llvm::LoadInst* wait : found_.waits) add_ways_to(*wait, work);
      in_rounds_.clear();
      close(std::move(work), shape_.unknown, in_rounds_);
      // Where a loop within goes is guessed at each of its turns: nowhere, mostly.
      const llvm::Loop* guessed = nullptr;
      for (const Instruction* kept : in_rounds_)
        if (kept->isTerminator() && shape_.unknown.contains(kept))
          if (const llvm::Loop* loop = loops_.getLoopFor(kept->getParent());
              loop != &outer() && !loop->isLoopExiting(kept->getParent()))
            guessed = loop;
      if (!guessed) return true;
      if (std::erase_if(found_.waits, [&](const llvm::LoadInst* wait) { return guessed->contains(wait); }) ==
              0 ||
          found_.waits.empty())
        return refuse("what the search does next depends on a call");
    }
  }

  // What starts do not know: what is waited for, and what is computed with that alone. So is what a loop within has come to
  // that goes on until it finds something.
  void find_undetermined() {
    undetermined_ = shape_.unknown;
    std::vector<const Instruction*> work(found_.waits.begin(), found_.waits.end());
    work.insert(work.end(), found_.beside.begin(), found_.beside.end());
    work.insert(work.end(), before_.begin(), before_.end());
    while (!work.empty()) {
      const Instruction* const instruction = work.back();
      work.pop_back();
      if (!undetermined_.insert(instruction).second) continue;
      if (instruction->isTerminator())
        for (const llvm::Loop* loop = loops_.getLoopFor(instruction->getParent()); loop != &outer();
             loop = loop->getParentLoop())
          if (loop->isLoopExiting(instruction->getParent()))
            for (const PHINode& phi : loop->getHeader()->phis()) work.push_back(&phi);
      for (const llvm::User* user : instruction->users()) {
        const auto* by = llvm::cast<Instruction>(user);
        if (!outer().contains(by) || is_header_phi(*by)) continue;
        // Where ways meet, what stays as it is does not bring the next iteration on.
        const auto* phi = llvm::dyn_cast<PHINode>(by);
        const bool known =
            phi && !loops_.isLoopHeader(phi->getParent()) &&
            llvm::any_of(phi->blocks(), [&](const BasicBlock* from) {
              const auto* made = llvm::dyn_cast<Instruction>(phi->getIncomingValueForBlock(from));
              return !is_seldom(*from) && (!made || !(undetermined_.contains(made) || is_header_phi(*made)));
            });
        if (!known) work.push_back(by);
      }
    }
  }

  // Whether the branch before it mostly goes elsewhere, as where a search makes what it does not find.
  static bool is_seldom(const BasicBlock& block) {
    const BasicBlock* const before = block.getSinglePredecessor();
    uint64_t yes = 0, no = 0;
    if (!before || before->getTerminator()->getNumSuccessors() != 2 ||
        !llvm::extractBranchWeights(*before->getTerminator(), yes, no))
      return false;
    return before->getTerminator()->getSuccessor(0) == &block ? yes < no : no < yes;
  }

  // What the next iteration takes from this one, for what rounds begin with.
  bool find_starts() {
    in_starts_.clear();
    for (size_t seen = ~size_t{0}; seen != in_starts_.size();) {
      seen = in_starts_.size();
      std::vector<const Instruction*> work;
      for (const PHINode* phi : ahead()) {
        if (!is_known_ahead(*phi)) {
          behind_ = phi;
          return refuse("the search depends on the result of the one before it");
        }
        if (const auto* next = llvm::dyn_cast<Instruction>(phi->getIncomingValueForBlock(latch())))
          work.push_back(next);
      }
      for (const auto& [access, place] : shape_.at_place)
        if (llvm::isa<llvm::StoreInst>(access) && is_loaded(place) && !undetermined_.contains(access))
          work.push_back(access);
      close(std::move(work), undetermined_, in_starts_);
      find_ends();
    }
    const auto is_in_rounds = [&](const PHINode& phi) { return in_rounds_.contains(&phi); };
    const auto is_loaded_in_rounds = [&](const auto& access) {
      return llvm::isa<llvm::LoadInst>(access.first) && in_rounds_.contains(access.first);
    };
    const bool differs = llvm::any_of(outer().getHeader()->phis(), is_in_rounds) ||
                         llvm::any_of(shape_.at_place, is_loaded_in_rounds) ||
                         llvm::any_of(shape_.in_buffer, is_loaded_in_rounds);
    return differs || refuse("all searches would be the same one");
  }
  // Without the waits that need what the iteration before has come to. False: all do, or the next iteration does.
  bool wait_less() {
    const PHINode* const behind = std::exchange(behind_, nullptr);
    if (!behind) return false;
    const auto needs_it = [&](const llvm::LoadInst* wait) {
      std::vector<const Instruction*> work;
      add_ways_to(*wait, work);
      Kept needed;
      close(std::move(work), shape_.unknown, needed);
      return needed.contains(behind);
    };
    if (std::erase_if(found_.waits, needs_it) == 0 || found_.waits.empty()) return false;
    std::vector<const Instruction*> apart;
    for (const Instruction* load : found_.beside)
      if (!is_beside_wait(*llvm::cast<llvm::LoadInst>(load))) apart.push_back(load);
    for (const Instruction* load : apart) found_.beside.erase(load);
    reason_.clear();
    return true;
  }
  std::vector<const PHINode*> ahead() const {
    std::vector<const PHINode*> found;
    for (const PHINode& phi : outer().getHeader()->phis())
      if (in_rounds_.contains(&phi) || in_starts_.contains(&phi)) found.push_back(&phi);
    return found;
  }
  bool is_known_ahead(const PHINode& phi) const {
    const auto* next = llvm::dyn_cast<Instruction>(phi.getIncomingValueForBlock(latch()));
    return !next || !undetermined_.contains(next);
  }
  // Where the loop is left, if starts see that without loops within.
  void find_ends() {
    for (BasicBlock* block : shape_.parts.head) {
      const Instruction* const end = block->getTerminator();
      if (!outer().isLoopExiting(block) || undetermined_.contains(end)) continue;
      Kept needed;
      close({end}, undetermined_, needed);
      const bool is_simple = llvm::all_of(needed, [&](const Instruction* instruction) {
        const auto* phi = llvm::dyn_cast<PHINode>(instruction);
        return loops_.getLoopFor(instruction->getParent()) == &outer() &&
               !(phi && is_header_phi(*phi) && !is_known_ahead(*phi));
      });
      if (is_simple) in_starts_.insert(needed.begin(), needed.end());
    }
  }
  bool is_loaded(size_t place) const {
    return llvm::any_of(shape_.at_place, [&](const auto& access) {
      return access.second == place && llvm::isa<llvm::LoadInst>(access.first) &&
             (in_rounds_.contains(access.first) || in_starts_.contains(access.first));
    });
  }

  bool check_size() {
    if (in_rounds_.size() + in_starts_.size() > kMostKeptInstructions)
      return refuse(fmt::format("the iterations need more than {} instructions", kMostKeptInstructions));
    std::map<const llvm::LoadInst*, size_t> carried;
    for (const Instruction* value : in_rounds_)
      for (const llvm::LoadInst* wait : waits_across(*value))
        if (++carried[wait] > kMostCarriedValues)
          return refuse(fmt::format("the iterations carry more than {} values", kMostCarriedValues));
    return true;
  }
  // Where an iteration waits between the value and one of its uses.
  std::set<const llvm::LoadInst*> waits_across(const Instruction& value) const {
    const BasicBlock* const own = value.getParent();
    std::set<const llvm::LoadInst*> across;
    const auto add_between = [&](const BasicBlock* block, const Instruction* from, const Instruction* to) {
      for (const llvm::LoadInst* wait : found_.waits)
        if (wait->getParent() == block && in_rounds_.contains(wait) && (!from || from->comesBefore(wait)) &&
            (!to || !to->comesBefore(wait)))
          across.insert(wait);
    };
    std::vector<const BasicBlock*> through;  // to their ends
    for (const llvm::Use& use : value.uses()) {
      const auto* by = llvm::cast<Instruction>(use.getUser());
      if (!in_rounds_.contains(by)) continue;
      const auto* phi = llvm::dyn_cast<PHINode>(by);
      const bool here = by->getParent() == own;
      if (!phi) add_between(by->getParent(), here ? &value : nullptr, by);
      if (phi)
        through.push_back(phi->getIncomingBlock(use));
      else if (!here)
        through.insert(through.end(), llvm::pred_begin(by->getParent()), llvm::pred_end(by->getParent()));
    }
    std::set<const BasicBlock*> seen;
    while (!through.empty()) {
      const BasicBlock* const block = through.back();
      through.pop_back();
      if (!outer().contains(block) || !seen.insert(block).second) continue;
      add_between(block, block == own ? &value : nullptr, nullptr);
      if (block != own) through.insert(through.end(), llvm::pred_begin(block), llvm::pred_end(block));
    }
    return across;
  }

  void leave_out() {
    const std::vector<const PHINode*> ahead = this->ahead();
    for (PHINode& phi : outer().getHeader()->phis())
      (llvm::is_contained(ahead, &phi) ? shape_.parts.ahead : shape_.parts.behind).push_back(&phi);
    keep_loaded(shape_.places, shape_.at_place);
    keep_loaded(shape_.buffers, shape_.in_buffer);
    for (BasicBlock* block : shape_.parts.head) {
      for (Instruction& instruction : *block) {
        if (instruction.isTerminator()) continue;
        if (!in_starts_.contains(&instruction)) found_.not_in_starts.insert(&instruction);
        if (!in_rounds_.contains(&instruction)) found_.not_in_rounds.insert(&instruction);
        auto* const phi = llvm::dyn_cast<PHINode>(&instruction);
        if (phi && in_starts_.contains(phi))
          for (Value* way : phi->incoming_values())
            if (auto* before = llvm::dyn_cast<PHINode>(way); before && llvm::is_contained(ahead, before))
              found_.as_before[phi] = before;
      }
      Instruction* const end = block->getTerminator();
      if (end->getNumSuccessors() < 2) continue;
      if (!is_decided(*end, in_starts_, undetermined_)) found_.guesses_of_starts[end] = shortest(*end);
      if (!in_rounds_.contains(end))
        found_.guesses_of_rounds[end] = shortest(*end);
      else if (!is_decided(*end, in_rounds_, shape_.unknown))
        found_.guesses_of_rounds[end] = on_to_wait(*end);
    }
  }
  // Of what is kept beside memory, what a copy loads.
  template <typename Kind>
  void keep_loaded(std::vector<Kind>& all, std::map<const Instruction*, size_t>& accesses) {
    std::set<size_t> wanted;
    for (const auto& [access, number] : accesses)
      if (llvm::isa<llvm::LoadInst>(access) && (in_rounds_.contains(access) || in_starts_.contains(access)))
        wanted.insert(number);
    std::map<size_t, size_t> numbers;
    std::vector<Kind> loaded;
    for (const size_t number : wanted) {
      numbers[number] = loaded.size();
      loaded.push_back(all[number]);
    }
    std::erase_if(accesses, [&](const auto& access) { return !numbers.contains(access.second); });
    for (auto& [access, number] : accesses) number = numbers.at(number);
    all = std::move(loaded);
  }
  static bool is_decided(const Instruction& end, const Kept& kept, const Kept& without) {
    const auto* condition = llvm::dyn_cast<Instruction>(end.getOperand(0));
    return kept.contains(&end) && !without.contains(&end) && !(condition && without.contains(condition));
  }
  BasicBlock* shortest(Instruction& end) const {
    BasicBlock* taken = nullptr;
    for (BasicBlock* to : llvm::successors(&end)) {
      if (to == outer().getHeader()) return to;
      if (outer().contains(to) && (!taken || distance_.at(to) < distance_.at(taken))) taken = to;
    }
    return taken ? taken : end.getSuccessor(0);
  }
  // Unless that is a further turn of a loop within, perhaps for ever.
  BasicBlock* on_to_wait(Instruction& end) const {
    const llvm::Loop* const loop = loops_.getLoopFor(end.getParent());
    if (loop == &outer() || !loop->isLoopExiting(end.getParent()))
      for (BasicBlock* to : llvm::successors(&end))
        if (to != outer().getHeader() && outer().contains(to) && leads_to_wait_.contains(to)) return to;
    return shortest(end);
  }

  IterationRunShape found_;
  const PHINode* behind_ = nullptr;      // that starts need, and do not know
  std::vector<llvm::LoadInst*> before_;  // of what the iteration before has waited for
  std::map<const BasicBlock*, size_t> distance_;
  std::set<const BasicBlock*> leads_to_wait_;
  Kept in_rounds_, in_starts_, undetermined_;
};

}  // namespace

std::expected<IterationRunShape, std::string> find_iteration_run_shape(
    const IrModule& ir, llvm::Loop& outer, const StallOfMost& stall, llvm::LoopInfo& loops,
    llvm::DominatorTree& dominators, const llvm::PostDominatorTree& postdominators,
    llvm::ScalarEvolution& evolution) {
  return IterationRunFinder(ir, loops, dominators, postdominators, evolution).find(outer, stall);
}

}  // namespace hindsight::jit::optimizing
