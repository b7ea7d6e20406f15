#include "jit/optimizing/changes/prefetch/counted_ways.h"

#include <llvm/IR/ProfDataUtils.h>

#include <algorithm>
#include <utility>

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;

std::optional<double> share_of_edge(const BasicBlock& from, const BasicBlock& into) {
  const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(from.getTerminator());
  uint64_t yes = 0, no = 0;
  if (branch == nullptr || !branch->isConditional() || !llvm::extractBranchWeights(*branch, yes, no) ||
      yes + no == 0)
    return std::nullopt;
  return static_cast<double>(branch->getSuccessor(0) == &into ? yes : no) / static_cast<double>(yes + no);
}

}  // namespace

std::optional<double> share_of_way(const llvm::PHINode& join, const llvm::Value& value) {
  std::optional<double> most;
  for (unsigned i = 0; i < join.getNumIncomingValues(); ++i) {
    if (join.getIncomingValue(i) != &value) continue;
    const BasicBlock* from = join.getIncomingBlock(i);
    const BasicBlock* into = join.getParent();
    if (from->getUniqueSuccessor()) into = std::exchange(from, from->getSinglePredecessor());
    const std::optional<double> share = from ? share_of_edge(*from, *into) : std::nullopt;
    if (!share) return std::nullopt;
    most = std::max(most.value_or(0), *share);
  }
  return most;
}

}  // namespace hindsight::jit::optimizing
