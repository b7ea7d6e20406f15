#include "jit/optimizing/extend_early.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <utility>
#include <vector>

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// That may carry one value to each other, or this goes into none of them.
constexpr size_t kMostPhis = 16;

// Instructions selected for it write 32 bits of a register, and so all 64. Of results of calls and of the lower halves of numbers of 64 bits nobody
// knows that.
bool clears_upper_half(const Instruction& instruction) {
  switch (instruction.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::Select:
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::Load:
      return true;
    default:
      return false;
  }
}

class EarlyExtensions {
 public:
  EarlyExtensions(llvm::Function& function, const llvm::LoopInfo& loops)
      : function_(function), loops_(loops), wide_type_(llvm::Type::getInt64Ty(function.getContext())) {}

  bool run() {
    std::vector<llvm::ZExtInst*> all;
    for (Instruction& instruction : llvm::instructions(function_))
      if (auto* const extension = llvm::dyn_cast<llvm::ZExtInst>(&instruction))
        if (extension->getSrcTy()->isIntegerTy(32) && extension->getDestTy() == wide_type_)
          all.push_back(extension);
    bool changed = false;
    for (llvm::ZExtInst* extension : all) {
      auto* const of = llvm::dyn_cast<Instruction>(extension->getOperand(0));
      if (of == nullptr || !goes_early(*of, *extension)) continue;
      extension->replaceAllUsesWith(extended(*of));
      extension->eraseFromParent();
      changed = true;
    }
    for (const auto& [narrow, wide] : phis_) take_lower_halves(*narrow, *wide);
    for (const auto& [narrow, wide] : phis_) {
      narrow->replaceAllUsesWith(llvm::PoisonValue::get(narrow->getType()));  // by each other
      narrow->eraseFromParent();
    }
    return changed;
  }

 private:
  bool goes_early(Instruction& of, const llvm::ZExtInst& extension) {
    if (auto* const phi = llvm::dyn_cast<PHINode>(&of))
      return wide_.contains(phi) || may_carry(*phi, loops_.getLoopDepth(extension.getParent()));
    return of.getParent() != extension.getParent() && clears_upper_half(of);
  }

  // All that the phi may be, by way of other phis, has a place where to be extended costs nothing. Or one outside of the loop with the
  // extension, which has a depth.
  bool may_carry(PHINode& first, unsigned depth) {
    llvm::SmallPtrSet<PHINode*, kMostPhis> seen{&first};
    std::vector<PHINode*> worklist{&first};
    while (!worklist.empty()) {
      PHINode* const phi = worklist.back();
      worklist.pop_back();
      for (const llvm::Use& use : phi->incoming_values()) {
        if (llvm::isa<llvm::Constant>(use)) {
          if (!llvm::isa<llvm::ConstantInt, llvm::UndefValue>(use)) return false;
          continue;
        }
        auto* const value = llvm::dyn_cast<Instruction>(use);
        if (value != nullptr && (wide_.contains(value) || clears_upper_half(*value))) continue;
        if (value != nullptr && value->isTerminator()) return false;
        if (loops_.getLoopDepth(phi->getIncomingBlock(use)) < depth) continue;
        auto* const next = llvm::dyn_cast_or_null<PHINode>(value);
        if (next == nullptr) return false;
        if (seen.insert(next).second) worklist.push_back(next);
        if (seen.size() > kMostPhis) return false;
      }
    }
    carried_.insert(seen.begin(), seen.end());
    return true;
  }

  // Once for each, right behind it.
  Value* extended(Instruction& of) {
    if (Value* const known = wide_.lookup(&of)) return known;
    if (auto* const phi = llvm::dyn_cast<PHINode>(&of)) return extended(*phi);
    llvm::IRBuilder<> b(of.getNextNode());
    b.SetCurrentDebugLocation(of.getDebugLoc());
    return wide_[&of] = b.CreateZExt(&of, wide_type_);
  }
  Value* extended(PHINode& phi) {
    PHINode* const wide = PHINode::Create(wide_type_, phi.getNumIncomingValues(), phi.getName(), &phi);
    wide->setDebugLoc(phi.getDebugLoc());
    wide_[&phi] = wide;
    phis_.emplace_back(&phi, wide);
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
      wide->addIncoming(extended(phi.getIncomingValue(i), *phi.getIncomingBlock(i)), phi.getIncomingBlock(i));
    return wide;
  }
  // What comes from a block.
  Value* extended(Value* value, BasicBlock& from) {
    if (const auto* const number = llvm::dyn_cast<llvm::ConstantInt>(value))
      return llvm::ConstantInt::get(wide_type_, number->getZExtValue());
    if (llvm::isa<llvm::UndefValue>(value)) return llvm::ConstantInt::get(wide_type_, 0);
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (instruction != nullptr && (wide_.contains(instruction) || clears_upper_half(*instruction) ||
                                   carried_.contains(llvm::dyn_cast<PHINode>(instruction))))
      return extended(*instruction);
    Value*& known = from_outside_[{value, &from}];
    if (known == nullptr) {
      llvm::IRBuilder<> b(from.getTerminator());
      known = b.CreateZExt(value, wide_type_);
    }
    return known;
  }

  // At the begin of each block where they are used.
  void take_lower_halves(PHINode& narrow, PHINode& wide) {
    llvm::DenseMap<BasicBlock*, Value*> halves;
    std::vector<llvm::Use*> uses;
    for (llvm::Use& use : narrow.uses()) uses.push_back(&use);
    for (llvm::Use* use : uses) {
      auto* const user = llvm::cast<Instruction>(use->getUser());
      auto* const phi = llvm::dyn_cast<PHINode>(user);
      if (phi != nullptr && wide_.contains(phi)) continue;  // goes as well
      if (llvm::isa<llvm::ZExtInst>(user) && user->getType() == wide_type_) {
        user->replaceAllUsesWith(&wide);
        user->eraseFromParent();
        continue;
      }
      BasicBlock* const block = phi ? phi->getIncomingBlock(*use) : user->getParent();
      Value*& half = halves[block];
      if (half == nullptr) {
        llvm::IRBuilder<> b(block, block->getFirstInsertionPt());
        half = b.CreateTrunc(&wide, narrow.getType());
      }
      use->set(half);
    }
  }

  llvm::Function& function_;
  const llvm::LoopInfo& loops_;
  llvm::Type* const wide_type_;
  llvm::DenseMap<Instruction*, Value*> wide_;
  llvm::SmallPtrSet<PHINode*, 16> carried_;
  std::vector<std::pair<PHINode*, PHINode*>> phis_;  // by the wide ones in their place
  llvm::DenseMap<std::pair<Value*, BasicBlock*>, Value*> from_outside_;
};

class ExtendEarly : public llvm::FunctionPass {
 public:
  static char id;
  ExtendEarly() : FunctionPass(id) {}
  llvm::StringRef getPassName() const override { return "Extend Addresses Early"; }
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override { usage.setPreservesAll(); }
  bool runOnFunction(llvm::Function& function) override {
    const llvm::DominatorTree dominators(function);
    return EarlyExtensions(function, llvm::LoopInfo(dominators)).run();
  }
};
char ExtendEarly::id = 0;

}  // namespace

llvm::FunctionPass* make_extend_early_pass() {
  return new ExtendEarly();
}

bool extend_early_goes_before(llvm::StringRef pass) {
  return pass.contains("DAG->DAG Instruction Selection");
}

}  // namespace hindsight::jit::optimizing
