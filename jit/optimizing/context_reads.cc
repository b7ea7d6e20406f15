#include "jit/optimizing/context_reads.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

#include <vector>

#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {
namespace {

// A block is cold beside one that runs this many times as often.
constexpr uint64_t kColdTimes = 8;

// Of a place at a fixed distance from an argument, or from a pointer that was read so.
bool reads_context(const llvm::LoadInst& load) {
  if (!load.isSimple() || !load.getMetadata(llvm::LLVMContext::MD_invariant_load)) return false;
  const llvm::Value* base = load.getPointerOperand();
  if (const auto* const distance = llvm::dyn_cast<llvm::GetElementPtrInst>(base)) {
    if (!distance->hasAllConstantIndices()) return false;
    base = distance->getPointerOperand();
  }
  if (llvm::isa<llvm::Argument>(base)) return true;
  const auto* const behind = llvm::dyn_cast<llvm::LoadInst>(base);
  return behind != nullptr && reads_context(*behind);
}

// What was read, and addresses that it is a part of: code generation makes them part of accesses, wherever these are.
bool can_be_made_again(const llvm::Instruction& instruction) {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
  const auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction);
  if (address != nullptr && !address->getType()->isVectorTy())
    load = llvm::dyn_cast<llvm::LoadInst>(address->getPointerOperand());
  return load != nullptr && reads_context(*load);
}

// Where a use needs its value.
llvm::Instruction* place_of(const llvm::Use& use) {
  auto* const user = llvm::cast<llvm::Instruction>(use.getUser());
  if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(user))
    return phi->getIncomingBlock(use)->getTerminator();
  return user;
}

// Where the function goes on after it looked at the stack. Null: it does not look.
llvm::BasicBlock* behind_stack_check(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    auto* const check = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
    if (!check || !check->isConditional() || !check->getMetadata(kStackCheck)) continue;
    for (const unsigned way : {0U, 1U})
      if (llvm::isa<llvm::UnreachableInst>(check->getSuccessor(way)->getTerminator()))
        return check->getSuccessor(1 - way);
  }
  return nullptr;
}

class Reader {
 public:
  explicit Reader(llvm::Function& function)
      : dominators_(function),
        loops_(dominators_),
        ways_(function, loops_),
        frequencies_(function, ways_, loops_),
        behind_check_(behind_stack_check(function)) {}

  void make_again(llvm::Instruction& value) {
    const uint64_t often = frequencies_.getBlockFreq(value.getParent()).getFrequency();
    const bool before_check = behind_check_ != nullptr && value.getParent() != behind_check_ &&
                              dominators_.dominates(value.getParent(), behind_check_);
    std::vector<llvm::Use*> cold, behind;
    for (llvm::Use& use : value.uses()) {
      const llvm::BasicBlock* const block = place_of(use)->getParent();
      if (frequencies_.getBlockFreq(block).getFrequency() < often / kColdTimes)
        cold.push_back(&use);
      else if (before_check && dominators_.dominates(behind_check_, block))
        behind.push_back(&use);
    }
    if (!behind.empty()) {
      llvm::Instruction* const again = copy(value, *behind_check_->getFirstInsertionPt());
      for (llvm::Use* use : behind) use->set(again);
    }
    // One for all in a block: what is cold has few instructions.
    llvm::DenseMap<const llvm::BasicBlock*, llvm::Instruction*> made;
    for (llvm::Use* use : cold) {
      llvm::Instruction* const place = place_of(*use);
      llvm::Instruction*& again = made[place->getParent()];
      if (again == nullptr)
        again = copy(value, *place);
      else if (place->comesBefore(again))
        again->moveBefore(place);
      use->set(again);
    }
    if (value.use_empty()) value.eraseFromParent();
  }

 private:
  // No longer marked as what may be read anywhere: code generation would join it with the others.
  static llvm::Instruction* copy(llvm::Instruction& value, llvm::Instruction& place) {
    llvm::Instruction* const again = value.clone();
    again->setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
    again->insertBefore(&place);
    again->setDebugLoc(place.getDebugLoc());
    return again;
  }

  const llvm::DominatorTree dominators_;
  const llvm::LoopInfo loops_;
  const llvm::BranchProbabilityInfo ways_;
  const llvm::BlockFrequencyInfo frequencies_;
  llvm::BasicBlock* const behind_check_;
};

}  // namespace

void read_context_where_needed(llvm::Function& function) {
  if (function.isDeclaration()) return;
  std::vector<llvm::Instruction*> values;
  const llvm::ReversePostOrderTraversal<llvm::Function*> order(&function);
  for (llvm::BasicBlock* block : order)
    for (llvm::Instruction& instruction : *block)
      if (can_be_made_again(instruction)) values.push_back(&instruction);
  if (values.empty()) return;
  Reader reader(function);
  // Pointers after what is read through them, which is then where it is needed.
  for (auto value = values.rbegin(); value != values.rend(); ++value) reader.make_again(**value);
}

}  // namespace hindsight::jit::optimizing
