// Vectors of floating-point numbers, conversions, and the relaxed operators.
#include <llvm/IR/IntrinsicsX86.h>

#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::FCmpInst;
using llvm::Value;
using wasm::Opcode;
namespace Intrinsic = llvm::Intrinsic;

void FunctionGenerator::emit_simd_float(Opcode op) {
  const auto unary = [&](llvm::Type* lane, Intrinsic::ID id) {
    push_vector(b_.CreateUnaryIntrinsic(id, pop_as(vector_of(lane))));
  };
  const auto binary = [&](llvm::Type* lane, llvm::Instruction::BinaryOps instruction) {
    Value* const b = pop_as(vector_of(lane));
    Value* const a = pop_as(vector_of(lane));
    push_vector(b_.CreateBinOp(instruction, a, b));
  };
  const auto compare = [&](llvm::Type* lane, FCmpInst::Predicate predicate) {
    Value* const b = pop_as(vector_of(lane));
    Value* const a = pop_as(vector_of(lane));
    push_vector(
        b_.CreateSExt(b_.CreateFCmp(predicate, a, b), vector_of(lane == ir_.f32 ? ir_.i32 : ir_.i64)));
  };
  const auto extreme = [&](llvm::Type* lane, bool maximum) {
    Value* const b = pop_as(vector_of(lane));
    Value* const a = pop_as(vector_of(lane));
    push_vector(vector_minimum_or_maximum(a, b, maximum));
  };
  // b < a ? b : a, and a < b ? b : a.
  const auto pseudo = [&](llvm::Type* lane, bool maximum) {
    Value* const b = pop_as(vector_of(lane));
    Value* const a = pop_as(vector_of(lane));
    Value* const choose_b = maximum ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOLT(b, a);
    push_vector(b_.CreateSelect(choose_b, b, a));
  };
  switch (op) {
#define HINDSIGHT_SHAPE(lanes, lane)                                \
  case Opcode::k##lanes##Eq:                                        \
    return compare(ir_.lane, FCmpInst::FCMP_OEQ);                   \
  case Opcode::k##lanes##Ne:                                        \
    return compare(ir_.lane, FCmpInst::FCMP_UNE);                   \
  case Opcode::k##lanes##Lt:                                        \
    return compare(ir_.lane, FCmpInst::FCMP_OLT);                   \
  case Opcode::k##lanes##Gt:                                        \
    return compare(ir_.lane, FCmpInst::FCMP_OGT);                   \
  case Opcode::k##lanes##Le:                                        \
    return compare(ir_.lane, FCmpInst::FCMP_OLE);                   \
  case Opcode::k##lanes##Ge:                                        \
    return compare(ir_.lane, FCmpInst::FCMP_OGE);                   \
  case Opcode::k##lanes##Ceil:                                      \
    return unary(ir_.lane, Intrinsic::ceil);                        \
  case Opcode::k##lanes##Floor:                                     \
    return unary(ir_.lane, Intrinsic::floor);                       \
  case Opcode::k##lanes##Trunc:                                     \
    return unary(ir_.lane, Intrinsic::trunc);                       \
  case Opcode::k##lanes##Nearest:                                   \
    return unary(ir_.lane, Intrinsic::roundeven);                   \
  case Opcode::k##lanes##Abs:                                       \
    return unary(ir_.lane, Intrinsic::fabs);                        \
  case Opcode::k##lanes##Neg:                                       \
    return push_vector(b_.CreateFNeg(pop_as(vector_of(ir_.lane)))); \
  case Opcode::k##lanes##Sqrt:                                      \
    return unary(ir_.lane, Intrinsic::sqrt);                        \
  case Opcode::k##lanes##Add:                                       \
    return binary(ir_.lane, llvm::Instruction::FAdd);               \
  case Opcode::k##lanes##Sub:                                       \
    return binary(ir_.lane, llvm::Instruction::FSub);               \
  case Opcode::k##lanes##Mul:                                       \
    return binary(ir_.lane, llvm::Instruction::FMul);               \
  case Opcode::k##lanes##Div:                                       \
    return binary(ir_.lane, llvm::Instruction::FDiv);               \
  case Opcode::k##lanes##Min:                                       \
    return extreme(ir_.lane, false);                                \
  case Opcode::k##lanes##Max:                                       \
    return extreme(ir_.lane, true);                                 \
  case Opcode::k##lanes##Pmin:                                      \
    return pseudo(ir_.lane, false);                                 \
  case Opcode::k##lanes##Pmax:                                      \
    return pseudo(ir_.lane, true);
    HINDSIGHT_SHAPE(F32x4, f32)
    HINDSIGHT_SHAPE(F64x2, f64)
#undef HINDSIGHT_SHAPE
    default:
      return;
  }
}

// What minps does with its operands: one instruction.
Value* FunctionGenerator::chosen_if_less(Value* a, Value* b) {
  return b_.CreateSelect(b_.CreateFCmpOLT(a, b), a, b);
}

// The processor's minimum, taken both ways round. Lanes in which the operands are zeros of either sign get
// them in either order, and joining the bits gives the sign. Lanes with a NaN take the sum, which is a quiet
// one.
Value* FunctionGenerator::vector_minimum_or_maximum(Value* a, Value* b, bool maximum) {
  const auto choose = [&](Value* left, Value* right) {
    return maximum ? b_.CreateSelect(b_.CreateFCmpOGT(left, right), left, right)
                   : chosen_if_less(left, right);
  };
  Value* const one = b_.CreateBitCast(choose(a, b), ir_.v128);
  Value* const other = b_.CreateBitCast(choose(b, a), ir_.v128);
  Value* const joined =
      b_.CreateBitCast(maximum ? b_.CreateAnd(one, other) : b_.CreateOr(one, other), a->getType());
  return b_.CreateSelect(b_.CreateFCmpUNO(a, b), b_.CreateFAdd(a, b), joined);
}

void FunctionGenerator::emit_simd_conversion(Opcode op) {
  llvm::Type* const words = vector_of(ir_.i32);
  llvm::Type* const singles = vector_of(ir_.f32);
  llvm::Type* const doubles = vector_of(ir_.f64);
  const auto with_zeros_above = [&](Value* two) {
    return b_.CreateShuffleVector(two, zeros(two->getType()), {0, 1, 2, 3});
  };
  switch (op) {
    case Opcode::kF32x4DemoteF64x2Zero: {
      llvm::Type* const two = llvm::FixedVectorType::get(ir_.f32, 2);
      return push_vector(with_zeros_above(b_.CreateFPTrunc(pop_as(doubles), two)));
    }
    case Opcode::kF64x2PromoteLowF32x4:
      return push_vector(b_.CreateFPExt(half_of(pop_as(singles), false), doubles));
    case Opcode::kF32x4ConvertI32x4S:
      return push_vector(b_.CreateSIToFP(pop_as(words), singles));
    case Opcode::kF32x4ConvertI32x4U:
      return push_vector(b_.CreateUIToFP(pop_as(words), singles));
    case Opcode::kF64x2ConvertLowI32x4S:
      return push_vector(b_.CreateSIToFP(half_of(pop_as(words), false), doubles));
    case Opcode::kF64x2ConvertLowI32x4U:
      return push_vector(b_.CreateUIToFP(half_of(pop_as(words), false), doubles));
    case Opcode::kI32x4TruncSatF32x4S:
      return push_vector(saturated_words(pop_as(singles), true));
    case Opcode::kI32x4TruncSatF32x4U:
      return push_vector(saturated_words(pop_as(singles), false));
    case Opcode::kI32x4TruncSatF64x2SZero: {
      // A NaN becomes 0; what is too small becomes the least integer by itself.
      Value* const value = pop_as(doubles);
      Value* const known = b_.CreateSelect(b_.CreateFCmpORD(value, value), value, zeros(doubles));
      Value* const bounded = chosen_if_less(known, llvm::ConstantFP::get(doubles, 0x1p31 - 1));
      return push_vector(b_.CreateIntrinsic(Intrinsic::x86_sse2_cvttpd2dq, {}, {bounded}));
    }
    default: {
      // Added to 2^52, the integer stands in the low half. The comparison fails for NaNs.
      Value* const value = pop_as(doubles);
      Value* const positive = b_.CreateSelect(b_.CreateFCmpOGT(value, zeros(doubles)), value, zeros(doubles));
      Value* const bounded = chosen_if_less(positive, llvm::ConstantFP::get(doubles, 0x1p32 - 1));
      Value* const whole = b_.CreateUnaryIntrinsic(Intrinsic::trunc, bounded);
      Value* const sum = b_.CreateFAdd(whole, llvm::ConstantFP::get(doubles, 0x1p52));
      return push_vector(b_.CreateShuffleVector(b_.CreateBitCast(sum, words), zeros(words), {0, 2, 4, 6}));
    }
  }
}

// The processor gives the least integer for everything out of range.
Value* FunctionGenerator::saturated_words(Value* f32x4, bool is_signed) {
  llvm::Type* const singles = f32x4->getType();
  llvm::Type* const words = vector_of(ir_.i32);
  llvm::Constant* const bound = llvm::ConstantFP::get(singles, 0x1p31);
  const auto convert = [&](Value* value) {
    return b_.CreateIntrinsic(Intrinsic::x86_sse2_cvttps2dq, {}, {value});
  };
  // The least integer becomes the greatest where the value was too large.
  const auto convert_saturated = [&](Value* value) {
    return b_.CreateXor(convert(value), b_.CreateSExt(b_.CreateFCmpOGE(value, bound), words));
  };
  if (is_signed)
    return convert_saturated(b_.CreateSelect(b_.CreateFCmpORD(f32x4, f32x4), f32x4, zeros(singles)));
  // What is beyond 2^31 is converted as the difference to it, and added.
  Value* const positive = b_.CreateSelect(b_.CreateFCmpOGT(f32x4, zeros(singles)), f32x4, zeros(singles));
  Value* const rest = convert_saturated(b_.CreateFSub(positive, bound));
  return b_.CreateAdd(convert(positive), b_.CreateBinaryIntrinsic(Intrinsic::smax, rest, zeros(words)));
}

// The baseline tier makes the same choices (jit/baseline/README.md lists them).
void FunctionGenerator::emit_simd_relaxed(Opcode op) {
  llvm::Type* const bytes = vector_of(ir_.i8);
  llvm::Type* const halves = vector_of(ir_.i16);
  const auto minimum = [&](llvm::Type* lane, bool maximum) {
    Value* const b = pop_as(vector_of(lane));
    Value* const a = pop_as(vector_of(lane));
    push_vector(b_.CreateSelect(maximum ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOLT(b, a), b, a));
  };
  const auto byte_products = [&] {
    Value* const seven_bits = pop_as(bytes);
    Value* const signed_bytes = pop_as(bytes);
    return b_.CreateIntrinsic(Intrinsic::x86_ssse3_pmadd_ub_sw_128, {}, {seven_bits, signed_bytes});
  };
  switch (op) {
    case Opcode::kI8x16RelaxedSwizzle: {
      Value* const lanes = pop_as(bytes);
      Value* const vector = pop_as(bytes);
      return push_vector(b_.CreateIntrinsic(Intrinsic::x86_ssse3_pshuf_b_128, {}, {vector, lanes}));
    }
    case Opcode::kI32x4RelaxedTruncF32x4S:
      return emit_simd_conversion(Opcode::kI32x4TruncSatF32x4S);
    case Opcode::kI32x4RelaxedTruncF32x4U:
      return emit_simd_conversion(Opcode::kI32x4TruncSatF32x4U);
    case Opcode::kI32x4RelaxedTruncF64x2SZero:
      return emit_simd_conversion(Opcode::kI32x4TruncSatF64x2SZero);
    case Opcode::kI32x4RelaxedTruncF64x2UZero:
      return emit_simd_conversion(Opcode::kI32x4TruncSatF64x2UZero);
    case Opcode::kF32x4RelaxedMadd:
      return emit_multiply_add(ir_.f32, false);
    case Opcode::kF32x4RelaxedNmadd:
      return emit_multiply_add(ir_.f32, true);
    case Opcode::kF64x2RelaxedMadd:
      return emit_multiply_add(ir_.f64, false);
    case Opcode::kF64x2RelaxedNmadd:
      return emit_multiply_add(ir_.f64, true);
    case Opcode::kI8x16RelaxedLaneselect:
    case Opcode::kI16x8RelaxedLaneselect:
    case Opcode::kI32x4RelaxedLaneselect:
    case Opcode::kI64x2RelaxedLaneselect:
      return emit_bitselect();
    case Opcode::kF32x4RelaxedMin:
      return minimum(ir_.f32, false);
    case Opcode::kF32x4RelaxedMax:
      return minimum(ir_.f32, true);
    case Opcode::kF64x2RelaxedMin:
      return minimum(ir_.f64, false);
    case Opcode::kF64x2RelaxedMax:
      return minimum(ir_.f64, true);
    case Opcode::kI16x8RelaxedQ15mulrS: {
      Value* const b = pop_as(halves);
      Value* const a = pop_as(halves);
      return push_vector(b_.CreateIntrinsic(Intrinsic::x86_ssse3_pmul_hr_sw_128, {}, {a, b}));
    }
    case Opcode::kI16x8RelaxedDotI8x16I7x16S:
      return push_vector(byte_products());
    default: {
      Value* const sum = pop_as(vector_of(ir_.i32));
      Value* const pairs = b_.CreateIntrinsic(Intrinsic::x86_sse2_pmadd_wd, {},
                                              {byte_products(), llvm::ConstantInt::get(halves, 1)});
      return push_vector(b_.CreateAdd(pairs, sum));
    }
  }
}

void FunctionGenerator::emit_multiply_add(llvm::Type* lane, bool negated) {
  llvm::Type* const type = vector_of(lane);
  Value* const c = pop_as(type);
  Value* const b = pop_as(type);
  Value* const a = pop_as(type);
  // In commas, since fma4 is another feature.
  const bool fused = ("," + ir_.host.features + ",").find(",+fma,") != std::string::npos;
  if (fused) {
    Value* const factor = negated ? b_.CreateFNeg(a) : a;
    return push_vector(b_.CreateIntrinsic(Intrinsic::fma, {type}, {factor, b, c}));
  }
  Value* const product = b_.CreateFMul(a, b);
  push_vector(negated ? b_.CreateFSub(c, product) : b_.CreateFAdd(product, c));
}

}  // namespace hindsight::jit::optimizing
