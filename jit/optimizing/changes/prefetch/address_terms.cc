#include "jit/optimizing/changes/prefetch/address_terms.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>

#include "jit/optimizing/changes/prefetch/access_bytes.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"

namespace hindsight::jit::optimizing {

using llvm::Value;

namespace {

bool is_small(const llvm::APInt& number) {
  return number.getSignificantBits() <= 32;
}

// Whether a mask takes away no more than what 32 bits do not have.
bool only_wraps(const llvm::APInt& mask, const Value& masked, const llvm::Instruction& at) {
  if (mask.getActiveBits() != 32 || mask.popcount() + mask.countr_zero() != 32) return false;
  const llvm::KnownBits known = llvm::computeKnownBits(&masked, at.getModule()->getDataLayout());
  return known.countMinTrailingZeros() >= mask.countr_zero();
}

}  // namespace

AddressTerms terms_of(const Value& address) {
  using namespace llvm::PatternMatch;
  AddressTerms sum;
  llvm::SmallVector<AddressTerms::Term, 8> rest{{.value = &address}};
  // Factors have 31 bits and constants 32, and there are few steps: nothing overflows.
  const auto add = [&](const Value* value, int64_t times, int64_t by = 1) {
    if (llvm::isInt<31>(times * by))
      rest.push_back({value, times * by});
    else
      sum.is_whole = false;
  };
  for (size_t looked_at = 0; !rest.empty(); ++looked_at) {
    const AddressTerms::Term at = rest.pop_back_val();
    if (looked_at == kMostStepsToANode) {
      sum.is_whole = false;
      return sum;
    }
    auto* const value = const_cast<Value*>(at.value);
    const Value *left = nullptr, *right = nullptr;
    const llvm::APInt* number = nullptr;
    if (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(value)) {
      if (!is_of_bytes(*step)) {
        sum.is_whole = false;
        continue;
      }
      add(step->getOperand(1), at.times);
      add(step->getPointerOperand(), at.times);
    } else if (value->getType()->isPointerTy()) {
      // What is neither a step nor a choice is where the memory begins.
      sum.is_whole &= !llvm::isa<llvm::PHINode, llvm::SelectInst>(value);
    } else if (match(value, m_APInt(number))) {
      if (is_small(*number))
        sum.constant += number->getSExtValue() * at.times;
      else
        sum.is_whole = false;
    } else if (match(value, m_AddLike(m_Value(left), m_Value(right)))) {
      add(left, at.times);
      add(right, at.times);
    } else if (match(value, m_Mul(m_Value(left), m_APInt(number))) && is_small(*number)) {
      add(left, at.times, number->getSExtValue());
    } else if (match(value, m_Shl(m_Value(left), m_APInt(number))) && number->ult(31)) {
      add(left, at.times, int64_t{1} << number->getZExtValue());
    } else if (match(value, m_ZExtOrSExt(m_Value(left))) && !left->getType()->isIntegerTy(1)) {
      add(left, at.times);
    } else if (match(value, m_And(m_Value(left), m_APInt(number))) && llvm::isa<llvm::Instruction>(value) &&
               only_wraps(*number, *left, *llvm::cast<llvm::Instruction>(value))) {
      add(left, at.times);
    } else if (match(value, m_Trunc(m_Value(left))) || match(value, m_Freeze(m_Value(left)))) {
      add(left, at.times);
    } else {
      const auto known = std::ranges::find(sum.terms, at.value, &AddressTerms::Term::value);
      if (known != sum.terms.end())
        known->times += at.times;
      else
        sum.terms.push_back(at);
    }
  }
  return sum;
}

std::vector<int64_t> numbers_of(const Value& value) {
  using namespace llvm::PatternMatch;
  const llvm::APInt *one = nullptr, *other = nullptr;
  auto* const at = const_cast<Value*>(&value);
  if (match(at, m_ZExtOrSExt(m_Select(m_Value(), m_APInt(one), m_APInt(other)))) && one->isNonNegative() &&
      other->isNonNegative())
    return {one->getSExtValue(), other->getSExtValue()};
  if (match(at, m_Select(m_Value(), m_APInt(one), m_APInt(other)))) {
    if (!is_small(*one) || !is_small(*other)) return {};
    return {one->getSExtValue(), other->getSExtValue()};
  }
  if (!value.getType()->isIntegerTy() || value.getType()->getIntegerBitWidth() > 64) return {};
  const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(at);
  if (instruction == nullptr) return {};
  const llvm::KnownBits known = llvm::computeKnownBits(at, instruction->getModule()->getDataLayout());
  const llvm::APInt unknown = ~(known.Zero | known.One);
  if (unknown.popcount() > 2 || unknown.getActiveBits() > 16 || known.One.getActiveBits() > 16) return {};
  std::vector<int64_t> numbers;
  const auto open = unknown.getZExtValue(), fixed = known.One.getZExtValue();
  // All subsets of the bits that are not known.
  for (uint64_t bits = open;; bits = (bits - 1) & open) {
    numbers.push_back(static_cast<int64_t>(fixed | bits));
    if (bits == 0) return numbers;
  }
}

}  // namespace hindsight::jit::optimizing
