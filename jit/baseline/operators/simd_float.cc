// Vectors of floating-point numbers: arithmetic, comparisons and conversions, with WebAssembly's rules for
// NaN and signed zero.
#include "jit/baseline/function_compiler.h"
#include "jit/baseline/operators/vector_inst.h"

namespace hindsight::jit::baseline {

namespace Inst = x86::Inst;

namespace {
// Predicates of cmpps.
constexpr int kEqual = 0, kLess = 1, kLessOrEqual = 2, kUnordered = 3, kNotEqual = 4;
// Modes of roundps; 8 suppresses the inexact flag.
constexpr int kNearest = 8 | 0, kFloor = 8 | 1, kCeil = 8 | 2, kTrunc = 8 | 3;

constexpr uint64_t kLaneSign32 = 0x8000000080000000;
constexpr uint64_t kLaneSign64 = 0x8000000000000000;
}  // namespace

void FunctionCompiler::simd_float(const Instr& instr) {
  switch (instr.opcode) {
#define HINDSIGHT_BINARY(op, sse, avx, commutative)                    \
  case Opcode::kF32x4##op:                                             \
    return vector_binary(HINDSIGHT_VF(sse##ps, avx##ps), commutative); \
  case Opcode::kF64x2##op:                                             \
    return vector_binary(HINDSIGHT_VF(sse##pd, avx##pd), commutative);
    // Commutative but for the payload of a NaN, which is not specified.
    HINDSIGHT_BINARY(Add, Add, add, true)
    HINDSIGHT_BINARY(Sub, Sub, sub, false)
    HINDSIGHT_BINARY(Mul, Mul, mul, true)
    HINDSIGHT_BINARY(Div, Div, div, false)
#undef HINDSIGHT_BINARY
    // b < a ? b : a, which is the instruction with its operands the other way round.
    case Opcode::kF32x4Pmin:
      return vector_binary_swapped(HINDSIGHT_VF(Minps, minps));
    case Opcode::kF64x2Pmin:
      return vector_binary_swapped(HINDSIGHT_VF(Minpd, minpd));
    case Opcode::kF32x4Pmax:
      return vector_binary_swapped(HINDSIGHT_VF(Maxps, maxps));
    case Opcode::kF64x2Pmax:
      return vector_binary_swapped(HINDSIGHT_VF(Maxpd, maxpd));
    case Opcode::kF32x4Min:
      return vector_min_max(false, false);
    case Opcode::kF32x4Max:
      return vector_min_max(false, true);
    case Opcode::kF64x2Min:
      return vector_min_max(true, false);
    case Opcode::kF64x2Max:
      return vector_min_max(true, true);
#define HINDSIGHT_ROUND(op, mode)                \
  case Opcode::kF32x4##op:                       \
    return vector_unary(Inst::kIdRoundps, mode); \
  case Opcode::kF64x2##op:                       \
    return vector_unary(Inst::kIdRoundpd, mode);
      HINDSIGHT_ROUND(Ceil, kCeil)
      HINDSIGHT_ROUND(Floor, kFloor)
      HINDSIGHT_ROUND(Trunc, kTrunc)
      HINDSIGHT_ROUND(Nearest, kNearest)
#undef HINDSIGHT_ROUND
    case Opcode::kF32x4Sqrt:
      return vector_unary(Inst::kIdSqrtps);
    case Opcode::kF64x2Sqrt:
      return vector_unary(Inst::kIdSqrtpd);
    case Opcode::kF32x4Abs:
      return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VF(Andps, andps), pop(), splat64(~kLaneSign32)));
    case Opcode::kF64x2Abs:
      return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VF(Andpd, andpd), pop(), splat64(~kLaneSign64)));
    case Opcode::kF32x4Neg:
      return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VF(Xorps, xorps), pop(), splat64(kLaneSign32)));
    default:
      return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VF(Xorpd, xorpd), pop(), splat64(kLaneSign64)));
  }
}

// minps gives its second operand where the comparison fails: for NaNs and for zeros of either sign. It is
// taken both ways round: or-ing the results joins the signs of zeros for the minimum, and-ing for the
// maximum. Lanes with a NaN take the sum instead, which is a quiet one.
void FunctionCompiler::vector_min_max(bool wide, bool max) {
  const Entry b = pop();
  const Entry a = pop();
  const VectorInst choose = wide ? (max ? HINDSIGHT_VF(Maxpd, maxpd) : HINDSIGHT_VF(Minpd, minpd))
                                 : (max ? HINDSIGHT_VF(Maxps, maxps) : HINDSIGHT_VF(Minps, minps));
  const VectorInst add = wide ? HINDSIGHT_VF(Addpd, addpd) : HINDSIGHT_VF(Addps, addps);
  const VectorInst compare = wide ? HINDSIGHT_VF(Cmppd, cmppd) : HINDSIGHT_VF(Cmpps, cmpps);
  const x86::Xmm left = xmm(use(a));
  const x86::Xmm right = xmm(use(b));
  const RegId result_reg = alloc(true);
  const x86::Xmm result = xmm(result_reg);
  const x86::Xmm unordered = xmm(alloc(true));
  const x86::Xmm scratch = x86::xmm15;
  vector_op(choose, result, left, right);
  vector_op(choose, scratch, right, left);
  a_.emit(max ? Inst::kIdAndps : Inst::kIdOrps, result, scratch);
  vector_op(add, scratch, left, right);
  if (features_.avx) {
    a_.emit(compare.avx, unordered, left, right, asmjit::imm(kUnordered));
    if (wide)
      a_.vblendvpd(result, result, scratch, unordered);
    else
      a_.vblendvps(result, result, scratch, unordered);
  } else {
    a_.movaps(unordered, left);
    a_.emit(compare.sse, unordered, right, asmjit::imm(kUnordered));
    a_.andps(scratch, unordered);
    a_.andnps(unordered, result);
    a_.movaps(result, unordered);
    a_.orps(result, scratch);
  }
  push_reg(ValType::kV128, result_reg);
}

void FunctionCompiler::simd_float_compare(const Instr& instr) {
  const bool wide = instr.opcode >= Opcode::kF64x2Eq;
  Entry b = pop();
  Entry a = pop();
  int predicate = kEqual;
  switch (instr.opcode) {
    case Opcode::kF32x4Ne:
    case Opcode::kF64x2Ne:
      predicate = kNotEqual;
      break;
    case Opcode::kF32x4Gt:
    case Opcode::kF64x2Gt:
      std::swap(a, b);
      predicate = kLess;
      break;
    case Opcode::kF32x4Lt:
    case Opcode::kF64x2Lt:
      predicate = kLess;
      break;
    case Opcode::kF32x4Ge:
    case Opcode::kF64x2Ge:
      std::swap(a, b);
      predicate = kLessOrEqual;
      break;
    case Opcode::kF32x4Le:
    case Opcode::kF64x2Le:
      predicate = kLessOrEqual;
      break;
    default:
      break;
  }
  const asmjit::Operand right = vector_operand(b);
  if (features_.avx) {
    const x86::Xmm left = xmm(use(a));
    const RegId result = result_like(a, true);
    a_.emit(wide ? Inst::kIdVcmppd : Inst::kIdVcmpps, xmm(result), left, right, asmjit::imm(predicate));
    return push_reg(ValType::kV128, result);
  }
  const RegId result = own(a);
  a_.emit(wide ? Inst::kIdCmppd : Inst::kIdCmpps, xmm(result), right, asmjit::imm(predicate));
  push_reg(ValType::kV128, result);
}

void FunctionCompiler::simd_conversion(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kF32x4DemoteF64x2Zero:
      return vector_unary(Inst::kIdCvtpd2ps);
    case Opcode::kF64x2PromoteLowF32x4: {
      const Entry a = pop();
      const RegId source = use(a);
      const RegId result = result_like(a, true);
      a_.cvtps2pd(xmm(result), xmm(source));
      return push_reg(ValType::kV128, result);
    }
    case Opcode::kF32x4ConvertI32x4S:
      return vector_unary(Inst::kIdCvtdq2ps);
    case Opcode::kF32x4ConvertI32x4U:
      return convert_unsigned_words();
    case Opcode::kF64x2ConvertLowI32x4S: {
      const Entry a = pop();
      const RegId source = use(a);
      const RegId result = result_like(a, true);
      a_.cvtdq2pd(xmm(result), xmm(source));
      return push_reg(ValType::kV128, result);
    }
    case Opcode::kF64x2ConvertLowI32x4U: {
      // The words become the low halves of numbers that begin at 2^52.
      const RegId result = own(pop());
      a_.unpcklps(xmm(result), splat32(0x43300000));
      a_.subpd(xmm(result), splat64(0x4330000000000000));
      return push_reg(ValType::kV128, result);
    }
    case Opcode::kI32x4RelaxedTruncF32x4S:
    case Opcode::kI32x4TruncSatF32x4S: {
      // NaN becomes 0; the least integer, where it stands for too large a number, its opposite.
      const RegId result_reg = own(pop());
      const x86::Xmm result = xmm(result_reg);
      a_.movaps(x86::xmm15, result);
      a_.cmpps(x86::xmm15, x86::xmm15, kEqual);
      a_.andps(result, x86::xmm15);
      a_.movaps(x86::xmm15, splat32(0x4f000000));  // 2^31
      a_.cmpps(x86::xmm15, result, kLessOrEqual);
      a_.cvttps2dq(result, result);
      a_.pxor(result, x86::xmm15);
      return push_reg(ValType::kV128, result_reg);
    }
    case Opcode::kI32x4TruncSatF32x4U:
    case Opcode::kI32x4RelaxedTruncF32x4U: {
      // What is beyond 2^31 is converted as the difference to it, and added.
      const RegId result_reg = own(pop());
      const x86::Xmm result = xmm(result_reg);
      const x86::Xmm rest = xmm(alloc(true));
      a_.xorps(x86::xmm15, x86::xmm15);
      a_.maxps(result, x86::xmm15);  // NaN and everything negative become 0
      a_.movaps(rest, result);
      a_.subps(rest, splat32(0x4f000000));
      a_.movaps(x86::xmm15, splat32(0x4f000000));
      a_.cmpps(x86::xmm15, rest, kLessOrEqual);
      a_.cvttps2dq(rest, rest);
      a_.pxor(rest, x86::xmm15);
      a_.pxor(x86::xmm15, x86::xmm15);
      a_.pmaxsd(rest, x86::xmm15);
      a_.cvttps2dq(result, result);
      a_.paddd(result, rest);
      return push_reg(ValType::kV128, result_reg);
    }
    case Opcode::kI32x4TruncSatF64x2SZero:
    case Opcode::kI32x4RelaxedTruncF64x2SZero: {
      // The bound is 0 for a NaN; minpd gives its second operand then.
      const RegId result_reg = own(pop());
      const x86::Xmm result = xmm(result_reg);
      a_.movaps(x86::xmm15, result);
      a_.cmppd(x86::xmm15, x86::xmm15, kEqual);
      a_.andpd(x86::xmm15, splat64(0x41dfffffffc00000));  // 2^31 - 1
      a_.minpd(result, x86::xmm15);
      a_.cvttpd2dq(result, result);
      return push_reg(ValType::kV128, result_reg);
    }
    default: {  // unsigned from f64x2
      // Added to 2^52, the integer stands in the low half.
      const RegId result_reg = own(pop());
      const x86::Xmm result = xmm(result_reg);
      a_.xorpd(x86::xmm15, x86::xmm15);
      a_.maxpd(result, x86::xmm15);
      a_.minpd(result, splat64(0x41efffffffe00000));  // 2^32 - 1
      a_.roundpd(result, result, kTrunc);
      a_.addpd(result, splat64(0x4330000000000000));
      a_.shufps(result, x86::xmm15, 0x88);
      return push_reg(ValType::kV128, result_reg);
    }
  }
}

// The halves of each word become the low bits of numbers that begin at 2^23 and 2^39, so that only the last
// sum is rounded.
void FunctionCompiler::convert_unsigned_words() {
  const RegId low_reg = own(pop());
  const x86::Xmm low = xmm(low_reg);
  const x86::Xmm high = x86::xmm15;
  a_.movaps(high, low);
  a_.psrld(high, 16);
  a_.pblendw(low, splat32(0x4b000000), 0xaa);
  a_.pblendw(high, splat32(0x53000000), 0xaa);
  a_.subps(high, splat32(0x53000080));
  a_.addps(low, high);
  push_reg(ValType::kV128, low_reg);
}

}  // namespace hindsight::jit::baseline
