#include "jit/optimizing/changes/prefetch/row_sequence.h"

#include <algorithm>
#include <vector>

#include "jit/optimizing/changes/prefetch/address_terms.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/changes/prefetch/recursion_row.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// What values are computed from, in an iteration of the loop around a row.
struct Sources {
  std::vector<const llvm::LoadInst*> loads;
  std::vector<const llvm::PHINode*> carried;  // of the loop around
};

Sources sources_of(const std::vector<const Value*>& values, const llvm::Loop& row, const llvm::Loop& around) {
  Sources sources;
  LoopWalk walk(around, kMostWalkedToALength);
  for (const Value* value : values) walk.add(value);
  while (const Instruction* const instruction = walk.next()) {
    if (is_header_phi(*instruction, around))
      sources.carried.push_back(llvm::cast<llvm::PHINode>(instruction));
    else if (!llvm::isa<llvm::LoadInst>(instruction))
      walk.follow(*instruction);
    else if (!row.contains(instruction))
      sources.loads.push_back(llvm::cast<llvm::LoadInst>(instruction));
  }
  return sources;
}

// Whether one load's next address is the other's.
bool goes_to(const llvm::LoadInst& from, const llvm::LoadInst& to, const llvm::Loop& around) {
  const AddressTerms first = terms_of(*from.getPointerOperand()), second = terms_of(*to.getPointerOperand());
  if (!first.is_whole || !second.is_whole || !std::ranges::is_permutation(first.terms, second.terms))
    return false;
  int64_t stride = 0;
  for (const AddressTerms::Term& term : first.terms) {
    const auto* const instruction = llvm::dyn_cast<Instruction>(term.value);
    if (instruction == nullptr || !around.contains(instruction)) continue;
    const int64_t step =
        is_header_phi(*instruction, around) ? step_of(*llvm::cast<llvm::PHINode>(instruction), around) : 0;
    if (step == 0) return false;
    stride += step * term.times;
  }
  return stride != 0 && second.constant - first.constant == stride;
}

// Whether it is what a variable of the row has come to.
bool is_left_by(const Value& value, const llvm::Loop& row, const llvm::Loop& around) {
  LoopWalk walk(around, kMostWalkedToALength, &value);
  while (const Instruction* const instruction = walk.next()) {
    if (row.contains(instruction)) return !llvm::isa<llvm::LoadInst>(instruction);
    if (llvm::isa<llvm::PHINode>(instruction) && !is_header_phi(*instruction, around))
      walk.follow(*instruction);
  }
  return false;
}

const Value& without_joins(const Value& value) {
  const auto* const phi = llvm::dyn_cast<llvm::PHINode>(&value);
  return phi != nullptr && phi->getNumIncomingValues() == 1 ? *phi->getIncomingValue(0) : value;
}

}  // namespace

bool rows_follow_each_other(const llvm::Loop& loop, const std::map<llvm::PHINode*, Value*>& steps) {
  const llvm::Loop* const around = loop.getParentLoop();
  const llvm::BasicBlock* const before = loop.getLoopPredecessor();
  if (around == nullptr || before == nullptr || around->getLoopLatch() == nullptr) return false;
  std::vector<const Value*> begins, conditions;
  for (const auto& [phi, step] : steps)
    if (phi->getParent() == loop.getHeader()) begins.push_back(phi->getIncomingValueForBlock(before));
  llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
  loop.getExitingBlocks(exiting);
  for (const llvm::BasicBlock* block : exiting)
    if (const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
        branch != nullptr && branch->isConditional())
      conditions.push_back(branch->getCondition());
  const Sources from = sources_of(begins, loop, *around);
  const std::vector<const llvm::LoadInst*> ends = sources_of(conditions, loop, *around).loads;
  const auto is_end = [&](const Value* value) { return std::ranges::find(ends, value) != ends.end(); };
  return std::ranges::any_of(from.carried,
                             [&](const llvm::PHINode* phi) {
                               const Value& next =
                                   without_joins(*phi->getIncomingValueForBlock(around->getLoopLatch()));
                               return is_end(&next) || is_left_by(next, loop, *around);
                             }) ||
         std::ranges::any_of(from.loads, [&](const llvm::LoadInst* begin) {
           return std::ranges::any_of(
               ends, [&](const llvm::LoadInst* end) { return goes_to(*begin, *end, *around); });
         });
}

}  // namespace hindsight::jit::optimizing
