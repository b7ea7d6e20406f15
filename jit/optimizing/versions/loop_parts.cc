#include "jit/optimizing/versions/loop_parts.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace hindsight::jit::optimizing {
namespace {

constexpr const char* kUncounted = "hindsight.uncounted";

llvm::MDNode* without_vectors(llvm::LLVMContext& context) {
  return llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.vectorize.enable"),
                                     llvm::ConstantAsMetadata::get(llvm::ConstantInt::getFalse(context))});
}

}  // namespace

llvm::MDNode* loop_identity(llvm::LLVMContext& context, const llvm::MDNode* old,
                            llvm::ArrayRef<llvm::Metadata*> more) {
  llvm::SmallVector<llvm::Metadata*, 8> operands{nullptr};
  if (old)
    for (unsigned i = 1; i < old->getNumOperands(); ++i) operands.push_back(old->getOperand(i).get());
  operands.append(more.begin(), more.end());
  llvm::MDNode* const made = llvm::MDNode::getDistinct(context, operands);
  made->replaceOperandWith(0, made);
  return made;
}

std::vector<llvm::BasicBlock*> copy_blocks(llvm::ArrayRef<llvm::BasicBlock*> blocks, const char* suffix,
                                           llvm::ValueToValueMapTy& copies) {
  std::vector<llvm::BasicBlock*> made;
  for (llvm::BasicBlock* block : blocks) {
    llvm::BasicBlock* const copy = llvm::CloneBasicBlock(block, copies, suffix, block->getParent());
    copies[block] = copy;
    made.push_back(copy);
    // Two loops must not share an identity.
    llvm::Instruction* const end = copy->getTerminator();
    if (const llvm::MDNode* old = end->getMetadata(llvm::LLVMContext::MD_loop))
      end->setMetadata(llvm::LLVMContext::MD_loop, loop_identity(block->getContext(), old, {}));
  }
  return made;
}

llvm::Value* closed_value(llvm::Value* value, llvm::BasicBlock* loop, llvm::BasicBlock* exit) {
  const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!instruction || instruction->getParent() != loop) return value;
  llvm::PHINode* const phi = llvm::PHINode::Create(value->getType(), 1, "", exit->begin());
  phi->addIncoming(value, loop);
  return phi;
}

void sink_into(llvm::BasicBlock& to, llvm::BasicBlock& from, llvm::ArrayRef<const llvm::BasicBlock*> others) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::reverse(from))) {
    if (instruction.isTerminator() || llvm::isa<llvm::PHINode>(instruction) ||
        instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects() || instruction.use_empty())
      continue;
    const bool only_there = llvm::all_of(instruction.users(), [&](const llvm::User* user) {
      const llvm::BasicBlock* const block = llvm::cast<llvm::Instruction>(user)->getParent();
      return block == &to || llvm::is_contained(others, block);
    });
    if (only_there) instruction.moveBefore(to, to.getFirstInsertionPt());
  }
}

llvm::MDNode* scalar_loop_identity(llvm::LLVMContext& context, const llvm::MDNode* old) {
  return loop_identity(context, old, {without_vectors(context)});
}

llvm::MDNode* plain_loop_identity(llvm::LLVMContext& context, const llvm::MDNode* old) {
  llvm::Metadata* const as_it_is[] = {
      without_vectors(context),
      llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.unroll.runtime.disable")})};
  return loop_identity(context, old, as_it_is);
}

llvm::MDNode* uncounted_loop_identity(llvm::LLVMContext& context, const llvm::MDNode* old) {
  llvm::Metadata* const mark[] = {llvm::MDNode::get(context, {llvm::MDString::get(context, kUncounted)})};
  return loop_identity(context, old, mark);
}

bool is_uncounted(const llvm::Loop& loop) {
  return llvm::findOptionMDForLoop(&loop, kUncounted) != nullptr;
}

llvm::MDNode* counted_loop_identity(llvm::LLVMContext& context, const llvm::MDNode* uncounted) {
  return llvm::makePostTransformationMetadata(context, const_cast<llvm::MDNode*>(uncounted), {kUncounted},
                                              {});
}

bool only_traps(const llvm::BasicBlock& block) {
  return llvm::isa<llvm::UnreachableInst>(block.getTerminator());
}

}  // namespace hindsight::jit::optimizing
