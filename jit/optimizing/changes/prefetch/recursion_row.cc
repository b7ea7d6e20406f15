#include "jit/optimizing/changes/prefetch/recursion_row.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "jit/optimizing/changes/prefetch/address_terms.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Value;

const llvm::PHINode* phi_of(const Value& value, const llvm::Loop& loop) {
  const auto* const phi = llvm::dyn_cast<llvm::PHINode>(&value);
  return phi != nullptr && phi->getParent() == loop.getHeader() ? phi : nullptr;
}

// Finds what tells how many elements are left.
bool find_end(RecursionRow& row, const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
  loop.getExitingBlocks(exiting);
  for (const llvm::BasicBlock* block : exiting) {
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    const auto* const compare = branch != nullptr && branch->isConditional()
                                    ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition())
                                    : nullptr;
    if (compare == nullptr || !compare->getOperand(0)->getType()->isIntegerTy()) continue;
    for (const unsigned side : {0U, 1U}) {
      Value* const end = compare->getOperand(1 - side);
      const AddressTerms counted = terms_of(*compare->getOperand(side));
      if (!loop.isLoopInvariant(end) || !counted.is_whole || counted.terms.size() != 1 ||
          counted.terms[0].times != 1)
        continue;
      const llvm::PHINode* const phi = phi_of(*counted.terms[0].value, loop);
      const int64_t step = phi == nullptr ? 0 : step_of(*phi, loop);
      if (step == 0 || row.stride % step != 0 || phi->getType() != end->getType()) continue;
      if (counted.constant != 0 && counted.constant != step) continue;
      row.counter = const_cast<llvm::PHINode*>(phi);
      row.end = end;
      row.step = step;
      return true;
    }
  }
  return false;
}

}  // namespace

int64_t step_of(const llvm::PHINode& phi, const llvm::Loop& loop) {
  if (loop.getLoopLatch() == nullptr) return 0;
  const AddressTerms next = terms_of(*phi.getIncomingValueForBlock(loop.getLoopLatch()));
  const bool is_counter = next.is_whole && next.terms == std::vector{AddressTerms::Term{.value = &phi}};
  return is_counter ? next.constant : 0;
}

std::optional<RecursionRow> row_of(const llvm::LoadInst& load, const llvm::LoopInfo& loops) {
  const llvm::Loop* const loop = loops.getLoopFor(load.getParent());
  const AddressTerms address = terms_of(*load.getPointerOperand());
  if (loop == nullptr || loop->getLoopLatch() == nullptr || !address.is_whole) return std::nullopt;
  RecursionRow row{.load = const_cast<llvm::LoadInst*>(&load)};
  const auto may_begin = [&](const Value* value, int64_t times) {
    if (times == 1 && llvm::isa<llvm::LoadInst>(value)) row.begin = llvm::cast<llvm::LoadInst>(value);
  };
  for (const AddressTerms::Term& term : address.terms) {
    const llvm::PHINode* const phi = phi_of(*term.value, *loop);
    if (phi == nullptr && !loop->isLoopInvariant(term.value)) return std::nullopt;
    if (phi == nullptr) {
      may_begin(term.value, term.times);
      continue;
    }
    const int64_t step = step_of(*phi, *loop);
    if (step == 0) return std::nullopt;
    row.stride += step * term.times;
    if (const llvm::BasicBlock* const before = loop->getLoopPredecessor())
      may_begin(phi->getIncomingValueForBlock(before), term.times);
  }
  if (row.stride == 0 || std::abs(row.stride) > kMostRowStepBytes || !find_end(row, *loop))
    return std::nullopt;
  return row;
}

Value* element_ahead(llvm::IRBuilderBase& b, const RecursionRow& row, int64_t ahead) {
  if (row.counter == nullptr || row.end == nullptr) return nullptr;
  Value *counter = row.counter, *end = row.end;
  // Both count upwards.
  if (row.step < 0) std::swap(counter, end);
  const auto number = [&](int64_t of) { return llvm::ConstantInt::getSigned(counter->getType(), of); };
  const int64_t step = std::abs(row.step);
  Value* const left = b.CreateSub(b.CreateSub(end, counter), number(step));
  Value* const steps = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, number(ahead * step));
  Value* const bytes =
      b.CreateMul(b.CreateZExt(steps, b.getInt64Ty()), b.getInt64(static_cast<uint64_t>(row.stride / step)));
  return b.CreateGEP(b.getInt8Ty(), row.load->getPointerOperand(), bytes);
}

}  // namespace hindsight::jit::optimizing
