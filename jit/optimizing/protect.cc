#include "jit/optimizing/protect.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <map>

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

class Opaque {
 public:
  Opaque(IrModule& ir, llvm::Function& function) : ir_(ir), function_(function) {}

  Value* constant(llvm::Constant* number) {
    Value*& value = constants_[number];
    if (!value) value = hide(number, &*function_.getEntryBlock().getFirstInsertionPt());
    return value;
  }
  Value* hide(Value* value, Instruction* before) {
    llvm::IRBuilder<> b(before);
    if (!b.getCurrentDebugLocation())
      b.SetCurrentDebugLocation(llvm::DILocation::get(ir_.context, 0, 0, function_.getSubprogram()));
    llvm::Type* const type = value->getType();
    llvm::CallInst* const call = b.CreateCall(
        llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=x,0", false), {value});
    call->setDoesNotThrow();
    call->setDoesNotAccessMemory();
    call->addFnAttr(llvm::Attribute::WillReturn);
    return call;
  }

 private:
  IrModule& ir_;
  llvm::Function& function_;
  std::map<llvm::Constant*, Value*> constants_;
};

// Zero, one or minus one, or a vector with such a lane.
bool has_identity(const llvm::Constant& constant) {
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(constant.getType())) {
    for (unsigned i = 0; i < vector->getNumElements(); ++i) {
      const llvm::Constant* lane = constant.getAggregateElement(i);
      if (!lane || has_identity(*lane)) return true;
    }
    return false;
  }
  const auto* number = llvm::dyn_cast<llvm::ConstantFP>(&constant);
  if (!number) return false;
  const llvm::APFloat magnitude = llvm::abs(number->getValueAPF());
  return magnitude.isZero() || magnitude.isExactlyValue(1.0);
}

// Vector constants that came through a local are still made lane by lane and cast: makes them constants.
void fold_vector_constants(IrModule& ir, llvm::Function& function) {
  for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    if (!instruction.getType()->isVectorTy()) continue;
    if (!llvm::isa<llvm::BitCastInst, llvm::InsertElementInst, llvm::ShuffleVectorInst>(instruction))
      continue;
    if (llvm::Constant* constant = llvm::ConstantFoldInstruction(&instruction, ir.module.getDataLayout())) {
      instruction.replaceAllUsesWith(constant);
      instruction.eraseFromParent();
    }
  }
}

void protect_float_identities(IrModule& ir, llvm::Function& function) {
  fold_vector_constants(ir, function);
  Opaque opaque(ir, function);
  std::vector<Instruction*> worklist;
  for (Instruction& instruction : llvm::instructions(function)) worklist.push_back(&instruction);
  for (Instruction* instruction : worklist) {
    switch (instruction->getOpcode()) {
      case Instruction::FAdd:
      case Instruction::FSub:
      case Instruction::FMul:
      case Instruction::FDiv:
        for (llvm::Use& operand : instruction->operands()) {
          auto* number = llvm::dyn_cast<llvm::Constant>(operand.get());
          if (number && has_identity(*number)) operand.set(opaque.constant(number));
        }
        break;
      case Instruction::FPTrunc:
        if (llvm::isa<llvm::FPExtInst>(instruction->getOperand(0)))
          instruction->setOperand(0, opaque.hide(instruction->getOperand(0), instruction));
        break;
      default:
        break;
    }
  }
}

// An empty piece of assembly that has the load's value as operand and stays. It touches no memory that LLVM
// knows of, so loads and stores may move across it.
llvm::CallInst* add_user(IrModule& ir, llvm::LoadInst& load) {
  llvm::IRBuilder<> b(load.getNextNode());
  b.SetCurrentDebugLocation(load.getDebugLoc());
  Value* value = &load;
  if (value->getType()->isIntegerTy() && value->getType()->getIntegerBitWidth() < 32)
    value = b.CreateZExt(value, ir.i32);
  const char* constraint =
      value->getType()->isFloatingPointTy() || value->getType()->isVectorTy() ? "x" : "r";
  llvm::CallInst* const user = b.CreateCall(
      llvm::InlineAsm::get(llvm::FunctionType::get(ir.void_type, {value->getType()}, false), "", constraint,
                           /*hasSideEffects=*/true),
      {value});
  user->setDoesNotThrow();
  user->setOnlyAccessesInaccessibleMemory();
  user->addFnAttr(llvm::Attribute::WillReturn);
  return user;
}

// Which loads LLVM might not execute where the program does: it removes what nothing needs, and moves what is
// needed on some ways only to these ("sinking"). So a load whose value nothing needs on some way out of the
// function gets a user where it is.
class Anchors {
 public:
  explicit Anchors(llvm::Function& function) : function_(function) {}

  // Whether every way from the load to an end of the function passes something with an effect that needs its
  // value.
  bool is_needed_everywhere(llvm::LoadInst& load) {
    llvm::BasicBlock& from = *load.getParent();
    llvm::SmallPtrSet<const llvm::BasicBlock*, 8> needed_in;
    if (!collect_needs(load, needed_in)) return false;
    if (needed_in.contains(&from)) return true;
    llvm::SmallPtrSet<const llvm::BasicBlock*, 16> seen;
    std::vector<const llvm::BasicBlock*> worklist(llvm::succ_begin(&from), llvm::succ_end(&from));
    if (worklist.empty()) return false;
    while (!worklist.empty()) {
      const llvm::BasicBlock* const at = worklist.back();
      worklist.pop_back();
      if (needed_in.contains(at) || !seen.insert(at).second) continue;
      if (++steps_ > limit()) return false;
      const Instruction* const end = at->getTerminator();
      // A trap is a way out as well: the load's own would have come before it.
      if (llvm::isa<llvm::ReturnInst>(end) || llvm::isa<llvm::UnreachableInst>(end)) return false;
      worklist.insert(worklist.end(), llvm::succ_begin(at), llvm::succ_end(at));
    }
    return true;
  }

 private:
  size_t limit() const { return 200 * function_.size() + 10000; }

  // The blocks of whatever with an effect needs the value, through whatever computes. False: too much to look
  // at.
  bool collect_needs(Instruction& value, llvm::SmallPtrSetImpl<const llvm::BasicBlock*>& blocks) {
    llvm::SmallPtrSet<const Instruction*, 16> seen{&value};
    std::vector<const Instruction*> worklist{&value};
    while (!worklist.empty()) {
      const Instruction* const at = worklist.back();
      worklist.pop_back();
      for (const llvm::User* user : at->users()) {
        const auto* const by = llvm::cast<Instruction>(user);
        if (by->getMetadata(kPin) != nullptr) continue;
        if (by->isTerminator() || by->mayWriteToMemory()) {
          blocks.insert(by->getParent());
          if (by->getParent() == value.getParent()) return true;  // what else needs it makes no difference
        } else if (seen.insert(by).second) {
          worklist.push_back(by);
        }
        if (++steps_ > limit()) return false;
      }
    }
    return true;
  }

  llvm::Function& function_;
  size_t steps_ = 0;  // of all questions together, so that the time stays linear in the function's size
};

// The load whose pin `instruction` is; null: it is none.
llvm::LoadInst* pinned_by(Instruction& instruction) {
  if (!instruction.getMetadata(kPin)) return nullptr;
  Value* pinned = instruction.getOperand(0);
  if (auto* const cast = llvm::dyn_cast<llvm::CastInst>(pinned)) pinned = cast->getOperand(0);
  return llvm::dyn_cast<llvm::LoadInst>(pinned);
}

// InstCombine makes one load of a phi of two; a hinted load has to be found again by the prefetch pass.
void keep_hinted_loads(IrModule& ir, const std::vector<llvm::LoadInst*>& loads) {
  for (llvm::LoadInst* load : loads) {
    const auto is_of_load = [line = load->getDebugLoc().getLine()](const auto& hint) {
      return line == hint.load.value;
    };
    const FunctionHints& hints = ir.request.hints;
    if (std::any_of(hints.prefetches.begin(), hints.prefetches.end(), is_of_load) ||
        std::any_of(hints.interleaves.begin(), hints.interleaves.end(), is_of_load))
      add_user(ir, *load)->setMetadata(kTemporaryUser, llvm::MDNode::get(ir.context, {}));
  }
}

}  // namespace

void protect_semantics(IrModule& ir, llvm::Function& function, const FunctionGenerator& generator) {
  // Loads in blocks that nothing reaches go with their blocks. Removing folds terminators on constants, so
  // more blocks go than a dominator tree of now would say: the generator's pointers are compared with what is
  // left, and not followed before.
  llvm::removeUnreachableBlocks(function);
  llvm::SmallPtrSet<const Instruction*, 32> left;
  for (Instruction& instruction : llvm::instructions(function))
    if (llvm::isa<llvm::LoadInst>(instruction)) left.insert(&instruction);
  std::vector<llvm::LoadInst*> loads;
  for (llvm::LoadInst* load : generator.wasm_loads())
    if (left.contains(load)) loads.push_back(load);

  std::vector<llvm::AllocaInst*> slots;
  for (llvm::AllocaInst* slot : generator.slots())
    if (llvm::isAllocaPromotable(slot)) slots.push_back(slot);
  llvm::DominatorTree dominators(function);
  llvm::PromoteMemToReg(slots, dominators);
  protect_float_identities(ir, function);
  for (llvm::LoadInst* load : loads)
    add_user(ir, *load)->setMetadata(kPin, llvm::MDNode::get(ir.context, {}));
  keep_hinted_loads(ir, loads);
}

llvm::PreservedAnalyses UnpinPass::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
  std::vector<llvm::CallInst*> pins;
  for (Instruction& instruction : llvm::instructions(function))
    if (instruction.getMetadata(kPin)) pins.push_back(llvm::cast<llvm::CallInst>(&instruction));
  if (pins.empty()) return llvm::PreservedAnalyses::all();
  Anchors anchors(function);
  std::vector<llvm::CallInst*> needless;
  for (llvm::CallInst* pin : pins) {
    llvm::LoadInst* const load = pinned_by(*pin);
    if (load == nullptr || anchors.is_needed_everywhere(*load)) needless.push_back(pin);
  }
  for (llvm::CallInst* pin : pins) pin->setMetadata(kPin, nullptr);  // those that stay do for good
  for (llvm::CallInst* pin : needless) pin->eraseFromParent();
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

}  // namespace hindsight::jit::optimizing
