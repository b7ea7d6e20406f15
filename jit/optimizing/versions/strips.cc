#include "jit/optimizing/versions/strips.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <map>
#include <optional>
#include <vector>

#include "jit/optimizing/versions/loop_parts.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// One of the two copies.
struct Copy {
  BasicBlock* entry;
  BasicBlock* header;
  BasicBlock* latch;
  BasicBlock* exit;  // its own, to the tail
};

class StripMaker {
 public:
  StripMaker(llvm::Loop& loop, llvm::DebugLoc location, bool copied)
      : loop_(loop),
        copied_(copied),
        context_(loop.getHeader()->getContext()),
        function_(*loop.getHeader()->getParent()),
        location_(std::move(location)),
        before_(loop.getLoopPreheader()),
        with_{new_block("with"), loop.getHeader(), loop.getLoopLatch(), new_block("with.exit")} {
    auto* const branch = llvm::cast<llvm::BranchInst>(with_.latch->getTerminator());
    after_ = branch->getSuccessor(branch->getSuccessor(0) == with_.header ? 1 : 0);
  }

  using Choose = std::function<StripChoice(llvm::IRBuilder<>&, const CarriedValues&)>;
  Strips make(Backedges backedges, const Choose& choose, uint32_t shortest = 0) {
    Strips strips;
    head_ = strips.head = new_block("strip.head");
    tail_ = strips.tail = new_block("strip.tail");
    if (copied_)
      clone_loop();
    else
      for (PHINode& phi : with_.header->phis()) phi.replaceIncomingBlockWith(before_, with_.entry);
    copies_.push_back(&with_);
    if (copied_) copies_.push_back(&without_);
    strips.with_entry = with_.entry;
    strips.without_entry = without_.entry;

    // Head: what the loop carried is carried from strip to strip.
    llvm::IRBuilder<> b(head_);
    b.SetCurrentDebugLocation(location_);
    llvm::Type* const i64 = b.getInt64Ty();
    PHINode* const remaining = b.CreatePHI(i64, 2, "remaining");
    remaining->addIncoming(backedges.count, before_);
    struct Carried {
      PHINode *in_head, *in_with;
    };
    std::vector<Carried> carried;
    for (PHINode& phi : with_.header->phis()) {
      PHINode* const in_head = b.CreatePHI(phi.getType(), 2);
      in_head->addIncoming(phi.getIncomingValueForBlock(with_.entry), before_);
      phi.setIncomingValueForBlock(with_.entry, in_head);
      if (copied_) {
        Value* const first =
            shortest == 0 ? in_head : joined_entry(in_head, in_head->getIncomingValueForBlock(before_));
        llvm::cast<PHINode>(map_[&phi])->setIncomingValueForBlock(without_.entry, first);
      }
      carried.push_back({in_head, &phi});
      strips.first[&phi] = in_head;
    }
    const StripChoice choice = choose(b, strips.first);
    // In backedges, so that a loop of 2^64 iterations has a length, too.
    Value* const here = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, remaining, choice.most_backedges);
    strips.count = b.CreateAdd(here, b.getInt64(1), "count", /*NUW=*/true, /*NSW=*/true);
    // The copies count in 32 bits: a counter wider than what they compute with makes for shorter vectors.
    Value* const count = b.CreateTrunc(strips.count, b.getInt32Ty());
    strips.left = b.CreateSub(remaining, here);
    Value* count_without = count;
    Value* left_without = nullptr;
    if (shortest != 0) {
      llvm::IRBuilder<> early(before_->getTerminator());
      early.SetCurrentDebugLocation(location_);
      Value* const all =
          early.CreateAdd(early.CreateTrunc(backedges.count, b.getInt32Ty()), early.getInt32(1));
      is_short_ = early.CreateICmpULT(backedges.count, early.getInt64(shortest - 1));
      count_without = joined_entry(count, all);
      left_without = joined_entry(strips.left, early.getInt64(0));
      is_all_ = joined_entry(b.getFalse(), b.getTrue());
    }
    if (copied_)
      b.CreateCondBr(choice.with, with_.entry, without_.entry);
    else
      b.CreateBr(with_.entry);
    for (const Copy* copy : copies_) {
      branch(copy->entry, copy->header);
      if (copy == &without_ && is_all_)
        llvm::BranchInst::Create(after_, tail_, is_all_, copy->exit)->setDebugLoc(location_);
      else
        branch(copy->exit, tail_);
    }

    // Tail. Values that live on are read from the original's places before its latch is turned.
    b.SetInsertPoint(tail_);
    b.SetCurrentDebugLocation(location_);
    for (const Carried& c : carried) {
      if (shortest == 0) foresee(b, *c.in_with, *c.in_head, strips.count);
      Value* const next = merged(c.in_with->getIncomingValueForBlock(with_.latch));
      c.in_head->addIncoming(next, tail_);
      strips.next[c.in_with] = next;
    }
    for (PHINode& phi : after_->phis()) {
      const int index = phi.getBasicBlockIndex(with_.latch);
      Value* const value = phi.getIncomingValue(static_cast<unsigned>(index));
      phi.setIncomingValue(static_cast<unsigned>(index), merged(value));
      phi.setIncomingBlock(static_cast<unsigned>(index), tail_);
      if (is_all_) phi.addIncoming(without_value(value), without_.exit);
    }
    if (is_all_) {
      strips.left = joined_tail(strips.left, left_without);
      // A strip without ends here too: its length is what it counted to.
      strips.count = joined_tail(strips.count, widened_count(count_without));
    }
    Value* const rest = b.CreateSub(strips.left, b.getInt64(1));
    remaining->addIncoming(rest, tail_);
    b.CreateCondBr(b.CreateIsNull(strips.left), after_, head_);

    for (const Copy* copy : copies_) count_iterations(*copy, copy == &without_ ? count_without : count);
    name_loops(backedges.known_to_llvm);
    if (is_short_) {
      before_->getTerminator()->eraseFromParent();
      llvm::BranchInst::Create(without_.entry, head_, is_short_, before_)->setDebugLoc(location_);
    } else {
      before_->getTerminator()->replaceSuccessorWith(with_.header, head_);
    }
    return strips;
  }

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(context_, name, &function_, loop_.getHeader());
  }
  void branch(BasicBlock* from, BasicBlock* to) {
    llvm::BranchInst::Create(to, from)->setDebugLoc(location_);
  }

  void clone_loop() {
    without_ = {new_block("without"), nullptr, nullptr, new_block("without.exit")};
    const std::vector<BasicBlock*> copies = copy_blocks(loop_.getBlocks(), ".without", map_);
    map_[before_] = without_.entry;
    llvm::remapInstructionsInBlocks(copies, map_);
    without_.header = llvm::cast<BasicBlock>(map_[with_.header]);
    without_.latch = llvm::cast<BasicBlock>(map_[with_.latch]);
    for (PHINode& phi : with_.header->phis()) phi.replaceIncomingBlockWith(before_, with_.entry);
    // Traps have one more way in.
    for (BasicBlock* block : loop_.blocks()) {
      if (block == with_.latch) continue;
      for (BasicBlock* trap : llvm::successors(block)) {
        if (loop_.contains(trap)) continue;
        for (PHINode& phi : trap->phis())
          phi.addIncoming(copy_of(phi.getIncomingValueForBlock(block)), llvm::cast<BasicBlock>(map_[block]));
      }
    }
  }

  Value* copy_of(Value* value) const {
    const auto found = map_.find(value);
    return found == map_.end() ? value : static_cast<Value*>(found->second);
  }

  // A value of the loop, after it: whichever copy ran. Through phis of the copies' own exits (LCSSA).
  Value* merged(Value* value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !loop_.contains(instruction)) return value;
    Value*& known = merged_[value];
    if (known) return known;
    PHINode* const phi = phi_in(tail_, value->getType(), 2);
    known = phi;
    for (const Copy* copy : copies_) {
      PHINode* const leaving = phi_in(copy->exit, value->getType(), 1);
      leaving->addIncoming(copy == &with_ ? value : copy_of(value), copy->latch);
      if (copy == &without_) leaving_without_[value] = leaving;
      phi->addIncoming(leaving, copy->exit);
    }
    return phi;
  }
  // What goes by the same step in each iteration is known in the tail by how many there were. Where the loop needs it for nothing else,
  // it is no part of the copies: of a counter of 32 bits that leaves the loop LLVM makes a sum, and then only as many lanes as
  // vectors have of these.
  void foresee(llvm::IRBuilder<>& tail, PHINode& phi, Value& first, Value* count) {
    auto* const next = llvm::dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(with_.latch));
    if (!next || next->getOpcode() != Instruction::Add || !loop_.contains(next) ||
        !phi.getType()->isIntegerTy())
      return;
    Value* const step = next->getOperand(next->getOperand(0) == &phi ? 1 : 0);
    if (!llvm::is_contained(next->operand_values(), &phi) || !loop_.isLoopInvariant(step)) return;
    const auto after = [&](Value* iterations) {
      return tail.CreateAdd(&first, tail.CreateMul(tail.CreateZExtOrTrunc(iterations, phi.getType()), step));
    };
    merged_[next] = after(count);
    merged_[&phi] = after(tail.CreateSub(count, tail.getInt64(1)));
  }

  // At the entry of the copy without: from the strips, or from before the loop.
  PHINode* joined_entry(Value* from_head, Value* from_before) {
    PHINode* const phi = phi_in(without_.entry, from_head->getType(), 2);
    phi->addIncoming(from_head, head_);
    phi->addIncoming(from_before, before_);
    return phi;
  }
  // In the tail, of values that the entries of the copies know.
  PHINode* joined_tail(Value* with, Value* without) {
    PHINode* const phi = phi_in(tail_, with->getType(), 2);
    phi->addIncoming(with, with_.exit);
    phi->addIncoming(without, without_.exit);
    return phi;
  }
  Value* widened_count(Value* count) {
    llvm::IRBuilder<> b(without_.entry, without_.entry->getFirstInsertionPt());
    b.SetCurrentDebugLocation(location_);
    return b.CreateZExt(count, b.getInt64Ty());
  }
  // Where the copy without has ended: merged() was asked for it before.
  Value* without_value(Value* value) const {
    const auto found = leaving_without_.find(value);
    return found == leaving_without_.end() ? value : static_cast<Value*>(found->second);
  }
  PHINode* phi_in(BasicBlock* block, llvm::Type* type, unsigned values) {
    PHINode* const phi = PHINode::Create(type, values, "", block->begin());
    phi->setDebugLoc(location_);
    return phi;
  }

  // The latch iterates `count` times instead of asking its old condition.
  void count_iterations(const Copy& copy, Value* count) {
    llvm::Type* const type = count->getType();
    auto* const branch = llvm::cast<llvm::BranchInst>(copy.latch->getTerminator());
    PHINode* const done = phi_in(copy.header, type, 2);
    llvm::IRBuilder<> b(branch);
    Value* const next = b.CreateAdd(done, llvm::ConstantInt::get(type, 1), "", /*NUW=*/true);
    done->addIncoming(llvm::ConstantInt::get(type, 0), copy.entry);
    done->addIncoming(next, copy.latch);
    const unsigned leaves = branch->getSuccessor(0) == copy.header ? 1 : 0;
    branch->setCondition(leaves == 1 ? b.CreateICmpNE(next, count) : b.CreateICmpEQ(next, count));
    branch->setSuccessor(leaves, copy.exit);
  }

  void name_loops(bool known_to_llvm) {
    const llvm::MDNode* const old = loop_.getLoopID();
    if (!copied_) {
      if (!known_to_llvm) identify(with_, uncounted_loop_identity(context_, old));
      return;
    }
    identify(with_, plain_loop_identity(context_, old));
    if (!known_to_llvm) {
      identify(without_, uncounted_loop_identity(context_, old));
    } else if (old) {
      identify(without_, loop_identity(context_, old, {}));
    }
  }
  static void identify(const Copy& copy, llvm::MDNode* identity) {
    copy.latch->getTerminator()->setMetadata(llvm::LLVMContext::MD_loop, identity);
  }

  llvm::Loop& loop_;
  const bool copied_;
  llvm::LLVMContext& context_;
  llvm::Function& function_;
  const llvm::DebugLoc location_;
  BasicBlock* const before_;
  BasicBlock* after_ = nullptr;
  BasicBlock* head_ = nullptr;
  BasicBlock* tail_ = nullptr;
  Copy with_;
  Copy without_{};
  std::vector<const Copy*> copies_;
  llvm::ValueToValueMapTy map_;  // of the loop to its copy
  std::map<Value*, Value*> merged_;
  std::map<Value*, PHINode*> leaving_without_;
  Value* is_short_ = nullptr;  // before the loop: it goes round the strips
  Value* is_all_ = nullptr;    // in the copy without: it came that way
};

bool qualifies(const llvm::Loop& loop, const llvm::DominatorTree& dominators) {
  if (!loop.isInnermost() || !loop.isLoopSimplifyForm() || !loop.isLCSSAForm(dominators)) return false;
  BasicBlock* const latch = loop.getLoopLatch();
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(latch->getTerminator());
  if (!branch || !branch->isConditional() || !loop.isLoopExiting(latch)) return false;
  for (const BasicBlock* block : loop.blocks()) {
    if (llvm::isa<llvm::InvokeInst>(block->getTerminator()))
      return false;  // whose landing pad would have two loops
    for (const BasicBlock* next : llvm::successors(block))
      if (block != latch && !loop.contains(next) && !only_traps(*next)) return false;
  }
  return true;
}

// `start + k * step == 0` ends the loop after its k-th iteration, in arithmetic modulo 2^bits.
struct ZeroCrossing {
  const llvm::SCEV* start = nullptr;
  llvm::APInt step;
};

// What compilers make of a loop that they unroll by two or more: `while ((n -= 2) != 0)`. Whether the step
// divides the start is something that they knew and no longer say, so LLVM finds no count.
std::optional<ZeroCrossing> find_zero_crossing(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
  const auto* branch = llvm::cast<llvm::BranchInst>(loop.getLoopLatch()->getTerminator());
  const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  if (!compare || !compare->isEquality() || !compare->getOperand(0)->getType()->isIntegerTy()) return {};
  const bool leaves_if_equal =
      (compare->getPredicate() == llvm::ICmpInst::ICMP_EQ) == (branch->getSuccessor(1) == loop.getHeader());
  if (!leaves_if_equal) return {};
  const auto* difference = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getMinusSCEV(
      evolution.getSCEV(compare->getOperand(0)), evolution.getSCEV(compare->getOperand(1))));
  if (!difference || difference->getLoop() != &loop || !difference->isAffine()) return {};
  const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(difference->getStepRecurrence(evolution));
  if (!step || step->getAPInt().isZero() || step->getAPInt().getBitWidth() > 64) return {};
  return ZeroCrossing{difference->getStart(), step->getAPInt()};
}

// 1 / odd modulo 2^bits, by Newton's iteration: each round doubles the bits that are right, from three.
llvm::APInt inverse_of_odd(const llvm::APInt& odd) {
  llvm::APInt inverse = odd;
  for (unsigned right = 3; right < odd.getBitWidth(); right *= 2)
    inverse *= llvm::APInt(odd.getBitWidth(), 2) - odd * inverse;
  return inverse;
}

// The least solution k of start + k * step == 0. Let step = sign * odd * 2^shift, with -sign * start
// divisible by 2^shift. Then k = (-sign * start / 2^shift) / odd modulo 2^(bits - shift). Otherwise there is
// none, and no end of the loop.
Value* emit_zero_crossing(llvm::IRBuilder<>& b, Value* start, const llvm::APInt& step) {
  llvm::Type* const type = start->getType();
  const unsigned bits = step.getBitWidth();
  const llvm::APInt size = step.abs();
  const unsigned shift = size.countr_zero();
  Value* const way = step.isNegative() ? start : b.CreateNeg(start);
  Value* count = b.CreateLShr(way, shift);
  const llvm::APInt odd = size.lshr(shift);
  if (!odd.isOne()) {
    count = b.CreateMul(count, llvm::ConstantInt::get(type, inverse_of_odd(odd)));
    count = b.CreateAnd(count, llvm::ConstantInt::get(type, llvm::APInt::getLowBitsSet(bits, bits - shift)));
  }
  count = b.CreateZExt(count, b.getInt64Ty());
  if (shift == 0) return count;
  Value* const rest =
      b.CreateAnd(start, llvm::ConstantInt::get(type, llvm::APInt::getLowBitsSet(bits, shift)));
  return b.CreateSelect(b.CreateIsNull(rest), count, b.getInt64(~uint64_t{0}));
}

// What says how often the loop's backedge is taken: LLVM, or else where its counter comes to zero.
struct Counted {
  const llvm::SCEV* backedges = nullptr;
  std::optional<ZeroCrossing> crossing = {};
};

// None, if it cannot be computed at the end of the loop's preheader.
std::optional<Counted> find_count(const llvm::Loop& loop, llvm::ScalarEvolution& evolution,
                                  llvm::SCEVExpander& expander) {
  const Instruction* const place = loop.getLoopPreheader()->getTerminator();
  const llvm::SCEV* const backedges = evolution.getExitCount(&loop, loop.getLoopLatch());
  if (!llvm::isa<llvm::SCEVCouldNotCompute>(backedges)) {
    if (evolution.getTypeSizeInBits(backedges->getType()) > 64 ||
        !expander.isSafeToExpandAt(backedges, place))
      return {};
    return Counted{.backedges = backedges};
  }
  const std::optional<ZeroCrossing> crossing = find_zero_crossing(loop, evolution);
  if (!crossing || !expander.isSafeToExpandAt(crossing->start, place)) return {};
  return Counted{.crossing = crossing};
}

}  // namespace

Backedges emit_backedges(const llvm::Loop& loop, const llvm::DominatorTree& dominators,
                         llvm::ScalarEvolution& evolution, const llvm::DebugLoc& location) {
  if (!qualifies(loop, dominators)) return {};
  return emit_latch_backedges(loop, evolution, location);
}

bool can_be_in_strips(const llvm::Loop& loop, const llvm::DominatorTree& dominators,
                      llvm::ScalarEvolution& evolution) {
  if (!qualifies(loop, dominators)) return false;
  llvm::SCEVExpander expander(evolution, loop.getHeader()->getModule()->getDataLayout(), "strip");
  return find_count(loop, evolution, expander).has_value();
}

Backedges emit_latch_backedges(const llvm::Loop& loop, llvm::ScalarEvolution& evolution,
                               const llvm::DebugLoc& location) {
  Instruction* const place = loop.getLoopPreheader()->getTerminator();
  llvm::SCEVExpander expander(evolution, place->getModule()->getDataLayout(), "strip");
  llvm::IRBuilder<> b(place);
  b.SetCurrentDebugLocation(location);
  const std::optional<Counted> counted = find_count(loop, evolution, expander);
  if (!counted) return {};
  if (counted->backedges != nullptr)
    return {expander.expandCodeFor(evolution.getNoopOrZeroExtend(counted->backedges, b.getInt64Ty()),
                                   b.getInt64Ty(), place),
            true};
  const ZeroCrossing& crossing = *counted->crossing;
  Value* const start = expander.expandCodeFor(crossing.start, crossing.start->getType(), place);
  return {emit_zero_crossing(b, start, crossing.step), false};
}

Strips make_strips(llvm::Loop& loop, Backedges backedges, llvm::DebugLoc location,
                   const std::function<StripChoice(llvm::IRBuilder<>&, const CarriedValues&)>& choose,
                   uint32_t shortest) {
  return StripMaker(loop, std::move(location), /*copied=*/true).make(backedges, choose, shortest);
}

Strips make_strips(llvm::Loop& loop, Backedges backedges, llvm::DebugLoc location, uint32_t most) {
  return StripMaker(loop, std::move(location), /*copied=*/false)
      .make(backedges, [most](llvm::IRBuilder<>& head, const CarriedValues&) -> StripChoice {
        return {.most_backedges = head.getInt64(most - 1)};
      });
}

}  // namespace hindsight::jit::optimizing
