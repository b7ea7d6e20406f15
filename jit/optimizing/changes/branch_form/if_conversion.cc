#include "jit/optimizing/changes/branch_form/if_conversion.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <vector>

namespace hindsight::jit::optimizing {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

constexpr unsigned kMostSelectOperations = 32;  // of both arms
constexpr uint64_t kMostAccessBytes = 16;       // what a program itself accesses at once
constexpr unsigned kMostSunk = 8;               // operations that move into one side of a branch
constexpr const char* kNowhere = "nowhere";     // the frame's place for stores that are not chosen

// Whether the block is an arm: entered by the branch alone, left for one place.
BasicBlock* leads_to(const BasicBlock& block) {
  const auto* const end = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  return end != nullptr && end->isUnconditional() ? end->getSuccessor(0) : nullptr;
}

// An empty piece of assembly that keeps a load where it is (protect.h): it goes where its load goes.
bool is_pin(const Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const auto* const assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly != nullptr && assembly->getAsmString().empty() && call->getType()->isVoidTy();
}

bool is_free(const Instruction& instruction) {
  return is_pin(instruction) || llvm::isa<llvm::ZExtInst, llvm::TruncInst, llvm::BitCastInst,
                                          llvm::GetElementPtrInst, llvm::FreezeInst>(instruction);
}

std::string_view why_not_in_an_arm(const Instruction& instruction) {
  const llvm::DataLayout& layout = instruction.getModule()->getDataLayout();
  const auto fits = [&](llvm::Type* type) {
    const llvm::TypeSize size = layout.getTypeStoreSize(type);
    return !size.isScalable() && size.getFixedValue() <= kMostAccessBytes;
  };
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
    return load->isSimple() && fits(load->getType()) ? "" : "an arm has an access that other threads see";
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return store->isSimple() && fits(store->getValueOperand()->getType())
               ? ""
               : "an arm has an access that other threads see";
  if (is_pin(instruction)) return {};
  if (llvm::isa<llvm::PHINode>(instruction)) return "an arm is entered from elsewhere";
  if (llvm::isa<llvm::CallBase>(instruction) && !llvm::isa<llvm::IntrinsicInst>(instruction))
    return "an arm contains a call";
  switch (instruction.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::FDiv:
    case Instruction::FRem:
      return "an arm contains a division";
    default:
      break;
  }
  return llvm::isSafeToSpeculativelyExecute(&instruction) ? "" : "an arm has a side effect";
}

std::string_view why_no_arm(const BasicBlock& block, const BasicBlock& from, unsigned& operations,
                            unsigned& accesses) {
  if (block.getSinglePredecessor() != &from) return "an arm is entered from elsewhere";
  for (const Instruction& instruction : block) {
    if (instruction.isTerminator()) break;
    if (const std::string_view why = why_not_in_an_arm(instruction); !why.empty()) return why;
    operations += is_free(instruction) ? 0 : 1;
    accesses += llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction) ? 1 : 0;
  }
  return {};
}

// Readable, and near: the beginning of the linear memory itself, which has that much, or the VmContext.
Value* anywhere(IrModule& ir, const llvm::LoadInst& load, const BasicBlock& arm) {
  Value* const vmctx = const_cast<BasicBlock&>(arm).getParent()->getArg(0);
  Value* const base = const_cast<Value*>(llvm::getUnderlyingObject(load.getPointerOperand(), 0));
  const std::optional<uint32_t> memory = ir.memory_of(base, vmctx);
  const auto* const made = llvm::dyn_cast<Instruction>(base);
  const bool is_there = made == nullptr || made->getParent() != &arm;
  return memory && ir.wasm.memories[*memory].limits.min > 0 && is_there ? base : vmctx;
}

// Writable by whoever likes.
Value* nowhere(IrModule& ir, llvm::Function& function) {
  BasicBlock& entry = function.getEntryBlock();
  for (Instruction& instruction : entry)
    if (llvm::isa<llvm::AllocaInst>(instruction) && instruction.getName().starts_with(kNowhere))
      return &instruction;
  llvm::IRBuilder<> b(&entry, entry.begin());
  llvm::AllocaInst* const made =
      b.CreateAlloca(llvm::ArrayType::get(ir.i8, kMostAccessBytes), nullptr, kNowhere);
  made->setAlignment(llvm::Align(16));
  return made;
}

llvm::MDNode* no_guess(IrModule& ir) {
  return llvm::MDNode::get(ir.context, {});
}

}  // namespace

std::expected<Arms, std::string_view> find_arms(llvm::BranchInst& branch) {
  Arms arms{.branch = &branch};
  BasicBlock& from = *branch.getParent();
  BasicBlock *const yes = branch.getSuccessor(0), *const no = branch.getSuccessor(1);
  if (yes == no) return std::unexpected("both arms are the same");
  BasicBlock *const after_yes = leads_to(*yes), *const after_no = leads_to(*no);
  if (after_yes != nullptr && after_yes == after_no) {
    arms.join = after_yes;
    arms.when_true = yes;
    arms.when_false = no;
  } else if (after_yes == no) {
    arms.join = no;
    arms.when_true = yes;
  } else if (after_no == yes) {
    arms.join = yes;
    arms.when_false = no;
  } else {
    return std::unexpected("the arms do not meet right after them");
  }
  if (arms.join == &from) return std::unexpected("an arm is the back edge of a loop");
  for (BasicBlock* arm : {arms.when_true, arms.when_false}) {
    if (arm == nullptr) continue;
    unsigned& operations = arm == arms.when_true ? arms.operations_true : arms.operations_false;
    if (const std::string_view why = why_no_arm(*arm, from, operations, arms.accesses); !why.empty())
      return std::unexpected(why);
  }
  if (arms.operations_true + arms.operations_false > kMostSelectOperations)
    return std::unexpected("the arms are too long to execute both");
  return arms;
}

void convert_to_selects(IrModule& ir, const Arms& arms) {
  llvm::BranchInst& branch = *arms.branch;
  BasicBlock& from = *branch.getParent();
  Value* const condition = branch.getCondition();
  llvm::IRBuilder<> b(&branch);
  b.SetCurrentDebugLocation(branch.getDebugLoc());
  const auto choose = [&](Value* yes, Value* no) -> Value* {
    if (yes == no) return yes;
    Value* const chosen = b.CreateSelect(condition, yes, no, "", &branch);
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(chosen))
      select->setMetadata(llvm::LLVMContext::MD_unpredictable, no_guess(ir));
    return chosen;
  };
  for (BasicBlock* arm : {arms.when_true, arms.when_false}) {
    if (arm == nullptr) continue;
    const bool when_true = arm == arms.when_true;
    for (Instruction& instruction : llvm::make_early_inc_range(*arm)) {
      if (instruction.isTerminator()) break;
      Value* harmless = nullptr;
      if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
        harmless = anywhere(ir, *load, *arm);
      else if (llvm::isa<llvm::StoreInst>(instruction))
        harmless = nowhere(ir, *from.getParent());
      if (harmless != nullptr) {
        const unsigned operand = llvm::isa<llvm::LoadInst>(instruction) ? 0 : 1;
        Value* const place = instruction.getOperand(operand);
        instruction.setOperand(operand, when_true ? choose(place, harmless) : choose(harmless, place));
      }
      // What held where the arm was chosen need not hold now.
      if (llvm::isa<llvm::LoadInst>(instruction))
        for (const unsigned kind :
             {llvm::LLVMContext::MD_range, llvm::LLVMContext::MD_noundef, llvm::LLVMContext::MD_nonnull,
              llvm::LLVMContext::MD_invariant_load, llvm::LLVMContext::MD_align})
          instruction.setMetadata(kind, nullptr);
      instruction.moveBefore(&branch);
    }
  }
  // One edge to the join takes the place of two.
  for (llvm::PHINode& phi : llvm::make_early_inc_range(arms.join->phis())) {
    Value* const yes = phi.getIncomingValueForBlock(arms.when_true ? arms.when_true : &from);
    Value* const no = phi.getIncomingValueForBlock(arms.when_false ? arms.when_false : &from);
    Value* const chosen = choose(yes, no);
    for (BasicBlock* arm : {arms.when_true, arms.when_false})
      if (arm != nullptr) phi.removeIncomingValue(arm, /*DeletePHIIfEmpty=*/false);
    if (const int direct = phi.getBasicBlockIndex(&from); direct >= 0)
      phi.setIncomingValue(static_cast<unsigned>(direct), chosen);
    else
      phi.addIncoming(chosen, &from);
  }
  b.CreateBr(arms.join);
  branch.eraseFromParent();
  for (BasicBlock* arm : {arms.when_true, arms.when_false})
    if (arm != nullptr) arm->eraseFromParent();
  llvm::MergeBlockIntoPredecessor(arms.join);
}

bool is_choice(const Instruction& instruction) {
  if (llvm::isa<llvm::MinMaxIntrinsic>(instruction)) return instruction.getType()->isIntegerTy();
  const auto* const select = llvm::dyn_cast<llvm::SelectInst>(&instruction);
  return select != nullptr && select->getCondition()->getType()->isIntegerTy(1);
}

bool is_choice_or_flag(const Instruction& instruction) {
  const bool is_flag = llvm::isa<llvm::ZExtInst, llvm::SExtInst>(instruction) &&
                       instruction.getOperand(0)->getType()->isIntegerTy(1);
  return is_flag || is_choice(instruction);
}

namespace {

// A minimum or maximum as comparison and choice, a condition as a choice of two numbers.
llvm::SelectInst* as_select(Instruction& choice) {
  if (auto* const select = llvm::dyn_cast<llvm::SelectInst>(&choice)) return select;
  if (llvm::isa<llvm::CastInst>(choice)) {
    auto* const type = llvm::cast<llvm::IntegerType>(choice.getType());
    llvm::Constant* const yes = llvm::isa<llvm::SExtInst>(choice) ? llvm::Constant::getAllOnesValue(type)
                                                                  : llvm::ConstantInt::get(type, 1);
    auto* const select = llvm::SelectInst::Create(
        choice.getOperand(0), yes, llvm::Constant::getNullValue(type), "", choice.getIterator());
    select->setDebugLoc(choice.getDebugLoc());
    choice.replaceAllUsesWith(select);
    choice.eraseFromParent();
    return select;
  }
  auto& least = llvm::cast<llvm::MinMaxIntrinsic>(choice);
  llvm::IRBuilder<> b(&choice);
  Value* const first = b.CreateICmp(least.getPredicate(), least.getLHS(), least.getRHS());
  auto* const select =
      llvm::SelectInst::Create(first, least.getLHS(), least.getRHS(), "", choice.getIterator());
  select->setDebugLoc(choice.getDebugLoc());
  choice.replaceAllUsesWith(select);
  choice.eraseFromParent();
  return select;
}

// Moves in front of `end` what computes `value` for nobody else, in the block of the branch.
void sink(Value* value, const BasicBlock& from, Instruction* end, unsigned& moved) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (instruction == nullptr || instruction->getParent() != &from || !instruction->hasOneUse() ||
      llvm::isa<llvm::PHINode, llvm::CallBase>(instruction) || instruction->mayReadOrWriteMemory() ||
      moved >= kMostSunk)
    return;
  ++moved;
  instruction->moveBefore(end);
  for (Value* operand : instruction->operands()) sink(operand, from, instruction, moved);
}

}  // namespace

void convert_to_branch(IrModule& ir, Instruction& choice, std::optional<double> likely) {
  llvm::SelectInst* const first = as_select(choice);
  BasicBlock& from = *first->getParent();
  Value* const condition = first->getCondition();
  llvm::MDNode* weights = first->getMetadata(llvm::LLVMContext::MD_prof);
  uint64_t yes_weight = 0, no_weight = 0;
  if (weights == nullptr || !llvm::extractBranchWeights(*first, yes_weight, no_weight))
    weights = likely ? ir.branch_weights(*likely, 1 - *likely) : nullptr;
  // All of the block on the same condition that need nothing in between.
  std::vector<llvm::SelectInst*> together;
  for (Instruction& instruction : llvm::make_range(first->getIterator(), from.end())) {
    auto* const select = llvm::dyn_cast<llvm::SelectInst>(&instruction);
    if (select == nullptr || select->getCondition() != condition) continue;
    const bool is_early = std::ranges::all_of(select->operands(), [&](const llvm::Use& operand) {
      const auto* const made = llvm::dyn_cast<Instruction>(operand.get());
      return made == nullptr || made->getParent() != &from || made->comesBefore(first);
    });
    if (is_early) together.push_back(select);
  }
  llvm::IRBuilder<> b(first);
  b.SetCurrentDebugLocation(first->getDebugLoc());
  // A branch must know its condition; a choice need not.
  Value* const known =
      llvm::isGuaranteedNotToBeUndefOrPoison(condition) ? condition : b.CreateFreeze(condition);
  Instruction *yes_end = nullptr, *no_end = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(known, first, &yes_end, &no_end, weights);
  from.getTerminator()->setDebugLoc(first->getDebugLoc());
  BasicBlock& join = *first->getParent();
  for (llvm::SelectInst* select : together) {
    llvm::PHINode* const phi = llvm::PHINode::Create(select->getType(), 2, "", join.begin());
    phi->setDebugLoc(select->getDebugLoc());
    phi->addIncoming(select->getTrueValue(), yes_end->getParent());
    phi->addIncoming(select->getFalseValue(), no_end->getParent());
    Value* const yes = select->getTrueValue();
    Value* const no = select->getFalseValue();
    select->replaceAllUsesWith(phi);
    select->eraseFromParent();
    unsigned moved = 0;
    sink(yes, from, yes_end, moved);
    sink(no, from, no_end, moved);
  }
}

}  // namespace hindsight::jit::optimizing
