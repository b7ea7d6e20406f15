#include "jit/optimizing/versions/speculation.h"

#include <llvm/Analysis/ValueTracking.h>

#include "jit/optimizing/ir/copy_origin.h"

namespace hindsight::jit::optimizing {

using llvm::Value;

// Invariant: a division by it does not trap, whatever it was.
Value* harmless_divisor(llvm::IRBuilder<>& b, const llvm::Instruction& division) {
  Value* const divisor = division.getOperand(1);
  if (llvm::isa<llvm::ConstantInt>(divisor)) return divisor;
  llvm::Constant* const one = llvm::ConstantInt::get(divisor->getType(), 1);
  Value* const known = b.CreateFreeze(divisor);
  if (division.getOpcode() == llvm::Instruction::UDiv || division.getOpcode() == llvm::Instruction::URem)
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, known, one);
  // Neither 0 nor -1.
  return b.CreateSelect(b.CreateICmpULE(b.CreateAdd(known, one), one), one, known);
}

std::optional<uint32_t> Speculation::memory_of(const IrModule& ir, const Value* address,
                                               const llvm::Function& function) {
  // Where there is one memory, it is that one. Which one decides what a guess reads, and nothing else.
  if (ir.wasm.memories.size() == 1) return 0;
  return ir.memory_of(llvm::getUnderlyingObject(address, 0), function.getArg(0));
}

Value* Speculation::use_memory(llvm::IRBuilder<>& b, uint32_t memory) {
  const auto load = [&](llvm::Type* type, Value* from, int64_t offset) {
    return ir_.mark(
        b.CreateAlignedLoad(type, b.CreateConstInBoundsGEP1_64(ir_.i8, from, static_cast<uint64_t>(offset)),
                            llvm::Align(8)),
        IrModule::World::kRuntime);
  };
  Value* const vmctx = function_.getArg(0);
  Value* const base = load(ir_.ptr, vmctx, ir_.layout.memory_base(memory));
  Value* const record = load(ir_.ptr, vmctx, ir_.layout.memory_record(memory));
  Value* const length = load(ir_.i64, record, offsetof(MemoryRecord, byte_length));
  memories_[memory] = {base, length};
  return ir_.wasm.memories[memory].limits.min > 0 ? nullptr : b.CreateIsNotNull(length);
}

Value* Speculation::clamp(llvm::IRBuilder<>& b, Value* address, uint32_t memory, uint64_t bytes) const {
  const Memory& its = memories_.at(memory);
  Value* const place = b.CreateFreeze(address);
  Value* const offset = b.CreateSub(b.CreatePtrToInt(place, ir_.i64), b.CreatePtrToInt(its.base, ir_.i64));
  Value* const last = b.CreateSub(its.length, llvm::ConstantInt::get(ir_.i64, bytes));
  // Invariant: readable, whatever `address` is, because the memory has at least a page. The comparison refuses
  // places below the base as well.
  return b.CreateSelect(b.CreateICmpULE(offset, last), place, its.base);
}

void Speculation::make_harmless(llvm::Instruction& copy, const llvm::Instruction& original) const {
  copy.dropPoisonGeneratingAnnotations();
  copy.dropUBImplyingAttrsAndMetadata();
  copy.setMetadata("hindsight.position", nullptr);  // it is not the load that it copies
  copy.setDebugLoc(location_);
  if (llvm::isa<llvm::LoadInst>(original)) tell_origin(ir_, copy, original);
  llvm::IRBuilder<> b(&copy);
  b.SetCurrentDebugLocation(location_);
  if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&copy)) {
    const bool of_runtime = ir_.is_among(original, IrModule::World::kRuntime);
    load->copyMetadata(original, {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias});
    if (of_runtime) return;
    const uint64_t bytes = ir_.module.getDataLayout().getTypeStoreSize(load->getType());
    const uint32_t memory =
        memory_of(ir_, llvm::cast<llvm::LoadInst>(original).getPointerOperand(), function_).value_or(0);
    load->setOperand(0, clamp(b, load->getPointerOperand(), memory, bytes));
    load->setAlignment(llvm::Align(1));
  } else if (copy.isIntDivRem()) {
    copy.setOperand(1, harmless_divisor(b, copy));
  } else if (auto* const branch = llvm::dyn_cast<llvm::BranchInst>(&copy)) {
    if (branch->isConditional()) branch->setCondition(b.CreateFreeze(branch->getCondition()));
  } else if (auto* const choice = llvm::dyn_cast<llvm::SwitchInst>(&copy)) {
    choice->setCondition(b.CreateFreeze(choice->getCondition()));
  }
}

const llvm::SCEV* guest_address(llvm::ScalarEvolution& evolution, const llvm::Value& pointer) {
  const llvm::SCEV* const whole = evolution.getSCEV(const_cast<llvm::Value*>(&pointer));
  const llvm::SCEV* const offset = evolution.getMinusSCEV(whole, evolution.getPointerBase(whole));
  return evolution.getTruncateExpr(offset, llvm::Type::getInt32Ty(pointer.getContext()));
}

}  // namespace hindsight::jit::optimizing
