#include "jit/optimizing/early_return.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <algorithm>

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::BranchInst;
using llvm::Instruction;
using llvm::Value;

// What is computed in front of the test is computed again behind it.
constexpr size_t kMostInstructions = 8;

class Splitter {
 public:
  Splitter(IrModule& ir, llvm::Function& function) : ir_(ir), function_(function) {}

  bool find() {
    auto* const check = llvm::dyn_cast<BranchInst>(function_.getEntryBlock().getTerminator());
    if (!check || !check->isConditional() || !check->getMetadata(kStackCheck)) return false;
    BasicBlock* const passed = check->getSuccessor(1);
    test_ = llvm::dyn_cast<BranchInst>(passed->getTerminator());
    if (!test_ || !test_->isConditional() || test_->getSuccessor(0) == test_->getSuccessor(1)) return false;
    if (!compute(test_->getCondition())) return false;
    for (early_ = 0; early_ < 2; ++early_)
      if (find_return(test_->getSuccessor(early_), passed)) return true;
    return false;
  }

  void split() {
    llvm::Function* const rest =
        llvm::Function::Create(function_.getFunctionType(), function_.getLinkage(),
                               function_.getName() + ".rest", *function_.getParent());
    rest->copyAttributesFrom(&function_);
    rest->setSubprogram(function_.getSubprogram());
    // A function has a scope of its own, but the same positions.
    llvm::DISubprogram* const scope = llvm::MDNode::replaceWithDistinct(rest->getSubprogram()->clone());
    function_.setSubprogram(scope);
    const auto* const tested_at = test_->getDebugLoc().get();
    const llvm::DebugLoc location =
        llvm::DILocation::get(ir_.context, tested_at ? tested_at->getLine() : scope->getLine(), 0, scope);
    rest->splice(rest->begin(), &function_);
    llvm::ValueToValueMapTy map;
    for (unsigned i = 0; i < function_.arg_size(); ++i) {
      function_.getArg(i)->replaceAllUsesWith(rest->getArg(i));
      map[rest->getArg(i)] = function_.getArg(i);
    }
    // Nothing is called from it but `rest`, in its place, and nothing in it can fault.
    function_.removeFnAttr("frame-pointer");
    BasicBlock* const entry = BasicBlock::Create(ir_.context, "entry", &function_);
    BasicBlock* const early = BasicBlock::Create(ir_.context, "early", &function_);
    BasicBlock* const on = BasicBlock::Create(ir_.context, "on", &function_);
    llvm::IRBuilder<> b(entry);
    b.SetCurrentDebugLocation(location);
    for (Instruction* instruction : in_order()) {
      Instruction* const copy = instruction->clone();
      copy->setDebugLoc(location);
      b.Insert(copy);
      llvm::RemapInstruction(copy, map, llvm::RF_IgnoreMissingLocals);
      map[instruction] = copy;
    }
    const auto here = [&](Value* value) {
      const auto found = map.find(value);
      return found == map.end() ? value : static_cast<Value*>(found->second);
    };
    b.CreateCondBr(here(test_->getCondition()), early_ == 0 ? early : on, early_ == 0 ? on : early);
    b.SetInsertPoint(early);
    if (result_)
      b.CreateRet(here(result_));
    else
      b.CreateRetVoid();
    b.SetInsertPoint(on);
    std::vector<Value*> arguments;
    for (llvm::Argument& argument : function_.args()) arguments.push_back(&argument);
    llvm::CallInst* const jump = b.CreateCall(rest, arguments);
    jump->setTailCallKind(llvm::CallInst::TCK_MustTail);
    jump->setAttributes(function_.getAttributes().removeFnAttributes(ir_.context));
    if (result_)
      b.CreateRet(jump);
    else
      b.CreateRetVoid();
    // The rest knows how the test went.
    BasicBlock* const passed = test_->getParent();
    test_->getSuccessor(early_)->removePredecessor(passed);
    BranchInst::Create(test_->getSuccessor(1 - early_), test_)->setDebugLoc(test_->getDebugLoc());
    test_->eraseFromParent();
  }

 private:
  // Whether `value` can be had from the arguments alone; notes what computes it.
  bool compute(Value* value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || computed_.contains(instruction)) return true;
    if (llvm::isa<llvm::PHINode, llvm::CallBase>(instruction) || instruction->mayReadOrWriteMemory() ||
        instruction->mayHaveSideEffects() || computed_.size() >= kMostInstructions)
      return false;
    for (Value* operand : instruction->operands())
      if (!compute(operand)) return false;
    computed_.insert(instruction);  // behind its operands
    return true;
  }
  const llvm::SetVector<Instruction*>& in_order() const { return computed_; }

  // From `block`, reached from `from`, straight to a return of something that can be computed.
  bool find_return(BasicBlock* block, BasicBlock* from) {
    for (int steps = 0; steps < 3; ++steps) {
      for (Instruction& instruction : *block)
        if (instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects()) {
          if (!instruction.isTerminator()) return false;
        }
      if (auto* const leaving = llvm::dyn_cast<llvm::ReturnInst>(block->getTerminator())) {
        result_ = leaving->getReturnValue();
        if (!result_) return true;
        if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(result_); phi && phi->getParent() == block)
          result_ = phi->getIncomingValueForBlock(from);
        return compute(result_);
      }
      from = block;
      block = block->getSingleSuccessor();
      if (!block) return false;
    }
    return false;
  }

  IrModule& ir_;
  llvm::Function& function_;
  BranchInst* test_ = nullptr;
  unsigned early_ = 0;  // the successor that returns
  Value* result_ = nullptr;
  llvm::SetVector<Instruction*> computed_;
};

}  // namespace

void split_early_return(IrModule& ir, llvm::Function& function) {
  Splitter splitter(ir, function);
  if (splitter.find()) splitter.split();
}

}  // namespace hindsight::jit::optimizing
