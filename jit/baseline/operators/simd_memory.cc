// Loads and stores of vectors and of their lanes. Their operand is never part of an arithmetic instruction:
// linear memory promises no alignment.
#include "jit/baseline/function_compiler.h"
#include "jit/baseline/operators/vector_inst.h"

namespace hindsight::jit::baseline {

namespace Inst = x86::Inst;

void FunctionCompiler::simd_memory(const Instr& instr) {
  const uint32_t size = 1u << wasm::simd_access_log2(instr.opcode);
  if (instr.opcode == Opcode::kV128Store) {
    const Entry value = pop();
    const Entry index = pop();
    const RegId reg = use(value);
    const x86::Mem to = address(index, instr, size);
    trace_access(to);
    a_.movups(to, xmm(reg));
    return;
  }
  if (instr.opcode >= Opcode::kV128Load8Lane && instr.opcode <= Opcode::kV128Store64Lane)
    return simd_lane_access(instr, size);

  const Entry index = pop();
  const x86::Mem from = address(index, instr, size);
  trace_access(from);
  const RegId result_reg = alloc(true);
  const x86::Xmm result = xmm(result_reg);
  switch (instr.opcode) {
    case Opcode::kV128Load:
      a_.movups(result, from);
      break;
    case Opcode::kV128Load8x8S:
      a_.pmovsxbw(result, from);
      break;
    case Opcode::kV128Load8x8U:
      a_.pmovzxbw(result, from);
      break;
    case Opcode::kV128Load16x4S:
      a_.pmovsxwd(result, from);
      break;
    case Opcode::kV128Load16x4U:
      a_.pmovzxwd(result, from);
      break;
    case Opcode::kV128Load32x2S:
      a_.pmovsxdq(result, from);
      break;
    case Opcode::kV128Load32x2U:
      a_.pmovzxdq(result, from);
      break;
    case Opcode::kV128Load8Splat:
      if (features_.avx2) {
        a_.vpbroadcastb(result, from);
        break;
      }
      a_.pxor(result, result);  // do not wait for the old value
      a_.pinsrb(result, from, 0);
      a_.pxor(x86::xmm15, x86::xmm15);
      a_.pshufb(result, x86::xmm15);
      break;
    case Opcode::kV128Load16Splat:
      if (features_.avx2) {
        a_.vpbroadcastw(result, from);
        break;
      }
      a_.pxor(result, result);
      a_.pinsrw(result, from, 0);
      a_.pshuflw(result, result, 0);
      a_.pshufd(result, result, 0);
      break;
    case Opcode::kV128Load32Splat:
      if (features_.avx) {
        a_.vbroadcastss(result, from);
        break;
      }
      a_.movss(result, from);
      a_.shufps(result, result, 0);
      break;
    case Opcode::kV128Load64Splat:
      a_.movddup(result, from);
      break;
    case Opcode::kV128Load32Zero:
      a_.movss(result, from);
      break;
    default:
      a_.movsd(result, from);
      break;
  }
  push_reg(ValType::kV128, result_reg);
}

void FunctionCompiler::simd_lane_access(const Instr& instr, uint32_t size) {
  const Entry value = pop();
  const Entry index = pop();
  const auto lane = static_cast<int>(instr.index2);
  if (instr.opcode <= Opcode::kV128Load64Lane) {
    static constexpr VectorInst kInsert[] = {HINDSIGHT_VP(insrb), HINDSIGHT_VP(insrw), HINDSIGHT_VP(insrd),
                                             HINDSIGHT_VP(insrq)};
    const VectorInst insert = kInsert[wasm::simd_access_log2(instr.opcode)];
    const RegId old = features_.avx ? use(value) : own(value);
    const x86::Mem from = address(index, instr, size);
    trace_access(from);
    const RegId result = features_.avx ? result_like(value, true) : old;
    if (features_.avx)
      a_.emit(insert.avx, xmm(result), xmm(old), from, asmjit::imm(lane));
    else
      a_.emit(insert.sse, xmm(result), from, asmjit::imm(lane));
    return push_reg(ValType::kV128, result);
  }
  const x86::Xmm reg = xmm(use(value));
  const x86::Mem to = address(index, instr, size);
  trace_access(to);
  switch (size) {
    case 1:
      return (void)a_.pextrb(to, reg, lane);
    case 2:
      return (void)a_.pextrw(to, reg, lane);
    case 4:
      if (lane == 0) return (void)a_.movss(to, reg);
      return (void)a_.pextrd(to, reg, lane);
    default:
      if (lane == 0) return (void)a_.movsd(to, reg);
      return (void)a_.movhps(to, reg);
  }
}

}  // namespace hindsight::jit::baseline
