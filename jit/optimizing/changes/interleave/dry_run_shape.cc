#include <fmt/format.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "jit/optimizing/changes/interleave/chased_loops.h"
#include "jit/optimizing/changes/interleave/dry_run.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// Each costs a frame 4 KiB.
constexpr size_t kMostBuffers = 2;

class DryRunFinder {
 public:
  DryRunFinder(const IrModule& ir, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
               llvm::ScalarEvolution& evolution)
      : ir_(ir), loops_(loops), dominators_(dominators), evolution_(evolution) {}

  std::expected<DryRunShape, std::string> find(llvm::LoadInst& load, llvm::Loop& chase) {
    shape_.parts.chase = &chase;
    shape_.parts.outer = chase.getParentLoop();
    function_ = load.getFunction();
    if (!shape_.parts.outer) return std::unexpected("there is no loop around the search");
    if (!check_loops() || !cut_blocks() || !find_unknown()) return std::unexpected(reason_);
    find_buffers();
    find_places();
    run_ahead();
    if (!find_steps()) return std::unexpected(reason_);
    find_within();
    if (!check_searches() || !check_frame()) return std::unexpected(reason_);
    find_far();
    find_memories();
    return std::move(shape_);
  }

 private:
  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }
  llvm::Loop& outer() const { return *shape_.parts.outer; }
  llvm::Loop& chase() const { return *shape_.parts.chase; }
  bool is_copied(const BasicBlock* block) const {
    return shape_.parts.in_head.contains(block) || shape_.parts.in_steps.contains(block);
  }
  bool is_header_phi(const Instruction& instruction) const {
    return llvm::isa<PHINode>(instruction) && instruction.getParent() == outer().getHeader();
  }

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
      const Instruction* const end = block->getTerminator();
      if (!llvm::isa<llvm::BranchInst, llvm::SwitchInst>(end))
        return refuse("the search contains a branch that cannot be copied");
      for (const BasicBlock* to : llvm::successors(block))
        if (is_turn(*block, *to) && llvm::count(llvm::successors(block), to) != 1)
          return refuse("the search contains a branch that cannot be copied");
      for (const Instruction& instruction : *block)
        if (instruction.getType()->isTokenTy())
          return refuse("the search contains an instruction that cannot be copied");
    }
    if (instructions > kMaxInterleavedInstructions)
      return refuse(fmt::format("the search is longer than {} instructions", kMaxInterleavedInstructions));
    return true;
  }
  // Goes back to the header of a loop.
  bool is_turn(const BasicBlock& from, const BasicBlock& to) const {
    const llvm::Loop* const loop = loops_.getLoopFor(&to);
    return loop && loop->getHeader() == &to && loop->contains(&from);
  }

  // Its value is not to be had in a dry run: what a call returns, say.
  bool is_source_of_unknown(const Instruction& instruction) const {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      if (!load->isSimple() || ir_.is_among(*load, IrModule::World::kCells)) return true;
      // Elements of tables are read behind a check that may stand elsewhere by now.
      if (ir_.is_among(*load, IrModule::World::kRuntime))
        return !outer().isLoopInvariant(load->getPointerOperand());
      return !Speculation::memory_of(ir_, load->getPointerOperand(), *function_);
    }
    if (instruction.getType()->isVoidTy() || llvm::isa<PHINode>(instruction) || instruction.isIntDivRem())
      return false;
    return !only_computes(instruction);
  }

  bool find_unknown() {
    std::vector<const Instruction*> work;
    for (const BasicBlock* block : outer().blocks())
      for (const Instruction& instruction : *block)
        if (is_copied(block) && is_source_of_unknown(instruction)) work.push_back(&instruction);
    while (!work.empty()) {
      const Instruction* const instruction = work.back();
      work.pop_back();
      if (!shape_.unknown.insert(instruction).second) continue;
      for (const llvm::User* user : instruction->users()) {
        const auto* by = llvm::cast<Instruction>(user);
        if (!is_copied(by->getParent()) || is_header_phi(*by)) continue;
        // Where ways meet of which one is known, the dry run takes nothing from the other.
        const auto* phi = llvm::dyn_cast<PHINode>(by);
        const bool known = phi && phi->getParent() != chase().getHeader() &&
                           !llvm::all_of(phi->incoming_values(), [&](const Value* way) {
                             const auto* made = llvm::dyn_cast<Instruction>(way);
                             return made && shape_.unknown.contains(made);
                           });
        if (!known) work.push_back(by);
      }
    }
    return guess_branches();
  }

  // On to the search; out of it. Where both ways stay in the search, only if nobody comes there.
  bool guess_branches() {
    std::vector<Instruction*> undecided;
    for (const auto* blocks : {&shape_.parts.head, &shape_.parts.steps}) {
      for (BasicBlock* block : *blocks) {
        Instruction* const end = block->getTerminator();
        if (!shape_.unknown.contains(end)) continue;
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

  // Stores by an index and loads from the same place on.
  void find_buffers() {
    std::vector<DryRunShape::Buffer> stored;
    const auto access_of = [&](const Instruction& access) -> std::optional<DryRunShape::Buffer> {
      const Value* const address = llvm::getLoadStorePointerOperand(&access);
      if (!address || ir_.is_among(access, IrModule::World::kRuntime) ||
          ir_.is_among(access, IrModule::World::kCells) || shape_.unknown.contains(&access))
        return std::nullopt;
      const uint64_t bytes = function_->getDataLayout().getTypeStoreSize(
          llvm::getLoadStoreType(const_cast<Instruction*>(&access)));
      if (bytes > sizeof(uint64_t)) return std::nullopt;
      const auto memory = Speculation::memory_of(ir_, address, *function_);
      const llvm::SCEV* const pointer = evolution_.getSCEV(const_cast<Value*>(address));
      auto* const base = llvm::dyn_cast<llvm::SCEVUnknown>(evolution_.getPointerBase(pointer));
      if (!memory || !base || !outer().isLoopInvariant(base->getValue())) return std::nullopt;
      const llvm::SCEV* begin = part_that_stays(*guest_address(*address), /*depth=*/0);
      if (begin && (begin->isZero() || llvm::SCEVExprContains(begin, [](const llvm::SCEV* part) {
                      return llvm::isa<llvm::SCEVUDivExpr>(part);
                    })))
        begin = nullptr;
      if (!begin && llvm::isa<llvm::StoreInst>(access)) return std::nullopt;
      return DryRunShape::Buffer{
          .begin = begin, .base = base->getValue(), .memory = *memory, .stored_bytes = bytes};
    };
    const auto same = [](const DryRunShape::Buffer& a, const DryRunShape::Buffer& b) {
      return a.begin == b.begin && a.base == b.base && a.memory == b.memory;
    };
    // From its first byte on, or from some more into it.
    const auto is_seen_in = [&](const DryRunShape::Buffer& access, const DryRunShape::Buffer& buffer) {
      if (!access.begin || access.base != buffer.base || access.memory != buffer.memory) return false;
      const auto* distance =
          llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(access.begin, buffer.begin));
      return distance && distance->getAPInt().ult(DryRunShape::Buffer::kBytes);
    };
    // What loads a byte somewhere may do so in a buffer of bytes: where a pointer into it came from cannot be seen in a nest,
    // but code in a dry run looks whether it is one.
    const auto is_in = [&](const DryRunShape::Buffer& access, const DryRunShape::Buffer& buffer) {
      return is_seen_in(access, buffer) || (access.stored_bytes == 1 && buffer.stored_bytes == 1 &&
                                            access.base == buffer.base && access.memory == buffer.memory);
    };
    const auto each = [&](bool stores, const auto& visit) {
      for (const auto* blocks : {&shape_.parts.head, &shape_.parts.steps})
        for (const BasicBlock* block : *blocks)
          for (const Instruction& instruction : *block)
            if (stores ? llvm::isa<llvm::StoreInst>(instruction) && blocks == &shape_.parts.head
                       : llvm::isa<llvm::LoadInst>(instruction))
              if (const auto access = access_of(instruction)) visit(instruction, *access);
    };
    each(/*stores=*/true, [&](const Instruction& store, const DryRunShape::Buffer& access) {
      // One place alone is no buffer.
      if (evolution_.isLoopInvariant(guest_address(*llvm::getLoadStorePointerOperand(&store)), &outer()))
        return;
      if (llvm::none_of(stored, [&](const auto& other) { return same(access, other); }))
        stored.push_back(access);
    });
    each(/*stores=*/false, [&](const Instruction&, const DryRunShape::Buffer& access) {
      for (const DryRunShape::Buffer& buffer : stored)
        if (is_in(access, buffer) && shape_.buffers.size() < kMostBuffers &&
            llvm::none_of(shape_.buffers, [&](const auto& other) { return same(buffer, other); }))
          shape_.buffers.push_back(buffer);
    });
    for (const bool stores : {true, false})
      each(stores, [&](const Instruction& instruction, const DryRunShape::Buffer& access) {
        // The one that it is seen to be in comes before one of bytes that it may be in.
        for (const bool seen : {true, false})
          for (size_t i = 0; i < shape_.buffers.size(); ++i)
            if (seen ? is_seen_in(access, shape_.buffers[i]) : is_in(access, shape_.buffers[i]))
              shape_.in_buffer.emplace(&instruction, i);
      });
  }

  // What of an address is the same in all iterations, and what loops within begin with. Null: not known, or it goes on with
  // the iterations.
  const llvm::SCEV* part_that_stays(const llvm::SCEV& address, unsigned depth) const {
    constexpr unsigned kDeepest = 8;
    if (depth > kDeepest) return nullptr;
    if (evolution_.isLoopInvariant(&address, &outer())) return &address;
    if (const auto* turns = llvm::dyn_cast<llvm::SCEVAddRecExpr>(&address))
      return turns->getLoop() == &outer() ? nullptr : part_that_stays(*turns->getStart(), depth + 1);
    if (const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(&address)) {
      const llvm::SCEV* all = evolution_.getZero(address.getType());
      for (const llvm::SCEV* part : sum->operands()) {
        const llvm::SCEV* const stays = part_that_stays(*part, depth + 1);
        if (!stays) return nullptr;
        all = evolution_.getAddExpr(all, stays);
      }
      return all;
    }
    if (const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(&address)) {
      const auto* phi = llvm::dyn_cast<PHINode>(unknown->getValue());
      if (phi && is_header_phi(*phi)) return nullptr;
      const llvm::Loop* const loop = phi ? loops_.getLoopFor(phi->getParent()) : nullptr;
      if (loop && loop->getHeader() == phi->getParent() && loop->getLoopPreheader())
        return part_that_stays(*evolution_.getSCEV(phi->getIncomingValueForBlock(loop->getLoopPreheader())),
                               depth + 1);
    }
    return evolution_.getZero(address.getType());
  }

  void find_places() {
    const auto place_of = [&](Instruction& access) -> std::optional<DryRunShape::Place> {
      Value* const address = llvm::getLoadStorePointerOperand(&access);
      if (!address || shape_.in_buffer.contains(&access) || ir_.is_among(access, IrModule::World::kRuntime) ||
          ir_.is_among(access, IrModule::World::kCells) || !outer().isLoopInvariant(address))
        return std::nullopt;
      const auto memory = Speculation::memory_of(ir_, address, *function_);
      if (!memory) return std::nullopt;
      return DryRunShape::Place{
          .address = address, .type = llvm::getLoadStoreType(&access), .memory = *memory, .next = nullptr};
    };
    for (BasicBlock* block : outer().blocks()) {
      for (Instruction& instruction : *block) {
        if (!llvm::isa<llvm::StoreInst>(instruction) || shape_.parts.in_steps.contains(block)) continue;
        auto place = place_of(instruction);
        if (!place || known_place(*place) || shape_.unknown.contains(&instruction)) continue;
        if (!shape_.parts.in_head.contains(block)) {
          if (!dominators_.dominates(block, outer().getLoopLatch())) continue;
          place->next = llvm::cast<llvm::StoreInst>(instruction).getValueOperand();
        }
        shape_.places.push_back(*place);
      }
    }
    for (const BasicBlock* block : shape_.parts.head)
      for (const Instruction& instruction : *block)
        if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction))
          if (const auto place = place_of(const_cast<Instruction&>(instruction)))
            if (const auto known = known_place(*place); known && !shape_.unknown.contains(&instruction))
              shape_.at_place[&instruction] = *known;
  }
  std::optional<size_t> known_place(const DryRunShape::Place& place) const {
    for (size_t i = 0; i < shape_.places.size(); ++i)
      if (shape_.places[i].type == place.type && shape_.places[i].memory == place.memory &&
          guest_address(*shape_.places[i].address) == guest_address(*place.address))
        return i;
    return std::nullopt;
  }
  // In 32 bits, in which a frame's slot is the same place whether its distance from the stack pointer was added as a number
  // or stands in the instruction. For the program these differ where the sum wraps; a dry run may guess that it does not.
  const llvm::SCEV* guest_address(const Value& address) const {
    const llvm::SCEV* const pointer = evolution_.getSCEV(const_cast<Value*>(&address));
    const llvm::SCEV* const offset = evolution_.getMinusSCEV(pointer, evolution_.getPointerBase(pointer));
    return evolution_.getTruncateExpr(offset, llvm::Type::getInt32Ty(address.getContext()));
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
    shape_.starts = find_interleave_starts(ir_, shape_.parts, dominators_, evolution_);
    shape_.starts.heads.clear();
    shape_.starts.inductions.clear();
    std::erase_if(shape_.starts.steps, [&](const KnownLoad& known) { return !can_fetch(known); });
    return !shape_.starts.steps.empty() || refuse("the search's next step is not known before it begins");
  }

  // Loops within, the innermost ones alone, in which each turn waits for the one before.
  void find_within() {
    for (llvm::Loop* loop : chase().getLoopsInPreorder()) {
      if (loop == &chase() || !loop->isInnermost() || !loop->isLoopSimplifyForm()) continue;
      DryRunShape::Within within{.loop = loop, .steps = find_turn_starts(*loop, evolution_), .live = {}};
      std::erase_if(within.steps, [&](const KnownLoad& known) { return !can_fetch(known); });
      if (within.steps.empty()) continue;
      for (BasicBlock* block : shape_.parts.steps)
        for (Instruction& instruction : *block)
          if (dominators_.properlyDominates(block, loop->getHeader()) && is_used_elsewhere(instruction) &&
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
              from && shape_.parts.in_head.contains(from->getParent()))
            carried.insert(from);
    for (const PHINode& phi : chase().getHeader()->phis()) carried.insert(&phi);
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

  // An address that iterations come to one after the other, or that is the same for all.
  bool is_in_order(const llvm::SCEV& address) const {
    constexpr int64_t kLongestStride = 2048;
    return !llvm::SCEVExprContains(&address, [&](const llvm::SCEV* part) {
      if (const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part))
        return !outer().isLoopInvariant(unknown->getValue());
      if (const auto* stride = llvm::dyn_cast<llvm::SCEVAddRecExpr>(part)) {
        const auto* by = llvm::dyn_cast<llvm::SCEVConstant>(stride->getStepRecurrence(evolution_));
        return !by || by->getAPInt().abs().ugt(kLongestStride);
      }
      return llvm::isa<llvm::SCEVUDivExpr>(part);
    });
  }

  void find_memories() {
    for (const BasicBlock* block : outer().blocks())
      for (const Instruction& instruction : *block)
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
            load && !ir_.is_among(*load, IrModule::World::kRuntime) &&
            !ir_.is_among(*load, IrModule::World::kCells))
          if (const auto memory = Speculation::memory_of(ir_, load->getPointerOperand(), *function_))
            shape_.memories.insert(*memory);
    for (const DryRunShape::Place& place : shape_.places) shape_.memories.insert(place.memory);
  }

  const IrModule& ir_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  const llvm::Function* function_ = nullptr;
  DryRunShape shape_;
  std::map<const Instruction*, bool> can_know_;
  std::set<const Instruction*> from_heads_;  // that the next head needs
  std::string reason_;
};

}  // namespace

std::expected<DryRunShape, std::string> find_dry_run_shape(const IrModule& ir, llvm::LoadInst& load,
                                                           llvm::Loop& chase, llvm::LoopInfo& loops,
                                                           llvm::DominatorTree& dominators,
                                                           llvm::ScalarEvolution& evolution) {
  return DryRunFinder(ir, loops, dominators, evolution).find(load, chase);
}

}  // namespace hindsight::jit::optimizing
