#include "jit/optimizing/needs.h"

#include <llvm/IR/CFG.h>

#include <algorithm>

namespace hindsight::jit::optimizing {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;

namespace {

constexpr size_t kStepsPerBlock = 400, kLeastSteps = 20'000;

}  // namespace

Needs::Needs(const llvm::Function& function, const llvm::LoopInfo& loops,
             const std::vector<llvm::LoadInst*>& loads, Ignored ignored)
    : loops_(loops), ignored_(std::move(ignored)), limit_(kLeastSteps + kStepsPerBlock * function.size()) {
  for (const llvm::LoadInst* load : loads) add(*load);
  // Grows while it is walked.
  for (size_t i = 0; i < values_.size(); ++i) {
    Places places = find_places(*values_[i]);
    for (const Edge& edge : places.edges) {
      add(*edge.to);
      users_[index_[edge.to]].push_back(i);
    }
    places_.push_back(std::move(places));
  }
  // The largest set: all of them, less those that are found not to be, until nothing changes any more.
  for (const Instruction* value : values_) needed_[value] = true;
  std::vector<size_t> worklist;
  for (size_t i = values_.size(); i-- > 0;) worklist.push_back(i);
  while (!worklist.empty()) {
    const size_t i = worklist.back();
    worklist.pop_back();
    bool& needed = needed_[values_[i]];
    if (!needed || on_every_way(*values_[i], places_[i])) continue;
    needed = false;
    worklist.insert(worklist.end(), users_[i].begin(), users_[i].end());
  }
  // Not looked at to the end: what was not refuted is not proven.
  if (steps_ > limit_)
    for (auto& [value, needed] : needed_) needed = false;
}

void Needs::add(const Instruction& value) {
  if (!index_.try_emplace(&value, values_.size()).second) return;
  values_.push_back(&value);
  users_.emplace_back();
}

Needs::Places Needs::find_places(const Instruction& value) {
  Places places;
  llvm::SmallPtrSet<const Instruction*, 16> seen{&value};
  std::vector<const Instruction*> worklist{&value};
  while (!worklist.empty()) {
    const Instruction* const at = worklist.back();
    worklist.pop_back();
    for (const llvm::User* user : at->users()) {
      if (!step()) return {};
      const auto* const by = llvm::cast<Instruction>(user);
      if (ignored_(*by)) continue;
      if (const auto* phi = llvm::dyn_cast<PHINode>(by)) {
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
          if (phi->getIncomingValue(i) == at) places.edges.push_back({phi->getIncomingBlock(i), phi});
      } else if (by->isTerminator() || by->mayWriteToMemory()) {
        if (!is_firm(*by, value)) continue;
        places.blocks.insert(by->getParent());
        if (by->getParent() != value.getParent()) continue;
        places.at_once = true;
        return places;  // what else needs it makes no difference
      } else if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(by);
                 select && select->getCondition() != at) {
        continue;
      } else if (seen.insert(by).second) {
        worklist.push_back(by);
      }
    }
  }
  return places;
}

// Whether LLVM can neither remove `need` nor move it out of the value's loop. (Stores that others overwrite
// are gone by now, see protect.h.)
bool Needs::is_firm(const Instruction& need, const Instruction& value) {
  if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&need)) {
    // An argument that a function of this module does not need is not passed to it.
    const llvm::Function* const callee = call->getCalledFunction();
    return callee == nullptr || callee->isDeclaration();
  }
  const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&need);
  const llvm::Loop* const loop = store ? loops_.getLoopFor(value.getParent()) : nullptr;
  // One to the same place each time is made once, behind the loop.
  return loop == nullptr || !store->isSimple() || varies(*store->getPointerOperand(), *loop);
}

// Whether `value` is made of something that changes from turn to turn.
bool Needs::varies(const llvm::Value& value, const llvm::Loop& loop) {
  llvm::SmallPtrSet<const llvm::Value*, 16> seen;
  std::vector<const llvm::Value*> worklist{&value};
  while (!worklist.empty()) {
    const auto* const at = llvm::dyn_cast<Instruction>(worklist.back());
    worklist.pop_back();
    if (at == nullptr || !loop.contains(at) || !seen.insert(at).second) continue;
    if (llvm::isa<PHINode>(at)) return true;
    if (!step()) return false;
    worklist.insert(worklist.end(), at->op_begin(), at->op_end());
  }
  return false;
}

bool Needs::on_every_way(const Instruction& value, const Places& places) {
  if (places.at_once) return true;
  const BasicBlock* const begin = value.getParent();
  const auto comes_in = [&](const BasicBlock* from, const BasicBlock* to) {
    return std::any_of(places.edges.begin(), places.edges.end(), [&](const Edge& edge) {
      return edge.from == from && edge.to->getParent() == to && needed_.lookup(edge.to);
    });
  };
  llvm::SmallPtrSet<const BasicBlock*, 16> seen;
  std::vector<const BasicBlock*> worklist{begin};
  while (!worklist.empty()) {
    const BasicBlock* const at = worklist.back();
    worklist.pop_back();
    const Instruction* const end = at->getTerminator();
    // A trap is a way out as well: the load's own would have come before it.
    if (end->getNumSuccessors() == 0) return false;
    for (const BasicBlock* next : llvm::successors(at)) {
      if (!step()) return false;
      if (comes_in(at, next)) continue;
      if (next == begin) return false;
      if (!places.blocks.contains(next) && seen.insert(next).second) worklist.push_back(next);
    }
  }
  return true;
}

}  // namespace hindsight::jit::optimizing
