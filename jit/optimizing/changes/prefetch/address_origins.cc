#include "jit/optimizing/changes/prefetch/address_origins.h"

#include <llvm/ADT/SmallSet.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>

#include <utility>

#include "jit/optimizing/changes/prefetch/access_bytes.h"
#include "jit/optimizing/changes/prefetch/address_terms.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"

namespace hindsight::jit::optimizing {

using llvm::Value;

bool is_of_guest(const IrModule& ir, const llvm::Instruction& access) {
  return llvm::isa<llvm::LoadInst, llvm::StoreInst>(access) && !access.isVolatile() &&
         !ir.is_of(access, IrModule::World::kRuntime) && !ir.is_of(access, IrModule::World::kCells);
}

std::vector<Origin> origins_of(
    const Value& address, llvm::function_ref<bool(const Value&)> is_origin,
    llvm::function_ref<void(const llvm::PHINode& phi, FollowIncoming incoming)> follow, Summands summands) {
  using namespace llvm::PatternMatch;
  std::vector<Origin> found;
  struct Step : Origin {
    uint32_t number = 0;  // which one of a few was taken on the way; 0: there was no choice
  };
  uint32_t numbers = 0;
  llvm::SmallVector<Step, 8> rest{{{.value = &address}}};
  llvm::SmallSet<std::pair<const Value*, uint32_t>, 16> seen;
  while (!rest.empty() && seen.size() < kMostStepsToANode) {
    const Step at = rest.back();
    rest.pop_back();
    if (llvm::isa<llvm::Constant>(at.value) || !seen.insert({at.value, at.number}).second) continue;
    if (is_origin(*at.value)) {
      found.push_back(at);
      continue;
    }
    const auto from = [&](const Value* value, int64_t bytes = 0, bool further = false, bool carried = false) {
      rest.push_back(
          {{value, at.offset + bytes, at.is_element || further, at.is_carried || carried}, at.number});
    };
    const auto sum = [&](const Value* one, const Value* other) {
      const auto* const number = llvm::dyn_cast<llvm::ConstantInt>(other);
      if (number == nullptr && summands == Summands::kFew && at.number == 0) {
        const auto few = numbers_of(*other);
        for (const int64_t bytes : few)
          rest.push_back({{one, at.offset + bytes, at.is_element, at.is_carried}, ++numbers});
        if (!few.empty()) return;
      }
      if (number == nullptr) return from(one, 0, true);
      if (number->getValue().getSignificantBits() <= 32) from(one, number->getSExtValue());
    };
    auto* const value = const_cast<Value*>(at.value);
    const Value *left = nullptr, *right = nullptr;
    if (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(value)) {
      if (!is_of_bytes(*step)) continue;
      // A memory's base may have a constant added to it before an index is. All that varies is the index then.
      int64_t bytes = 0;
      const Value* base = step->getPointerOperand();
      for (const auto* inner = llvm::dyn_cast<llvm::GEPOperator>(base);
           inner && is_of_bytes(*inner) && llvm::isa<llvm::ConstantInt>(inner->getOperand(1));
           inner = llvm::dyn_cast<llvm::GEPOperator>(base)) {
        bytes += llvm::cast<llvm::ConstantInt>(inner->getOperand(1))->getSExtValue();
        base = inner->getPointerOperand();
      }
      if (llvm::isa<llvm::GEPOperator, llvm::PHINode>(base)) {
        sum(step->getPointerOperand(), step->getOperand(1));
        from(step->getOperand(1), 0, true);
      } else {
        from(step->getOperand(1), bytes);
      }
    } else if (match(value, m_AddLike(m_Value(left), m_Value(right)))) {
      sum(left, right);
      sum(right, left);
    } else if (match(value, m_ZExtOrSExt(m_Value(left))) || match(value, m_Trunc(m_Value(left))) ||
               match(value, m_Freeze(m_Value(left)))) {
      from(left);
    } else if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(value)) {
      from(select->getTrueValue());
      from(select->getFalseValue());
    } else if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(value)) {
      follow(*phi, [&](const Value& incoming, bool is_element, bool is_carried) {
        from(&incoming, 0, is_element, is_carried);
      });
    }
  }
  return found;
}

}  // namespace hindsight::jit::optimizing
