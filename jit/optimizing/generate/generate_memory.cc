// Linear memory: loads, stores, size, grow and the bulk operators.
#include "jit/abi/builtins.h"
#include "jit/optimizing/generate/function_generator.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {

using llvm::Value;
using wasm::Opcode;

namespace {

struct GuestAccess {
  uint32_t bytes;
  bool is_signed = false;
};

GuestAccess access_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kI32Load8S:
    case Opcode::kI64Load8S:
      return {1, true};
    case Opcode::kI32Load8U:
    case Opcode::kI64Load8U:
    case Opcode::kI32Store8:
    case Opcode::kI64Store8:
      return {1};
    case Opcode::kI32Load16S:
    case Opcode::kI64Load16S:
      return {2, true};
    case Opcode::kI32Load16U:
    case Opcode::kI64Load16U:
    case Opcode::kI32Store16:
    case Opcode::kI64Store16:
      return {2};
    case Opcode::kI64Load32S:
      return {4, true};
    case Opcode::kI32Load:
    case Opcode::kF32Load:
    case Opcode::kI64Load32U:
    case Opcode::kI32Store:
    case Opcode::kF32Store:
    case Opcode::kI64Store32:
      return {4};
    default:
      return {8};
  }
}

wasm::ValType loaded_type(Opcode opcode) {
  switch (opcode) {
    case Opcode::kF32Load:
      return wasm::ValType::kF32;
    case Opcode::kF64Load:
      return wasm::ValType::kF64;
    case Opcode::kI64Load:
    case Opcode::kI64Load8S:
    case Opcode::kI64Load8U:
    case Opcode::kI64Load16S:
    case Opcode::kI64Load16U:
    case Opcode::kI64Load32S:
    case Opcode::kI64Load32U:
      return wasm::ValType::kI64;
    default:
      return wasm::ValType::kI32;
  }
}

}  // namespace

void FunctionGenerator::emit_memory(const wasm::Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kMemorySize:
      push(b_.CreateZExtOrTrunc(b_.CreateLShr(memory_length(instr.index, /*ordered=*/true), 16),
                                ir_.type_of(ir_.wasm.memories[instr.index].address())));
      break;
    case Opcode::kMemoryGrow: {
      Value* const delta = b_.CreateZExt(pop(), ir_.i64);
      calls_ = true;
      Value* const old = call_builtin(offsetof(Builtins, memory_grow), ir_.i64, {int32(instr.index), delta});
      push(b_.CreateZExtOrTrunc(old, ir_.type_of(ir_.wasm.memories[instr.index].address())));
      break;
    }
    case Opcode::kI32Store:
    case Opcode::kI64Store:
    case Opcode::kF32Store:
    case Opcode::kF64Store:
    case Opcode::kI32Store8:
    case Opcode::kI32Store16:
    case Opcode::kI64Store8:
    case Opcode::kI64Store16:
    case Opcode::kI64Store32:
      emit_store(instr);
      break;
    default:
      emit_load(instr);
      break;
  }
}

// That of a shared memory may grow at any time. An older length than the present one is good enough for a check of
// bounds, since it orders nothing else. Where the program has ordered another thread's growing before the access, it
// has done so by an atomic access. This load does not move across that.
Value* FunctionGenerator::memory_length(uint32_t memory, bool ordered) {
  llvm::LoadInst* const length = load_runtime(ir_.i64, entry_field(ir_.layout.memory_record(memory)),
                                              offsetof(MemoryRecord, byte_length), false);
  if (ir_.wasm.memories[memory].shared) {
    length->setAlignment(llvm::Align(8));
    length->setAtomic(ordered ? llvm::AtomicOrdering::SequentiallyConsistent
                              : llvm::AtomicOrdering::Unordered);
  }
  return length;
}

// Invariant (the sandbox): a 32-bit index is zero-extended here and nowhere else. Index, offset and size
// together then stay below 2^33 + 16, which the guard region covers. An index of 64 bits is checked.
Value* FunctionGenerator::address(const wasm::Instr& instr, uint32_t bytes) {
  const bool is64 = ir_.wasm.memories[instr.index].is64;
  Value* const index = b_.CreateZExt(pop(), ir_.i64);
  const bool guarded = ir_.request.options.bounds == BoundsChecks::kGuardPages;
  if (is64) {
    check_index64(instr, index, bytes);
  } else if (!guarded) {
    Value* const end = b_.CreateAdd(index, int64(instr.bits + bytes), "", /*NUW=*/true, /*NSW=*/true);
    trap_if(b_.CreateICmpUGT(end, memory_length(instr.index)), TrapCode::kMemoryOutOfBounds);
  }
  // In bounds as far as LLVM's objects go: base plus guard region is one reservation.
  Value* const base = entry_field(ir_.layout.memory_base(instr.index));
  Value* const place = b_.CreateInBoundsGEP(ir_.i8, base, index);
  return instr.bits == 0 ? place : b_.CreateInBoundsGEP(ir_.i8, place, int64(instr.bits));
}

// Goes on only if base + index + offset lies within the memory's reservation; under explicit checks within
// the memory. Nothing wraps: what is subtracted from a length was compared with it.
void FunctionGenerator::check_index64(const wasm::Instr& instr, Value* index, uint32_t bytes) {
  const bool guarded = ir_.request.options.bounds == BoundsChecks::kGuardPages;
  const uint64_t end = instr.bits + bytes;
  if (end < bytes) return trap_if(llvm::ConstantInt::getTrue(ir_.context), TrapCode::kMemoryOutOfBounds);
  Value* most =
      guarded ? entry_field(ir_.layout.memory_limit(instr.index), ir_.i64) : memory_length(instr.index);
  if (!guarded || end > kGuardedOffset) {
    // After the limit, guard pages follow for any access, so its bytes need not be counted.
    Value* const part = int64(guarded ? instr.bits : end);
    trap_if(b_.CreateICmpULT(most, part), TrapCode::kMemoryOutOfBounds);
    most = b_.CreateSub(most, part);
  }
  trap_if(b_.CreateICmpUGT(index, most), TrapCode::kMemoryOutOfBounds);
}

// What other threads may be writing has one value all the same (see generate_atomics.cc).
Value* FunctionGenerator::settled(uint32_t memory, Value* loaded) {
  return ir_.wasm.memories[memory].shared ? b_.CreateFreeze(loaded) : loaded;
}

void FunctionGenerator::emit_load(const wasm::Instr& instr) {
  const GuestAccess access = access_of(instr.opcode);
  llvm::Type* const result = ir_.type_of(loaded_type(instr.opcode));
  llvm::Type* const stored =
      result->isFloatingPointTy() ? result : llvm::IntegerType::get(ir_.context, 8 * access.bytes);
  Value* const place = address(instr, access.bytes);
  llvm::LoadInst* const load =
      ir_.mark(b_.CreateAlignedLoad(stored, place, llvm::Align(1)), IrModule::World::kMemory);
  ir_.remember_position(*load);
  wasm_loads_.push_back(load);
  Value* value = settled(instr.index, load);
  if (stored != result)
    value = access.is_signed ? b_.CreateSExt(value, result) : b_.CreateZExt(value, result);
  push(value);
}

void FunctionGenerator::emit_store(const wasm::Instr& instr) {
  const GuestAccess access = access_of(instr.opcode);
  Value* value = pop();
  if (!value->getType()->isFloatingPointTy())
    value = b_.CreateTrunc(value, llvm::IntegerType::get(ir_.context, 8 * access.bytes));
  Value* const place = address(instr, access.bytes);
  ir_.remember_position(
      *ir_.mark(b_.CreateAlignedStore(value, place, llvm::Align(1)), IrModule::World::kMemory));
}

void FunctionGenerator::emit_bulk(const wasm::Instr& instr) {
  calls_ = true;
  if (instr.opcode == Opcode::kDataDrop) {
    call_builtin(offsetof(Builtins, data_drop), ir_.void_type, {int32(instr.index)});
    return;
  }
  const auto both = [this](uint32_t high, uint32_t low) { return int64((uint64_t{high} << 32) | low); };
  // Addresses and sizes of 32 bits are zero-extended.
  const auto wide = [this](Value* value) { return b_.CreateZExt(value, ir_.i64); };
  Value* const count = pop();
  Value* const second = pop();
  Value* const first = pop();
  switch (instr.opcode) {
    case Opcode::kMemoryInit:
      call_builtin(offsetof(Builtins, memory_init), ir_.void_type,
                   {both(instr.index, instr.index2), wide(first), second, count});
      break;
    case Opcode::kMemoryCopy:
      call_builtin(offsetof(Builtins, memory_copy), ir_.void_type,
                   {both(instr.index, instr.index2), wide(first), wide(second), wide(count)})
          ->setMetadata(kBulk, llvm::MDNode::get(ir_.context, {}));
      break;
    default:
      call_builtin(offsetof(Builtins, memory_fill), ir_.void_type,
                   {int32(instr.index), wide(first), second, wide(count)})
          ->setMetadata(kBulk, llvm::MDNode::get(ir_.context, {}));
      break;
  }
}

}  // namespace hindsight::jit::optimizing
