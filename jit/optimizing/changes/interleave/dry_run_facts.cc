#include "jit/optimizing/changes/interleave/dry_run_facts.h"

#include <fmt/format.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "jit/optimizing/changes/interleave/chased_loops.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/versions/speculation.h"

namespace hindsight::jit::optimizing {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

namespace {

// A number below where linkers place the first data is that of a member in a record, not of a place in memory.
bool is_offset(const llvm::SCEV& address) {
  const auto* number = llvm::dyn_cast<llvm::SCEVConstant>(&address);
  return number && number->getAPInt().ult(kFirstData);
}

}  // namespace

bool DryRunFacts::check_block(const BasicBlock& block, std::string_view part) {
  const auto is_turn = [&](const BasicBlock& to) {  // goes back to the header of a loop
    const llvm::Loop* const loop = loops_.getLoopFor(&to);
    return loop && loop->getHeader() == &to && loop->contains(&block);
  };
  const auto is_twofold_turn = [&](const BasicBlock* to) {
    return is_turn(*to) && llvm::count(llvm::successors(&block), to) != 1;
  };
  if (!llvm::isa<llvm::BranchInst, llvm::SwitchInst>(block.getTerminator()) ||
      llvm::any_of(llvm::successors(&block), is_twofold_turn))
    return refuse(fmt::format("the {} contains a branch that cannot be copied", part));
  if (llvm::any_of(block, [](const Instruction& instruction) { return instruction.getType()->isTokenTy(); }))
    return refuse(fmt::format("the {} contains an instruction that cannot be copied", part));
  return true;
}

bool DryRunFacts::is_source_of_unknown(const Instruction& instruction) const {
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

void DryRunFacts::find_unknown() {
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
      const bool begins_loop =
          phi && (shape_.parts.chase ? phi->getParent() == shape_.parts.chase->getHeader()
                                     : loops_.isLoopHeader(phi->getParent()));
      const bool known = phi && !begins_loop && !llvm::all_of(phi->incoming_values(), [&](const Value* way) {
                           const auto* made = llvm::dyn_cast<Instruction>(way);
                           return made && shape_.unknown.contains(made);
                         });
      if (!known) work.push_back(by);
    }
  }
}

void DryRunFacts::find_buffers() {
  std::vector<DryRunShape::Buffer> stored, fixed;
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
    const llvm::SCEV* begin = part_that_stays(*guest_address(*address));
    if (begin && (is_offset(*begin) || llvm::SCEVExprContains(begin, [](const llvm::SCEV* part) {
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
  const auto stays = [&](const Instruction& access) {
    return evolution_.isLoopInvariant(guest_address(*llvm::getLoadStorePointerOperand(&access)), &outer());
  };
  const auto add = [&](const DryRunShape::Buffer& buffer) {
    if (shape_.buffers.size() < kMostBuffers &&
        llvm::none_of(shape_.buffers, [&](const auto& other) { return same(buffer, other); }))
      shape_.buffers.push_back(buffer);
  };
  each(/*stores=*/true, [&](const Instruction& store, const DryRunShape::Buffer& access) {
    std::vector<DryRunShape::Buffer>& its = stays(store) ? fixed : stored;
    if (llvm::none_of(its, [&](const auto& other) { return same(access, other); })) its.push_back(access);
  });
  each(/*stores=*/false, [&](const Instruction& load, const DryRunShape::Buffer& access) {
    for (const DryRunShape::Buffer& buffer : stored)
      if (is_in(access, buffer)) add(buffer);
    // One place alone is no buffer, unless its bytes are loaded by an index, as those of a key are. From the first place on.
    const DryRunShape::Buffer* first = nullptr;
    if (!stays(load))
      for (const DryRunShape::Buffer& buffer : fixed)
        if (is_seen_in(access, buffer) && (!first || is_seen_in(*first, buffer))) first = &buffer;
    if (first) add(*first);
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

const llvm::SCEV* DryRunFacts::part_that_stays(const llvm::SCEV& address, unsigned depth) const {
  if (depth > kDeepestPart) return nullptr;
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
    if (phi && is_header_phi(*phi)) return begins_anew_with(*phi);
    const llvm::Loop* const loop = phi ? loops_.getLoopFor(phi->getParent()) : nullptr;
    if (loop && loop->getHeader() == phi->getParent() && loop->getLoopPreheader() &&
        !is_fed_by_load(*phi, *loop))
      return part_that_stays(*evolution_.getSCEV(phi->getIncomingValueForBlock(loop->getLoopPreheader())),
                             depth + 1);
  }
  return evolution_.getZero(address.getType());
}

// An index that iterations go on with by a few places, or leave as it is, and that some set back to one number, as the length
// of a word that a text is read into: that number. Null: it is no such index.
const llvm::SCEV* DryRunFacts::begins_anew_with(const PHINode& index) const {
  const llvm::SCEV* const before = evolution_.getSCEV(const_cast<PHINode*>(&index));
  const llvm::SCEV* anew = nullptr;
  std::vector<const Value*> work{index.getIncomingValueForBlock(outer().getLoopLatch())};
  llvm::SmallPtrSet<const Value*, 8> seen;
  while (!work.empty()) {
    const Value* const next = work.back();
    work.pop_back();
    if (!seen.insert(next).second || next == &index) continue;
    const llvm::SCEV* const now = evolution_.getSCEV(const_cast<Value*>(next));
    const auto* const by = llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(now, before));
    if (by && by->getAPInt().abs().ule(kMostPlacesOnward)) continue;
    const auto* const meet = llvm::dyn_cast<PHINode>(next);
    const auto* const choice = llvm::dyn_cast<llvm::SelectInst>(next);
    const auto* const least = llvm::dyn_cast<llvm::MinMaxIntrinsic>(next);
    if (meet && outer().contains(meet) && !loops_.isLoopHeader(meet->getParent())) {
      work.insert(work.end(), meet->value_op_begin(), meet->value_op_end());
    } else if (choice && outer().contains(choice)) {
      work.insert(work.end(), {choice->getTrueValue(), choice->getFalseValue()});
    } else if (least) {
      work.insert(work.end(), {least->getLHS(), least->getRHS()});
    } else if (llvm::isa<llvm::SCEVConstant>(now) && (!anew || anew == now)) {
      anew = now;
    } else {
      return nullptr;
    }
  }
  return anew;
}

std::optional<DryRunShape::Place> DryRunFacts::place_of(Instruction& access) const {
  Value* const address = llvm::getLoadStorePointerOperand(&access);
  if (!address || shape_.in_buffer.contains(&access) || ir_.is_among(access, IrModule::World::kRuntime) ||
      ir_.is_among(access, IrModule::World::kCells) || !outer().isLoopInvariant(address))
    return std::nullopt;
  const auto memory = Speculation::memory_of(ir_, address, *function_);
  if (!memory) return std::nullopt;
  return DryRunShape::Place{
      .address = address, .type = llvm::getLoadStoreType(&access), .memory = *memory, .next = nullptr};
}

void DryRunFacts::find_places() {
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
std::optional<size_t> DryRunFacts::known_place(const DryRunShape::Place& place) const {
  for (size_t i = 0; i < shape_.places.size(); ++i)
    if (shape_.places[i].type == place.type && shape_.places[i].memory == place.memory &&
        guest_address(*shape_.places[i].address) == guest_address(*place.address))
      return i;
  return std::nullopt;
}
const llvm::SCEV* DryRunFacts::guest_address(const Value& address) const {
  return optimizing::guest_address(evolution_, address);
}

bool DryRunFacts::is_in_order(const llvm::SCEV& address) const {
  return !llvm::SCEVExprContains(&address, [&](const llvm::SCEV* part) {
    if (const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part))
      return !outer().isLoopInvariant(unknown->getValue());
    if (const auto* stride = llvm::dyn_cast<llvm::SCEVAddRecExpr>(part)) {
      const auto* by = llvm::dyn_cast<llvm::SCEVConstant>(stride->getStepRecurrence(evolution_));
      return !by || by->getAPInt().abs().ugt(kLongestStrideInOrder);
    }
    return llvm::isa<llvm::SCEVUDivExpr>(part);
  });
}

void DryRunFacts::find_controls() {
  for (BasicBlock* block : outer().blocks()) {
    if (llvm::succ_size(block) < 2) continue;
    const auto* const meet = postdominators_.getNode(block)->getIDom();
    for (BasicBlock* to : llvm::successors(block)) {
      if (to == outer().getHeader()) continue;
      for (const auto* node = postdominators_.getNode(to); node && node != meet && node->getBlock();
           node = node->getIDom())
        if (outer().contains(node->getBlock())) controls_[node->getBlock()].insert(block->getTerminator());
    }
  }
}

void DryRunFacts::close(std::vector<const Instruction*> work, const Kept& without, Kept& kept) const {
  const auto add_value = [&](const Value* value) {
    if (const auto* instruction = llvm::dyn_cast<Instruction>(value)) work.push_back(instruction);
  };
  const auto add_controls = [&](const BasicBlock* block) {
    if (const auto found = controls_.find(block); found != controls_.end())
      work.insert(work.end(), found->second.begin(), found->second.end());
  };
  const auto add_stores_of = [&](const auto& accesses, const Instruction& load) {
    const auto its = accesses.find(&load);
    if (its == accesses.end()) return;
    for (const auto& [access, number] : accesses)
      if (number == its->second && llvm::isa<llvm::StoreInst>(access)) work.push_back(access);
  };
  while (!work.empty()) {
    const Instruction* const instruction = work.back();
    work.pop_back();
    const bool is_known = !without.contains(instruction);
    if (!outer().contains(instruction) || (!is_known && !instruction->isTerminator())) continue;
    if (!kept.insert(instruction).second || is_header_phi(*instruction)) continue;
    if (llvm::isa<llvm::StoreInst>(instruction) || instruction->isTerminator())
      add_controls(instruction->getParent());
    if (llvm::isa<llvm::LoadInst>(instruction)) {
      add_stores_of(shape_.at_place, *instruction);
      add_stores_of(shape_.in_buffer, *instruction);
    }
    if (const auto* phi = llvm::dyn_cast<PHINode>(instruction)) {
      for (const BasicBlock* from : phi->blocks()) {
        if (!outer().contains(from)) continue;
        if (llvm::succ_size(from) > 1 && !begins_turn(*from, *phi->getParent()))
          work.push_back(from->getTerminator());
        add_controls(from);
      }
    }
    if (is_known)
      for (const Value* operand : instruction->operands()) add_value(operand);
  }
}

bool DryRunFacts::begins_turn(const BasicBlock& from, const BasicBlock& header) const {
  const llvm::Loop* const search = shape_.parts.chase;
  return search && search->getHeader() == &header && search->contains(&from);
}

void DryRunFacts::add_ways_to(const llvm::LoadInst& load, std::vector<const Instruction*>& work) const {
  if (const auto* address = llvm::dyn_cast<Instruction>(load.getPointerOperand())) work.push_back(address);
  if (const auto found = controls_.find(load.getParent()); found != controls_.end())
    work.insert(work.end(), found->second.begin(), found->second.end());
}

std::map<const BasicBlock*, size_t> DryRunFacts::distances_to_latch(const llvm::Loop& loop) {
  std::map<const BasicBlock*, size_t> distances{{loop.getLoopLatch(), 0}};
  std::vector<const BasicBlock*> work{loop.getLoopLatch()};
  for (size_t i = 0; i < work.size(); ++i)
    for (const BasicBlock* from : llvm::predecessors(work[i]))
      if (work[i] != loop.getHeader() && loop.contains(from) &&
          distances.try_emplace(from, distances[work[i]] + 1).second)
        work.push_back(from);
  return distances;
}

void DryRunFacts::find_memories() {
  for (const BasicBlock* block : outer().blocks())
    for (const Instruction& instruction : *block)
      if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
          load && !ir_.is_among(*load, IrModule::World::kRuntime) &&
          !ir_.is_among(*load, IrModule::World::kCells))
        if (const auto memory = Speculation::memory_of(ir_, load->getPointerOperand(), *function_))
          shape_.memories.insert(*memory);
  for (const DryRunShape::Place& place : shape_.places) shape_.memories.insert(place.memory);
}

}  // namespace hindsight::jit::optimizing
