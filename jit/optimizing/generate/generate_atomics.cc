// Atomic accesses, waiting and notifying. All are sequentially consistent; LLVM leaves nothing of the others
// across one.
//
// Memories that threads share, and LLVM. A load that races with a store gives undef in LLVM, of which each
// use may see another value. Racing is no undefined behaviour beyond that. What the sandbox needs is that one
// load has one value: the index that was compared with a bound is the index that is used. So whatever is
// loaded from a shared memory is frozen where it is loaded (settled). That goes for an atomic access, too,
// which may race with a plain store. The length of a shared memory is an atomic, which LLVM takes for
// something that others change.
#include <llvm/IR/InlineAsm.h>

#include "jit/abi/builtins.h"
#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::Value;
using wasm::AtomicKind;
using wasm::Opcode;

namespace {

constexpr llvm::AtomicOrdering kOrder = llvm::AtomicOrdering::SequentiallyConsistent;

llvm::AtomicRMWInst::BinOp operator_of(AtomicKind kind) {
  switch (kind) {
    case AtomicKind::kAdd:
      return llvm::AtomicRMWInst::Add;
    case AtomicKind::kSub:
      return llvm::AtomicRMWInst::Sub;
    case AtomicKind::kAnd:
      return llvm::AtomicRMWInst::And;
    case AtomicKind::kOr:
      return llvm::AtomicRMWInst::Or;
    case AtomicKind::kXor:
      return llvm::AtomicRMWInst::Xor;
    default:
      return llvm::AtomicRMWInst::Xchg;
  }
}

}  // namespace

// A value, of i32 or i64, of which LLVM knows nothing.
Value* FunctionGenerator::opaque(Value* value) {
  auto* const type = llvm::FunctionType::get(value->getType(), {value->getType()}, false);
  llvm::CallInst* const call =
      b_.CreateCall(llvm::InlineAsm::get(type, "", "=r,0", /*hasSideEffects=*/false), {value});
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();
  call->addFnAttr(llvm::Attribute::WillReturn);
  return call;
}

// The operand of an atomic access: as address(), and aligned.
Value* FunctionGenerator::atomic_address(const wasm::Instr& instr, uint32_t bytes) {
  Value* const index = stack_.back();
  if (bytes > 1) {
    const uint64_t mask = bytes - 1;
    // The low bits of the sum, whatever its high ones are.
    Value* const low = b_.CreateAdd(index, llvm::ConstantInt::get(index->getType(), instr.bits & mask));
    Value* const odd = b_.CreateAnd(low, llvm::ConstantInt::get(index->getType(), mask));
    trap_if(b_.CreateICmpNE(odd, llvm::ConstantInt::get(index->getType(), 0)), TrapCode::kUnalignedAtomic);
  }
  return address(instr, bytes);
}

void FunctionGenerator::emit_atomic(const wasm::Instr& instr) {
  if (instr.opcode == Opcode::kAtomicFence) {
    b_.CreateFence(kOrder);
    return;
  }
  const auto code = static_cast<uint16_t>(instr.opcode);
  if (!wasm::is_atomic_access(code)) return emit_wait_or_notify(instr);
  const wasm::AtomicAccess access = wasm::atomic_access(code);
  const uint32_t bytes = 1u << access.log2;
  const llvm::Align align(bytes);
  llvm::Type* const stored = llvm::IntegerType::get(ir_.context, 8 * bytes);
  llvm::Type* const result = access.wide ? ir_.i64 : ir_.i32;
  switch (access.kind) {
    case AtomicKind::kLoad: {
      llvm::LoadInst* const load = b_.CreateAlignedLoad(stored, atomic_address(instr, bytes), align);
      load->setAtomic(kOrder);
      ir_.remember_position(*load);
      wasm_loads_.push_back(load);
      return push(b_.CreateZExt(settled(instr.index, load), result));
    }
    case AtomicKind::kStore: {
      Value* const value = b_.CreateTrunc(pop(), stored);
      llvm::StoreInst* const store = b_.CreateAlignedStore(value, atomic_address(instr, bytes), align);
      store->setAtomic(kOrder);
      return ir_.remember_position(*store);
    }
    case AtomicKind::kCompareExchange: {
      Value* const replacement = b_.CreateTrunc(pop(), stored);
      Value* const expected = b_.CreateTrunc(pop(), stored);
      auto* const exchange =
          b_.CreateAtomicCmpXchg(atomic_address(instr, bytes), expected, replacement, align, kOrder, kOrder);
      ir_.remember_position(*exchange);
      return push(b_.CreateZExt(settled(instr.index, b_.CreateExtractValue(exchange, 0)), result));
    }
    default: {
      // Where an operation is known to change nothing, such as an addition of zero, and nothing needs its
      // result, LLVM keeps only the order. The access, which may trap, would be gone.
      Value* operand = pop();
      if (ir_.request.options.bounds == BoundsChecks::kGuardPages) operand = opaque(operand);
      Value* const value = b_.CreateTrunc(operand, stored);
      auto* const update =
          b_.CreateAtomicRMW(operator_of(access.kind), atomic_address(instr, bytes), value, align, kOrder);
      ir_.remember_position(*update);
      return push(b_.CreateZExt(settled(instr.index, update), result));
    }
  }
}

void FunctionGenerator::emit_wait_or_notify(const wasm::Instr& instr) {
  calls_ = true;
  const bool notify = instr.opcode == Opcode::kMemoryAtomicNotify;
  Value* const timeout = notify ? nullptr : pop();
  Value* const value = pop();  // expected, or how many to wake
  Value* const index = b_.CreateZExt(pop(), ir_.i64);
  if (notify)
    return push(call_builtin(offsetof(Builtins, atomic_notify), ir_.i32,
                             {int32(instr.index), index, int64(instr.bits), value}));
  const size_t builtin = instr.opcode == Opcode::kMemoryAtomicWait32 ? offsetof(Builtins, atomic_wait32)
                                                                     : offsetof(Builtins, atomic_wait64);
  push(call_builtin(builtin, ir_.i32, {int32(instr.index), index, int64(instr.bits), value, timeout}));
}

}  // namespace hindsight::jit::optimizing
