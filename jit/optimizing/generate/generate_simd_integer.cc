// Vectors of integers.
#include <llvm/IR/IntrinsicsX86.h>

#include <vector>

#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::ICmpInst;
using llvm::Value;
using wasm::Opcode;
namespace Intrinsic = llvm::Intrinsic;

void FunctionGenerator::emit_simd_integer(Opcode op) {
  const auto binary = [&](llvm::IntegerType* lane, llvm::Instruction::BinaryOps instruction) {
    llvm::Type* const type = vector_of(lane);
    Value* const b = pop_as(type);
    Value* const a = pop_as(type);
    push_vector(b_.CreateBinOp(instruction, a, b));
  };
  const auto call = [&](llvm::IntegerType* lane, Intrinsic::ID id) {
    llvm::Type* const type = vector_of(lane);
    Value* const b = pop_as(type);
    Value* const a = pop_as(type);
    push_vector(b_.CreateBinaryIntrinsic(id, a, b));
  };
  const auto narrow = [&](llvm::IntegerType* lane, Intrinsic::ID id) {
    llvm::Type* const type = vector_of(lane);
    Value* const b = pop_as(type);
    Value* const a = pop_as(type);
    push_vector(b_.CreateIntrinsic(id, {}, {a, b}));
  };
  const auto average = [&](llvm::IntegerType* lane) {
    llvm::Type* const type = vector_of(lane);
    llvm::Type* const wide =
        llvm::VectorType::getExtendedElementVectorType(llvm::cast<llvm::VectorType>(type));
    Value* const b = b_.CreateZExt(pop_as(type), wide);
    Value* const a = b_.CreateZExt(pop_as(type), wide);
    Value* const sum = b_.CreateAdd(b_.CreateAdd(a, b), llvm::ConstantInt::get(wide, 1));
    push_vector(b_.CreateTrunc(b_.CreateLShr(sum, llvm::ConstantInt::get(wide, 1)), type));
  };
  switch (op) {
#define HINDSIGHT_SHAPE(lanes, lane)                                                           \
  case Opcode::k##lanes##Abs:                                                                  \
    return push_vector(                                                                        \
        b_.CreateBinaryIntrinsic(Intrinsic::abs, pop_as(vector_of(ir_.lane)), b_.getFalse())); \
  case Opcode::k##lanes##Neg:                                                                  \
    return push_vector(b_.CreateNeg(pop_as(vector_of(ir_.lane))));                             \
  case Opcode::k##lanes##Add:                                                                  \
    return binary(ir_.lane, llvm::Instruction::Add);                                           \
  case Opcode::k##lanes##Sub:                                                                  \
    return binary(ir_.lane, llvm::Instruction::Sub);                                           \
  case Opcode::k##lanes##AllTrue:                                                              \
  case Opcode::k##lanes##Bitmask:                                                              \
    return emit_lane_tests(op);                                                                \
  case Opcode::k##lanes##Shl:                                                                  \
  case Opcode::k##lanes##ShrS:                                                                 \
  case Opcode::k##lanes##ShrU:                                                                 \
    return emit_vector_shift(op);
    HINDSIGHT_SHAPE(I8x16, i8)
    HINDSIGHT_SHAPE(I16x8, i16)
    HINDSIGHT_SHAPE(I32x4, i32)
    HINDSIGHT_SHAPE(I64x2, i64)
#undef HINDSIGHT_SHAPE
#define HINDSIGHT_SATURATING(lanes, lane)       \
  case Opcode::k##lanes##AddSatS:               \
    return call(ir_.lane, Intrinsic::sadd_sat); \
  case Opcode::k##lanes##AddSatU:               \
    return call(ir_.lane, Intrinsic::uadd_sat); \
  case Opcode::k##lanes##SubSatS:               \
    return call(ir_.lane, Intrinsic::ssub_sat); \
  case Opcode::k##lanes##SubSatU:               \
    return call(ir_.lane, Intrinsic::usub_sat); \
  case Opcode::k##lanes##AvgrU:                 \
    return average(ir_.lane);
    HINDSIGHT_SATURATING(I8x16, i8)
    HINDSIGHT_SATURATING(I16x8, i16)
#undef HINDSIGHT_SATURATING
#define HINDSIGHT_EXTREMES(lanes, lane)     \
  case Opcode::k##lanes##MinS:              \
    return call(ir_.lane, Intrinsic::smin); \
  case Opcode::k##lanes##MinU:              \
    return call(ir_.lane, Intrinsic::umin); \
  case Opcode::k##lanes##MaxS:              \
    return call(ir_.lane, Intrinsic::smax); \
  case Opcode::k##lanes##MaxU:              \
    return call(ir_.lane, Intrinsic::umax);
    HINDSIGHT_EXTREMES(I8x16, i8)
    HINDSIGHT_EXTREMES(I16x8, i16)
    HINDSIGHT_EXTREMES(I32x4, i32)
#undef HINDSIGHT_EXTREMES
    case Opcode::kI16x8Mul:
      return binary(ir_.i16, llvm::Instruction::Mul);
    case Opcode::kI32x4Mul:
      return binary(ir_.i32, llvm::Instruction::Mul);
    case Opcode::kI64x2Mul:
      return binary(ir_.i64, llvm::Instruction::Mul);
    case Opcode::kI8x16NarrowI16x8S:
      return narrow(ir_.i16, Intrinsic::x86_sse2_packsswb_128);
    case Opcode::kI8x16NarrowI16x8U:
      return narrow(ir_.i16, Intrinsic::x86_sse2_packuswb_128);
    case Opcode::kI16x8NarrowI32x4S:
      return narrow(ir_.i32, Intrinsic::x86_sse2_packssdw_128);
    case Opcode::kI16x8NarrowI32x4U:
      return narrow(ir_.i32, Intrinsic::x86_sse41_packusdw);
    case Opcode::kI32x4DotI16x8S:
      return narrow(ir_.i16, Intrinsic::x86_sse2_pmadd_wd);
    case Opcode::kI8x16Popcnt:
      return push_vector(b_.CreateUnaryIntrinsic(Intrinsic::ctpop, pop_as(vector_of(ir_.i8))));
    case Opcode::kI16x8Q15mulrSatS:
      return emit_rounding_product();
    case Opcode::kI16x8ExtaddPairwiseI8x16S:
    case Opcode::kI16x8ExtaddPairwiseI8x16U:
    case Opcode::kI32x4ExtaddPairwiseI16x8S:
    case Opcode::kI32x4ExtaddPairwiseI16x8U:
      return emit_pairwise(op);
    default:
      break;
  }
  const bool compares = (op >= Opcode::kI8x16Eq && op <= Opcode::kI32x4GeU) ||
                        (op >= Opcode::kI64x2Eq && op <= Opcode::kI64x2GeS);
  if (compares) return emit_vector_compare(op);
  emit_widening(op);
}

void FunctionGenerator::emit_vector_compare(Opcode op) {
  static constexpr ICmpInst::Predicate kPredicates[] = {
      ICmpInst::ICMP_EQ,  ICmpInst::ICMP_NE,  ICmpInst::ICMP_SLT, ICmpInst::ICMP_ULT, ICmpInst::ICMP_SGT,
      ICmpInst::ICMP_UGT, ICmpInst::ICMP_SLE, ICmpInst::ICMP_ULE, ICmpInst::ICMP_SGE, ICmpInst::ICMP_UGE};
  // 64-bit lanes have no unsigned comparisons.
  static constexpr ICmpInst::Predicate kLong[] = {ICmpInst::ICMP_EQ,  ICmpInst::ICMP_NE,  ICmpInst::ICMP_SLT,
                                                  ICmpInst::ICMP_SGT, ICmpInst::ICMP_SLE, ICmpInst::ICMP_SGE};
  const auto from = [op](Opcode first) { return static_cast<uint32_t>(op) - static_cast<uint32_t>(first); };
  ICmpInst::Predicate predicate{};
  llvm::Type* lane = nullptr;
  if (op >= Opcode::kI64x2Eq) {
    predicate = kLong[from(Opcode::kI64x2Eq)];
    lane = ir_.i64;
  } else {
    llvm::Type* const lanes[] = {ir_.i8, ir_.i16, ir_.i32};
    predicate = kPredicates[from(Opcode::kI8x16Eq) % 10];
    lane = lanes[from(Opcode::kI8x16Eq) / 10];
  }
  llvm::Type* const type = vector_of(lane);
  Value* const b = pop_as(type);
  Value* const a = pop_as(type);
  push_vector(b_.CreateSExt(b_.CreateICmp(predicate, a, b), type));
}

// One count for all lanes, modulo their width.
void FunctionGenerator::emit_vector_shift(Opcode op) {
  llvm::IntegerType* lane = ir_.i8;
  if (op >= Opcode::kI64x2Shl)
    lane = ir_.i64;
  else if (op >= Opcode::kI32x4Shl)
    lane = ir_.i32;
  else if (op >= Opcode::kI16x8Shl)
    lane = ir_.i16;
  llvm::Type* const type = vector_of(lane);
  Value* const masked = b_.CreateAnd(pop(), int32(lane->getBitWidth() - 1));
  Value* const count = splat_of(type, b_.CreateZExtOrTrunc(masked, lane));
  Value* const a = pop_as(type);
  switch (op) {
    case Opcode::kI8x16Shl:
    case Opcode::kI16x8Shl:
    case Opcode::kI32x4Shl:
    case Opcode::kI64x2Shl:
      return push_vector(b_.CreateShl(a, count));
    case Opcode::kI8x16ShrS:
    case Opcode::kI16x8ShrS:
    case Opcode::kI32x4ShrS:
    case Opcode::kI64x2ShrS:
      return push_vector(b_.CreateAShr(a, count));
    default:
      return push_vector(b_.CreateLShr(a, count));
  }
}

Value* FunctionGenerator::half_of(Value* vector, bool high) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  std::vector<int> order;
  for (unsigned i = 0; i < lanes / 2; ++i) order.push_back(static_cast<int>(high ? lanes / 2 + i : i));
  return b_.CreateShuffleVector(vector, order);
}

// extend and extmul: halves of vectors, their lanes made twice as wide.
void FunctionGenerator::emit_widening(Opcode op) {
  // The sub-opcodes of each group are low and high signed, then low and high unsigned.
  static constexpr Opcode kExtend[] = {Opcode::kI16x8ExtendLowI8x16S, Opcode::kI32x4ExtendLowI16x8S,
                                       Opcode::kI64x2ExtendLowI32x4S};
  static constexpr Opcode kMultiply[] = {Opcode::kI16x8ExtmulLowI8x16S, Opcode::kI32x4ExtmulLowI16x8S,
                                         Opcode::kI64x2ExtmulLowI32x4S};
  llvm::IntegerType* const lanes[] = {ir_.i8, ir_.i16, ir_.i32, ir_.i64};
  for (size_t i = 0; i < 3; ++i) {
    for (const Opcode first : {kExtend[i], kMultiply[i]}) {
      const uint32_t which = static_cast<uint32_t>(op) - static_cast<uint32_t>(first);
      if (which >= 4) continue;
      const auto half = [&] {
        Value* const part = half_of(pop_as(vector_of(lanes[i])), which % 2 == 1);
        llvm::Type* const wide = vector_of(lanes[i + 1]);
        return which < 2 ? b_.CreateSExt(part, wide) : b_.CreateZExt(part, wide);
      };
      Value* const b = half();
      return push_vector(first == kExtend[i] ? b : b_.CreateMul(half(), b));
    }
  }
}

void FunctionGenerator::emit_pairwise(Opcode op) {
  llvm::Type* const bytes = vector_of(ir_.i8);
  llvm::Type* const halves = vector_of(ir_.i16);
  llvm::Type* const words = vector_of(ir_.i32);
  switch (op) {
    // Products of unsigned with signed bytes, added in pairs.
    case Opcode::kI16x8ExtaddPairwiseI8x16S:
      return push_vector(b_.CreateIntrinsic(Intrinsic::x86_ssse3_pmadd_ub_sw_128, {},
                                            {llvm::ConstantInt::get(bytes, 1), pop_as(bytes)}));
    case Opcode::kI16x8ExtaddPairwiseI8x16U:
      return push_vector(b_.CreateIntrinsic(Intrinsic::x86_ssse3_pmadd_ub_sw_128, {},
                                            {pop_as(bytes), llvm::ConstantInt::get(bytes, 1)}));
    case Opcode::kI32x4ExtaddPairwiseI16x8S:
      return push_vector(b_.CreateIntrinsic(Intrinsic::x86_sse2_pmadd_wd, {},
                                            {pop_as(halves), llvm::ConstantInt::get(halves, 1)}));
    default: {
      Value* const pairs = pop_as(words);
      Value* const low = b_.CreateAnd(pairs, llvm::ConstantInt::get(words, 0xffff));
      return push_vector(b_.CreateAdd(low, b_.CreateLShr(pairs, llvm::ConstantInt::get(words, 16))));
    }
  }
}

// -1 times -1 is the only product that does not fit, and the only one that gives 0x8000.
void FunctionGenerator::emit_rounding_product() {
  llvm::Type* const type = vector_of(ir_.i16);
  Value* const b = pop_as(type);
  Value* const a = pop_as(type);
  Value* const product = b_.CreateIntrinsic(Intrinsic::x86_ssse3_pmul_hr_sw_128, {}, {a, b});
  Value* const wrong = b_.CreateICmpEQ(product, llvm::ConstantInt::get(type, 0x8000));
  push_vector(b_.CreateXor(product, b_.CreateSExt(wrong, type)));
}

void FunctionGenerator::emit_lane_tests(Opcode op) {
  llvm::IntegerType* lane = ir_.i8;
  if (op >= Opcode::kI64x2AllTrue)
    lane = ir_.i64;
  else if (op >= Opcode::kI32x4AllTrue)
    lane = ir_.i32;
  else if (op >= Opcode::kI16x8AllTrue)
    lane = ir_.i16;
  llvm::FixedVectorType* const type = vector_of(lane);
  Value* const vector = pop_as(type);
  llvm::Type* const bits = llvm::IntegerType::get(ir_.context, type->getNumElements());
  switch (op) {
    case Opcode::kI8x16AllTrue:
    case Opcode::kI16x8AllTrue:
    case Opcode::kI32x4AllTrue:
    case Opcode::kI64x2AllTrue: {
      Value* const zero_lanes = b_.CreateBitCast(b_.CreateICmpEQ(vector, zeros(type)), bits);
      return push_condition(b_.CreateIsNull(zero_lanes));
    }
    default: {
      Value* const negative = b_.CreateBitCast(b_.CreateICmpSLT(vector, zeros(type)), bits);
      return push(b_.CreateZExt(negative, ir_.i32));
    }
  }
}

}  // namespace hindsight::jit::optimizing
