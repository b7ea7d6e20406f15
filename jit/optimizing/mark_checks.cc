#include "jit/optimizing/mark_checks.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <cstddef>
#include <vector>

#include "jit/abi/builtins.h"

namespace hindsight::jit::optimizing {
namespace {

// A shorter one takes no longer than what stands around it.
constexpr uint64_t kShortBytes = 1024;

bool is_long(const llvm::MemIntrinsic& call) {
  const auto* const bytes = llvm::dyn_cast<llvm::ConstantInt>(call.getLength());
  return bytes == nullptr || bytes->getZExtValue() > kShortBytes;
}

class Looker {
 public:
  Looker(IrModule& ir, llvm::Function& function) : ir_(ir), function_(function) {}

  // As a function's entry does: the builtin takes the mark for the reason, and does not return.
  void look_in_front_of(llvm::MemIntrinsic& call) {
    const llvm::DebugLoc at =
        ir_.position_of(call) != nullptr ? llvm::DebugLoc(ir_.position_of(call)) : call.getDebugLoc();
    llvm::IRBuilder<> b(&call);
    b.SetCurrentDebugLocation(at);
    llvm::LoadInst* const mark =
        b.CreateAlignedLoad(ir_.i32, field(b, pointer(b, kVmThread), kThreadInterrupt), llvm::Align(4));
    ir_.mark(mark, IrModule::World::kRuntime);
    mark->setVolatile(true);  // another thread sets it
    llvm::Instruction* const then = llvm::SplitBlockAndInsertIfThen(b.CreateIsNotNull(mark), &call,
                                                                    /*Unreachable=*/false, ir_.unlikely);
    b.SetInsertPoint(then);
    b.SetCurrentDebugLocation(at);
    llvm::Value* const code = load(b, pointer(b, kVmBuiltins), offsetof(Builtins, stack_check_failed));
    llvm::CallInst* const end =
        b.CreateCall(llvm::FunctionType::get(ir_.void_type, {ir_.ptr}, false), code, {vmctx()});
    end->setDoesNotThrow();
    end->addFnAttr(llvm::Attribute::NoMerge);
    end->addFnAttr(llvm::Attribute::Cold);
  }

 private:
  llvm::Value* vmctx() const { return function_.getArg(0); }
  llvm::Value* field(llvm::IRBuilder<>& b, llvm::Value* base, int64_t offset) const {
    return b.CreateGEP(ir_.i8, base, b.getInt64(static_cast<uint64_t>(offset)));
  }
  llvm::Value* load(llvm::IRBuilder<>& b, llvm::Value* base, int64_t offset) const {
    return ir_.mark(b.CreateAlignedLoad(ir_.ptr, field(b, base, offset), llvm::Align(8)),
                    IrModule::World::kRuntime);
  }
  llvm::Value* pointer(llvm::IRBuilder<>& b, int64_t offset) const { return load(b, vmctx(), offset); }

  IrModule& ir_;
  llvm::Function& function_;
};

}  // namespace

void look_at_mark_beside_long_calls(IrModule& ir) {
  for (llvm::Function& function : ir.module) {
    std::vector<llvm::MemIntrinsic*> calls;
    for (llvm::Instruction& instruction : llvm::instructions(function))
      if (auto* const call = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction);
          call != nullptr && is_long(*call))
        calls.push_back(call);
    if (calls.empty()) continue;
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    std::erase_if(calls, [&](const llvm::MemIntrinsic* call) {
      return loops.getLoopFor(call->getParent()) == nullptr;
    });
    Looker looker(ir, function);
    for (llvm::MemIntrinsic* const call : calls) looker.look_in_front_of(*call);
  }
}

}  // namespace hindsight::jit::optimizing
