#include "jit/optimizing/generate/protect.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <map>

#include "jit/optimizing/generate/needs.h"
#include "jit/optimizing/generate/pin_loops.h"
#include "jit/optimizing/ir/load_user.h"
#include "jit/optimizing/versions/loop_exits.h"

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

llvm::CallInst* add_pin(llvm::LoadInst& load) {
  llvm::CallInst* const pin = add_load_user(load);
  pin->setMetadata(kPin, llvm::MDNode::get(load.getContext(), {}));
  return pin;
}

// The loads whose value a pin's operand is. LLVM may have found the value elsewhere: where it is one that was
// loaded or stored before, that access traps. Where several ways meet it is loaded on those that lack it.
llvm::SmallSetVector<llvm::LoadInst*, 2> loads_behind(llvm::CallInst& pin) {
  llvm::SmallSetVector<llvm::LoadInst*, 2> loads;
  llvm::SmallPtrSet<const Value*, 8> seen;
  std::vector<Value*> worklist{pin.getArgOperand(0)};
  while (!worklist.empty()) {
    Value* const at = worklist.back();
    worklist.pop_back();
    if (!seen.insert(at).second) continue;
    if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(at)) loads.insert(load);
    if (llvm::isa<llvm::CastInst, llvm::FreezeInst, llvm::PHINode>(at))
      worklist.insert(worklist.end(), llvm::cast<Instruction>(at)->op_begin(),
                      llvm::cast<Instruction>(at)->op_end());
  }
  return loads;
}

// InstCombine makes one load of a phi of two; a load that is asked about has to be found again by the prefetch pass.
void keep_hinted_loads(IrModule& ir, const std::vector<llvm::LoadInst*>& loads) {
  for (llvm::LoadInst* load : loads) {
    const WasmOffset at(load->getDebugLoc().getLine());
    if (std::ranges::any_of(ir.request.changes, [&](const Request& request) {
          return request.site == Site{ChangeKind::kPrefetch, at} ||
                 request.site == Site{ChangeKind::kInterleave, at};
        }))
      add_load_user(*load)->setMetadata(kTemporaryUser, llvm::MDNode::get(ir.context, {}));
  }
}

}  // namespace

void protect_semantics(IrModule& ir, llvm::Function& function, const FunctionGenerator& generator) {
  // Loads in blocks that nothing reaches go with their blocks. Removing folds terminators on constants, so more blocks
  // go than a dominator tree of now would say. So the generator's pointers are compared with what is left, and not
  // followed before.
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
  for (llvm::LoadInst* load : loads) add_pin(*load);
  keep_hinted_loads(ir, loads);
}

llvm::PreservedAnalyses UnpinPass::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  std::vector<llvm::CallInst*> pins;
  for (Instruction& instruction : llvm::instructions(function))
    if (instruction.getMetadata(kPin)) pins.push_back(llvm::cast<llvm::CallInst>(&instruction));
  if (pins.empty()) return llvm::PreservedAnalyses::all();
  std::vector<Pin> pinned;
  llvm::SmallPtrSet<const llvm::LoadInst*, 16> seen;  // two loads may have become one
  for (llvm::CallInst* pin : pins) {
    const auto loads = loads_behind(*pin);
    // Next to its load a pin is in no loop that the load was taken out of.
    bool in_place = loads.size() == 1 && loads.front()->getParent() == pin->getParent();
    for (llvm::LoadInst* load : loads) {
      if (seen.insert(load).second)
        pinned.push_back({in_place ? pin : add_pin(*load), load});
      else
        in_place = false;
    }
    if (!in_place) pin->eraseFromParent();
  }
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  std::vector<llvm::LoadInst*> loads;
  for (const Pin& pin : pinned) loads.push_back(pin.load);
  const Needs needs(function, loops, loads, [](const Instruction& user) {
    // None stays where it is. Pins go now, and the users of hinted loads with the prefetch pass. What an exit takes is
    // computed where the loop is left.
    return user.getMetadata(kPin) != nullptr || user.getMetadata(kTemporaryUser) != nullptr ||
           is_exit_marker(user);
  });
  std::erase_if(pinned, [&](const Pin& pin) {
    const bool needed = needs.everywhere(*pin.load);
    if (needed) pin.user->eraseFromParent();
    return needed;
  });
  const bool reshaped = carry_pins(pinned, loops, analyses.getResult<llvm::DominatorTreeAnalysis>(function));
  for (const Pin& pin : pinned) pin.user->setMetadata(kPin, nullptr);  // they stay for good
  if (reshaped) return llvm::PreservedAnalyses::none();
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

}  // namespace hindsight::jit::optimizing
