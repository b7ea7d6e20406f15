#include "jit/optimizing/changes/prefetch/prefetch_call.h"

#include <llvm/IR/VFABIDemangler.h>

#include <string>

namespace hindsight::jit::optimizing {
namespace {

constexpr llvm::StringLiteral kName = "hindsight.prefetch";
constexpr unsigned kNeverSoManyLanes = 1024;

llvm::Function* declare(IrModule& ir, const std::string& name, llvm::Type* places) {
  if (llvm::Function* const known = ir.module.getFunction(name)) return known;
  auto* const function = llvm::Function::Create(llvm::FunctionType::get(ir.void_type, {places}, false),
                                                llvm::GlobalValue::ExternalLinkage, name, ir.module);
  function->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  function->setDoesNotThrow();
  function->setWillReturn();
  function->setNoSync();
  function->setDoesNotFreeMemory();
  function->addFnAttr(llvm::Attribute::NoCallback);
  return function;
}

}  // namespace

llvm::CallInst* add_prefetch_call(IrModule& ir, llvm::IRBuilder<>& b, llvm::Value* place) {
  llvm::CallInst* const call = b.CreateCall(declare(ir, kName.str(), ir.i64), {place});
  const std::string lanes = std::to_string(kNeverSoManyLanes), variant = kName.str() + "." + lanes;
  declare(ir, variant, llvm::FixedVectorType::get(ir.i64, kNeverSoManyLanes));
  llvm::VFABI::setVectorVariantNames(call,
                                     {"_ZGV_LLVM_N" + lanes + "v_" + kName.str() + "(" + variant + ")"});
  // Touches nothing of the guest's or of the runtime's: the order of their accesses is not its business.
  return ir.mark(call, IrModule::World::kCells);
}

bool is_prefetch_call(const llvm::Instruction& instruction) {
  const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const llvm::Function* const callee = call != nullptr ? call->getCalledFunction() : nullptr;
  return callee != nullptr && callee->getName() == kName;
}

}  // namespace hindsight::jit::optimizing
