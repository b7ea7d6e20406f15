#include "jit/optimizing/changes/prefetch/spread_prefetches.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Scalar/ADCE.h>

#include <vector>

#include "jit/optimizing/changes/prefetch/prefetch_call.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"
#include "jit/optimizing/ir/fetch_line.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

// Of one call.
class Lane {
 public:
  Lane(IrModule& ir, llvm::CallInst& call) : ir_(ir), b_(&call) {}

  void prefetch(Value* place) {
    if (auto* const part = llvm::dyn_cast<llvm::ExtractElementInst>(place))
      if (const auto* lane = llvm::dyn_cast<llvm::ConstantInt>(part->getIndexOperand()))
        place = lane_of(part->getVectorOperand(), static_cast<unsigned>(lane->getZExtValue()), 0);
    // The pointer itself, so that the address can be a base and an index.
    auto* const cast = llvm::dyn_cast<llvm::PtrToIntOperator>(place);
    Value* const pointer = cast != nullptr ? cast->getPointerOperand() : b_.CreateIntToPtr(place, ir_.ptr);
    fetch_line(b_, pointer);
  }

 private:
  Value* lane_of(Value* vector, unsigned lane, unsigned depth) {
    if (!vector->getType()->isVectorTy()) return vector;
    if (Value* const same = llvm::getSplatValue(vector)) return same;
    if (auto* const constant = llvm::dyn_cast<llvm::Constant>(vector))
      if (llvm::Constant* const element = constant->getAggregateElement(lane)) return element;
    Value* const made = alone(vector, lane, depth);
    return made != nullptr ? made : b_.CreateExtractElement(vector, b_.getInt32(lane));
  }

  // Whether all that is wanted of the vector is its lanes. Other users mean that it is computed anyway: then a lane is
  // taken out of it.
  static bool is_for_lanes(const Instruction& vector) {
    return vector.hasOneUse() || llvm::all_of(vector.users(), [](const llvm::User* user) {
             return llvm::isa<llvm::ExtractElementInst>(user);
           });
  }

  // The lane's own computation; null: there is none.
  Value* alone(Value* vector, unsigned lane, unsigned depth) {
    auto* const instruction = llvm::dyn_cast<Instruction>(vector);
    if (instruction == nullptr || depth > kDeepestLane || !is_for_lanes(*instruction)) return nullptr;
    const auto of = [&](unsigned operand) {
      return lane_of(instruction->getOperand(operand), lane, depth + 1);
    };
    llvm::Type* const type = instruction->getType()->getScalarType();
    if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction)) return part_of(*load, type, lane);
    if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(instruction)) {
      // Another number of lanes.
      if (!cast->getOperand(0)->getType()->isVectorTy() || llvm::isa<llvm::BitCastInst>(cast)) return nullptr;
      return b_.CreateCast(cast->getOpcode(), of(0), type);
    }
    if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(instruction)) {
      // A lane that divides by zero is one that the vector divides too; but nothing is gained by it.
      if (binary->isIntDivRem()) return nullptr;
      Value* const left = of(0);
      return b_.CreateBinOp(binary->getOpcode(), left, of(1));
    }
    if (const auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(instruction)) {
      if (step->getNumIndices() != 1) return nullptr;
      Value* const from = of(0);
      return b_.CreateGEP(step->getSourceElementType(), from, of(1));
    }
    return nullptr;
  }

  // Whole bytes, at the lane's place. It is loaded where the call is, after the vector was: what lies between writes
  // nothing, or else the vector is what is taken.
  Value* part_of(llvm::LoadInst& load, llvm::Type* type, unsigned lane) {
    const llvm::DataLayout& layout = ir_.module.getDataLayout();
    if (!load.isSimple() || layout.getTypeSizeInBits(type) % 8 != 0 || is_written_since(load)) return nullptr;
    const uint64_t bytes = layout.getTypeStoreSize(type);
    Value* const place = b_.CreateConstGEP1_64(ir_.i8, load.getPointerOperand(), uint64_t{lane} * bytes);
    llvm::LoadInst* const part =
        b_.CreateAlignedLoad(type, place, llvm::commonAlignment(load.getAlign(), uint64_t{lane} * bytes));
    part->copyMetadata(load, {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias});
    return part;
  }
  bool is_written_since(const llvm::LoadInst& load) const {
    const Instruction* at = &*b_.GetInsertPoint();
    if (load.getParent() != at->getParent()) return true;
    while ((at = at->getPrevNode()) != &load)
      if (at == nullptr || (at->mayWriteToMemory() && !is_prefetch_call(*at) && !is_prefetch(*at)))
        return true;
    return false;
  }
  static bool is_prefetch(const Instruction& instruction) {
    const auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return intrinsic != nullptr && intrinsic->getIntrinsicID() == llvm::Intrinsic::prefetch;
  }

  IrModule& ir_;
  llvm::IRBuilder<> b_;
};

}  // namespace

llvm::PreservedAnalyses SpreadPrefetchesPass::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
  std::vector<llvm::CallInst*> calls;
  for (Instruction& instruction : llvm::instructions(function))
    if (is_prefetch_call(instruction)) calls.push_back(llvm::cast<llvm::CallInst>(&instruction));
  if (calls.empty()) return llvm::PreservedAnalyses::all();
  for (llvm::CallInst* call : calls) {
    Lane(*ir, *call).prefetch(call->getArgOperand(0));
    call->eraseFromParent();
  }
  llvm::PreservedAnalyses preserved;
  preserved.preserveSet<llvm::CFGAnalyses>();
  return preserved;
}

void add_spread_prefetches(llvm::FunctionPassManager& passes, ChangeSet& changes) {
  passes.addPass(SpreadPrefetchesPass(changes.ir));
  // Vectors of which lanes are all that was wanted.
  passes.addPass(llvm::ADCEPass());
}

}  // namespace hindsight::jit::optimizing
