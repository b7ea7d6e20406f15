#include "jit/optimizing/versions/cell_code.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "jit/abi/builtins.h"
#include "jit/abi/loop_cell.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {

using llvm::Instruction;
using llvm::Value;

llvm::DebugLoc loop_location(const IrModule& ir, llvm::Function& function, WasmOffset wasm_loop) {
  return llvm::DILocation::get(ir.context, wasm_loop.value, 0, function.getSubprogram());
}

void remove_temporary_users(llvm::Function& function) {
  std::vector<Instruction*> users;
  for (Instruction& instruction : llvm::instructions(function))
    if (instruction.getMetadata(kTemporaryUser)) users.push_back(&instruction);
  for (Instruction* user : users) user->eraseFromParent();
}

std::vector<WasmOffset> wasm_loops_around(const wasm::Module& module, const llvm::DILocation* at) {
  std::vector<WasmOffset> around;
  for (; at; at = at->getInlinedAt()) {
    const WasmOffset offset(at->getLine());
    const std::optional<FuncIndex> function = module.function_at(offset);
    if (!function || module.is_imported(*function)) continue;
    const auto& loops = module.body(*function).loops;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
      if (loop->offset <= offset && offset < loop->end) around.push_back(loop->offset);
  }
  return around;
}

Value* CellCode::field(llvm::IRBuilder<>& b, int32_t offset) const {
  return b.CreateConstGEP1_64(ir_.i8, cell_, static_cast<uint64_t>(offset));
}

Value* CellCode::load(llvm::IRBuilder<>& b, int32_t offset) const {
  return ir_.mark(b.CreateAlignedLoad(ir_.i32, field(b, offset), llvm::Align(4)), IrModule::World::kCells);
}

Value* CellCode::runtime_load(llvm::IRBuilder<>& b, llvm::Type* type, Value* base, int64_t offset,
                              bool invariant) const {
  llvm::LoadInst* const load = b.CreateAlignedLoad(
      type, b.CreateConstInBoundsGEP1_64(ir_.i8, base, static_cast<uint64_t>(offset)), llvm::Align(8));
  if (invariant) load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir_.context, {}));
  return ir_.mark(load, IrModule::World::kRuntime);
}

void CellCode::emit_countdown(Value* iterations, Instruction* rest, const llvm::DebugLoc& location,
                              const std::function<void(Instruction*)>& when_ended) const {
  llvm::IRBuilder<> b(rest);
  b.SetCurrentDebugLocation(location);
  Value* const left = b.CreateSub(load(b, kCellCountdown), iterations);
  ir_.mark(b.CreateAlignedStore(left, field(b, kCellCountdown), llvm::Align(4)), IrModule::World::kCells);
  Value* const ended = b.CreateICmpSLT(left, llvm::ConstantInt::get(ir_.i32, 0));
  Instruction* const strip_end = llvm::SplitBlockAndInsertIfThen(ended, rest, false, ir_.unlikely);
  strip_end->setDebugLoc(location);
  if (when_ended) when_ended(strip_end);
  b.SetInsertPoint(strip_end);
  b.SetCurrentDebugLocation(location);
  Value* const vmctx = function_.getArg(0);
  Value* const builtins = runtime_load(b, ir_.ptr, vmctx, kVmBuiltins, true);
  Value* const code = runtime_load(b, ir_.ptr, builtins, offsetof(Builtins, strip_ended), true);
  llvm::CallInst* const call =
      b.CreateCall(llvm::FunctionType::get(ir_.void_type, {ir_.ptr, ir_.ptr}, false), code, {vmctx, cell_});
  call->setDoesNotThrow();
  call->addFnAttr(llvm::Attribute::NoMerge);
  call->addFnAttr(llvm::Attribute::Cold);
}

}  // namespace hindsight::jit::optimizing
