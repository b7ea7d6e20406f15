// Vectors: dispatch, the shapes that most operators share, and bitwise operators.
//
// A v128 lives in an xmm register or in a slot of 16 bytes. So slots and constants may be memory operands of
// SSE instructions, which want alignment. Linear memory is never one, except of moves. Where the processor
// has AVX, operators of two operands use its form with a destination of its own and leave both operands as
// they are.
#include "jit/baseline/function_compiler.h"
#include "jit/baseline/operators/vector_inst.h"

namespace hindsight::jit::baseline {

namespace Inst = x86::Inst;

void FunctionCompiler::simd(const Instr& instr) {
  const auto between = [op = instr.opcode](Opcode first, Opcode last) { return op >= first && op <= last; };
  if (wasm::find_opcode(static_cast<uint16_t>(instr.opcode))->imm == wasm::ImmKind::kMemArg ||
      between(Opcode::kV128Load8Lane, Opcode::kV128Store64Lane))
    return simd_memory(instr);
  if (between(Opcode::kV128Const, Opcode::kF64x2ReplaceLane)) return simd_lanes(instr);
  if (between(Opcode::kV128Not, Opcode::kV128AnyTrue)) return simd_bitwise(instr);
  if (between(Opcode::kF32x4Eq, Opcode::kF64x2Ge)) return simd_float_compare(instr);
  if (between(Opcode::kF32x4DemoteF64x2Zero, Opcode::kF64x2PromoteLowF32x4) ||
      between(Opcode::kI32x4TruncSatF32x4S, Opcode::kF64x2ConvertLowI32x4U) ||
      between(Opcode::kI32x4RelaxedTruncF32x4S, Opcode::kI32x4RelaxedTruncF64x2UZero))
    return simd_conversion(instr);
  if (between(Opcode::kI8x16RelaxedSwizzle, Opcode::kI32x4RelaxedDotI8x16I7x16AddS))
    return simd_relaxed(instr);
  if (between(Opcode::kF32x4Abs, Opcode::kF64x2Pmax) || between(Opcode::kF32x4Ceil, Opcode::kF32x4Nearest) ||
      between(Opcode::kF64x2Ceil, Opcode::kF64x2Floor) || instr.opcode == Opcode::kF64x2Trunc ||
      instr.opcode == Opcode::kF64x2Nearest)
    return simd_float(instr);
  simd_integer(instr);
}

asmjit::Operand FunctionCompiler::vector_operand(const Entry& entry) {
  if (entry.is_const()) return constant16(entry.bits, entry.high);
  if (entry.kind == Entry::Kind::kSlot) return place(entry, 16);
  return xmm(use(entry));
}

void FunctionCompiler::vector_op(VectorInst inst, const x86::Xmm& to, const x86::Xmm& a,
                                 const asmjit::Operand& b) {
  if (features_.avx) {
    a_.emit(inst.avx, to, a, b);
    return;
  }
  // Invariant: b is not `to`, unless a is as well.
  if (to.id() != a.id()) a_.movaps(to, a);
  a_.emit(inst.sse, to, b);
}

RegId FunctionCompiler::vector_binary(VectorInst inst, const Entry& a, const Entry& b) {
  const asmjit::Operand right = vector_operand(b);
  if (!features_.avx) {
    const RegId result = own(a);
    a_.emit(inst.sse, xmm(result), right);
    return result;
  }
  const RegId left = use(a);
  const RegId result = owned(a) ? a.reg : result_like(b, true);
  a_.emit(inst.avx, xmm(result), xmm(left), right);
  return result;
}

// With a second operand that is a register of nobody's, a constant in memory or an immediate.
RegId FunctionCompiler::vector_apply(VectorInst inst, const Entry& a, const asmjit::Operand& b) {
  const RegId source = features_.avx ? use(a) : own(a);
  const RegId result = features_.avx ? result_like(a, true) : source;
  vector_op(inst, xmm(result), xmm(source), b);
  return result;
}

void FunctionCompiler::vector_binary(VectorInst inst, bool commutative) {
  Entry b = pop();
  Entry a = pop();
  if (commutative && (a.is_const() || (!owned(a) && owned(b)))) std::swap(a, b);
  push_reg(ValType::kV128, vector_binary(inst, a, b));
}

// The operands the other way round: op(b, a).
void FunctionCompiler::vector_binary_swapped(VectorInst inst) {
  const Entry b = pop();
  const Entry a = pop();
  push_reg(ValType::kV128, vector_binary(inst, b, a));
}

// SSE instructions of one operand have a destination of their own anyway.
void FunctionCompiler::vector_unary(asmjit::InstId inst, std::optional<int> immediate) {
  const Entry a = pop();
  const asmjit::Operand from = vector_operand(a);
  const RegId result = result_like(a, true);
  if (immediate)
    a_.emit(inst, xmm(result), from, asmjit::imm(*immediate));
  else
    a_.emit(inst, xmm(result), from);
  push_reg(ValType::kV128, result);
}

x86::Mem FunctionCompiler::splat8(uint8_t byte) {
  return splat64(0x0101010101010101u * byte);
}
x86::Mem FunctionCompiler::splat16(uint16_t half) {
  return splat64(0x0001000100010001u * half);
}
x86::Mem FunctionCompiler::splat32(uint32_t word) {
  return splat64(uint64_t{word} << 32 | word);
}
x86::Mem FunctionCompiler::splat64(uint64_t bits) {
  return constant16(bits, bits);
}

// Turns every bit of `reg` round.
void FunctionCompiler::vector_not(const x86::Xmm& reg) {
  a_.pcmpeqd(x86::xmm15, x86::xmm15);
  a_.pxor(reg, x86::xmm15);
}

void FunctionCompiler::simd_bitwise(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kV128Not: {
      a_.pcmpeqd(x86::xmm15, x86::xmm15);
      return push_reg(ValType::kV128, vector_apply(HINDSIGHT_VP(xor), pop(), x86::xmm15));
    }
    case Opcode::kV128And:
      return vector_binary(HINDSIGHT_VP(and), true);
    case Opcode::kV128Andnot:  // a and not b; pandn inverts its first operand
      return vector_binary_swapped(HINDSIGHT_VP(andn));
    case Opcode::kV128Or:
      return vector_binary(HINDSIGHT_VP(or), true);
    case Opcode::kV128Xor:
      return vector_binary(HINDSIGHT_VP(xor), true);
    case Opcode::kV128Bitselect:
      return bitselect();
    default: {  // any_true
      const x86::Xmm value = xmm(use(pop()));
      Condition condition;
      condition.inst = Inst::kIdPtest;
      condition.a = condition.b = value;
      condition.cc = x86::CondCode::kNZ;
      return use_condition(condition);
    }
  }
}

// b where c has zeros, a where it has ones: ((a xor b) and c) xor b.
void FunctionCompiler::bitselect() {
  const Entry c = pop();
  const Entry b = pop();
  const Entry a = pop();
  const asmjit::Operand mask = vector_operand(c);
  const asmjit::Operand other = vector_operand(b);
  if (features_.avx) {
    const x86::Xmm first = xmm(use(a));
    const RegId result = result_like(a, true);
    a_.emit(Inst::kIdVpxor, xmm(result), first, other);
    a_.emit(Inst::kIdVpand, xmm(result), xmm(result), mask);
    a_.emit(Inst::kIdVpxor, xmm(result), xmm(result), other);
    return push_reg(ValType::kV128, result);
  }
  const RegId result = own(a);
  a_.emit(Inst::kIdPxor, xmm(result), other);
  a_.emit(Inst::kIdPand, xmm(result), mask);
  a_.emit(Inst::kIdPxor, xmm(result), other);
  push_reg(ValType::kV128, result);
}

}  // namespace hindsight::jit::baseline
