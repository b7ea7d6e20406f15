#include "jit/optimizing/vectors/early_return.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <optional>
#include <vector>

#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::BranchInst;
using llvm::Instruction;
using llvm::Value;

// What is computed before the test is computed again after it.
constexpr size_t kMostInstructionsBefore = 16;
constexpr size_t kMostTests = 3;

class Splitter {
 public:
  Splitter(IrModule& ir, llvm::Function& function) : ir_(ir), function_(function) {}

  bool find() {
    auto* const check = llvm::dyn_cast<BranchInst>(function_.getEntryBlock().getTerminator());
    if (!check || !check->isConditional() || !check->getMetadata(kStackCheck)) return false;
    // One test after the other, as long as nothing but tests follows them.
    BasicBlock* at = check->getSuccessor(1);
    while (tests_.size() < kMostTests && (tests_.empty() || at->getSinglePredecessor())) {
      std::optional<Test> test = find_test(*at);
      if (!test) break;
      tests_.push_back(*test);
      at = test->branch->getSuccessor(1 - test->early);
    }
    return !tests_.empty();
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
    const auto* const tested_at = tests_.front().branch->getDebugLoc().get();
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
    llvm::IRBuilder<> b(BasicBlock::Create(ir_.context, "entry", &function_));
    b.SetCurrentDebugLocation(location);
    const auto here = [&](Value* value) {
      const auto found = map.find(value);
      return found == map.end() ? value : static_cast<Value*>(found->second);
    };
    for (const Test& test : tests_) {
      for (Instruction* instruction : test.computed) {
        Instruction* const copy = instruction->clone();
        copy->setDebugLoc(location);
        b.Insert(copy);
        // Without the flag scopes would be copied, too, which are no scopes of this function then.
        llvm::RemapInstruction(copy, map, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
        map[instruction] = copy;
      }
      BasicBlock* const early = BasicBlock::Create(ir_.context, "early", &function_);
      BasicBlock* const on = BasicBlock::Create(ir_.context, "on", &function_);
      b.CreateCondBr(here(test.branch->getCondition()), test.early == 0 ? early : on,
                     test.early == 0 ? on : early, test.branch->getMetadata(llvm::LLVMContext::MD_prof));
      b.SetInsertPoint(early);
      if (test.result)
        b.CreateRet(here(test.result));
      else
        b.CreateRetVoid();
      b.SetInsertPoint(on);
    }
    std::vector<Value*> arguments;
    for (llvm::Argument& argument : function_.args()) arguments.push_back(&argument);
    llvm::CallInst* const jump = b.CreateCall(rest, arguments);
    jump->setTailCallKind(llvm::CallInst::TCK_MustTail);
    jump->setAttributes(function_.getAttributes().removeFnAttributes(ir_.context));
    if (jump->getType()->isVoidTy())
      b.CreateRetVoid();
    else
      b.CreateRet(jump);
    // The rest knows how the tests went.
    for (const Test& test : tests_) {
      test.branch->getSuccessor(test.early)->removePredecessor(test.branch->getParent());
      BranchInst::Create(test.branch->getSuccessor(1 - test.early), test.branch)
          ->setDebugLoc(test.branch->getDebugLoc());
      Value* const condition = test.branch->getCondition();
      test.branch->eraseFromParent();
      llvm::RecursivelyDeleteTriviallyDeadInstructions(condition);
    }
  }

 private:
  struct Test {
    BranchInst* branch = nullptr;
    unsigned early = 0;                  // the successor that returns
    Value* result = nullptr;             // null: nothing
    std::vector<Instruction*> computed;  // for the condition and the result, after those of earlier tests
  };

  // Finds the test of a block that does nothing but test whether the function is over.
  std::optional<Test> find_test(BasicBlock& block) {
    auto* const branch = llvm::dyn_cast<BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) return {};
    if (!block.phis().empty()) return {};
    for (const Instruction& instruction : block)
      if (!instruction.isTerminator() &&
          (instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects()))
        return {};
    for (unsigned early = 0; early < 2; ++early) {
      const size_t known = computed_.size();
      Test test{branch, early, nullptr, {}};
      if (compute(branch->getCondition()) && find_return(branch->getSuccessor(early), &block, test.result)) {
        test.computed.assign(computed_.begin() + static_cast<std::ptrdiff_t>(known), computed_.end());
        return test;
      }
      while (computed_.size() > known) computed_.pop_back();
    }
    return {};
  }

  // Whether `value` can be had from the arguments alone, and before every test. A division by what a test
  // shows to be no zero cannot. Notes what computes it.
  bool compute(Value* value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || computed_.contains(instruction)) return true;
    if (llvm::isa<llvm::PHINode, llvm::CallBase>(instruction) || instruction->mayReadOrWriteMemory() ||
        !llvm::isSafeToSpeculativelyExecute(instruction) || computed_.size() >= kMostInstructionsBefore)
      return false;
    for (Value* operand : instruction->operands())
      if (!compute(operand)) return false;
    computed_.insert(instruction);  // after its operands
    return true;
  }

  // From `block`, reached from `from`, straight to a return of something that can be computed.
  bool find_return(BasicBlock* block, BasicBlock* from, Value*& result) {
    for (int steps = 0; steps < 3; ++steps) {
      for (Instruction& instruction : *block)
        if (!instruction.isTerminator() &&
            (instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects()))
          return false;
      if (auto* const leaving = llvm::dyn_cast<llvm::ReturnInst>(block->getTerminator())) {
        result = leaving->getReturnValue();
        if (!result) return true;
        if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(result); phi && phi->getParent() == block)
          result = phi->getIncomingValueForBlock(from);
        return compute(result);
      }
      from = block;
      block = block->getSingleSuccessor();
      if (!block) return false;
    }
    return false;
  }

  IrModule& ir_;
  llvm::Function& function_;
  std::vector<Test> tests_;
  llvm::SetVector<Instruction*> computed_;
};

}  // namespace

void split_early_return(IrModule& ir, llvm::Function& function) {
  Splitter splitter(ir, function);
  if (splitter.find()) splitter.split();
}

}  // namespace hindsight::jit::optimizing
