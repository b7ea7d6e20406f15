#include "jit/optimizing/changes/prefetch/row.h"

#include <llvm/IR/ProfDataUtils.h>

#include <algorithm>
#include <cmath>

#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/ir/names.h"
#include "jit/optimizing/versions/loop_versions.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {
namespace {

// A variable of the loop, or what that becomes in the next iteration by adding a constant, if it may have been made longer or shorter
// for that.
llvm::PHINode* counter_of(llvm::Value& compared, const llvm::Loop& loop) {
  llvm::Value* value = &compared;
  while (llvm::isa<llvm::TruncInst, llvm::ZExtInst, llvm::SExtInst, llvm::FreezeInst>(value))
    value = llvm::cast<llvm::Instruction>(value)->getOperand(0);
  auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (instruction == nullptr || !loop.contains(instruction)) return nullptr;
  if (is_header_phi(*instruction, loop)) return llvm::cast<llvm::PHINode>(instruction);
  if (instruction->getOpcode() != llvm::Instruction::Add) return nullptr;
  auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction->getOperand(0));
  const bool is_next = phi != nullptr && is_header_phi(*phi, loop) && loop.getLoopLatch() != nullptr &&
                       phi->getIncomingValueForBlock(loop.getLoopLatch()) == instruction;
  return is_next ? phi : nullptr;
}

}  // namespace

std::vector<RowEnd> find_row_ends(const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
  loop.getExitingBlocks(exiting);
  std::vector<RowEnd> ends;
  for (const llvm::BasicBlock* block : exiting) {
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (branch == nullptr || !branch->isConditional()) continue;
    const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
    if (compare == nullptr || !compare->getOperand(0)->getType()->isIntegerTy()) continue;
    for (const unsigned side : {0, 1})
      if (llvm::PHINode* const counter = counter_of(*compare->getOperand(side), loop))
        ends.push_back({.counter = counter, .end = compare->getOperand(1 - side)});
  }
  return ends;
}

uint32_t elements_at_once(const Row& row) {
  const double turns = expected_turns(*row.loop);
  if (turns == 0) return static_cast<uint32_t>(kMostElementsAtOnce);
  return static_cast<uint32_t>(std::clamp(std::ceil(turns), 2.0, kMostElementsAtOnce));
}

// Where one of the ways out was not counted, the others say nothing: a trap hardly ever comes.
bool has_long_rows(const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
  loop.getExitingBlocks(exiting);
  return expected_turns(loop) >= kLongRowTurns && llvm::all_of(exiting, [](const llvm::BasicBlock* block) {
           uint64_t yes = 0, no = 0;
           const llvm::Instruction& branch = *block->getTerminator();
           return branch.hasMetadata(kExitCounts) || llvm::extractBranchWeights(branch, yes, no);
         });
}

}  // namespace hindsight::jit::optimizing
