// Vectors: memory, lanes, shuffles and bitwise operators. The operators of other families are in
// generate_simd_integer.cc and generate_simd_float.cc.
//
// LLVM's own vector operators are used wherever the code generator makes the processor's one instruction of
// them. They fold, combine and vanish like scalar ones. The processor's intrinsics are used where
// WebAssembly's operator is that instruction and LLVM has no word for it.
#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <cstring>

#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::Value;
using wasm::Opcode;

namespace {
bool between(Opcode op, Opcode first, Opcode last) {
  return op >= first && op <= last;
}
}  // namespace

void FunctionGenerator::emit_simd(const wasm::Instr& instr) {
  const Opcode op = instr.opcode;
  if (op == Opcode::kV128Const) {
    push(llvm::ConstantDataVector::get(ir_.context, llvm::ArrayRef<uint64_t>{instr.bits, instr.high}));
    return;
  }
  if (between(op, Opcode::kV128Load, Opcode::kV128Store) ||
      between(op, Opcode::kV128Load8Lane, Opcode::kV128Load64Zero))
    return emit_simd_memory(instr);
  if (op == Opcode::kI8x16Shuffle) return emit_shuffle(instr);
  if (between(op, Opcode::kI8x16Swizzle, Opcode::kF64x2ReplaceLane)) return emit_lanes(instr);
  if (between(op, Opcode::kV128Not, Opcode::kV128AnyTrue)) return emit_bitwise(op);
  if (between(op, Opcode::kI8x16RelaxedSwizzle, Opcode::kI32x4RelaxedDotI8x16I7x16AddS))
    return emit_simd_relaxed(op);
  if (between(op, Opcode::kF32x4DemoteF64x2Zero, Opcode::kF64x2PromoteLowF32x4) ||
      between(op, Opcode::kI32x4TruncSatF32x4S, Opcode::kF64x2ConvertLowI32x4U))
    return emit_simd_conversion(op);
  if (between(op, Opcode::kF32x4Eq, Opcode::kF64x2Ge) ||
      between(op, Opcode::kF32x4Ceil, Opcode::kF32x4Nearest) ||
      between(op, Opcode::kF64x2Ceil, Opcode::kF64x2Floor) || op == Opcode::kF64x2Trunc ||
      op == Opcode::kF64x2Nearest || between(op, Opcode::kF32x4Abs, Opcode::kF64x2Pmax))
    return emit_simd_float(op);
  emit_simd_integer(op);
}

Value* FunctionGenerator::splat_of(llvm::Type* vector, Value* lane) {
  return b_.CreateVectorSplat(llvm::cast<llvm::FixedVectorType>(vector)->getNumElements(), lane);
}

Value* FunctionGenerator::load_part(const wasm::Instr& instr, llvm::Type* type) {
  Value* const place = address(instr, 1u << wasm::simd_access_log2(instr.opcode));
  llvm::LoadInst* const load =
      ir_.mark(b_.CreateAlignedLoad(type, place, llvm::Align(1)), IrModule::World::kMemory);
  ir_.remember_position(*load);
  wasm_loads_.push_back(load);
  return settled(instr.index, load);
}

void FunctionGenerator::emit_simd_memory(const wasm::Instr& instr) {
  const auto widened = [&](llvm::IntegerType* from, llvm::IntegerType* to, bool is_signed) {
    llvm::FixedVectorType* const result = vector_of(to);
    Value* const parts = b_.CreateBitCast(load_part(instr, ir_.i64),
                                          llvm::FixedVectorType::get(from, result->getNumElements()));
    push_vector(is_signed ? b_.CreateSExt(parts, result) : b_.CreateZExt(parts, result));
  };
  const auto splat = [&](llvm::IntegerType* lane) {
    push_vector(splat_of(vector_of(lane), load_part(instr, lane)));
  };
  const auto zero_extended = [&](llvm::IntegerType* lane) {
    push_vector(b_.CreateInsertElement(zeros(vector_of(lane)), load_part(instr, lane), uint64_t{0}));
  };
  const auto load_lane = [&](llvm::IntegerType* lane) {
    Value* const vector = pop_as(vector_of(lane));
    push_vector(b_.CreateInsertElement(vector, load_part(instr, lane), uint64_t{instr.index2}));
  };
  const auto store = [&](Value* value, uint32_t bytes) {
    Value* const place = address(instr, bytes);
    ir_.remember_position(
        *ir_.mark(b_.CreateAlignedStore(value, place, llvm::Align(1)), IrModule::World::kMemory));
  };
  const auto store_lane = [&](llvm::IntegerType* lane) {
    Value* const vector = pop_as(vector_of(lane));
    store(b_.CreateExtractElement(vector, uint64_t{instr.index2}), lane->getBitWidth() / 8);
  };
  switch (instr.opcode) {
    case Opcode::kV128Load:
      return push(load_part(instr, ir_.v128));
    case Opcode::kV128Load8x8S:
      return widened(ir_.i8, ir_.i16, true);
    case Opcode::kV128Load8x8U:
      return widened(ir_.i8, ir_.i16, false);
    case Opcode::kV128Load16x4S:
      return widened(ir_.i16, ir_.i32, true);
    case Opcode::kV128Load16x4U:
      return widened(ir_.i16, ir_.i32, false);
    case Opcode::kV128Load32x2S:
      return widened(ir_.i32, ir_.i64, true);
    case Opcode::kV128Load32x2U:
      return widened(ir_.i32, ir_.i64, false);
    case Opcode::kV128Load8Splat:
      return splat(ir_.i8);
    case Opcode::kV128Load16Splat:
      return splat(ir_.i16);
    case Opcode::kV128Load32Splat:
      return splat(ir_.i32);
    case Opcode::kV128Load64Splat:
      return splat(ir_.i64);
    case Opcode::kV128Load32Zero:
      return zero_extended(ir_.i32);
    case Opcode::kV128Load64Zero:
      return zero_extended(ir_.i64);
    case Opcode::kV128Load8Lane:
      return load_lane(ir_.i8);
    case Opcode::kV128Load16Lane:
      return load_lane(ir_.i16);
    case Opcode::kV128Load32Lane:
      return load_lane(ir_.i32);
    case Opcode::kV128Load64Lane:
      return load_lane(ir_.i64);
    case Opcode::kV128Store8Lane:
      return store_lane(ir_.i8);
    case Opcode::kV128Store16Lane:
      return store_lane(ir_.i16);
    case Opcode::kV128Store32Lane:
      return store_lane(ir_.i32);
    case Opcode::kV128Store64Lane:
      return store_lane(ir_.i64);
    default:
      return store(pop(), 16);
  }
}

void FunctionGenerator::emit_lanes(const wasm::Instr& instr) {
  const auto splat = [&](llvm::Type* lane) {
    Value* value = pop();
    if (value->getType() != lane) value = b_.CreateTrunc(value, lane);
    push_vector(splat_of(vector_of(lane), value));
  };
  const auto extract = [&](llvm::Type* lane) {
    return b_.CreateExtractElement(pop_as(vector_of(lane)), uint64_t{instr.index});
  };
  const auto replace = [&](llvm::Type* lane) {
    Value* value = pop();
    if (value->getType() != lane) value = b_.CreateTrunc(value, lane);
    push_vector(b_.CreateInsertElement(pop_as(vector_of(lane)), value, uint64_t{instr.index}));
  };
  switch (instr.opcode) {
    case Opcode::kI8x16Swizzle: {
      // Lane numbers of 16 and more become negative by a saturating addition, for which pshufb gives zero.
      llvm::Type* const type = vector_of(ir_.i8);
      Value* const lanes = b_.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, pop_as(type),
                                                    llvm::ConstantInt::get(type, 0x70));
      Value* const vector = pop_as(type);
      return push_vector(b_.CreateIntrinsic(llvm::Intrinsic::x86_ssse3_pshuf_b_128, {}, {vector, lanes}));
    }
    case Opcode::kI8x16Splat:
      return splat(ir_.i8);
    case Opcode::kI16x8Splat:
      return splat(ir_.i16);
    case Opcode::kI32x4Splat:
      return splat(ir_.i32);
    case Opcode::kI64x2Splat:
      return splat(ir_.i64);
    case Opcode::kF32x4Splat:
      return splat(ir_.f32);
    case Opcode::kF64x2Splat:
      return splat(ir_.f64);
    case Opcode::kI8x16ExtractLaneS:
      return push(b_.CreateSExt(extract(ir_.i8), ir_.i32));
    case Opcode::kI8x16ExtractLaneU:
      return push(b_.CreateZExt(extract(ir_.i8), ir_.i32));
    case Opcode::kI16x8ExtractLaneS:
      return push(b_.CreateSExt(extract(ir_.i16), ir_.i32));
    case Opcode::kI16x8ExtractLaneU:
      return push(b_.CreateZExt(extract(ir_.i16), ir_.i32));
    case Opcode::kI32x4ExtractLane:
      return push(extract(ir_.i32));
    case Opcode::kI64x2ExtractLane:
      return push(extract(ir_.i64));
    case Opcode::kF32x4ExtractLane:
      return push(extract(ir_.f32));
    case Opcode::kF64x2ExtractLane:
      return push(extract(ir_.f64));
    case Opcode::kI8x16ReplaceLane:
      return replace(ir_.i8);
    case Opcode::kI16x8ReplaceLane:
      return replace(ir_.i16);
    case Opcode::kI32x4ReplaceLane:
      return replace(ir_.i32);
    case Opcode::kI64x2ReplaceLane:
      return replace(ir_.i64);
    case Opcode::kF32x4ReplaceLane:
      return replace(ir_.f32);
    default:
      return replace(ir_.f64);
  }
}

void FunctionGenerator::emit_shuffle(const wasm::Instr& instr) {
  std::array<uint8_t, 16> bytes;
  std::memcpy(bytes.data(), &instr.bits, 8);
  std::memcpy(bytes.data() + 8, &instr.high, 8);
  llvm::Type* const type = vector_of(ir_.i8);
  Value* const b = pop_as(type);
  Value* const a = pop_as(type);
  push_vector(b_.CreateShuffleVector(a, b, std::vector<int>(bytes.begin(), bytes.end())));
}

void FunctionGenerator::emit_bitwise(Opcode op) {
  switch (op) {
    case Opcode::kV128Not:
      return push(b_.CreateNot(pop()));
    case Opcode::kV128Bitselect:
      return emit_bitselect();
    case Opcode::kV128AnyTrue: {
      llvm::Type* const whole = llvm::IntegerType::get(ir_.context, 128);
      return push_condition(b_.CreateIsNotNull(pop_as(whole)));
    }
    default:
      break;
  }
  Value* const b = pop();
  Value* const a = pop();
  switch (op) {
    case Opcode::kV128And:
      return push(b_.CreateAnd(a, b));
    case Opcode::kV128Andnot:
      return push(b_.CreateAnd(a, b_.CreateNot(b)));
    case Opcode::kV128Or:
      return push(b_.CreateOr(a, b));
    default:
      return push(b_.CreateXor(a, b));
  }
}

// Written so that LLVM sees a blend where the mask is a comparison's.
void FunctionGenerator::emit_bitselect() {
  Value* const mask = pop();
  Value* const b = pop();
  Value* const a = pop();
  push(b_.CreateOr(b_.CreateAnd(a, mask), b_.CreateAnd(b, b_.CreateNot(mask))));
}

}  // namespace hindsight::jit::optimizing
