#include "jit/optimizing/generate/needs.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>

#include "jit/optimizing/ir/loop_values.h"

namespace hindsight::jit::optimizing {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;

namespace {

constexpr size_t kStepsPerBlock = 400, kLeastSteps = 20'000;
// The bound for one phi. In a loop that shifts, each iteration makes another set.
constexpr size_t kMostSetsOfAPhi = 12;
// How far each way is followed after a branch.
constexpr size_t kMostBlocksOfAWay = 24;

bool calls_for_effect(const Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  return call != nullptr && !call->isInlineAsm() && !llvm::isa<llvm::IntrinsicInst>(call) &&
         call->mayWriteToMemory();
}

// No other one stores to that address. Of two in a row the first is removed, and of one behind a branch and one before it LLVM makes one that
// stores what a select chooses.
bool stores_alone(const llvm::StoreInst& store) {
  return llvm::none_of(store.getPointerOperand()->users(), [&](const llvm::User* user) {
    const auto* const other = llvm::dyn_cast<llvm::StoreInst>(user);
    return other != nullptr && other != &store && other->getPointerOperand() == store.getPointerOperand();
  });
}

// One that stays: not what is there for passes alone.
bool has_effect(const BasicBlock& block) {
  return llvm::any_of(block, [](const Instruction& instruction) {
    const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
    return store != nullptr ? !may_store_less(*store) && stores_alone(*store) : calls_for_effect(instruction);
  });
}

bool may_have_effect(const BasicBlock& block) {
  return llvm::any_of(block, [](const Instruction& instruction) {
    return llvm::isa<llvm::StoreInst>(instruction) || calls_for_effect(instruction);
  });
}

// Where a way out of a loop comes to, past blocks that do nothing, and with what.
struct WayOut {
  const BasicBlock* to = nullptr;  // null: the function's end
  llvm::SmallVector<const llvm::Value*, 4> values;
};

WayOut way_out(const BasicBlock* from, const BasicBlock* to) {
  llvm::DenseMap<const llvm::Value*, const llvm::Value*> known;
  const auto value_of = [&](const llvm::Value* value) {
    const auto found = known.find(value);
    return found == known.end() ? value : found->second;
  };
  WayOut way;
  for (size_t steps = 0;; ++steps) {
    way.values.clear();
    for (const PHINode& phi : to->phis()) way.values.push_back(value_of(phi.getIncomingValueForBlock(from)));
    size_t i = 0;
    for (const PHINode& phi : to->phis()) known[&phi] = way.values[i++];
    const BasicBlock* const next = to->getSingleSuccessor();
    if (next == nullptr || may_have_effect(*to) || steps == kMostBlocksOfAWay) break;
    from = to;
    to = next;
  }
  way.to = to;
  const auto* const end = llvm::dyn_cast<llvm::ReturnInst>(to->getTerminator());
  if (end == nullptr || may_have_effect(*to)) return way;
  way.to = nullptr;
  way.values.clear();
  if (end->getReturnValue() != nullptr) way.values.push_back(value_of(end->getReturnValue()));
  return way;
}

}  // namespace

Needs::Needs(const llvm::Function& function, const llvm::LoopInfo& loops,
             const std::vector<llvm::LoadInst*>& loads, Ignored ignored)
    : loops_(loops),
      layout_(function.getParent()->getDataLayout()),
      ignored_(std::move(ignored)),
      limit_(kLeastSteps + kStepsPerBlock * function.size()) {
  for (const llvm::LoadInst* load : loads) add(*load, last_byte(*load));
  // Grows while it is walked.
  for (size_t i = 0; i < values_.size(); ++i) {
    Places places = find_places(Bits(values_[i]));
    std::erase_if(places.edges, [&](Edge& edge) {
      const std::optional<size_t> to = add(*edge.phi, edge.set);
      if (!to) return true;
      edge.to = *to;
      users_[*to].push_back(i);
      return false;
    });
    places_.push_back(std::move(places));
  }
  // The largest set: all of them, less those that are found not to be, until nothing changes any more.
  needed_.assign(values_.size(), true);
  std::vector<size_t> worklist;
  for (size_t i = values_.size(); i-- > 0;) worklist.push_back(i);
  while (!worklist.empty()) {
    const size_t i = worklist.back();
    worklist.pop_back();
    if (!needed_[i] || on_every_way(*values_[i].value, places_[i])) continue;
    needed_[i] = false;
    worklist.insert(worklist.end(), users_[i].begin(), users_[i].end());
  }
  // Not looked at to the end: what was not refuted is not proven.
  if (steps_ > limit_) needed_.assign(values_.size(), false);
}

bool Needs::everywhere(const llvm::LoadInst& load) const {
  return needed_[index_.find(&load)->second.front()];
}

// The index of these bits; none: of this phi there are too many sets.
std::optional<size_t> Needs::add(const Instruction& value, BitSet set) {
  llvm::SmallVector<size_t, 1>& known = index_[&value];
  for (const size_t i : known)
    if (values_[i].set == set) return i;
  if (known.size() >= kMostSetsOfAPhi) return std::nullopt;
  known.push_back(values_.size());
  values_.push_back({&value, std::move(set)});
  users_.emplace_back();
  return known.back();
}

Needs::Places Needs::find_places(const Bits& bits) {
  const Instruction& value = *bits.value;
  Places places;
  llvm::DenseMap<const Instruction*, llvm::SmallVector<BitSet, 1>> seen;
  std::vector<Bits> worklist{bits};
  while (!worklist.empty()) {
    const Bits at = std::move(worklist.back());
    worklist.pop_back();
    if (at.set.isZero()) continue;
    for (const llvm::Use& use : at.value->uses()) {
      if (!step()) return {};
      const auto* const by = llvm::cast<Instruction>(use.getUser());
      if (ignored_(*by)) continue;
      if (const auto* phi = llvm::dyn_cast<PHINode>(by)) {
        places.edges.push_back({phi->getIncomingBlock(use), phi, at.set});
      } else if (by->isTerminator() || by->mayWriteToMemory()) {
        if (!is_firm(*by, value)) continue;
        places.blocks.insert(by->getParent());
        if (by->getParent() != value.getParent()) continue;
        places.at_once = true;
        return places;  // what else needs it makes no difference
      } else {
        BitSet shown = shown_bits(use, at.set, layout_);
        if (shown.isZero()) continue;
        llvm::SmallVector<BitSet, 1>& of_user = seen[by];
        if (llvm::any_of(of_user, [&](const BitSet& set) { return shown.isSubsetOf(set); })) continue;
        of_user.push_back(shown);
        worklist.push_back({by, std::move(shown)});
      }
    }
  }
  return places;
}

// Whether LLVM can neither remove `need` nor move it out of the value's loop.
bool Needs::is_firm(const Instruction& need, const Instruction& value) {
  if (llvm::isa<llvm::AssumeInst>(need)) return false;
  if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&need)) {
    // An argument that a function of this module does not need is not passed to it.
    const llvm::Function* const callee = call->getCalledFunction();
    return callee == nullptr || callee->isDeclaration();
  }
  if (need.isTerminator()) return is_firm_branch(need);
  const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&need);
  if (store != nullptr && (may_store_less(*store) || !stores_alone(*store))) return false;
  const llvm::Loop* loop = store ? loops_.getLoopFor(value.getParent()) : nullptr;
  while (loop != nullptr && !loop->contains(store)) loop = loop->getParentLoop();
  // A store to the same place each time is made once, after a loop of vectors.
  return loop == nullptr || !store->isSimple() ||
         varies_in(*loop, *store->getPointerOperand(), [&] { return step(); });
}

// A branch goes, and with it what decided it, when LLVM finds that both of its ways do the same. They may store the same number, which a
// loop in one of them turns out to compute, or do nothing that anything needs. That cannot be where one way stores or calls whatever comes,
// and the other neither stores nor calls anything before they meet. Nor can it be where one ends in a trap. More than
// two ways are kept apart for reasons that LLVM does not see through.
bool Needs::is_firm_branch(const Instruction& branch) {
  if (branch.getNumSuccessors() != 2) return true;  // a return among them
  const BasicBlock* const ways[] = {branch.getSuccessor(0), branch.getSuccessor(1)};
  const llvm::Loop* const loop = loops_.getLoopFor(branch.getParent());
  if (loop != nullptr && (!loop->contains(ways[0]) || !loop->contains(ways[1])))
    return is_distinct_exit(branch, *loop);
  const auto traps = [](const BasicBlock* way) {
    return llvm::isa<llvm::UnreachableInst>(way->getTerminator());
  };
  if (traps(ways[0]) != traps(ways[1])) return true;
  BlockSet reached[2];
  for (const int i : {0, 1})
    if (!reach(*ways[i], branch, reached[i])) return false;
  for (const int i : {0, 1}) {
    const BlockSet& other = reached[1 - i];
    const bool quiet = llvm::none_of(other, [&](const BasicBlock* block) {
      return !reached[i].contains(block) && may_have_effect(*block);
    });
    if (!quiet) continue;
    const BasicBlock* at = ways[i];
    for (size_t steps = 0; at != nullptr && !other.contains(at) && steps < kMostBlocksOfAWay; ++steps) {
      if (has_effect(*at)) return true;
      at = at->getSingleSuccessor();
    }
  }
  return false;
}

// To leave a loop is to stay in it where another way out comes to the same place with the same values: in the last of a few iterations LLVM finds that
// the branch decides nothing. What it is left with otherwise differs from iteration to iteration, or by the way.
bool Needs::is_distinct_exit(const Instruction& branch, const llvm::Loop& loop) {
  llvm::SmallVector<llvm::Loop::Edge, 8> exits;
  loop.getExitEdges(exits);
  const BasicBlock* const from = branch.getParent();
  const bool stays_first = loop.contains(branch.getSuccessor(0));
  const WayOut own = way_out(from, branch.getSuccessor(stays_first ? 1 : 0));
  const auto varies_in_it = [&](const llvm::Value* value) {
    const auto* const computed = llvm::dyn_cast<Instruction>(value);
    return computed != nullptr && loop.contains(computed);
  };
  // Two ends in one, such as a byte that was looked for and a count.
  using namespace llvm::PatternMatch;
  const auto* const two_ways = llvm::dyn_cast<llvm::BranchInst>(&branch);
  if (two_ways != nullptr &&
      match(two_ways->getCondition(),
            m_CombineOr(m_LogicalAnd(m_Value(), m_Value()), m_LogicalOr(m_Value(), m_Value()))) &&
      !is_used_outside(loop) && llvm::none_of(own.values, varies_in_it))
    return false;
  BlockSet same_iteration;
  if (!reach(*branch.getSuccessor(stays_first ? 0 : 1), branch, same_iteration)) return false;
  return llvm::all_of(exits, [&](const llvm::Loop::Edge& exit) {
    if (exit.first == from) return true;
    for (int steps = 0; steps < 4; ++steps)
      if (!step()) return false;
    const WayOut other = way_out(exit.first, exit.second);
    if (own.to != other.to) return true;
    for (const auto [one, another] : llvm::zip_equal(own.values, other.values)) {
      if (one != another) return true;
      if (varies_in_it(one) && !same_iteration.contains(exit.first)) return true;
    }
    return is_used_outside(loop) && !same_iteration.contains(exit.first);
  });
}

// Whether something that an iteration computes is, where the loop has been left.
bool Needs::is_used_outside(const llvm::Loop& loop) {
  const auto [known, is_new] = used_outside_.try_emplace(&loop, false);
  if (!is_new) return known->second;
  for (const BasicBlock* block : loop.blocks())
    for (const Instruction& instruction : *block)
      for (const llvm::User* user : instruction.users()) {
        if (!step()) return false;
        const auto* const by = llvm::cast<Instruction>(user);
        // A phi has what it is where the loop is left by one way.
        if (!loop.contains(by) && !llvm::isa<PHINode>(by) && !ignored_(*by)) return known->second = true;
      }
  return false;
}

// The blocks from there on, in this iteration of the innermost loop around the branch. False: too many to look at.
bool Needs::reach(const BasicBlock& begin, const Instruction& branch, BlockSet& reached) {
  const llvm::Loop* const loop = loops_.getLoopFor(branch.getParent());
  std::vector<const BasicBlock*> worklist{&begin};
  while (!worklist.empty()) {
    const BasicBlock* const at = worklist.back();
    worklist.pop_back();
    if (loop != nullptr && (!loop->contains(at) || at == loop->getHeader())) continue;
    if (!reached.insert(at).second) continue;
    if (reached.size() > kMostBlocksOfAWay || !step()) return false;
    worklist.insert(worklist.end(), llvm::succ_begin(at), llvm::succ_end(at));
  }
  return true;
}

bool Needs::on_every_way(const Instruction& value, const Places& places) {
  if (places.at_once) return true;
  const BasicBlock* const begin = value.getParent();
  const auto comes_in = [&](const BasicBlock* from, const BasicBlock* to) {
    return std::any_of(places.edges.begin(), places.edges.end(), [&](const Edge& edge) {
      return edge.from == from && edge.phi->getParent() == to && needed_[edge.to];
    });
  };
  bool meets = false;
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
      if (places.blocks.contains(next)) continue;
      if (seen.insert(next).second)
        worklist.push_back(next);
      else
        meets = true;
    }
  }
  if (!meets) return true;
  // A way that never ends comes to no need either: from each block there has to be one that does.
  bool found = true;
  llvm::SmallPtrSet<const BasicBlock*, 16> coming;
  while (found) {
    found = false;
    for (const BasicBlock* at : seen) {
      if (coming.contains(at)) continue;
      const bool comes = llvm::any_of(llvm::successors(at), [&](const BasicBlock* next) {
        return coming.contains(next) || places.blocks.contains(next) || comes_in(at, next);
      });
      if (!step()) return false;
      if (comes) found = coming.insert(at).second;
    }
  }
  return coming.size() == seen.size();
}

}  // namespace hindsight::jit::optimizing
