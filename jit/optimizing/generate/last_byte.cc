#include "jit/optimizing/generate/last_byte.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/KnownBits.h>

#include <functional>
#include <optional>

namespace hindsight::jit::optimizing {
namespace {

using llvm::APInt;
using llvm::Instruction;
using llvm::Value;

constexpr unsigned kPointerBits = 64;

struct Shape {
  unsigned lanes = 0, bits = 0;  // of a lane; none: not followed
  unsigned total() const { return lanes * bits; }
};

Shape shape_of(const llvm::Type* type) {
  if (type->isPointerTy()) return {1, kPointerBits};
  if (type->isIntegerTy() || type->isFloatingPointTy())
    return {1, static_cast<unsigned>(type->getPrimitiveSizeInBits())};
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    const Shape lane = shape_of(vector->getElementType());
    return {vector->getNumElements() * lane.lanes, lane.bits};
  }
  return {};
}

BitSet nothing_of(const Shape& shape) {
  return APInt(std::max(shape.total(), 1u), 0);
}

APInt lane_of(const BitSet& bits, const Shape& shape, unsigned lane) {
  return bits.extractBits(shape.bits, lane * shape.bits);
}

using OfLane = std::function<APInt(const APInt& lane, unsigned index)>;

BitSet lane_by_lane(const BitSet& bits, const Shape& from, const Shape& to, const OfLane& shown) {
  BitSet result = nothing_of(to);
  if (from.lanes != to.lanes) return result;
  for (unsigned i = 0; i < from.lanes; ++i) {
    const APInt lane = lane_of(bits, from, i);
    if (!lane.isZero()) result.insertBits(shown(lane, i), i * to.bits);
  }
  return result;
}

// Any bit of a lane shows in each of the result's.
BitSet whole_lanes(const BitSet& bits, const Shape& from, const Shape& to) {
  return lane_by_lane(bits, from, to, [&](const APInt&, unsigned) { return APInt::getAllOnes(to.bits); });
}

// The number that a constant has in a lane.
std::optional<APInt> number_in(const llvm::Constant& constant, unsigned lane) {
  const llvm::Constant* element = &constant;
  if (constant.getType()->isVectorTy()) element = constant.getAggregateElement(lane);
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(element);
  return number == nullptr ? std::nullopt : std::optional(number->getValue());
}

// A counter that starts at a number is that number in an iteration that was peeled off. Whatever is added to it or made
// of its width is known with it, and what it is compared with.
bool may_become_constant(const Value& value) {
  const Value* at = &value;
  for (int steps = 0; steps < 8; ++steps) {
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(at)) {
      for (const Value* incoming : phi->incoming_values())
        if (llvm::isa<llvm::Constant>(incoming)) return true;
      return false;
    }
    if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(at))
      return llvm::isa<llvm::Constant>(select->getTrueValue()) ||
             llvm::isa<llvm::Constant>(select->getFalseValue());
    const auto* instruction = llvm::dyn_cast<Instruction>(at);
    if (instruction == nullptr) return false;
    const bool one_operand = llvm::isa<llvm::CastInst, llvm::FreezeInst>(instruction) ||
                             (llvm::isa<llvm::BinaryOperator, llvm::CmpInst>(instruction) &&
                              llvm::isa<llvm::Constant>(instruction->getOperand(1)));
    if (!one_operand) return false;
    at = instruction->getOperand(0);
  }
  return false;
}

APInt up_to_width(const APInt& bits, unsigned width) {
  return bits.zextOrTrunc(width);
}

// All bits from the lowest one of `bits` on, or down from the highest one.
APInt and_above(const APInt& bits) {
  return APInt::getHighBitsSet(bits.getBitWidth(), bits.getBitWidth() - bits.countr_zero());
}
APInt and_below(const APInt& bits) {
  return APInt::getLowBitsSet(bits.getBitWidth(), bits.getActiveBits());
}

APInt shifted_right_by_sign(const APInt& lane, unsigned amount) {
  // The sign comes in from above, however often.
  return lane.ashr(amount);
}

class Follower {
 public:
  Follower(const llvm::Use& use, const BitSet& bits, const llvm::DataLayout& layout)
      : by_(*llvm::cast<Instruction>(use.getUser())),
        operand_(use.getOperandNo()),
        bits_(bits),
        layout_(layout),
        from_(shape_of(use->getType())),
        to_(shape_of(by_.getType())) {}

  BitSet shown() const {
    if (from_.total() == 0 || to_.total() == 0 || bits_.isZero()) return nothing();
    switch (by_.getOpcode()) {
      case Instruction::BitCast:
      case Instruction::Freeze:
      case Instruction::FNeg:
        return up_to_width(bits_, to_.total());
      case Instruction::PtrToInt:
      case Instruction::IntToPtr:
      case Instruction::ZExt:
      case Instruction::Trunc:
        return lane_by_lane(bits_, from_, to_,
                            [&](const APInt& lane, unsigned) { return up_to_width(lane, to_.bits); });
      case Instruction::SExt:
        return lane_by_lane(bits_, from_, to_,
                            [&](const APInt& lane, unsigned) { return lane.sext(to_.bits); });
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Xor:
        return bits_;
      case Instruction::And:
      case Instruction::Or:
      case Instruction::Mul:
        return of_lanes_with_operand();
      case Instruction::Shl:
      case Instruction::LShr:
      case Instruction::AShr:
        return of_shift();
      case Instruction::UDiv:
      case Instruction::SDiv:
      case Instruction::URem:
      case Instruction::SRem:
        return of_division();
      case Instruction::FAdd:
      case Instruction::FSub:
      case Instruction::FMul:
      case Instruction::FDiv:
        return absorbs(other()) ? nothing() : whole_lanes(bits_, from_, to_);
      case Instruction::FPTrunc:
      case Instruction::FPExt:
      case Instruction::FPToSI:
      case Instruction::FPToUI:
      case Instruction::SIToFP:
      case Instruction::UIToFP:
        return whole_lanes(bits_, from_, to_);
      case Instruction::ICmp:
        return of_comparison();
      case Instruction::FCmp:
        return absorbs(other()) ? nothing() : whole_lanes(bits_, from_, to_);
      case Instruction::Select:
        return of_condition();
      case Instruction::GetElementPtr:
      case Instruction::Load:  // from that address
        return APInt::getAllOnes(to_.total());
      case Instruction::ExtractElement:
        return of_extraction();
      case Instruction::InsertElement:
        return of_insertion();
      case Instruction::ShuffleVector:
        return of_shuffle();
      case Instruction::Call:
        if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&by_))
          return of_intrinsic(*intrinsic);
        // What protect.cc hides a value with.
        if (llvm::cast<llvm::CallBase>(by_).isInlineAsm() && from_.total() == to_.total()) return bits_;
        return nothing();
      default:
        return nothing();
    }
  }

 private:
  BitSet nothing() const { return nothing_of(to_); }
  const Value& other() const { return *by_.getOperand(operand_ == 0 ? 1 : 0); }
  // Constants are looked at where they stand: that the operator is still there says that they do not absorb
  // the other operand.
  bool stays_open(const Value& value) const { return !may_become_constant(value); }

  // Among floating-point operands only NaNs and infinities do, and none becomes known but where a phi begins with it.
  static bool absorbs(const Value& value) {
    const auto is_finite = [](const Value* of) {
      const auto* constant = llvm::dyn_cast<llvm::Constant>(of);
      if (constant == nullptr) return true;
      if (const llvm::Constant* splat =
              constant->getType()->isVectorTy() ? constant->getSplatValue() : constant) {
        const auto* number = llvm::dyn_cast<llvm::ConstantFP>(splat);
        return number != nullptr && number->getValueAPF().isFinite();
      }
      const auto* lanes = llvm::dyn_cast<llvm::ConstantDataVector>(constant);
      if (lanes == nullptr || !lanes->getElementType()->isFloatingPointTy()) return false;
      for (unsigned i = 0; i < lanes->getNumElements(); ++i)
        if (!lanes->getElementAsAPFloat(i).isFinite()) return false;
      return true;
    };
    const Value* at = &value;
    while (llvm::isa<llvm::BitCastInst, llvm::FreezeInst>(at))
      at = llvm::cast<Instruction>(at)->getOperand(0);
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(at))
      return !llvm::all_of(phi->incoming_values(), [&](const Value* from) {
        return from->getType()->isFPOrFPVectorTy() ? is_finite(from)
                                                   : !llvm::isa<llvm::Constant>(from) || is_zero(*from);
      });
    if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(at))
      return !is_finite(select->getTrueValue()) || !is_finite(select->getFalseValue());
    return false;
  }
  static bool is_zero(const Value& value) {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(&value);
    return constant != nullptr && constant->isNullValue();
  }

  BitSet of_lanes_with_operand() const {
    const Value& with = other();
    const unsigned opcode = by_.getOpcode();
    const auto* constant = llvm::dyn_cast<llvm::Constant>(&with);
    if (constant == nullptr && !stays_open(with)) return nothing();
    const llvm::KnownBits known =
        constant == nullptr ? llvm::computeKnownBits(&with, layout_) : llvm::KnownBits(from_.bits);
    return lane_by_lane(bits_, from_, to_, [&](const APInt& lane, unsigned i) {
      APInt zero = known.Zero, one = known.One;
      if (constant != nullptr) {
        const std::optional<APInt> number = number_in(*constant, i);
        if (!number) return APInt(from_.bits, 0);
        zero = ~*number;
        one = *number;
      }
      if (opcode == Instruction::And) return lane & ~zero;
      if (opcode == Instruction::Or) return lane & ~one;
      return of_product(lane, zero, one);
    });
  }

  // A bit of a factor reaches from where the other factor begins to where it ends.
  APInt of_product(const APInt& lane, const APInt& zero, const APInt& one) const {
    if (zero.isAllOnes()) return APInt(from_.bits, 0);
    const unsigned begin = lane.countr_zero() + zero.countr_one();
    if ((zero | one).isAllOnes() && one.isPowerOf2()) return lane.shl(zero.countr_one());
    const unsigned end = std::min(from_.bits, lane.getActiveBits() + (~zero).getActiveBits() - 1);
    return begin >= end ? APInt(from_.bits, 0) : APInt::getBitsSet(from_.bits, begin, end);
  }

  BitSet of_shift() const {
    if (operand_ == 1) return stays_open(other()) ? whole_lanes(bits_, from_, to_) : nothing();
    const Value& amount = other();
    const unsigned opcode = by_.getOpcode();
    if (const auto* constant = llvm::dyn_cast<llvm::Constant>(&amount)) {
      return lane_by_lane(bits_, from_, to_, [&](const APInt& lane, unsigned i) {
        const std::optional<APInt> number = number_in(*constant, i);
        if (!number || number->uge(from_.bits)) return APInt(from_.bits, 0);
        const auto by = static_cast<unsigned>(number->getZExtValue());
        if (opcode == Instruction::Shl) return lane.shl(by);
        return opcode == Instruction::LShr ? lane.lshr(by) : shifted_right_by_sign(lane, by);
      });
    }
    if (!stays_open(amount)) return nothing();
    const APInt most = llvm::computeKnownBits(&amount, layout_).getMaxValue();
    const auto limit = static_cast<unsigned>(most.getLimitedValue(from_.bits - 1));
    return lane_by_lane(bits_, from_, to_, [&](const APInt& lane, unsigned) {
      APInt reached = lane;
      for (unsigned by = 1; by <= limit; by *= 2) {
        // Doubles the distance, and the last step goes the rest.
        const unsigned step = std::min(by, limit - (by - 1));
        if (opcode == Instruction::Shl)
          reached |= reached.shl(step);
        else
          reached |= opcode == Instruction::LShr ? reached.lshr(step) : shifted_right_by_sign(reached, step);
      }
      return reached;
    });
  }

  BitSet of_division() const {
    if (!stays_open(other())) return nothing();
    const unsigned opcode = by_.getOpcode();
    const bool remainder = opcode == Instruction::URem || opcode == Instruction::SRem;
    const auto* constant = llvm::dyn_cast<llvm::Constant>(&other());
    return lane_by_lane(bits_, from_, to_, [&](const APInt& lane, unsigned i) {
      if (operand_ == 1 || constant == nullptr) return APInt::getAllOnes(from_.bits);
      const std::optional<APInt> number = number_in(*constant, i);
      if (!number || number->isZero()) return APInt(from_.bits, 0);
      const APInt divisor = number->abs();
      // A power of two leaves the low bits, or takes them away.
      if (divisor.isPowerOf2()) {
        const unsigned low = divisor.logBase2();
        return remainder ? lane & APInt::getLowBitsSet(from_.bits, low) : lane.lshr(low);
      }
      if (remainder) return APInt::getLowBitsSet(from_.bits, divisor.getActiveBits() - 1);
      return and_below(lane).lshr(divisor.getActiveBits());
    });
  }

  BitSet of_comparison() const {
    const auto& comparison = llvm::cast<llvm::ICmpInst>(by_);
    const Value& with = other();
    const auto* constant = llvm::dyn_cast<llvm::Constant>(&with);
    if (constant == nullptr) return stays_open(with) ? whole_lanes(bits_, from_, to_) : nothing();
    if (comparison.isEquality()) return whole_lanes(bits_, from_, to_);
    const llvm::CmpInst::Predicate predicate =
        operand_ == 0 ? comparison.getPredicate() : comparison.getSwappedPredicate();
    return lane_by_lane(bits_, from_, to_, [&](const APInt& lane, unsigned i) {
      const APInt none(to_.bits, 0);
      std::optional<APInt> number = from_.bits == kPointerBits && constant->isNullValue()
                                        ? std::optional(APInt(from_.bits, 0))
                                        : number_in(*constant, i);
      if (!number) return none;
      // As "less than a number", unsigned: what the number's trailing zeros are compared with makes no difference.
      if (llvm::CmpInst::isSigned(predicate)) number->flipBit(from_.bits - 1);
      const llvm::CmpInst::Predicate plain =
          llvm::CmpInst::isSigned(predicate) ? llvm::ICmpInst::getUnsignedPredicate(predicate) : predicate;
      if (plain == llvm::CmpInst::ICMP_UGT || plain == llvm::CmpInst::ICMP_ULE) ++*number;
      const APInt deciding = number->isZero() ? none.zext(from_.bits) : and_above(*number);
      return (lane & deciding).isZero() ? none : APInt::getAllOnes(to_.bits);
    });
  }

  // For a select: what it only might choose shows nowhere for sure.
  BitSet of_condition() const {
    if (operand_ != 0 || may_be_no_choice()) return nothing();
    if (from_.lanes == 1) return APInt::getAllOnes(to_.total());
    return whole_lanes(bits_, from_, to_);
  }

  // Whether both values may turn out to be the same.
  bool may_be_no_choice() const {
    const Value *one = by_.getOperand(1), *other = by_.getOperand(2);
    const bool one_known = llvm::isa<llvm::Constant>(one), other_known = llvm::isa<llvm::Constant>(other);
    if (one_known && other_known) return one == other;
    return (one_known || may_become_constant(*one)) && (other_known || may_become_constant(*other));
  }

  BitSet of_extraction() const {
    const auto* index = llvm::dyn_cast<llvm::ConstantInt>(by_.getOperand(1));
    if (operand_ != 0 || index == nullptr || index->getValue().uge(from_.lanes)) return nothing();
    return lane_of(bits_, from_, static_cast<unsigned>(index->getZExtValue()));
  }

  BitSet of_insertion() const {
    const auto* index = llvm::dyn_cast<llvm::ConstantInt>(by_.getOperand(2));
    if (operand_ == 2 || index == nullptr || index->getValue().uge(to_.lanes)) return nothing();
    const auto lane = static_cast<unsigned>(index->getZExtValue());
    BitSet result = operand_ == 0 ? bits_ : nothing();
    result.insertBits(operand_ == 0 ? APInt(to_.bits, 0) : bits_, lane * to_.bits);
    return result;
  }

  BitSet of_shuffle() const {
    const auto& shuffle = llvm::cast<llvm::ShuffleVectorInst>(by_);
    BitSet result = nothing();
    for (unsigned i = 0; i < to_.lanes; ++i) {
      const int lane = shuffle.getMaskValue(i);
      if (lane < 0 || static_cast<unsigned>(lane) / from_.lanes != operand_) continue;
      result.insertBits(lane_of(bits_, from_, static_cast<unsigned>(lane) % from_.lanes), i * to_.bits);
    }
    return result;
  }

  // For a shift through the halves of one operand, or of two: `bits` of the lanes shifted. What falls out comes in from
  // the other half.
  APInt rotated(const APInt& lane, const llvm::IntrinsicInst& shift, unsigned i) const {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(shift.getArgOperand(2));
    const bool to_itself = shift.getArgOperand(0) == shift.getArgOperand(1);
    if (constant == nullptr)
      return to_itself && stays_open(*shift.getArgOperand(2)) ? APInt::getAllOnes(from_.bits)
                                                              : APInt(from_.bits, 0);
    const std::optional<APInt> number = number_in(*constant, i);
    if (!number) return APInt(from_.bits, 0);
    auto left = static_cast<unsigned>(number->urem(from_.bits));
    if (shift.getIntrinsicID() == llvm::Intrinsic::fshr) left = from_.bits - left;
    if (to_itself) return lane.rotl(left);
    if (left == 0 || left == from_.bits) return APInt(from_.bits, 0);
    return operand_ == 0 ? lane.shl(left) : lane.lshr(from_.bits - left);
  }

  BitSet of_intrinsic(const llvm::IntrinsicInst& call) const {
    const auto open = [&] { return stays_open(other()); };
    switch (call.getIntrinsicID()) {
      case llvm::Intrinsic::ctpop:
      case llvm::Intrinsic::ctlz:
      case llvm::Intrinsic::cttz:
        return lane_by_lane(bits_, from_, to_, [&](const APInt&, unsigned) {
          return APInt::getLowBitsSet(to_.bits, APInt(32, from_.bits).logBase2());
        });
      case llvm::Intrinsic::bswap:
        return lane_by_lane(bits_, from_, to_, [](const APInt& lane, unsigned) { return lane.byteSwap(); });
      case llvm::Intrinsic::bitreverse:
        return lane_by_lane(bits_, from_, to_,
                            [](const APInt& lane, unsigned) { return lane.reverseBits(); });
      case llvm::Intrinsic::abs:
        return operand_ == 0 ? bits_ : nothing();
      case llvm::Intrinsic::fshl:
      case llvm::Intrinsic::fshr:
        if (operand_ == 2) return nothing();
        return lane_by_lane(bits_, from_, to_,
                            [&](const APInt& lane, unsigned i) { return rotated(lane, call, i); });
      case llvm::Intrinsic::umin:
      case llvm::Intrinsic::umax:
      case llvm::Intrinsic::smin:
      case llvm::Intrinsic::smax:
      case llvm::Intrinsic::uadd_sat:
      case llvm::Intrinsic::sadd_sat:
      case llvm::Intrinsic::usub_sat:
      case llvm::Intrinsic::ssub_sat:
        return open() ? bits_ : nothing();
      case llvm::Intrinsic::minnum:
      case llvm::Intrinsic::maxnum:
      case llvm::Intrinsic::minimum:
      case llvm::Intrinsic::maximum:
        return absorbs(other()) ? nothing() : whole_lanes(bits_, from_, to_);
      case llvm::Intrinsic::fabs:
        return lane_by_lane(bits_, from_, to_, [](const APInt& lane, unsigned) {
          return lane & ~APInt::getSignMask(lane.getBitWidth());
        });
      case llvm::Intrinsic::copysign:
        return lane_by_lane(bits_, from_, to_, [&](const APInt& lane, unsigned) {
          const APInt sign = APInt::getSignMask(lane.getBitWidth());
          return operand_ == 0 ? lane & ~sign : lane & sign;
        });
      case llvm::Intrinsic::sqrt:
      case llvm::Intrinsic::floor:
      case llvm::Intrinsic::ceil:
      case llvm::Intrinsic::trunc:
      case llvm::Intrinsic::rint:
      case llvm::Intrinsic::nearbyint:
      case llvm::Intrinsic::roundeven:
      case llvm::Intrinsic::fptosi_sat:
      case llvm::Intrinsic::fptoui_sat:
        return whole_lanes(bits_, from_, to_);
      case llvm::Intrinsic::vector_reduce_add:
      case llvm::Intrinsic::vector_reduce_xor: {
        BitSet result = nothing();
        for (unsigned i = 0; i < from_.lanes; ++i) result |= lane_of(bits_, from_, i);
        return result;
      }
      case llvm::Intrinsic::x86_ssse3_pshuf_b_128:
        // Lanes that are chosen at run time: each may be any.
        if (operand_ == 1) return whole_lanes(bits_, from_, to_);
        return open() ? APInt::getAllOnes(to_.total()) : nothing();
      case llvm::Intrinsic::x86_sse2_packssdw_128:
      case llvm::Intrinsic::x86_sse2_packsswb_128:
      case llvm::Intrinsic::x86_sse2_packuswb_128:
      case llvm::Intrinsic::x86_sse41_packusdw:
        return to_lanes([&](unsigned lane) { return lane + operand_ * from_.lanes; });
      case llvm::Intrinsic::x86_sse2_pmadd_wd:
      case llvm::Intrinsic::x86_ssse3_pmadd_ub_sw_128:
        return open() ? to_lanes([](unsigned lane) { return lane / 2; }) : nothing();
      case llvm::Intrinsic::x86_ssse3_pmul_hr_sw_128:
        return open() ? to_lanes([](unsigned lane) { return lane; }) : nothing();
      case llvm::Intrinsic::x86_sse2_cvttps2dq:
      case llvm::Intrinsic::x86_sse2_cvttpd2dq:
        return to_lanes([](unsigned lane) { return lane; });
      default:
        return nothing();
    }
  }

  // Any bit of a lane in all bits of another one. A lane of zeros on the other side absorbs it.
  template <typename Map>
  BitSet to_lanes(const Map& map) const {
    const auto* constant = by_.getNumOperands() > 2 ? llvm::dyn_cast<llvm::Constant>(&other()) : nullptr;
    BitSet result = nothing();
    for (unsigned i = 0; i < from_.lanes; ++i) {
      if (lane_of(bits_, from_, i).isZero() || map(i) >= to_.lanes) continue;
      const bool product = constant != nullptr && to_.lanes <= from_.lanes;
      if (product) {
        const std::optional<APInt> number = number_in(*constant, i);
        if (!number || number->isZero()) continue;
      }
      result.insertBits(APInt::getAllOnes(to_.bits), map(i) * to_.bits);
    }
    return result;
  }

  const Instruction& by_;
  const unsigned operand_;
  const BitSet& bits_;
  const llvm::DataLayout& layout_;
  const Shape from_, to_;
};

// A place as its base, what is added to it, and a constant offset.
struct BytePlace {
  const Value* base;
  llvm::SmallVector<const Value*, 4> indices;
  int64_t offset = 0;
  bool operator==(const BytePlace&) const = default;
};

BytePlace place_of(const Value* pointer) {
  BytePlace place{pointer, {}, 0};
  while (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(place.base)) {
    for (const Value* index : step->indices()) {
      const auto* number = llvm::dyn_cast<llvm::ConstantInt>(index);
      if (number != nullptr && step->getSourceElementType()->isIntegerTy(8))
        place.offset += number->getSExtValue();
      else
        place.indices.push_back(index);
    }
    place.base = step->getPointerOperand();
  }
  llvm::sort(place.indices);
  return place;
}

}  // namespace

BitSet last_byte(const llvm::LoadInst& load) {
  const Shape shape = shape_of(load.getType());
  if (shape.total() < 8) return nothing_of(shape);
  return APInt::getHighBitsSet(shape.total(), 8);
}

BitSet shown_bits(const llvm::Use& use, const BitSet& bits, const llvm::DataLayout& layout) {
  return Follower(use, bits, layout).shown();
}

bool may_store_less(const llvm::StoreInst& store) {
  const BytePlace place = place_of(store.getPointerOperand());
  struct Step {
    const Value* value;
    bool whole;  // by what comes after it all bytes may change
  };
  llvm::SmallVector<Step, 8> worklist{{store.getValueOperand(), false}};
  // Long chains of masks are none that LLVM sees through.
  for (int steps = 0; !worklist.empty() && steps < 32; ++steps) {
    const Step step = worklist.pop_back_val();
    const auto* const at = llvm::dyn_cast<Instruction>(step.value);
    if (at == nullptr) continue;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(at)) {
      if (!step.whole && place_of(load->getPointerOperand()) == place) return true;
      continue;
    }
    bool whole = step.whole;
    switch (at->getOpcode()) {
      case Instruction::And:
      case Instruction::Or:
      case Instruction::Xor:
        // By what is not known each byte may change; a mask further on leaves some the same.
        whole = !llvm::isa<llvm::Constant>(at->getOperand(1));
        break;
      case Instruction::Select:
      case Instruction::InsertElement:
      case Instruction::ShuffleVector:
      case Instruction::PHI:
        whole = false;
        break;
      case Instruction::BitCast:
      case Instruction::Freeze:
      case Instruction::ZExt:
      case Instruction::Trunc:
        break;
      default:
        continue;
    }
    for (const Value* operand : at->operands()) worklist.push_back({operand, whole});
  }
  return false;
}

}  // namespace hindsight::jit::optimizing
