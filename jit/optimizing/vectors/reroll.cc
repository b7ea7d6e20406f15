#include "jit/optimizing/vectors/reroll.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <map>
#include <set>

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

constexpr unsigned kMostCopies = 32;
constexpr size_t kMostLeaves = 128;

// `copies` divides every group's step.
class Matcher {
 public:
  Matcher(const llvm::Loop& loop, const AffineAccesses& accesses, llvm::ScalarEvolution& evolution,
          unsigned copies)
      : loop_(loop),
        block_(*loop.getHeader()),
        accesses_(accesses),
        evolution_(evolution),
        copies_(copies),
        like_(copies) {
    int64_t position = 0;
    for (Instruction& instruction : block_) position_[&instruction] = position++;
  }

  std::optional<Rerolling> match() {
    rerolling_.copies = copies_;
    if (!match_stores() || !match_reductions() || !match_recurrences() || !check_leaving_values()) return {};
    if (!keeps_order()) return {};
    return std::move(rerolling_);
  }

 private:
  bool inside(const Value* value) const {
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    return instruction && instruction->getParent() == &block_;
  }

  // Whether `later` is in copy `j` what `first` is in the first.
  bool alike(Value* first, Value* later, unsigned j) {
    if (!inside(first) || !inside(later)) return first == later;
    auto* const a = llvm::cast<Instruction>(first);
    auto* const b = llvm::cast<Instruction>(later);
    if (const auto known = like_[j].find(a); known != like_[j].end()) return known->second == b;
    if (++effort_ > 20000) return false;
    if (!computed_alike_.contains(a) && is_step_further(a, b, j)) return note(a, b, j);
    // What is computed anew in one copy is so in all.
    if (advances_.contains(a)) return false;
    if (auto* const phi = llvm::dyn_cast<PHINode>(a)) return carries(*phi, b, j) && note(a, b, j);
    if (!a->isSameOperationAs(b) || llvm::isa<PHINode>(b)) return false;
    if (a->getOpcode() == Instruction::Load || a->getOpcode() == Instruction::Store) {
      const AffineAccess *one = accesses_.of(a), *other = accesses_.of(b);
      if (one->group != other->group ||
          other->offset - one->offset != j * (accesses_.groups[one->group].step / copies_))
        return false;
      if (one->is_store && !alike(a->getOperand(0), b->getOperand(0), j)) return false;
      return note(a, b, j);
    }
    // Whatever is alike along the way stays noted, also if the operators turn out not to be: it is true.
    const unsigned operands = a->getNumOperands();
    bool same = true;
    for (unsigned i = 0; same && i < operands; ++i) same = alike(a->getOperand(i), b->getOperand(i), j);
    if (!same && a->isCommutative() && operands >= 2) {
      same = alike(a->getOperand(0), b->getOperand(1), j) && alike(a->getOperand(1), b->getOperand(0), j);
      for (unsigned i = 2; same && i < operands; ++i) same = alike(a->getOperand(i), b->getOperand(i), j);
    }
    if (!same) return false;
    computed_alike_.insert(a);
    return note(a, b, j);
  }
  bool note(Instruction* a, Instruction* b, unsigned j) {
    like_[j].emplace(a, b);
    return true;
  }

  // Induction variables, and whatever else scalar evolution knows to advance by as much in each iteration, by
  // what operators it may be computed. That says nothing of the places between two of its values, which it
  // has when the loop is rerolled. `i | 1` is `i + 1` for every even i alone, and `zext(i)` is linear until i
  // wraps. So it is to be computed anew.
  bool is_step_further(Instruction* a, Instruction* b, unsigned j) {
    if (!a->getType()->isIntegerTy() || a->getType() != b->getType()) return false;
    const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(a));
    if (!recurrence || recurrence->getLoop() != &loop_ || !recurrence->isAffine()) return false;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(recurrence->getStepRecurrence(evolution_));
    const auto* distance =
        llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(evolution_.getSCEV(b), recurrence));
    if (!step || !distance || step->getAPInt().getSignificantBits() > 32) return false;
    const int64_t whole = step->getAPInt().getSExtValue();
    if (whole % copies_ != 0) return false;
    const int64_t part = whole / static_cast<int64_t>(copies_);
    if (distance->getAPInt() !=
        llvm::APInt(step->getAPInt().getBitWidth(), static_cast<uint64_t>(j * part), true))
      return false;
    // A header's phi advances in smaller steps by itself.
    if (!llvm::isa<PHINode>(a) && advances_.insert(a).second)
      rerolling_.advancing.push_back({a, recurrence->getStart(), part});
    return true;
  }

  // A value that one copy hands to the next: copy j gets `value`, which copy j - 1 makes.
  bool carries(PHINode& phi, Instruction* value, unsigned j) {
    if (induction_step(phi, loop_, evolution_)) return false;
    auto& made = recurrences_[&phi];
    made.resize(copies_);
    if (made[j - 1] && made[j - 1] != value) return false;
    made[j - 1] = value;
    return true;
  }

  bool match_stores() {
    std::vector<const AffineAccess*> open;
    for (const AffineAccess& access : accesses_.all)
      if (access.is_store) open.push_back(&access);
    if (open.size() % copies_ != 0) return false;
    while (!open.empty()) {
      // The first copy's is the one that no other is a step after.
      const int64_t step = accesses_.groups[open.front()->group].step / copies_;
      auto first = open.begin();
      for (auto other = open.begin(); other != open.end();) {
        if ((*other)->group == (*first)->group && (*first)->offset - (*other)->offset == step && step != 0) {
          first = other;
          other = open.begin();
        } else {
          ++other;
        }
      }
      const AffineAccess* const store = *first;
      open.erase(first);
      for (unsigned j = 1; j < copies_; ++j) {
        const auto later = std::find_if(open.begin(), open.end(), [&](const AffineAccess* other) {
          return other->group == store->group && other->offset == store->offset + j * step &&
                 other->bytes == store->bytes;
        });
        if (later == open.end() || !alike(store->instruction, (*later)->instruction, j)) return false;
        rerolling_.stores.push_back((*later)->instruction);
        open.erase(later);
      }
    }
    return true;
  }

  // What is left of `value` when operators like `root` are taken off. The operators are used nowhere else.
  bool collect_leaves(Value* value, const Instruction& root, std::vector<Value*>& leaves) {
    auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
    if (operation && inside(operation) && operation->getOpcode() == root.getOpcode() &&
        (operation == &root || operation->hasOneUse()))
      return collect_leaves(operation->getOperand(0), root, leaves) &&
             collect_leaves(operation->getOperand(1), root, leaves);
    leaves.push_back(value);
    return leaves.size() <= kMostLeaves;
  }

  // Sums and the like, whose operands may have been joined in any order.
  bool match_reductions() {
    for (PHINode& phi : block_.phis()) {
      if (induction_step(phi, loop_, evolution_) || !phi.getType()->isIntegerTy() || !phi.hasOneUse())
        continue;
      auto* const last = llvm::dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(&block_));
      if (!last || !inside(last) || !last->isAssociative() || !last->isCommutative()) continue;
      std::vector<Value*> leaves;
      if (!collect_leaves(last, *last, leaves)) continue;
      const auto own = std::find(leaves.begin(), leaves.end(), &phi);
      if (own == leaves.end()) continue;
      leaves.erase(own);
      if (leaves.empty() || leaves.size() % copies_ != 0) return false;
      Rerolling::Carried carried{&phi, last, nullptr, {}};
      while (!leaves.empty()) {
        if (!take_like_leaves(leaves, carried.leaves)) return false;
      }
      rerolling_.carried.push_back(std::move(carried));
    }
    return true;
  }
  // Moves a leaf of the first copy from `open` to `first`, and removes its likes.
  bool take_like_leaves(std::vector<Value*>& open, std::vector<Value*>& first) {
    for (Value* candidate : open) {
      std::vector<Value*> left = open;
      left.erase(std::find(left.begin(), left.end(), candidate));
      bool complete = true;
      for (unsigned j = 1; complete && j < copies_; ++j) {
        const auto like =
            std::find_if(left.begin(), left.end(), [&](Value* other) { return alike(candidate, other, j); });
        complete = like != left.end();
        if (complete) left.erase(like);
      }
      if (!complete) continue;
      first.push_back(candidate);
      open = std::move(left);
      return true;
    }
    return false;
  }

  bool match_recurrences() {
    std::set<PHINode*> done;
    for (bool more = true; more;) {
      more = false;
      for (auto& [phi, made] : recurrences_) {
        if (!done.insert(phi).second) continue;
        more = true;
        made[copies_ - 1] = llvm::dyn_cast<Instruction>(phi->getIncomingValueForBlock(&block_));
        for (Instruction* value : made)
          if (!value || !inside(value)) return false;
        const std::vector<Instruction*> values = made;
        for (unsigned j = 1; j < copies_; ++j)
          if (!alike(values[0], values[j], j)) return false;
        rerolling_.carried.push_back({phi, values[copies_ - 1], values[0], {}});
        break;  // the map may have grown
      }
    }
    return true;
  }

  // After the loop only what its last copy hands on may be used.
  bool check_leaving_values() {
    for (Instruction& instruction : block_) {
      const bool leaves = std::any_of(
          instruction.user_begin(), instruction.user_end(),
          [&](llvm::User* user) { return llvm::cast<Instruction>(user)->getParent() != &block_; });
      if (!leaves) continue;
      bool known = false;
      for (const Rerolling::Carried& carried : rerolling_.carried) known |= carried.last == &instruction;
      for (PHINode& phi : block_.phis()) {
        const std::optional<int64_t> step = induction_step(phi, loop_, evolution_);
        known |= step && *step % copies_ == 0 && phi.getIncomingValueForBlock(&block_) == &instruction;
      }
      if (!known) return false;
    }
    return true;
  }

  // Rerolled, all of one copy comes before all of the next. Two accesses that change places, one of them a
  // store, must not be of the same bytes.
  bool keeps_order() {
    struct Instance {
      const AffineAccess* access;
      unsigned copy;
      int64_t position;        // now
      int64_t first_position;  // of its like in the first copy
    };
    std::vector<Instance> instances;
    for (const AffineAccess& access : accesses_.all) {
      const auto has_like = [&](unsigned j) { return like_[j].contains(access.instruction); };
      // A load of the first copy alone is known by having likes.
      if (!has_like(1)) continue;
      const int64_t position = position_[access.instruction];
      instances.push_back({&access, 0, position, position});
      for (unsigned j = 1; j < copies_; ++j) {
        const auto like = like_[j].find(access.instruction);
        if (like == like_[j].end()) continue;
        instances.push_back({accesses_.of(like->second), j, position_[like->second], position});
      }
    }
    std::set<std::pair<size_t, size_t>> apart;
    for (size_t i = 0; i < instances.size(); ++i) {
      for (size_t k = i + 1; k < instances.size(); ++k) {
        const Instance &a = instances[i], &b = instances[k];
        if (!a.access->is_store && !b.access->is_store) continue;
        const bool before = a.position < b.position;
        const bool then = a.copy != b.copy ? a.copy < b.copy : a.first_position < b.first_position;
        if (before == then) continue;
        if (a.access->group == b.access->group) {
          if (a.access->offset < b.access->offset + b.access->bytes &&
              b.access->offset < a.access->offset + a.access->bytes)
            return false;
        } else {
          apart.insert(std::minmax(a.access->group, b.access->group));
        }
      }
    }
    rerolling_.apart.assign(apart.begin(), apart.end());
    return true;
  }

  const llvm::Loop& loop_;
  llvm::BasicBlock& block_;
  const AffineAccesses& accesses_;
  llvm::ScalarEvolution& evolution_;
  const unsigned copies_;
  std::vector<std::map<Instruction*, Instruction*>>
      like_;  // by copy: what an instruction of the first is there
  // Values of the first copy that are like those in the others. Some are so because they advance evenly, some
  // because operators are the same and operands alike. No instruction is both: rerolled, it is computed in
  // one way.
  std::set<Instruction*> advances_;
  std::set<Instruction*> computed_alike_;
  std::map<PHINode*, std::vector<Instruction*>> recurrences_;
  std::map<const Instruction*, int64_t> position_;
  Rerolling rerolling_;
  unsigned effort_ = 0;
};

}  // namespace

std::optional<int64_t> induction_step(PHINode& phi, const llvm::Loop& loop,
                                      llvm::ScalarEvolution& evolution) {
  if (!phi.getType()->isIntegerTy()) return {};
  const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(&phi));
  if (!recurrence || recurrence->getLoop() != &loop || !recurrence->isAffine()) return {};
  const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(recurrence->getStepRecurrence(evolution));
  if (!step || step->getAPInt().getSignificantBits() > 32) return {};
  return step->getAPInt().getSExtValue();
}

Rerolling find_copies(const llvm::Loop& loop, const AffineAccesses& accesses,
                      llvm::ScalarEvolution& evolution) {
  // As many copies as there can be: the more, the shorter the body.
  for (unsigned copies = kMostCopies; copies >= 2; --copies) {
    bool possible = !accesses.all.empty();
    for (const AccessGroup& group : accesses.groups) possible &= group.step % copies == 0;
    if (!possible) continue;
    if (std::optional<Rerolling> found = Matcher(loop, accesses, evolution, copies).match()) return *found;
  }
  return {};
}

}  // namespace hindsight::jit::optimizing
