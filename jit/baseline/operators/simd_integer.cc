// Vectors of integers: arithmetic, comparisons, shifts, narrowing and widening.
#include "jit/baseline/function_compiler.h"
#include "jit/baseline/operators/vector_inst.h"

namespace hindsight::jit::baseline {

using x86::CondCode;
namespace Inst = x86::Inst;

void FunctionCompiler::simd_integer(const Instr& instr) {
  switch (instr.opcode) {
#define HINDSIGHT_BINARY(op, inst, commutative) \
  case Opcode::k##op:                           \
    return vector_binary(HINDSIGHT_VP(inst), commutative);
    HINDSIGHT_BINARY(I8x16Add, addb, true)
    HINDSIGHT_BINARY(I8x16AddSatS, addsb, true)
    HINDSIGHT_BINARY(I8x16AddSatU, addusb, true)
    HINDSIGHT_BINARY(I8x16Sub, subb, false)
    HINDSIGHT_BINARY(I8x16SubSatS, subsb, false)
    HINDSIGHT_BINARY(I8x16SubSatU, subusb, false)
    HINDSIGHT_BINARY(I8x16MinS, minsb, true)
    HINDSIGHT_BINARY(I8x16MinU, minub, true)
    HINDSIGHT_BINARY(I8x16MaxS, maxsb, true)
    HINDSIGHT_BINARY(I8x16MaxU, maxub, true)
    HINDSIGHT_BINARY(I8x16AvgrU, avgb, true)
    HINDSIGHT_BINARY(I8x16Eq, cmpeqb, true)
    HINDSIGHT_BINARY(I8x16GtS, cmpgtb, false)
    HINDSIGHT_BINARY(I8x16NarrowI16x8S, acksswb, false)
    HINDSIGHT_BINARY(I8x16NarrowI16x8U, ackuswb, false)
    HINDSIGHT_BINARY(I16x8Add, addw, true)
    HINDSIGHT_BINARY(I16x8AddSatS, addsw, true)
    HINDSIGHT_BINARY(I16x8AddSatU, addusw, true)
    HINDSIGHT_BINARY(I16x8Sub, subw, false)
    HINDSIGHT_BINARY(I16x8SubSatS, subsw, false)
    HINDSIGHT_BINARY(I16x8SubSatU, subusw, false)
    HINDSIGHT_BINARY(I16x8Mul, mullw, true)
    HINDSIGHT_BINARY(I16x8MinS, minsw, true)
    HINDSIGHT_BINARY(I16x8MinU, minuw, true)
    HINDSIGHT_BINARY(I16x8MaxS, maxsw, true)
    HINDSIGHT_BINARY(I16x8MaxU, maxuw, true)
    HINDSIGHT_BINARY(I16x8AvgrU, avgw, true)
    HINDSIGHT_BINARY(I16x8Eq, cmpeqw, true)
    HINDSIGHT_BINARY(I16x8GtS, cmpgtw, false)
    HINDSIGHT_BINARY(I16x8NarrowI32x4S, ackssdw, false)
    HINDSIGHT_BINARY(I16x8NarrowI32x4U, ackusdw, false)
    HINDSIGHT_BINARY(I32x4Add, addd, true)
    HINDSIGHT_BINARY(I32x4Sub, subd, false)
    HINDSIGHT_BINARY(I32x4Mul, mulld, true)
    HINDSIGHT_BINARY(I32x4MinS, minsd, true)
    HINDSIGHT_BINARY(I32x4MinU, minud, true)
    HINDSIGHT_BINARY(I32x4MaxS, maxsd, true)
    HINDSIGHT_BINARY(I32x4MaxU, maxud, true)
    HINDSIGHT_BINARY(I32x4Eq, cmpeqd, true)
    HINDSIGHT_BINARY(I32x4GtS, cmpgtd, false)
    HINDSIGHT_BINARY(I32x4DotI16x8S, maddwd, true)
    HINDSIGHT_BINARY(I64x2Add, addq, true)
    HINDSIGHT_BINARY(I64x2Sub, subq, false)
    HINDSIGHT_BINARY(I64x2Eq, cmpeqq, true)
#undef HINDSIGHT_BINARY
    case Opcode::kI8x16LtS:
      return vector_binary_swapped(HINDSIGHT_VP(cmpgtb));
    case Opcode::kI16x8LtS:
      return vector_binary_swapped(HINDSIGHT_VP(cmpgtw));
    case Opcode::kI32x4LtS:
      return vector_binary_swapped(HINDSIGHT_VP(cmpgtd));
    case Opcode::kI8x16Ne:
      return vector_not_equal(HINDSIGHT_VP(cmpeqb));
    case Opcode::kI16x8Ne:
      return vector_not_equal(HINDSIGHT_VP(cmpeqw));
    case Opcode::kI32x4Ne:
      return vector_not_equal(HINDSIGHT_VP(cmpeqd));
    case Opcode::kI64x2Ne:
      return vector_not_equal(HINDSIGHT_VP(cmpeqq));
      // a <= b where the lesser of both is a, a >= b where the greater is a; the strict ones are their
      // opposites.
#define HINDSIGHT_ORDER(lanes, piece, signedness, letter)                                     \
  case Opcode::k##lanes##Le##signedness:                                                      \
    return vector_order(HINDSIGHT_VP(min##letter##piece), HINDSIGHT_VP(cmpeq##piece), false); \
  case Opcode::k##lanes##Ge##signedness:                                                      \
    return vector_order(HINDSIGHT_VP(max##letter##piece), HINDSIGHT_VP(cmpeq##piece), false);
#define HINDSIGHT_STRICT_ORDER(lanes, piece)                                          \
  case Opcode::k##lanes##GtU:                                                         \
    return vector_order(HINDSIGHT_VP(minu##piece), HINDSIGHT_VP(cmpeq##piece), true); \
  case Opcode::k##lanes##LtU:                                                         \
    return vector_order(HINDSIGHT_VP(maxu##piece), HINDSIGHT_VP(cmpeq##piece), true);
      HINDSIGHT_ORDER(I8x16, b, S, s)
      HINDSIGHT_ORDER(I8x16, b, U, u)
      HINDSIGHT_STRICT_ORDER(I8x16, b)
      HINDSIGHT_ORDER(I16x8, w, S, s)
      HINDSIGHT_ORDER(I16x8, w, U, u)
      HINDSIGHT_STRICT_ORDER(I16x8, w)
      HINDSIGHT_ORDER(I32x4, d, S, s)
      HINDSIGHT_ORDER(I32x4, d, U, u)
      HINDSIGHT_STRICT_ORDER(I32x4, d)
#undef HINDSIGHT_STRICT_ORDER
#undef HINDSIGHT_ORDER
    case Opcode::kI64x2GtS:
    case Opcode::kI64x2LtS:
    case Opcode::kI64x2LeS:
    case Opcode::kI64x2GeS:
      return long_compare(instr.opcode);
    case Opcode::kI8x16Abs:
      return vector_unary(Inst::kIdPabsb);
    case Opcode::kI16x8Abs:
      return vector_unary(Inst::kIdPabsw);
    case Opcode::kI32x4Abs:
      return vector_unary(Inst::kIdPabsd);
    case Opcode::kI8x16Neg:
      return vector_negate(Inst::kIdPsubb);
    case Opcode::kI16x8Neg:
      return vector_negate(Inst::kIdPsubw);
    case Opcode::kI32x4Neg:
      return vector_negate(Inst::kIdPsubd);
    case Opcode::kI64x2Neg:
      return vector_negate(Inst::kIdPsubq);
    case Opcode::kI16x8ExtendLowI8x16S:
      return vector_extend(Inst::kIdPmovsxbw, false);
    case Opcode::kI16x8ExtendHighI8x16S:
      return vector_extend(Inst::kIdPmovsxbw, true);
    case Opcode::kI16x8ExtendLowI8x16U:
      return vector_extend(Inst::kIdPmovzxbw, false);
    case Opcode::kI16x8ExtendHighI8x16U:
      return vector_extend(Inst::kIdPmovzxbw, true);
    case Opcode::kI32x4ExtendLowI16x8S:
      return vector_extend(Inst::kIdPmovsxwd, false);
    case Opcode::kI32x4ExtendHighI16x8S:
      return vector_extend(Inst::kIdPmovsxwd, true);
    case Opcode::kI32x4ExtendLowI16x8U:
      return vector_extend(Inst::kIdPmovzxwd, false);
    case Opcode::kI32x4ExtendHighI16x8U:
      return vector_extend(Inst::kIdPmovzxwd, true);
    case Opcode::kI64x2ExtendLowI32x4S:
      return vector_extend(Inst::kIdPmovsxdq, false);
    case Opcode::kI64x2ExtendHighI32x4S:
      return vector_extend(Inst::kIdPmovsxdq, true);
    case Opcode::kI64x2ExtendLowI32x4U:
      return vector_extend(Inst::kIdPmovzxdq, false);
    case Opcode::kI64x2ExtendHighI32x4U:
      return vector_extend(Inst::kIdPmovzxdq, true);
    case Opcode::kI8x16AllTrue:
      return all_true(Inst::kIdPcmpeqb);
    case Opcode::kI16x8AllTrue:
      return all_true(Inst::kIdPcmpeqw);
    case Opcode::kI32x4AllTrue:
      return all_true(Inst::kIdPcmpeqd);
    case Opcode::kI64x2AllTrue:
      return all_true(Inst::kIdPcmpeqq);
    case Opcode::kI8x16Bitmask:
    case Opcode::kI16x8Bitmask:
    case Opcode::kI32x4Bitmask:
    case Opcode::kI64x2Bitmask:
      return bitmask(instr.opcode);
    case Opcode::kI8x16Shl:
    case Opcode::kI8x16ShrS:
    case Opcode::kI8x16ShrU:
      return byte_shift(instr.opcode);
    case Opcode::kI16x8Shl:
      return vector_shift(HINDSIGHT_VP(sllw), 15);
    case Opcode::kI16x8ShrS:
      return vector_shift(HINDSIGHT_VP(sraw), 15);
    case Opcode::kI16x8ShrU:
      return vector_shift(HINDSIGHT_VP(srlw), 15);
    case Opcode::kI32x4Shl:
      return vector_shift(HINDSIGHT_VP(slld), 31);
    case Opcode::kI32x4ShrS:
      return vector_shift(HINDSIGHT_VP(srad), 31);
    case Opcode::kI32x4ShrU:
      return vector_shift(HINDSIGHT_VP(srld), 31);
    case Opcode::kI64x2Shl:
      return vector_shift(HINDSIGHT_VP(sllq), 63);
    case Opcode::kI64x2ShrS:
      return long_shift_signed();
    case Opcode::kI64x2ShrU:
      return vector_shift(HINDSIGHT_VP(srlq), 63);
    case Opcode::kI64x2Mul:
      return long_multiply();
    default:
      return simd_multiply(instr.opcode);
  }
}

void FunctionCompiler::vector_not_equal(VectorInst equal) {
  const Entry b = pop();
  const Entry a = pop();
  const RegId result = vector_binary(equal, a, b);
  vector_not(xmm(result));
  push_reg(ValType::kV128, result);
}

void FunctionCompiler::vector_order(VectorInst choose, VectorInst equal, bool opposite) {
  const Entry b = pop();
  const Entry a = pop();
  const RegId left = use(a);
  vector_op(choose, x86::xmm15, xmm(left), vector_operand(b));
  const RegId result = result_like(a, true);
  if (result != left && !features_.avx) a_.movaps(xmm(result), xmm(left));
  if (features_.avx)
    a_.emit(equal.avx, xmm(result), xmm(left), x86::xmm15);
  else
    a_.emit(equal.sse, xmm(result), x86::xmm15);
  if (opposite) vector_not(xmm(result));
  push_reg(ValType::kV128, result);
}

// Comparing 64 bits is SSE4.2's.
void FunctionCompiler::long_compare(Opcode op) {
  Entry b = pop();
  Entry a = pop();
  const bool opposite = op == Opcode::kI64x2LeS || op == Opcode::kI64x2GeS;
  if (op == Opcode::kI64x2LtS || op == Opcode::kI64x2GeS) std::swap(a, b);
  RegId result;
  if (features_.sse42) {
    result = vector_binary(HINDSIGHT_VP(cmpgtq), a, b);
  } else {
    // Where the upper halves are equal, the upper half of b - a is all ones if a is the greater one.
    const x86::Xmm left = xmm(use(a));
    const x86::Xmm right = xmm(use(b));
    result = alloc(true);
    a_.movaps(x86::xmm15, left);
    a_.pcmpeqd(x86::xmm15, right);
    a_.movaps(xmm(result), right);
    a_.psubq(xmm(result), left);
    a_.pand(x86::xmm15, xmm(result));
    a_.movaps(xmm(result), left);
    a_.pcmpgtd(xmm(result), right);
    a_.por(xmm(result), x86::xmm15);
    a_.pshufd(xmm(result), xmm(result), 0xf5);
  }
  if (opposite) vector_not(xmm(result));
  push_reg(ValType::kV128, result);
}

void FunctionCompiler::vector_negate(asmjit::InstId subtract) {
  const asmjit::Operand value = vector_operand(pop());
  const RegId result = alloc(true);
  a_.pxor(xmm(result), xmm(result));
  a_.emit(subtract, xmm(result), value);
  push_reg(ValType::kV128, result);
}

void FunctionCompiler::vector_extend(asmjit::InstId extend, bool high) {
  const Entry a = pop();
  const RegId source = use(a);
  const RegId result = result_like(a, true);
  if (high) a_.pshufd(xmm(result), xmm(source), 0xee);
  a_.emit(extend, xmm(result), xmm(high ? result : source));
  push_reg(ValType::kV128, result);
}

void FunctionCompiler::all_true(asmjit::InstId equal) {
  const asmjit::Operand value = vector_operand(pop());
  const RegId zeros = alloc(true);
  a_.pxor(xmm(zeros), xmm(zeros));
  a_.emit(equal, xmm(zeros), value);
  Condition condition;
  condition.inst = Inst::kIdPtest;
  condition.a = condition.b = xmm(zeros);
  condition.cc = CondCode::kZ;
  use_condition(condition);
}

void FunctionCompiler::bitmask(Opcode op) {
  const x86::Xmm value = xmm(use(pop()));
  const RegId result_reg = alloc(false);
  const x86::Gp result = gp(result_reg, false);
  switch (op) {
    case Opcode::kI8x16Bitmask:
      a_.pmovmskb(result, value);
      break;
    case Opcode::kI16x8Bitmask:
      a_.movaps(x86::xmm15, value);
      a_.packsswb(x86::xmm15, x86::xmm15);  // keeps signs
      a_.pmovmskb(result, x86::xmm15);
      a_.movzx(result, result.r8());
      break;
    case Opcode::kI32x4Bitmask:
      a_.movmskps(result, value);
      break;
    default:
      a_.movmskpd(result, value);
      break;
  }
  push_reg(ValType::kI32, result_reg);
}

// Counts are taken modulo the width of a lane: `mask` is that width minus one.
void FunctionCompiler::vector_shift(VectorInst inst, uint32_t mask) {
  const Entry count = pop();
  const Entry a = pop();
  asmjit::Operand by = x86::xmm15;
  if (count.is_const())
    by = asmjit::imm(static_cast<uint32_t>(count.bits) & mask);
  else
    load_shift_count(count, mask, 0);
  push_reg(ValType::kV128, vector_apply(inst, a, by));
}

// Into xmm15. `add` does not leave the range that the processor shifts by.
void FunctionCompiler::load_shift_count(const Entry& count, uint32_t mask, int32_t add) {
  a_.mov(x86::r11d, gp(use(count), false));
  a_.and_(x86::r11d, mask);
  if (add != 0) a_.add(x86::r11d, add);
  a_.movd(x86::xmm15, x86::r11d);
}

// There is no shift of bytes. To the left and of unsigned ones: of halves, without the bits that crossed. Of
// signed ones: each byte in the upper part of a half of its own.
void FunctionCompiler::byte_shift(Opcode op) {
  const Entry count = pop();
  const Entry a = pop();
  const bool left = op == Opcode::kI8x16Shl;
  if (op == Opcode::kI8x16ShrS) {
    const bool known = count.is_const();
    const auto by = (static_cast<uint32_t>(count.bits) & 7) + 8;
    if (!known) load_shift_count(count, 7, 8);
    const RegId source = use(a);
    const RegId high = alloc(true);
    const RegId result = result_like(a, true);
    a_.movaps(xmm(high), xmm(source));
    a_.punpckhbw(xmm(high), xmm(high));
    if (result != source) a_.movaps(xmm(result), xmm(source));
    a_.punpcklbw(xmm(result), xmm(result));
    for (const RegId reg : {high, result}) {
      if (known)
        a_.psraw(xmm(reg), by);
      else
        a_.psraw(xmm(reg), x86::xmm15);
    }
    a_.packsswb(xmm(result), xmm(high));
    return push_reg(ValType::kV128, result);
  }
  const VectorInst shift = left ? HINDSIGHT_VP(sllw) : HINDSIGHT_VP(srlw);
  if (count.is_const()) {
    const auto by = static_cast<uint32_t>(count.bits) & 7;
    if (by == 0) return push_reg(ValType::kV128, own(a));
    const RegId result = vector_apply(shift, a, asmjit::imm(by));
    a_.pand(xmm(result), splat8(static_cast<uint8_t>(left ? 0xff << by : 0xff >> by)));
    return push_reg(ValType::kV128, result);
  }
  load_shift_count(count, 7, 0);
  const RegId result = vector_apply(shift, a, x86::xmm15);
  const x86::Xmm mask = xmm(alloc(true));
  a_.pcmpeqd(mask, mask);
  a_.emit(shift.sse, mask, x86::xmm15);
  if (!left) a_.psrlw(mask, 8);
  a_.pxor(x86::xmm15, x86::xmm15);
  a_.pshufb(mask, x86::xmm15);  // its first byte everywhere
  a_.pand(xmm(result), mask);
  push_reg(ValType::kV128, result);
}

// The sign bit, shifted as the value is, is subtracted after it was turned round: that extends it.
void FunctionCompiler::long_shift_signed() {
  const Entry count = pop();
  const Entry a = pop();
  constexpr uint64_t kSign = uint64_t{1} << 63;
  if (count.is_const()) {
    const auto by = static_cast<uint32_t>(count.bits) & 63;
    const RegId result = own(a);
    if (by != 0) {
      const x86::Mem sign = splat64(kSign >> by);
      a_.psrlq(xmm(result), by);
      a_.pxor(xmm(result), sign);
      a_.psubq(xmm(result), sign);
    }
    return push_reg(ValType::kV128, result);
  }
  load_shift_count(count, 63, 0);
  const RegId result = own(a);
  const x86::Xmm sign = xmm(alloc(true));
  a_.movaps(sign, splat64(kSign));
  a_.psrlq(sign, x86::xmm15);
  a_.psrlq(xmm(result), x86::xmm15);
  a_.pxor(xmm(result), sign);
  a_.psubq(xmm(result), sign);
  push_reg(ValType::kV128, result);
}

// Low halves' product, plus both products across, of which the upper halves fall out.
void FunctionCompiler::long_multiply() {
  const Entry b = pop();
  const Entry a = pop();
  const x86::Xmm right = xmm(use(b));
  const RegId result = own(a);
  const x86::Xmm left = xmm(result);
  const x86::Xmm across = xmm(alloc(true));
  a_.movaps(across, left);
  a_.psrlq(across, 32);
  a_.pmuludq(across, right);
  a_.movaps(x86::xmm15, right);
  a_.psrlq(x86::xmm15, 32);
  a_.pmuludq(x86::xmm15, left);
  a_.paddq(across, x86::xmm15);
  a_.psllq(across, 32);
  a_.pmuludq(left, right);
  a_.paddq(left, across);
  push_reg(ValType::kV128, result);
}

}  // namespace hindsight::jit::baseline
