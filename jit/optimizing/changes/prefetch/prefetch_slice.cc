#include "jit/optimizing/changes/prefetch/prefetch_slice.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <optional>
#include <set>

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

// Streams whose step is at least this long leave the page too often for the hardware's prefetchers.
constexpr uint64_t kLongStrideBytes = 1024;

struct Refusal {
  std::string why;
  bool is_stream = false;  // what the hardware prefetches
};

class Slicer {
 public:
  Slicer(const IrModule& ir, llvm::Loop& loop, llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution)
      : ir_(ir), loop_(loop), loops_(loops), evolution_(evolution) {}

  std::expected<PrefetchSlice, Refusal> slice(llvm::LoadInst& target) {
    result_.target = &target;
    result_.loop = &loop_;
    Trait trait;
    if (!visit(target.getPointerOperand(), trait)) return std::unexpected(Refusal{.why = reason_});
    if (!trait.varies)
      return std::unexpected(
          Refusal{.why = "the address does not depend on an induction variable of the loop"});
    if (trait.strided && !long_stride(target))
      return std::unexpected(Refusal{
          .why = "the address has a constant stride: left to the hardware prefetcher", .is_stream = true});
    result_.target_level = trait.level + 1;
    result_.levels[&target] = result_.target_level;
    return std::move(result_);
  }

 private:
  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }

  bool long_stride(llvm::LoadInst& load) {
    const auto* recurrence =
        llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(load.getPointerOperand()));
    if (!recurrence || recurrence->getLoop() != &loop_) return false;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(recurrence->getStepRecurrence(evolution_));
    return step && step->getAPInt().abs().uge(kLongStrideBytes);
  }

  // Recursion is bounded: every level adds an operation, of which there are at most kMaxSliceOperations, or
  // steps from an inner phi to its start.
  bool visit(Value* value, Trait& trait) {
    auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !loop_.contains(instruction)) {
      trait = {};
      return true;
    }
    if (const auto known = traits_.find(instruction); known != traits_.end()) {
      trait = known->second;
      return true;
    }
    if (!open_.insert(instruction).second) return refuse("the address depends on itself");
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
      if (!visit_phi(*phi, trait)) return false;
    } else if (!visit_operation(*instruction, trait)) {
      return false;
    }
    open_.erase(instruction);
    traits_[instruction] = trait;
    return true;
  }

  bool visit_phi(llvm::PHINode& phi, Trait& trait) {
    if (phi.getParent() == loop_.getHeader()) return visit_induction(phi, trait);
    llvm::Loop* const inner = loops_.getLoopFor(phi.getParent());
    if (!inner || inner->getHeader() != phi.getParent() || inner == &loop_) {
      if (phi.getNumIncomingValues() == 1) {  // a loop exit's phi
        result_.starts[&phi] = phi.getIncomingValue(0);
        return visit(phi.getIncomingValue(0), trait);
      }
      return refuse("the address depends on the outcome of a branch");
    }
    llvm::BasicBlock* const entered_from = inner->getLoopPredecessor();
    if (!entered_from) return refuse("an inner loop has several entries");
    Value* const start = phi.getIncomingValueForBlock(entered_from);
    result_.starts[&phi] = start;
    return visit(start, trait);
  }

  bool visit_induction(llvm::PHINode& phi, Trait& trait) {
    if (evolution_.isSCEVable(phi.getType())) {
      const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(&phi));
      if (recurrence && recurrence->getLoop() == &loop_ && recurrence->isAffine()) {
        const llvm::SCEV* step = recurrence->getStepRecurrence(evolution_);
        Value* amount = nullptr;
        if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(step)) amount = constant->getValue();
        if (const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(step)) amount = unknown->getValue();
        if (amount && loop_.isLoopInvariant(amount)) {
          result_.steps[&phi] = amount;
          note_short_runs(phi);
          trait = {.varies = true, .strided = true, .level = 0};
          return true;
        }
      }
    }
    // Why not: look at where the next value comes from.
    return refuse(fed_by_load(phi) ? "the address depends on the previous iteration's load"
                                   : "the address is not a function of an induction variable");
  }

  // Does a load lie on the cycle through the phi?
  bool fed_by_load(llvm::PHINode& phi) const {
    constexpr size_t kMost = 200;
    LoopWalk walk(loop_, kMost);
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
    Slicer start(ir_, *outer, loops_, evolution_);
    Trait trait;
    if (start.visit(phi.getIncomingValueForBlock(entered_from), trait) && trait.level > 0)
      result_.short_runs = true;
  }

  static bool clonable(const Instruction& instruction) {
    if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) {
      switch (binary->getOpcode()) {
        case Instruction::SDiv:
        case Instruction::UDiv:
        case Instruction::SRem:
        case Instruction::URem: {
          // Only by constants that cannot fault.
          const auto* divisor = llvm::dyn_cast<llvm::ConstantInt>(binary->getOperand(1));
          return divisor && !divisor->isZero() && !divisor->isMinusOne();
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
      if (!visit(operand, part)) return false;
      joined.varies |= part.varies;
      if (part.varies) joined.strided &= part.strided;
      joined.level = std::max(joined.level, part.level);
    }
    if (load) {
      if (joined.varies) {
        if (++result_.loads > kMaxSliceLoads) return refuse("the address needs more than three loads");
        if (!joined.strided) result_.levels[load] = ++joined.level;
      } else {
        ++result_.loads;
      }
      joined.strided = !joined.varies;
    } else if (joined.varies && !keeps_stride(instruction)) {
      joined.strided = false;
    }
    trait = joined;
    return add(instruction);
  }

  bool add(Instruction& instruction) {
    if (result_.operations.size() >= kMaxSliceOperations)
      return refuse("the address needs more than " + std::to_string(kMaxSliceOperations) + " operations");
    result_.operations.push_back(&instruction);
    return true;
  }

  const IrModule& ir_;
  llvm::Loop& loop_;
  llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  PrefetchSlice result_;
  std::map<const Instruction*, Trait> traits_;
  std::set<const Instruction*> open_;
  std::string reason_;
};

// Elements of up to 8 bytes: a few cache lines.
constexpr uint32_t kMaxTripsOfShortStream = 64;

}  // namespace

std::expected<PrefetchSlice, std::string> find_prefetch_slice(const IrModule& ir, llvm::LoadInst& load,
                                                              llvm::LoopInfo& loops,
                                                              llvm::ScalarEvolution& evolution,
                                                              uint32_t distance) {
  llvm::Loop* loop = loops.getLoopFor(load.getParent());
  if (!loop) return std::unexpected("it is in no loop");
  std::optional<Refusal> first;
  std::optional<PrefetchSlice> fallback;
  for (; loop; loop = loop->getParentLoop()) {
    auto slice = Slicer(ir, *loop, loops, evolution).slice(load);
    const uint32_t most_trips = evolution.getSmallConstantMaxTripCount(loop);
    if (!slice) {
      // The innermost loop's reason is the one that says what the load is.
      if (!first) first = std::move(slice.error());
      // A stream in the inner loop is the hardware's, wherever the stream starts, unless it is over before a
      // hardware prefetcher has seen it.
      const bool is_short = most_trips != 0 && most_trips <= kMaxTripsOfShortStream;
      if (first->is_stream && !is_short) break;
      continue;
    }
    const bool tiny = most_trips != 0 && most_trips < distance;
    if (!slice->short_runs && !tiny) return std::move(*slice);
    if (!fallback) fallback = std::move(*slice);
  }
  if (fallback) return std::move(*fallback);
  return std::unexpected(std::move(first->why));
}

}  // namespace hindsight::jit::optimizing
