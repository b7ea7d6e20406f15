#include "jit/optimizing/changes/interleave/chased_loops.h"

#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>

#include <algorithm>

#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/changes/interleave/interleave_shape.h"
#include "jit/optimizing/versions/loop_walk.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// The block in which it was decided to come to `to` through `from`: that, or the only one in front of it.
std::vector<const BasicBlock*> choices_before(const BasicBlock& from) {
  std::vector<const BasicBlock*> blocks{&from};
  if (const BasicBlock* before = from.getSinglePredecessor()) blocks.push_back(before);
  return blocks;
}

// Asks about the loop itself: in a loop within it another search goes on.
bool any_is_chased(const IrModule& ir, const llvm::Loop& loop, const llvm::LoopInfo& loops) {
  for (BasicBlock* block : loop.blocks()) {
    if (loops.getLoopFor(block) != &loop) continue;
    for (Instruction& instruction : *block)
      if (auto* const other = llvm::dyn_cast<llvm::LoadInst>(&instruction);
          other && !ir.is_of(*other, IrModule::World::kRuntime) && is_chased(*other, loop))
        return true;
  }
  return false;
}

}  // namespace

bool reaches(const Value* from, const PHINode* phi, const llvm::Loop& loop) {
  LoopWalk walk(loop, kMaxInterleavedInstructions, from);
  while (const Instruction* const instruction = walk.next()) {
    if (instruction == phi) return true;
    if (instruction->getParent() != loop.getHeader() || !llvm::isa<PHINode>(instruction))
      walk.follow(*instruction);
  }
  return false;
}

bool is_fed_by_load(const PHINode& phi, const llvm::Loop& loop) {
  const BasicBlock* latch = loop.getLoopLatch();
  if (!latch) return false;
  LoopWalk walk(loop, kMaxInterleavedInstructions, phi.getIncomingValueForBlock(latch));
  while (const Instruction* const instruction = walk.next()) {
    if (llvm::isa<llvm::LoadInst>(instruction)) return true;
    if (const auto* joined = llvm::dyn_cast<PHINode>(instruction)) {
      if (joined->getParent() == loop.getHeader()) continue;
      for (const BasicBlock* from : joined->blocks())
        for (const BasicBlock* chooses : choices_before(*from))
          if (const auto* branch = llvm::dyn_cast<llvm::BranchInst>(chooses->getTerminator());
              branch && branch->isConditional() && loop.contains(chooses))
            walk.add(branch->getCondition());
    }
    walk.follow(*instruction);
  }
  return false;
}

bool is_chased(const llvm::LoadInst& load, const llvm::Loop& loop) {
  for (const PHINode& phi : loop.getHeader()->phis())
    if (reaches(load.getPointerOperand(), &phi, loop) && is_fed_by_load(phi, loop)) return true;
  return false;
}

std::vector<llvm::Loop*> chased_loops(const IrModule& ir, const llvm::LoadInst& load,
                                      const llvm::LoopInfo& loops) {
  std::vector<llvm::Loop*> found;
  llvm::Loop* const innermost = loops.getLoopFor(load.getParent());
  for (llvm::Loop* loop = innermost; loop; loop = loop->getParentLoop())
    if (is_chased(load, *loop)) found.push_back(loop);
  for (llvm::Loop* loop = innermost; loop && loop->getParentLoop(); loop = loop->getParentLoop())
    if (std::ranges::find(found, loop) == found.end() && any_is_chased(ir, *loop, loops))
      found.push_back(loop);
  return found;
}

std::vector<BasicBlock*> blocks_before(const llvm::Loop& search) {
  const llvm::Loop& outer = *search.getParentLoop();
  llvm::SmallPtrSet<const BasicBlock*, 16> before;
  std::vector<BasicBlock*> work{search.getLoopPreheader()};
  while (!work.empty()) {
    BasicBlock* const block = work.back();
    work.pop_back();
    if (!before.insert(block).second || block == outer.getHeader()) continue;
    work.insert(work.end(), llvm::pred_begin(block), llvm::pred_end(block));
  }
  std::vector<BasicBlock*> blocks;
  for (BasicBlock* block : outer.blocks())
    if (before.contains(block)) blocks.push_back(block);
  return blocks;
}

bool is_recursive(const llvm::Function& function) {
  for (const Instruction& instruction : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
    if (callee && !callee->isDeclaration()) return true;
  }
  return false;
}

}  // namespace hindsight::jit::optimizing
