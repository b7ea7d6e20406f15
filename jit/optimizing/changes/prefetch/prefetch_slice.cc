#include "jit/optimizing/changes/prefetch/prefetch_slice.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "jit/optimizing/changes/prefetch/counted_ways.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/changes/prefetch/row_sequence.h"
#include "jit/optimizing/versions/loop_versions.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// What is known about a value of the slice.
struct Trait {
  bool varies = false;  // changes with the loop's induction variable
  bool strided = true;  // by a constant amount each iteration: the hardware prefetches that
  uint32_t level = 0;   // misses on the way to it
};

struct Refusal {
  std::string why;
  bool is_stream = false;  // what the hardware prefetches
};

class Slicer {
 public:
  Slicer(const IrModule& ir, llvm::Loop& loop, llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution,
         const CarriedWords& words, bool guesses, bool forks = false)
      : ir_(ir), loop_(loop), loops_(loops), evolution_(evolution), words_(words), guesses_(guesses) {
    if (forks) found_.result.forks.emplace();
  }

  // `within`: the row that the loop in this one goes through.
  std::expected<PrefetchSlice, Refusal> slice(Instruction& target, const std::optional<Row>& within = {}) {
    found_.result.target = &target;
    found_.result.loop = &loop_;
    Trait trait;
    if (!visit(llvm::getLoadStorePointerOperand(&target), trait) || (found_.result.forks && !visit_forks()))
      return std::unexpected(Refusal{.why = reason_});
    if (!trait.varies)
      return std::unexpected(
          Refusal{.why = "the address does not depend on an induction variable of the loop"});
    if (found_.result.forks) {
      if (!check_forks()) return std::unexpected(Refusal{.why = reason_});
    } else if (trait.strided && !long_stride(target))
      return std::unexpected(Refusal{
          .why = "the address has a constant stride: left to the hardware prefetcher", .is_stream = true});
    found_.result.target_level = trait.level + 1;
    found_.result.levels[&target] = found_.result.target_level;
    if (within)
      note_elements(*within);
    else if (found_.result.short_runs)
      note_row();
    return std::move(found_.result);
  }

 private:
  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }

  // Tries something else first: what it found stays only if it succeeds.
  template <typename Attempt>
  bool attempt(Attempt attempted) {
    const Found before = found_;
    const std::string reason = reason_;
    const bool succeeded = attempted();
    if (!succeeded) found_ = before;
    reason_ = reason;
    return succeeded;
  }

  // A stride that a run is given is a row's length or the like.
  bool long_stride(const Instruction& access) {
    const auto is_given = [](const auto& step) { return !llvm::isa<llvm::Constant>(step.second); };
    if (std::ranges::any_of(found_.result.steps, is_given)) return true;
    auto* const pointer = const_cast<Value*>(llvm::getLoadStorePointerOperand(&access));
    const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(pointer));
    if (!recurrence || recurrence->getLoop() != &loop_) return false;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(recurrence->getStepRecurrence(evolution_));
    return !step || step->getAPInt().abs().uge(kLongStrideBytes);
  }

  // Recursion is bounded: every level adds an operation, of which there are at most kMaxSliceOperations, or
  // steps from a phi to one of its values.
  bool visit(Value* value, Trait& trait) {
    auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !loop_.contains(instruction)) {
      trait = {};
      return true;
    }
    if (const auto known = found_.traits.find(instruction); known != found_.traits.end()) {
      trait = known->second;
      return true;
    }
    if (found_.result.forks && is_header_phi(*instruction))
      return visit_fork(llvm::cast<llvm::PHINode>(*instruction), trait);
    if (!found_.open.insert(instruction).second) return refuse("the address depends on itself");
    if (++visited_ > kMostVisits)
      return refuse("the address needs more than " + std::to_string(kMaxSliceOperations) + " operations");
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
      if (!visit_phi(*phi, trait)) return false;
    } else if (found_.result.forks && !in_condition_ && instruction->getType()->isIntegerTy(1)) {
      if (!visit_condition(*instruction, trait)) return false;
    } else if (auto* select = llvm::dyn_cast<llvm::SelectInst>(instruction); select && guesses_) {
      const auto exactly = [&] { return visit_operation(*select, trait); };
      if (!attempt(exactly) && !visit_ways(*select, {select->getTrueValue(), select->getFalseValue()}, trait))
        return false;
    } else if (!visit_operation(*instruction, trait)) {
      return false;
    }
    found_.open.erase(instruction);
    found_.traits[instruction] = trait;
    return true;
  }

  bool visit_phi(llvm::PHINode& phi, Trait& trait) {
    if (is_header_phi(phi)) return visit_induction(phi, trait);
    llvm::Loop* const inner = loops_.getLoopFor(phi.getParent());
    if (!inner || inner->getHeader() != phi.getParent() || inner == &loop_) {
      if (phi.getNumIncomingValues() == 1) {  // a loop exit's phi
        found_.result.starts[&phi] = phi.getIncomingValue(0);
        return visit(phi.getIncomingValue(0), trait);
      }
      if (attempt([&] { return visit_choice(phi, trait); })) return true;
      if (found_.result.forks) return visit_join(phi, trait);
      if (guesses_) {
        const std::vector<Value*> values(phi.incoming_values().begin(), phi.incoming_values().end());
        if (visit_ways(phi, values, trait)) return true;
      }
      return refuse("the address depends on the outcome of a branch");
    }
    llvm::BasicBlock* const entered_from = inner->getLoopPredecessor();
    if (found_.result.forks) return refuse("the address depends on an inner loop");
    if (!entered_from) return refuse("an inner loop has several entries");
    Value* const start = phi.getIncomingValueForBlock(entered_from);
    found_.result.starts[&phi] = start;
    return visit(start, trait);
  }

  bool is_header_phi(const Instruction& instruction) const {
    return optimizing::is_header_phi(instruction, loop_);
  }

  // With what it may be in the next iteration.
  bool visit_fork(llvm::PHINode& phi, Trait& trait) {
    const llvm::BasicBlock* const latch = loop_.getLoopLatch();
    if (!latch) return refuse("the loop has several latches");
    Value* const next = phi.getIncomingValueForBlock(latch);
    trait = {.varies = true, .strided = false, .level = 0};
    found_.result.forks->next.emplace(&phi, next);
    return true;
  }
  // Once the address is done with, so that nothing seems to depend on itself.
  bool visit_forks() {
    std::set<const llvm::PHINode*> visited;
    for (bool is_new = true; is_new;) {
      is_new = false;
      const std::map<llvm::PHINode*, Value*> known = found_.result.forks->next;
      for (const auto& [phi, next] : known) {
        if (!visited.insert(phi).second) continue;
        is_new = true;
        Trait trait;
        if (!visit(next, trait)) return false;
      }
    }
    return true;
  }

  bool has_room_for_condition() {
    return found_.result.forks->count < kMaxForkConditions ||
           refuse("the address depends on the outcomes of several branches");
  }

  // What needs no load is computed. Else it may be either.
  bool visit_condition(Instruction& condition, Trait& trait) {
    in_condition_ = true;
    const bool was_in_distance = std::exchange(in_distance_, false);
    const bool is_known = attempt([&] { return visit_operation(condition, trait); });
    in_condition_ = false;
    in_distance_ = was_in_distance;
    if (is_known) return true;
    if (!has_room_for_condition()) return false;
    Forks& forks = *found_.result.forks;
    forks.conditions[&condition] = forks.count++;
    trait = {.varies = true, .strided = false, .level = 0};
    return true;
  }

  // Ways that bring two values.
  bool visit_join(llvm::PHINode& phi, Trait& trait) {
    Value* const then = phi.getIncomingValue(0);
    Value* otherwise = nullptr;
    std::vector<bool> brings_then;
    for (Value* value : phi.incoming_values()) {
      brings_then.push_back(value == then);
      if (value == then) continue;
      if (otherwise && value != otherwise)
        return refuse("the address depends on the outcomes of several branches");
      otherwise = value;
    }
    if (!otherwise) otherwise = then;
    Forks& forks = *found_.result.forks;
    const auto way = std::pair(static_cast<const llvm::BasicBlock*>(phi.getParent()), std::move(brings_then));
    if (!forks.ways.contains(way)) {
      if (!has_room_for_condition()) return false;
      forks.ways[way] = forks.count++;
    }
    forks.joins[&phi] = {.condition = forks.ways.at(way), .then = then, .otherwise = otherwise};
    Trait part;
    if (!visit(then, part) || !visit(otherwise, part)) return false;
    trait = {.varies = true, .strided = false, .level = 0};
    return true;
  }

  bool check_forks() {
    const Forks& forks = *found_.result.forks;
    if (forks.count == 0) return refuse("the address is not a function of an induction variable");
    const bool is_stream =
        llvm::all_of(forks.next, [&](const auto& next) { return stays_near(*next.second, *next.first); });
    if (!is_stream) return true;
    return refuse("the address goes on in small steps: left to the hardware prefetcher");
  }
  // Whether a phi is so much, or a little more or less, whichever way is gone. Recursion is bounded by the slice.
  bool stays_near(const Value& value, const llvm::PHINode& phi) const {
    if (&value == &phi) return true;
    const auto* instruction = llvm::dyn_cast<Instruction>(&value);
    if (!instruction || !loop_.contains(instruction)) return false;
    if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(instruction))
      return stays_near(*select->getTrueValue(), phi) && stays_near(*select->getFalseValue(), phi);
    if (llvm::isa<llvm::PHINode>(instruction))
      return !is_header_phi(*instruction) && llvm::all_of(instruction->operands(), [&](const llvm::Use& way) {
        return stays_near(*way, phi);
      });
    if (!llvm::isa<llvm::GetElementPtrInst>(instruction) && instruction->getOpcode() != Instruction::Add)
      return false;
    const Value* const amount = instruction->getOperand(1);
    const auto* number = llvm::dyn_cast<llvm::ConstantInt>(amount);
    const auto* extended = llvm::dyn_cast<llvm::CastInst>(amount);
    const bool is_small = number ? number->getValue().abs().ult(kLongStrideBytes)
                                 : extended && extended->getSrcTy()->isIntegerTy(1);
    return is_small && stays_near(*instruction->getOperand(0), phi);
  }

  // A branch whose two ways meet in the phi's block, with at most a block of their own in between.
  std::optional<Choice> choice_of(const llvm::PHINode& phi) const {
    if (phi.getNumIncomingValues() != 2) return std::nullopt;
    const llvm::BasicBlock* const join = phi.getParent();
    const llvm::BranchInst* decides = nullptr;
    Value* values[2] = {};
    for (unsigned i = 0; i < 2; ++i) {
      const llvm::BasicBlock* from = phi.getIncomingBlock(i);
      const llvm::BasicBlock* into = join;
      if (from->getUniqueSuccessor()) {
        into = from;
        from = from->getSinglePredecessor();
      }
      if (!from || loops_.getLoopFor(from) != loops_.getLoopFor(join)) return std::nullopt;
      const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from->getTerminator());
      if (!branch || !branch->isConditional() || (decides && branch != decides)) return std::nullopt;
      decides = branch;
      const unsigned way = branch->getSuccessor(0) == into ? 0 : 1;
      if (values[way]) return std::nullopt;
      values[way] = phi.getIncomingValue(i);
    }
    return Choice{.condition = decides->getCondition(), .then = values[0], .otherwise = values[1]};
  }

  bool visit_choice(llvm::PHINode& phi, Trait& trait) {
    const std::optional<Choice> choice = choice_of(phi);
    if (!choice) return false;
    Trait joined;
    for (Value* value : {choice->condition, choice->then, choice->otherwise}) {
      Trait part;
      if (!visit(value, part)) return false;
      joined.varies |= part.varies;
      joined.level = std::max(joined.level, part.level);
    }
    joined.strided = !joined.varies;
    trait = joined;
    found_.result.choices[&phi] = *choice;
    return true;
  }

  // One of the values is taken, whichever way is gone: the one that says most about the iteration. Constants are what
  // is left of an empty bucket or an end. What is seldom brought costs more than it brings.
  bool visit_ways(Instruction& join, const std::vector<Value*>& values, Trait& trait) {
    std::optional<Found> best;
    for (Value* value : values) {
      if (llvm::isa<llvm::Constant>(value) || guessed_ >= kMostGuesses) continue;
      const auto* const phi = llvm::dyn_cast<llvm::PHINode>(&join);
      if (phi && share_of_way(*phi, *value).value_or(1) < kLeastShareOfAGuess) continue;
      ++guessed_;
      const Found before = found_;
      Trait part;
      const bool succeeded = visit(value, part);
      const bool is_better =
          !best || std::pair(part.varies, part.level) > std::pair(trait.varies, trait.level);
      if (succeeded && is_better) {
        found_.result.ways[&join] = value;
        best = std::move(found_);
        trait = part;
      }
      found_ = before;
    }
    if (!best) return false;
    found_ = std::move(*best);
    return true;
  }

  bool visit_induction(llvm::PHINode& phi, Trait& trait) {
    if (Value* const step = step_of(phi)) {
      found_.result.steps[&phi] = step;
      note_short_runs(phi);
      trait = {.varies = true, .strided = true, .level = 0};
      return true;
    }
    if (visit_recurrence(phi)) {
      trait = {.varies = true, .strided = false, .level = 0};
      return true;
    }
    const llvm::BasicBlock* const latch = loop_.getLoopLatch();
    Value* const next = latch ? phi.getIncomingValueForBlock(latch) : nullptr;
    const auto as_computed_before = [&] {
      found_.result.delayed[&phi] = next;
      return visit(next, trait) && trait.varies;
    };
    if (next && attempt(as_computed_before)) return true;
    if (std::map<const Instruction*, size_t> depths; stays(&phi, depths, 0)) {
      found_.result.staying.insert(&phi);
      trait = {};
      return true;
    }
    // Why not: look at where the next value comes from.
    return refuse(fed_by_load(phi) ? "the address depends on the previous iteration's load"
                                   : "the address is not a function of an induction variable");
  }

  // Whether a value is loaded anew in each iteration from a place that stays: a vector's pointer to its elements, where a store
  // may be to the vector. It mostly is what it was. So it is if one of the ways that meet gets a new place by a call, as a vector that has to grow.
  // What comes from itself in another way than where ways meet does not stay: `depths` says how many operations lie in front of
  // what is, or was, looked at.
  bool stays(const Value* value, std::map<const Instruction*, size_t>& depths, size_t depth) const {
    constexpr size_t kDone = ~size_t{0};
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !loop_.contains(instruction)) return true;
    const auto [known, is_new] = depths.try_emplace(instruction, depth);
    if (!is_new) return known->second == kDone || known->second == depth;
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(instruction);
    const auto* const join = llvm::dyn_cast<llvm::PHINode>(instruction);
    const bool may = load ? load->isSimple() : join || clonable(*instruction);
    if (!may || depths.size() > kMostLookedAtToStay) return false;
    const auto is_new_place = [&](const Value* part) { return comes_from_calls(part); };
    const bool may_have_grown = join && !loops_.isLoopHeader(join->getParent()) &&
                                !llvm::all_of(join->incoming_values(), is_new_place);
    for (const Value* part : instruction->operand_values()) {
      if (may_have_grown && is_new_place(part)) continue;
      if (!stays(part, depths, join ? depth : depth + 1)) return false;
    }
    depths[instruction] = kDone;
    return true;
  }

  // What a call returns, or where ways meet that all bring that.
  bool comes_from_calls(const Value* value) const {
    std::vector<const Value*> work{value};
    llvm::SmallPtrSet<const Value*, kMostLookedAtForCalls> seen;
    bool has_call = false;
    while (!work.empty()) {
      const Value* const at = work.back();
      work.pop_back();
      if (!seen.insert(at).second) continue;
      const auto* const join = llvm::dyn_cast<llvm::PHINode>(at);
      if (join && !loops_.isLoopHeader(join->getParent()) && seen.size() < kMostLookedAtForCalls)
        work.insert(work.end(), join->value_op_begin(), join->value_op_end());
      else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(at); call && !clonable(*call))
        has_call = true;
      else if (!llvm::isa<llvm::Constant>(at))
        return false;
    }
    return has_call;
  }

  // By how much the phi changes each iteration; null: by no fixed amount.
  Value* step_of(const llvm::PHINode& phi) {
    const llvm::BasicBlock* const latch = loop_.getLoopLatch();
    if (evolution_.isSCEVable(phi.getType())) {
      const auto* recurrence =
          llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(const_cast<llvm::PHINode*>(&phi)));
      if (recurrence && recurrence->getLoop() == &loop_ && recurrence->isAffine()) {
        const llvm::SCEV* step = recurrence->getStepRecurrence(evolution_);
        if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(step)) return constant->getValue();
        if (const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(step))
          if (loop_.isLoopInvariant(unknown->getValue())) return unknown->getValue();
      }
    }
    const auto* next = latch ? llvm::dyn_cast<Instruction>(phi.getIncomingValueForBlock(latch)) : nullptr;
    if (!next || next->getOpcode() != Instruction::Add) return nullptr;
    for (unsigned i = 0; i < 2; ++i)
      if (next->getOperand(i) == &phi && loop_.isLoopInvariant(next->getOperand(1 - i)))
        return next->getOperand(1 - i);
    return nullptr;
  }

  // The phi and all that its next value is computed from, if that is arithmetic.
  bool visit_recurrence(llvm::PHINode& phi) {
    const llvm::BasicBlock* const latch = loop_.getLoopLatch();
    if (!latch) return false;
    Recurrences all = found_.result.recurrences;
    std::vector<Value*> rest = {&phi};
    bool is_begun = false, is_reached_again = false;
    all.next.erase(&phi);
    while (!rest.empty()) {
      auto* const instruction = llvm::dyn_cast<Instruction>(rest.back());
      rest.pop_back();
      if (!instruction || !loop_.contains(instruction)) continue;
      auto* const joined = llvm::dyn_cast<llvm::PHINode>(instruction);
      if (joined && joined->getParent() == loop_.getHeader()) {
        is_reached_again |= joined == &phi && is_begun;
        is_begun = true;
        Value* const next = joined->getIncomingValueForBlock(latch);
        if (!all.next.emplace(joined, next).second) continue;
        if (all.next.size() > kMostRecurrencePhis) return false;
        rest.push_back(next);
        continue;
      }
      if (loops_.getLoopFor(instruction->getParent()) != &loop_) return false;
      if (joined) {
        const std::optional<Choice> choice = choice_of(*joined);
        if (!choice) return false;
        if (all.choices.emplace(joined, *choice).second)
          rest.insert(rest.end(), {choice->condition, choice->then, choice->otherwise});
        continue;
      }
      if (!clonable(*instruction)) return false;
      if (!all.operations.insert(instruction).second) continue;
      if (all.operations.size() > kMostRecurrenceOperations) return false;
      for (Value* operand : instruction->operands()) rest.push_back(operand);
    }
    if (!is_reached_again) return false;
    found_.result.recurrences = std::move(all);
    return true;
  }

  // Does a load lie on the cycle through the phi?
  bool fed_by_load(llvm::PHINode& phi) const {
    LoopWalk walk(loop_, kMostWalkedInACycle);
    walk.follow(phi);
    while (const Instruction* const instruction = walk.next()) {
      if (llvm::isa<llvm::LoadInst>(instruction)) return true;
      walk.follow(*instruction);
    }
    return false;
  }

  // The start of this loop's induction variable is itself looked up at an unpredictable place
  // (off[queue[i]]). So what lies past the end of this run is not what comes next.
  void note_short_runs(llvm::PHINode& phi) {
    llvm::BasicBlock* const entered_from = loop_.getLoopPredecessor();
    llvm::Loop* const outer = loop_.getParentLoop();
    if (!entered_from || !outer) return;
    Slicer start(ir_, *outer, loops_, evolution_, words_, guesses_);
    Trait trait;
    if (start.visit(phi.getIncomingValueForBlock(entered_from), trait) && trait.level > 0)
      found_.result.short_runs = true;
  }

  // The slice that goes ahead in the row of this loop, but not past its end. That is to be known in each iteration.
  void note_row() {
    if (!found_.result.recurrences.next.empty()) return;
    const Found before = found_;
    for (const RowEnd& ends : find_row_ends(loop_)) {
      PrefetchSlice& result = found_.result;
      const auto is_known = [&] {
        Trait counter, end;
        return visit(ends.counter, counter) && result.steps.contains(ends.counter) && visit(ends.end, end) &&
               !end.varies;
      };
      if (!attempt(is_known)) continue;
      Row row{.loop = &loop_, .ends = ends, .steps = {}, .accesses = {}};
      for (const auto& [phi, step] : result.steps)
        if (auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(step)) row.steps[phi] = constant;
      for (const Instruction* operation : result.operations)
        if (llvm::isa<llvm::LoadInst>(operation) && found_.traits.at(operation).varies)
          row.accesses[operation] = false;
      for (const auto& [access, level] : result.levels) row.accesses[access] = true;
      const bool has_even_steps = row.steps.size() == result.steps.size();
      result.row = std::move(row);
      PrefetchSlice rest = std::exchange(found_, before).result;
      if (has_even_steps) found_.result.rest_of_row.push_back(std::move(rest));
      return;
    }
  }

  // The same from the loop around, for a row of a later iteration. What says where that ends has to be there when its elements are
  // computed.
  void note_elements(const Row& row) {
    PrefetchSlice& result = found_.result;
    const bool has_elements =
        std::ranges::any_of(row.steps, [&](const auto& step) { return result.starts.contains(step.first); });
    if (!has_elements || !result.recurrences.next.empty()) return;
    const auto is_known = [&] {
      Trait counter, end;
      return visit(row.ends.counter, counter) && result.starts.contains(row.ends.counter) &&
             visit(row.ends.end, end) && std::max(counter.level, end.level) < result.target_level;
    };
    if (attempt(is_known)) result.row = row;
  }

  static bool clonable(const Instruction& instruction) {
    if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) {
      switch (binary->getOpcode()) {
        case Instruction::SDiv:
        case Instruction::UDiv:
        case Instruction::SRem:
        case Instruction::URem: {
          // By constants that cannot fault; a copy sees to it that no other divisor does.
          if (!binary->getType()->isIntegerTy()) return false;
          const auto* divisor = llvm::dyn_cast<llvm::ConstantInt>(binary->getOperand(1));
          return divisor ? !divisor->isZero() && !divisor->isMinusOne()
                         : !llvm::isa<llvm::Constant>(binary->getOperand(1));
        }
        default:
          return true;
      }
    }
    if (llvm::isa<llvm::CastInst, llvm::GetElementPtrInst, llvm::CmpInst, llvm::SelectInst, llvm::FreezeInst,
                  llvm::UnaryOperator, llvm::ExtractElementInst, llvm::InsertElementInst,
                  llvm::ShuffleVectorInst>(instruction))
      return true;
    const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (!intrinsic) return false;
    switch (intrinsic->getIntrinsicID()) {
      case llvm::Intrinsic::fshl:
      case llvm::Intrinsic::fshr:
      case llvm::Intrinsic::ctpop:
      case llvm::Intrinsic::ctlz:
      case llvm::Intrinsic::cttz:
      case llvm::Intrinsic::bswap:
      case llvm::Intrinsic::bitreverse:
      case llvm::Intrinsic::umin:
      case llvm::Intrinsic::umax:
      case llvm::Intrinsic::smin:
      case llvm::Intrinsic::smax:
      case llvm::Intrinsic::abs:
        return true;
      default:
        return false;
    }
  }

  static bool keeps_stride(const Instruction& instruction) {
    switch (instruction.getOpcode()) {
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Trunc:
      case Instruction::PtrToInt:
      case Instruction::IntToPtr:
      case Instruction::GetElementPtr:
        return true;
      case Instruction::Mul:
      case Instruction::Shl:
        return !llvm::isa<Instruction>(instruction.getOperand(1));
      case Instruction::Or:
        return llvm::isa<llvm::ConstantInt>(instruction.getOperand(1));
      case Instruction::And: {
        // Aligning, or wrapping at 32 bits; a shorter mask is a hash or a ring.
        const auto* mask = llvm::dyn_cast<llvm::ConstantInt>(instruction.getOperand(1));
        return mask && mask->getValue().getActiveBits() >= 32;
      }
      default:
        return false;
    }
  }

  bool visit_operation(Instruction& instruction, Trait& trait) {
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (load && found_.result.forks && !in_distance_ && !ir_.is_of(*load, IrModule::World::kRuntime))
      return refuse("the address depends on the previous iteration's load");
    if (load)
      if (Value* const known = known_of(*load);
          known && attempt([&] { return visit(known, trait) && trait.varies; })) {
        found_.result.ways[load] = known;
        return true;
      }
    if (load && ir_.is_of(*load, IrModule::World::kRuntime)) {
      // A global or the like: always readable where it is, if the place does not change.
      if (!loop_.isLoopInvariant(load->getPointerOperand()))
        return refuse("the address depends on a table or another runtime structure");
      trait = {};
      return add(instruction);
    }
    if (llvm::isa<llvm::CallBase>(instruction) && !clonable(instruction))
      return refuse("the address depends on the result of a call");
    if (!load && !clonable(instruction))
      return refuse(std::string("the address depends on an operation that cannot be copied: ") +
                    instruction.getOpcodeName());
    if (load && (load->isVolatile() || load->isAtomic()))
      return refuse("the address depends on a volatile load");
    Trait joined;
    for (Value* operand : instruction.operands()) {
      if (llvm::isa<llvm::Function>(operand)) continue;  // an intrinsic's callee
      Trait part;
      if (!visit_operand(instruction, *operand, part)) return false;
      joined.varies |= part.varies;
      if (part.varies) joined.strided &= part.strided;
      joined.level = std::max(joined.level, part.level);
    }
    if (load) {
      if (++found_.result.loads > kMaxSliceLoads && joined.varies)
        return refuse("the address needs more than " + std::to_string(kMaxSliceLoads) + " loads");
      if (joined.varies && !joined.strided) found_.result.levels[load] = ++joined.level;
      joined.strided = !joined.varies;
    } else if (joined.varies && !keeps_stride(instruction)) {
      joined.strided = false;
    }
    trait = joined;
    return add(instruction);
  }

  // What this iteration has stored where the load loads: as C++ passes keys by reference, they go through the frame, and for the
  // program the two addresses differ if the sum of stack pointer and distance wraps. Or what the loop carries there.
  Value* known_of(const llvm::LoadInst& load) const {
    if (!load.isSimple() || ir_.is_of(load, IrModule::World::kRuntime)) return nullptr;
    if (const llvm::StoreInst* store = stored_before(load, loop_, loops_, evolution_, words_))
      return const_cast<Value*>(store->getValueOperand());
    const auto word = words_.phis.find(&load);
    return word != words_.phis.end() && word->second->getParent() == loop_.getHeader() ? word->second
                                                                                       : nullptr;
  }

  // How far it is from what the loop carries may be looked up, where forks are: the sons of a heap's node by its size. What is
  // itself looked up may be anywhere.
  bool visit_operand(const Instruction& instruction, Value& operand, Trait& trait) {
    const bool was_in_distance = in_distance_;
    if (found_.result.forks && is_sum(instruction))
      in_distance_ |= is_carried(*instruction.getOperand(instruction.getOperand(0) == &operand ? 1 : 0));
    const bool succeeded = visit(&operand, trait);
    in_distance_ = was_in_distance;
    return succeeded;
  }
  static bool is_sum(const Instruction& instruction) {
    return instruction.getOpcode() == Instruction::Add || instruction.getOpcode() == Instruction::Sub;
  }
  // A header's phi, and what lies so far from it.
  bool is_carried(const Value& value) const {
    const auto* instruction = llvm::dyn_cast<Instruction>(&value);
    if (!instruction || !loop_.contains(instruction)) return false;
    if (is_header_phi(*instruction)) return true;
    return is_sum(*instruction) &&
           (is_carried(*instruction->getOperand(0)) || is_carried(*instruction->getOperand(1)));
  }

  bool add(Instruction& instruction) {
    if (found_.result.operations.size() >= kMaxSliceOperations)
      return refuse("the address needs more than " + std::to_string(kMaxSliceOperations) + " operations");
    found_.result.operations.push_back(&instruction);
    return true;
  }

  // What was found so far.
  struct Found {
    PrefetchSlice result;
    std::map<const Instruction*, Trait> traits;
    std::set<const Instruction*> open;
  };

  const IrModule& ir_;
  llvm::Loop& loop_;
  llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  const CarriedWords& words_;
  const bool guesses_;
  Found found_;
  uint32_t guessed_ = 0, visited_ = 0;
  bool in_condition_ = false, in_distance_ = false;
  std::string reason_;
};

// Is the value another one in the loop's next iteration?
bool changes_within(const Instruction& value, const llvm::Loop& loop) {
  LoopWalk walk(loop, kMostWalkedInACycle, &value);
  while (const Instruction* const instruction = walk.next()) {
    if (optimizing::is_header_phi(*instruction, loop)) return true;
    walk.follow(*instruction);
  }
  return walk.was_cut();
}

}  // namespace

bool ends_before_prefetches(const llvm::Loop& loop) {
  const double turns = expected_turns(loop);
  return turns != 0 && turns < kLeastTurnsAhead;
}

std::expected<PrefetchSlice, std::string> find_prefetch_slice(const IrModule& ir, Instruction& access,
                                                              llvm::LoopInfo& loops,
                                                              llvm::ScalarEvolution& evolution,
                                                              uint32_t distance, const CarriedWords& words) {
  llvm::Loop* const innermost = loops.getLoopFor(access.getParent());
  if (!innermost) return std::unexpected("it is in no loop");
  std::optional<Refusal> first;
  std::optional<PrefetchSlice> too_late;
  // No loop's guess is better than what another loop says for sure. But a guess of a loop around is, where a loop ends at once.
  for (const bool guesses : {false, true}) {
    std::optional<PrefetchSlice> fallback;
    bool is_row = false;
    for (llvm::Loop* loop = innermost; loop; loop = loop->getParentLoop()) {
      const bool has_rest =
          fallback && !fallback->rest_of_row.empty() && fallback->loop->getParentLoop() == loop;
      auto slice = Slicer(ir, *loop, loops, evolution, words, guesses)
                       .slice(access, has_rest ? fallback->rest_of_row.front().row : std::nullopt);
      const uint32_t most_trips = evolution.getSmallConstantMaxTripCount(loop);
      if (!slice) {
        // The innermost loop's reason is the one that says what the load is.
        if (!first) first = std::move(slice.error());
        // A stream in the inner loop is the hardware's, wherever the stream starts, unless it is over before a
        // hardware prefetcher has seen it.
        const bool is_short = most_trips != 0 && most_trips <= kMaxTripsOfShortStream;
        is_row |= first->is_stream && !is_short;
        continue;
      }
      // Each run of a longer stream begins somewhere else, if where it does is looked up at places that are far apart.
      if (is_row && slice->target_level < kFarRowLevel) break;
      const bool ends_early = ends_before_prefetches(*loop);
      slice->runs_on = ends_early && rows_follow_each_other(*loop, slice->steps);
      const bool tiny = (most_trips != 0 && most_trips < distance) || (ends_early && !slice->runs_on);
      const bool leaves_its_runs = slice->short_runs && !has_long_rows(*loop);
      if (!leaves_its_runs && !tiny) {
        if (slice->row) slice->rest_of_row = std::move(fallback->rest_of_row);
        return std::move(*slice);
      }
      if (tiny) slice->rest_of_row.clear();
      if (!fallback) fallback = std::move(*slice);
    }
    if (!guesses && fallback && fallback->loop->getParentLoop() != nullptr &&
        ends_before_prefetches(*fallback->loop)) {
      too_late = std::move(fallback);
      continue;
    }
    if (too_late) return std::move(*too_late);
    if (fallback) return std::move(*fallback);
    if (first->is_stream) break;
  }
  if (!first->is_stream) {
    auto slice =
        Slicer(ir, *innermost, loops, evolution, words, /*guesses=*/false, /*forks=*/true).slice(access);
    if (slice) return std::move(*slice);
  }
  return std::unexpected(std::move(first->why));
}

bool guesses_a_way(const PrefetchSlice& slice) {
  return std::ranges::any_of(slice.ways, [](const auto& way) {
    if (llvm::isa<llvm::LoadInst>(way.first)) return false;
    const auto* const join = llvm::dyn_cast<llvm::PHINode>(way.first);
    return !join || share_of_way(*join, *way.second).value_or(0) < 0.5;
  });
}

bool guesses_what_is_found(const PrefetchSlice& slice, const llvm::LoopInfo& loops) {
  std::set<const Instruction*> seen;
  std::vector<const Instruction*> work{slice.target};
  // Of a slice's phis one operand is used.
  const auto operands_of = [&](const Instruction& user) {
    auto& known = const_cast<Instruction&>(user);
    if (const auto way = slice.ways.find(&known); way != slice.ways.end()) return std::vector{way->second};
    auto* const phi = llvm::dyn_cast<llvm::PHINode>(&known);
    if (const auto start = slice.starts.find(phi); start != slice.starts.end())
      return std::vector{start->second};
    if (llvm::isa<llvm::StoreInst>(user)) return std::vector{known.getOperand(1)};
    return std::vector<Value*>(known.value_op_begin(), known.value_op_end());
  };
  while (!work.empty()) {
    const Instruction* const user = work.back();
    work.pop_back();
    if (is_header_phi(*user, *slice.loop)) continue;
    for (const Value* operand : operands_of(*user)) {
      const auto* value = llvm::dyn_cast<Instruction>(operand);
      if (!value || !slice.loop->contains(value)) continue;
      for (const llvm::Loop* its = loops.getLoopFor(value->getParent());
           its != slice.loop && !its->contains(user); its = its->getParentLoop())
        if (changes_within(*value, *its)) return true;
      if (seen.insert(value).second) work.push_back(value);
    }
  }
  return false;
}

}  // namespace hindsight::jit::optimizing
