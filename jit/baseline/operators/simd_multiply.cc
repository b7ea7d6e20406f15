// Vector operators that x86 has no single instruction for: products twice as wide, pairwise sums, rounding
// products, bit counts, absolute values of 64 bits. And the relaxed operators.
#include "jit/baseline/function_compiler.h"
#include "jit/baseline/operators/vector_inst.h"

namespace hindsight::jit::baseline {

namespace Inst = x86::Inst;

void FunctionCompiler::simd_multiply(Opcode op) {
  switch (op) {
    case Opcode::kI16x8ExtmulLowI8x16S:
      return multiply_bytes(Inst::kIdPmovsxbw, false);
    case Opcode::kI16x8ExtmulHighI8x16S:
      return multiply_bytes(Inst::kIdPmovsxbw, true);
    case Opcode::kI16x8ExtmulLowI8x16U:
      return multiply_bytes(Inst::kIdPmovzxbw, false);
    case Opcode::kI16x8ExtmulHighI8x16U:
      return multiply_bytes(Inst::kIdPmovzxbw, true);
    case Opcode::kI32x4ExtmulLowI16x8S:
      return multiply_halves(Inst::kIdPmulhw, Inst::kIdPunpcklwd);
    case Opcode::kI32x4ExtmulHighI16x8S:
      return multiply_halves(Inst::kIdPmulhw, Inst::kIdPunpckhwd);
    case Opcode::kI32x4ExtmulLowI16x8U:
      return multiply_halves(Inst::kIdPmulhuw, Inst::kIdPunpcklwd);
    case Opcode::kI32x4ExtmulHighI16x8U:
      return multiply_halves(Inst::kIdPmulhuw, Inst::kIdPunpckhwd);
    case Opcode::kI64x2ExtmulLowI32x4S:
      return multiply_words(Inst::kIdPmuldq, 0x50);
    case Opcode::kI64x2ExtmulHighI32x4S:
      return multiply_words(Inst::kIdPmuldq, 0xfa);
    case Opcode::kI64x2ExtmulLowI32x4U:
      return multiply_words(Inst::kIdPmuludq, 0x50);
    case Opcode::kI64x2ExtmulHighI32x4U:
      return multiply_words(Inst::kIdPmuludq, 0xfa);
    case Opcode::kI16x8ExtaddPairwiseI8x16S: {
      // Multiplies unsigned by signed bytes and adds pairs: the value is the signed operand here.
      const asmjit::Operand value = vector_operand(pop());
      const RegId result = alloc(true);
      a_.movaps(xmm(result), splat8(1));
      a_.emit(Inst::kIdPmaddubsw, xmm(result), value);
      return push_reg(ValType::kV128, result);
    }
    case Opcode::kI16x8ExtaddPairwiseI8x16U: {
      return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VP(maddubsw), pop(), splat8(1)));
    }
    case Opcode::kI32x4ExtaddPairwiseI16x8S: {
      return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VP(maddwd), pop(), splat16(1)));
    }
    case Opcode::kI32x4ExtaddPairwiseI16x8U: {
      // Each half less 2^15 is signed; two of them make the sum 2^16 too small.
      const RegId result = vector_apply(HINDSIGHT_VP(xor), pop(), splat16(0x8000));
      a_.pmaddwd(xmm(result), splat16(1));
      a_.paddd(xmm(result), splat32(0x10000));
      return push_reg(ValType::kV128, result);
    }
    case Opcode::kI16x8Q15mulrSatS: {
      // -1 times -1 is the only product that does not fit, and the only one that gives 0x8000.
      const Entry b = pop();
      const Entry a = pop();
      const RegId result = vector_binary(HINDSIGHT_VP(mulhrsw), a, b);
      a_.movaps(x86::xmm15, splat16(0x8000));
      a_.pcmpeqw(x86::xmm15, xmm(result));
      a_.pxor(xmm(result), x86::xmm15);
      return push_reg(ValType::kV128, result);
    }
    case Opcode::kI64x2Abs: {
      const RegId result = own(pop());
      a_.pshufd(x86::xmm15, xmm(result), 0xf5);
      a_.psrad(x86::xmm15, 31);
      a_.pxor(xmm(result), x86::xmm15);
      a_.psubq(xmm(result), x86::xmm15);
      return push_reg(ValType::kV128, result);
    }
    default:
      return byte_popcount();
  }
}

void FunctionCompiler::multiply_bytes(asmjit::InstId extend, bool high) {
  const Entry b = pop();
  const Entry a = pop();
  const RegId right = use(b);
  const RegId left = use(a);
  const RegId result = result_like(a, true);
  if (high) {
    a_.pshufd(x86::xmm15, xmm(right), 0xee);
    a_.pshufd(xmm(result), xmm(left), 0xee);
  }
  a_.emit(extend, x86::xmm15, high ? x86::xmm15 : xmm(right));
  a_.emit(extend, xmm(result), xmm(high ? result : left));
  a_.pmullw(xmm(result), x86::xmm15);
  push_reg(ValType::kV128, result);
}

// Low and high halves of the products, interleaved.
void FunctionCompiler::multiply_halves(asmjit::InstId multiply_high, asmjit::InstId interleave) {
  const Entry b = pop();
  const Entry a = pop();
  const asmjit::Operand right = vector_operand(b);
  const RegId result = own(a);
  a_.movaps(x86::xmm15, xmm(result));
  a_.emit(multiply_high, x86::xmm15, right);
  a_.emit(Inst::kIdPmullw, xmm(result), right);
  a_.emit(interleave, xmm(result), x86::xmm15);
  push_reg(ValType::kV128, result);
}

// `order` puts the two words where the multiplication reads them.
void FunctionCompiler::multiply_words(asmjit::InstId multiply, int order) {
  const Entry b = pop();
  const Entry a = pop();
  const asmjit::Operand right = vector_operand(b);
  const asmjit::Operand left = vector_operand(a);
  const RegId result = result_like(a, true);
  a_.emit(Inst::kIdPshufd, x86::xmm15, right, asmjit::imm(order));
  a_.emit(Inst::kIdPshufd, xmm(result), left, asmjit::imm(order));
  a_.emit(multiply, xmm(result), x86::xmm15);
  push_reg(ValType::kV128, result);
}

// A table of the bit counts of half bytes, looked up twice.
void FunctionCompiler::byte_popcount() {
  const RegId value = own(pop());
  const RegId result_reg = alloc(true);
  const x86::Xmm low = xmm(value), result = xmm(result_reg);
  const x86::Mem table = constant16(0x0302020102010100, 0x0403030203020201);
  const x86::Mem nibbles = splat8(0x0f);
  a_.movaps(x86::xmm15, low);
  a_.pand(low, nibbles);
  a_.psrlw(x86::xmm15, 4);
  a_.pand(x86::xmm15, nibbles);
  a_.movaps(result, table);
  a_.pshufb(result, low);
  a_.movaps(low, table);
  a_.pshufb(low, x86::xmm15);
  a_.paddb(result, low);
  push_reg(ValType::kV128, result_reg);
}

// Where the specification leaves a choice, each operator takes what the processor's shortest sequence gives.
// The optimizing tier makes the same choices (README.md lists them).
void FunctionCompiler::simd_relaxed(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kI8x16RelaxedSwizzle:
      return vector_binary(HINDSIGHT_VP(shufb), false);
    case Opcode::kF32x4RelaxedMadd:
      return multiply_add({Inst::kIdMulps, Inst::kIdVfmadd213ps}, Inst::kIdAddps);
    case Opcode::kF32x4RelaxedNmadd:
      return multiply_add({Inst::kIdMulps, Inst::kIdVfnmadd213ps}, Inst::kIdSubps);
    case Opcode::kF64x2RelaxedMadd:
      return multiply_add({Inst::kIdMulpd, Inst::kIdVfmadd213pd}, Inst::kIdAddpd);
    case Opcode::kF64x2RelaxedNmadd:
      return multiply_add({Inst::kIdMulpd, Inst::kIdVfnmadd213pd}, Inst::kIdSubpd);
    case Opcode::kI8x16RelaxedLaneselect:
    case Opcode::kI16x8RelaxedLaneselect:
    case Opcode::kI32x4RelaxedLaneselect:
    case Opcode::kI64x2RelaxedLaneselect:
      return bitselect();
    case Opcode::kF32x4RelaxedMin:
      return vector_binary_swapped(HINDSIGHT_VF(Minps, minps));
    case Opcode::kF32x4RelaxedMax:
      return vector_binary_swapped(HINDSIGHT_VF(Maxps, maxps));
    case Opcode::kF64x2RelaxedMin:
      return vector_binary_swapped(HINDSIGHT_VF(Minpd, minpd));
    case Opcode::kF64x2RelaxedMax:
      return vector_binary_swapped(HINDSIGHT_VF(Maxpd, maxpd));
    case Opcode::kI16x8RelaxedQ15mulrS:
      return vector_binary(HINDSIGHT_VP(mulhrsw), true);
    case Opcode::kI16x8RelaxedDotI8x16I7x16S:
      // pmaddubsw's first operand is the unsigned one: the seven bits.
      return vector_binary_swapped(HINDSIGHT_VP(maddubsw));
    default: {
      const Entry c = pop();
      const Entry b = pop();
      const Entry a = pop();
      const asmjit::Operand sum = vector_operand(c);
      const RegId result = vector_binary(HINDSIGHT_VP(maddubsw), b, a);
      a_.pmaddwd(xmm(result), splat16(1));
      a_.emit(Inst::kIdPaddd, xmm(result), sum);
      return push_reg(ValType::kV128, result);
    }
  }
}

// a * b + c or -(a * b) + c, rounded once where the processor has it; `join` is addps or subps.
void FunctionCompiler::multiply_add(VectorInst multiply, asmjit::InstId join) {
  const Entry c = pop();
  const Entry b = pop();
  const Entry a = pop();
  if (features_.fma) {
    const asmjit::Operand addend = vector_operand(c);
    const x86::Xmm right = xmm(use(b));
    const RegId result = own(a);
    a_.emit(multiply.avx, xmm(result), right, addend);
    return push_reg(ValType::kV128, result);
  }
  const asmjit::Operand right = vector_operand(b);
  const x86::Xmm left = xmm(use(a));
  a_.movaps(x86::xmm15, left);
  a_.emit(multiply.sse, x86::xmm15, right);
  const RegId result = own(c);
  a_.emit(join, xmm(result), x86::xmm15);
  push_reg(ValType::kV128, result);
}

}  // namespace hindsight::jit::baseline
