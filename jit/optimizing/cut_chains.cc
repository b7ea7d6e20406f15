#include "jit/optimizing/cut_chains.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

bool can_hide(const llvm::Type& type) {
  if (type.isIntegerTy(1) || type.isIntegerTy(32) || type.isIntegerTy(64)) return true;
  if (type.isFloatTy() || type.isDoubleTy()) return true;
  return type.isVectorTy() && type.getPrimitiveSizeInBits() == 128 && type.getScalarSizeInBits() >= 8;
}

// The same value, made in front of `before`; the position is that of `from`.
Value* hide(Value* value, Instruction* before, const Instruction& from) {
  llvm::IRBuilder<> b(before);
  b.SetCurrentDebugLocation(from.getDebugLoc());
  llvm::Type* const own = value->getType();
  if (own->isIntegerTy(1)) value = b.CreateZExt(value, b.getInt32Ty());
  llvm::Type* const type = value->getType();
  llvm::CallInst* const call =
      b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "",
                                        type->isIntegerTy() ? "=r,0" : "=x,0", /*hasSideEffects=*/false),
                   {value});
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();
  call->addFnAttr(llvm::Attribute::WillReturn);
  return own->isIntegerTy(1) ? b.CreateIsNotNull(call) : call;
}

// What a walk along operands does not go beyond.
bool ends_walks(const Instruction& instruction) {
  return llvm::isa<llvm::PHINode>(instruction) ||
         (llvm::isa<llvm::CallBase>(instruction) && !llvm::isa<llvm::IntrinsicInst>(instruction));
}

bool is_product(const Instruction& instruction) {
  return instruction.getOpcode() == Instruction::Mul || instruction.getOpcode() == Instruction::FMul;
}

size_t cut_depth(llvm::Function& function) {
  size_t cuts = 0;
  llvm::DenseMap<const Value*, unsigned> depth_of, products_of;
  for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function)) {
    for (Instruction& instruction : llvm::make_early_inc_range(*block)) {
      if (ends_walks(instruction)) continue;
      unsigned depth = 0;
      for (const Value* operand : instruction.operands())
        if (const auto found = depth_of.find(operand); found != depth_of.end())
          depth = std::max(depth, found->second);
      ++depth;
      const unsigned products = is_product(instruction)
                                    ? 1 + std::min(products_of.lookup(instruction.getOperand(0)),
                                                   products_of.lookup(instruction.getOperand(1)))
                                    : 0;
      // A load's value is what its pin refers to.
      const bool cut = (depth >= kMostInAChain || products >= kMostProducts) && !instruction.isTerminator() &&
                       can_hide(*instruction.getType()) && !llvm::isa<llvm::LoadInst>(instruction) &&
                       !instruction.use_empty();
      if (!cut) {
        depth_of[&instruction] = depth;
        if (products != 0) products_of[&instruction] = products;
        continue;
      }
      Value* const hidden = hide(&instruction, instruction.getNextNode(), instruction);
      const auto is_of_the_cut = [&](const llvm::Use& use) {
        const auto* const user = llvm::cast<Instruction>(use.getUser());
        return user->getParent() == block && user->comesBefore(llvm::cast<Instruction>(hidden));
      };
      instruction.replaceUsesWithIf(
          hidden, [&](llvm::Use& use) { return use.getUser() != hidden && !is_of_the_cut(use); });
      ++cuts;
    }
  }
  return cuts;
}

size_t cut_uses(llvm::Function& function) {
  struct Seen {
    Value* now = nullptr;
    const llvm::BasicBlock* block = nullptr;
    unsigned uses = 0;
  };
  llvm::DenseMap<const Value*, Seen> much_used;
  const auto look_at = [&](Value& value) {
    if (can_hide(*value.getType()) && value.hasNUsesOrMore(kMostUsesInABlock + 1)) much_used[&value] = {};
  };
  for (llvm::Argument& argument : function.args()) look_at(argument);
  for (Instruction& instruction : llvm::instructions(function)) look_at(instruction);
  if (much_used.empty()) return 0;
  size_t cuts = 0;
  for (llvm::BasicBlock& block : function) {
    for (Instruction& instruction : block) {
      if (llvm::isa<llvm::PHINode>(instruction) || instruction.isTerminator()) continue;
      for (llvm::Use& operand : instruction.operands()) {
        const auto found = much_used.find(operand.get());
        if (found == much_used.end()) continue;
        Seen& seen = found->second;
        if (seen.block != &block) seen = {operand.get(), &block, 0};
        if (++seen.uses > kMostUsesInABlock) {
          seen.now = hide(seen.now, &instruction, instruction);
          seen.uses = 1;
          ++cuts;
        }
        operand.set(seen.now);
      }
    }
  }
  return cuts;
}

}  // namespace

size_t cut_chains(llvm::Function& function) {
  size_t cuts = cut_depth(function);
  cuts += cut_uses(function);
  return cuts;
}

}  // namespace hindsight::jit::optimizing
