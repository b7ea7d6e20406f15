#include "jit/optimizing/vectors/memory_reach.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <map>

namespace hindsight::jit::optimizing {
namespace {

using llvm::SCEV;
using llvm::Value;

constexpr const char* kInside = "hindsight.inside";

// Steps times iterations stay below 2^61, and three of them, or what is bounded otherwise, below 2^63.
constexpr uint64_t kMostBackedges = uint64_t{1} << 32, kMostBackedgesOfVariables = uint64_t{1} << 28;
constexpr unsigned kStepBits = 29, kVariableStepBits = 34;
constexpr size_t kMostVarying = 3;
constexpr uint64_t kMostFactor = 1 << 16;
// Two comparisons each, whenever the loop is entered.
constexpr size_t kMostGroups = 12;

// Accesses at constant distances from each other.
struct ReachGroup {
  uint32_t memory = 0;
  const SCEV* invariant = nullptr;  // i64, modulo 2^64
  std::vector<const SCEV*> varying;
  int64_t low = 0, high = 0;  // from there: [low, high)
};

struct Span {
  Value *low, *high;  // i64, signed
};

class ReachFinder {
 public:
  ReachFinder(const IrModule& ir, llvm::Loop& loop, llvm::ScalarEvolution& evolution)
      : ir_(ir),
        loop_(loop),
        evolution_(evolution),
        place_(loop.getLoopPreheader()->getTerminator()),
        expander_(evolution, ir.module.getDataLayout(), "reach"),
        b_(place_) {
    b_.SetCurrentDebugLocation(loop.getStartLoc() ? loop.getStartLoc() : place_->getDebugLoc());
  }

  MemoryReach find(Value* backedges) {
    using Kind = MemoryReach::Kind;
    if (!look_at_accesses()) return {Kind::kUnknown};
    if (!stores_ || groups_.empty()) return {Kind::kShowsNothing};
    if (groups_.size() > kMostGroups) return {Kind::kUnknown};
    const SCEV* count = nullptr;
    if (backedges == nullptr) {
      llvm::SmallVector<const llvm::SCEVPredicate*, 4> predicates;  // the vectorizer asks for them itself
      count = evolution_.getPredicatedBackedgeTakenCount(&loop_, predicates);
      if (llvm::isa<llvm::SCEVCouldNotCompute>(count) ||
          evolution_.getTypeSizeInBits(count->getType()) > 64 || !expander_.isSafeToExpandAt(count, place_))
        return {Kind::kUnknown};
    }
    if (!llvm::all_of(groups_, [&](const ReachGroup& group) { return can_emit(group); }))
      return {Kind::kUnknown};
    // Nothing was changed up to here.
    backedges_ =
        backedges != nullptr ? backedges : expand(evolution_.getNoopOrZeroExtend(count, b_.getInt64Ty()));
    const bool variable_steps =
        llvm::any_of(groups_, [&](const ReachGroup& group) { return has_variable_step(group); });
    const uint64_t most = variable_steps ? kMostBackedgesOfVariables : kMostBackedges;
    if (count == nullptr || evolution_.getUnsignedRangeMax(count).uge(most))
      require(b_.CreateICmpULT(backedges_, b_.getInt64(most)));
    for (const ReachGroup& group : groups_) emit(group);
    return {Kind::kKnown, inside_};
  }

 private:
  // False: one cannot be understood, and some are stores.
  bool look_at_accesses() {
    bool understood = true;
    for (llvm::BasicBlock* block : loop_.blocks()) {
      for (llvm::Instruction& instruction : *block) {
        if (!instruction.mayReadOrWriteMemory()) continue;
        if (ir_.is_among(instruction, IrModule::World::kCells)) continue;
        const bool is_access = llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction);
        stores_ |= instruction.mayWriteToMemory();
        if (is_access && ir_.is_among(instruction, IrModule::World::kRuntime)) continue;
        if (!is_access && llvm::isa<llvm::AssumeInst>(instruction)) continue;
        understood = understood && is_access && take(instruction);
      }
    }
    return understood || !stores_;
  }

  bool take(llvm::Instruction& access) {
    const SCEV* const address = evolution_.getSCEV(llvm::getLoadStorePointerOperand(&access));
    const auto* const base = llvm::dyn_cast<llvm::SCEVUnknown>(evolution_.getPointerBase(address));
    if (base == nullptr) return false;
    const std::optional<uint32_t> memory = ir_.memory_of(base->getValue(), access.getFunction()->getArg(0));
    if (!memory) return false;
    const SCEV* const index = evolution_.getMinusSCEV(address, base);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(index) || !index->getType()->isIntegerTy(64)) return false;
    const uint64_t bytes =
        ir_.module.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&access)).getFixedValue();
    // Up to the size that a memory begins with it always is.
    const uint64_t least =
        std::min(ir_.wasm.memories[*memory].limits.min, wasm::kMaxPages) * wasm::kPageBytes;
    if (least >= bytes && evolution_.getUnsignedRangeMax(index).ule(least - bytes)) return true;

    ReachGroup found{.memory = *memory, .invariant = nullptr, .varying = {}, .low = 0, .high = 0};
    llvm::SmallVector<const SCEV*, 4> terms, invariant{evolution_.getZero(index->getType())};
    if (const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(index))
      terms.append(sum->operands().begin(), sum->operands().end());
    else
      terms.push_back(index);
    for (const SCEV* term : terms) {
      if (evolution_.isLoopInvariant(term, &loop_)) {
        invariant.push_back(term);
      } else if (const auto* recurrence = of_loop(term)) {
        // Its start is invariant, and the rest begins with zero.
        invariant.push_back(recurrence->getStart());
        found.varying.push_back(evolution_.getAddRecExpr(evolution_.getZero(index->getType()),
                                                         recurrence->getStepRecurrence(evolution_), &loop_,
                                                         SCEV::FlagAnyWrap));
      } else {
        found.varying.push_back(term);
      }
    }
    if (found.varying.size() > kMostVarying) return false;
    found.invariant = evolution_.getAddExpr(invariant);
    // Without its constant.
    if (const auto* sum = llvm::dyn_cast<llvm::SCEVAddExpr>(found.invariant); sum != nullptr) {
      if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(sum->getOperand(0))) {
        const llvm::APInt& number = constant->getAPInt();
        if (number.getSignificantBits() > 40) return false;
        found.low = number.getSExtValue();
        found.invariant = evolution_.getMinusSCEV(found.invariant, constant);
      }
    } else if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(found.invariant)) {
      if (constant->getAPInt().getSignificantBits() > 40) return false;
      found.low = constant->getAPInt().getSExtValue();
      found.invariant = evolution_.getZero(index->getType());
    }
    found.high = found.low + static_cast<int64_t>(bytes);
    for (ReachGroup& group : groups_) {
      if (group.memory != found.memory || group.invariant != found.invariant ||
          group.varying != found.varying)
        continue;
      group.low = std::min(group.low, found.low);
      group.high = std::max(group.high, found.high);
      return true;
    }
    groups_.push_back(std::move(found));
    return true;
  }

  const llvm::SCEVAddRecExpr* of_loop(const SCEV* expression) const {
    const auto* const recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(expression);
    return recurrence != nullptr && recurrence->getLoop() == &loop_ && recurrence->isAffine() ? recurrence
                                                                                              : nullptr;
  }
  const SCEV* step_of(const llvm::SCEVAddRecExpr& recurrence) {
    return recurrence.getStepRecurrence(evolution_);
  }

  // The same conditions as emit() and span_of() go by.
  bool can_emit(const ReachGroup& group) {
    return expander_.isSafeToExpandAt(group.invariant, place_) &&
           llvm::all_of(group.varying, [&](const SCEV* term) { return can_span(term, group.memory); });
  }
  bool can_span(const SCEV* term, uint32_t memory) {
    if (const auto* recurrence = recurrence_in(term))
      return can_step(*recurrence) && expander_.isSafeToExpandAt(recurrence->getStart(), place_);
    if (const auto* product = scaled(term)) return can_span(product->getOperand(1), memory);
    // Bounded by what it is. Where that is beyond all that the memory can have, the loop would never be
    // inside.
    const wasm::Limits& limits = ir_.wasm.memories[memory].limits;
    const uint64_t most =
        std::min<uint64_t>(limits.max.value_or(wasm::kMaxPages), wasm::kMaxPages) * wasm::kPageBytes;
    return evolution_.getUnsignedRangeMax(term).ult(std::min<uint64_t>(most, uint64_t{1} << 31));
  }
  bool can_step(const llvm::SCEVAddRecExpr& recurrence) {
    const SCEV* const step = step_of(recurrence);
    if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(step))
      return constant->getAPInt().getSignificantBits() <= kStepBits;
    return evolution_.isLoopInvariant(step, &loop_) && expander_.isSafeToExpandAt(step, place_) &&
           evolution_.getSignedRange(step).getMinSignedBits() <= kVariableStepBits;
  }
  bool has_variable_step(const ReachGroup& group) {
    return llvm::any_of(group.varying, [&](const SCEV* term) {
      while (const auto* product = scaled(term)) term = product->getOperand(1);
      const auto* const recurrence = recurrence_in(term);
      return recurrence != nullptr && !llvm::isa<llvm::SCEVConstant>(step_of(*recurrence));
    });
  }

  // The counter that a term is, or that it extends.
  const llvm::SCEVAddRecExpr* recurrence_in(const SCEV* term) const {
    if (const auto* extended = llvm::dyn_cast<llvm::SCEVZeroExtendExpr>(term))
      return of_loop(extended->getOperand());
    if (const auto* extended = llvm::dyn_cast<llvm::SCEVSignExtendExpr>(term))
      return of_loop(extended->getOperand());
    return of_loop(term);
  }
  // A constant times something else that is extended, or bounded.
  static const llvm::SCEVMulExpr* scaled(const SCEV* term) {
    const auto* const product = llvm::dyn_cast<llvm::SCEVMulExpr>(term);
    if (product == nullptr || product->getNumOperands() != 2) return nullptr;
    const auto* const factor = llvm::dyn_cast<llvm::SCEVConstant>(product->getOperand(0));
    if (factor == nullptr || factor->getAPInt().ugt(kMostFactor)) return nullptr;
    return llvm::isa<llvm::SCEVZeroExtendExpr, llvm::SCEVSignExtendExpr>(product->getOperand(1)) ? product
                                                                                                 : nullptr;
  }

  void require(Value* condition) {
    inside_ = inside_ == nullptr ? condition : b_.CreateAnd(inside_, condition);
  }
  Value* expand(const SCEV* expression) {
    return expander_.expandCodeFor(expression, expression->getType(), place_);
  }

  Span span_of(const SCEV* term) {
    llvm::IntegerType* const i64 = b_.getInt64Ty();
    if (const auto* recurrence = recurrence_in(term)) {
      const SCEV* const step = step_of(*recurrence);
      Value* const way = b_.CreateMul(expand(evolution_.getNoopOrSignExtend(step, i64)), backedges_);
      Span span{b_.getInt64(0), b_.getInt64(0)};
      const auto* const constant = llvm::dyn_cast<llvm::SCEVConstant>(step);
      if (constant != nullptr) {
        (constant->getAPInt().isNegative() ? span.low : span.high) = way;
      } else {
        span.low = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, way, b_.getInt64(0));
        span.high = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, way, b_.getInt64(0));
      }
      if (recurrence == term) return span;
      const bool is_signed = llvm::isa<llvm::SCEVSignExtendExpr>(term);
      const unsigned bits = recurrence->getType()->getIntegerBitWidth();
      const SCEV* const wide = is_signed ? evolution_.getSignExtendExpr(recurrence->getStart(), i64)
                                         : evolution_.getZeroExtendExpr(recurrence->getStart(), i64);
      Value* const start = expand(wide);
      span = {b_.CreateAdd(start, span.low), b_.CreateAdd(start, span.high)};
      // Wraps nowhere on its way.
      const auto edge = [&](unsigned bit) { return b_.getInt64(uint64_t{1} << bit); };
      const bool rises = constant == nullptr || !constant->getAPInt().isNegative();
      const bool falls = constant == nullptr || constant->getAPInt().isNegative();
      if (rises) require(b_.CreateICmpSLT(span.high, edge(is_signed ? bits - 1 : bits)));
      if (falls)
        require(b_.CreateICmpSGE(span.low, is_signed ? b_.CreateNeg(edge(bits - 1)) : b_.getInt64(0)));
      return span;
    }
    if (const auto* product = scaled(term)) {
      const Span span = span_of(product->getOperand(1));
      Value* const factor = expand(product->getOperand(0));
      return {b_.CreateMul(span.low, factor), b_.CreateMul(span.high, factor)};
    }
    const llvm::ConstantRange range = evolution_.getUnsignedRange(term);
    return {b_.getInt64(range.getUnsignedMin().getZExtValue()),
            b_.getInt64(range.getUnsignedMax().getZExtValue())};
  }

  void emit(const ReachGroup& group) {
    Value* const invariant = expand(group.invariant);
    Value* low = b_.CreateAdd(invariant, b_.getInt64(static_cast<uint64_t>(group.low)));
    Value* last = b_.CreateAdd(invariant, b_.getInt64(static_cast<uint64_t>(group.high - 1)));
    for (const SCEV* term : group.varying) {
      const Span span = span_of(term);
      low = b_.CreateAdd(low, span.low);
      last = b_.CreateAdd(last, span.high);
    }
    if (!begins_low(group)) require(b_.CreateICmpULT(low, length(group.memory)));
    require(b_.CreateICmpULT(last, length(group.memory)));
  }

  // Whether the first byte lies below the last one without more: all parts are positive numbers.
  bool begins_low(const ReachGroup& group) {
    return group.low >= 0 && evolution_.isKnownNonNegative(group.invariant) &&
           llvm::all_of(group.varying, [&](const SCEV* term) {
             const auto* const recurrence = of_loop(term);
             return recurrence != nullptr ? evolution_.isKnownNonNegative(step_of(*recurrence))
                                          : evolution_.isKnownNonNegative(term);
           });
  }

  Value* length(uint32_t memory) {
    Value*& length = lengths_[memory];
    if (length != nullptr) return length;
    llvm::Argument* const vmctx = place_->getFunction()->getArg(0);
    const auto load = [&](llvm::Type* type, Value* base, int64_t offset) {
      return ir_.mark(
          b_.CreateAlignedLoad(type,
                               b_.CreateInBoundsGEP(ir_.i8, base, b_.getInt64(static_cast<uint64_t>(offset))),
                               llvm::Align(8)),
          IrModule::World::kRuntime);
    };
    llvm::LoadInst* const record = load(ir_.ptr, vmctx, ir_.layout.memory_record(memory));
    record->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir_.context, {}));
    llvm::LoadInst* const now = load(ir_.i64, record, offsetof(MemoryRecord, byte_length));
    // An older length than there is now is good enough.
    if (ir_.wasm.memories[memory].shared) now->setAtomic(llvm::AtomicOrdering::Unordered);
    return length = now;
  }

  const IrModule& ir_;
  llvm::Loop& loop_;
  llvm::ScalarEvolution& evolution_;
  llvm::Instruction* const place_;
  llvm::SCEVExpander expander_;
  llvm::IRBuilder<> b_;
  bool stores_ = false;
  std::vector<ReachGroup> groups_;
  Value* backedges_ = nullptr;
  Value* inside_ = nullptr;
  std::map<uint32_t, Value*> lengths_;
};

}  // namespace

MemoryReach find_memory_reach(const IrModule& ir, llvm::Loop& loop, llvm::ScalarEvolution& evolution,
                              Value* backedges) {
  return ReachFinder(ir, loop, evolution).find(backedges);
}

llvm::MDNode* inside_memory(llvm::LLVMContext& context) {
  return llvm::MDNode::get(context, {llvm::MDString::get(context, kInside)});
}

bool is_inside_memory(const llvm::Loop& loop) {
  return llvm::findOptionMDForLoop(&loop, kInside) != nullptr;
}

void mark_inside_memory(llvm::Instruction& access) {
  access.setMetadata(kInside, llvm::MDNode::get(access.getContext(), {}));
}

bool is_inside_memory(const llvm::Instruction& access) {
  return access.hasMetadata() && access.getMetadata(kInside) != nullptr;
}

}  // namespace hindsight::jit::optimizing
