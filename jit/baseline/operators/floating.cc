// Floating-point arithmetic and comparisons, with WebAssembly's rules for NaN and signed zero.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

using x86::CondCode;
namespace Inst = x86::Inst;

void FunctionCompiler::floating(const Instr& instr) {
  switch (instr.opcode) {
#define HINDSIGHT_BOTH(name, call) \
  case Opcode::kF32##name: {       \
    constexpr bool wide = false;   \
    return call;                   \
  }                                \
  case Opcode::kF64##name: {       \
    constexpr bool wide = true;    \
    return call;                   \
  }
    HINDSIGHT_BOTH(Eq, float_compare(instr, wide))
    HINDSIGHT_BOTH(Ne, float_compare(instr, wide))
    HINDSIGHT_BOTH(Lt, float_compare(instr, wide))
    HINDSIGHT_BOTH(Gt, float_compare(instr, wide))
    HINDSIGHT_BOTH(Le, float_compare(instr, wide))
    HINDSIGHT_BOTH(Ge, float_compare(instr, wide))
    HINDSIGHT_BOTH(Add, float_binary(wide ? Inst::kIdAddsd : Inst::kIdAddss, wide))
    HINDSIGHT_BOTH(Sub, float_binary(wide ? Inst::kIdSubsd : Inst::kIdSubss, wide))
    HINDSIGHT_BOTH(Mul, float_binary(wide ? Inst::kIdMulsd : Inst::kIdMulss, wide))
    HINDSIGHT_BOTH(Div, float_binary(wide ? Inst::kIdDivsd : Inst::kIdDivss, wide))
    HINDSIGHT_BOTH(Min, float_min_max(wide, false))
    HINDSIGHT_BOTH(Max, float_min_max(wide, true))
    // roundss modes; 8 suppresses the inexact flag.
    HINDSIGHT_BOTH(Nearest, float_round(wide, 8 | 0))
    HINDSIGHT_BOTH(Floor, float_round(wide, 8 | 1))
    HINDSIGHT_BOTH(Ceil, float_round(wide, 8 | 2))
    HINDSIGHT_BOTH(Trunc, float_round(wide, 8 | 3))
    HINDSIGHT_BOTH(Abs, float_bits(instr.opcode, wide))
    HINDSIGHT_BOTH(Neg, float_bits(instr.opcode, wide))
    HINDSIGHT_BOTH(Copysign, float_copysign(wide))
#undef HINDSIGHT_BOTH
    case Opcode::kF32Sqrt:
    case Opcode::kF64Sqrt: {
      const bool wide = instr.opcode == Opcode::kF64Sqrt;
      const Entry a = pop();
      const RegId source = use(a);
      const RegId result = result_like(a, true);
      a_.emit(wide ? Inst::kIdSqrtsd : Inst::kIdSqrtss, xmm(result), xmm(source));
      return push_reg(a.type, result);
    }
    default:
      return;
  }
}

void FunctionCompiler::float_binary(asmjit::InstId inst, bool wide) {
  const Entry b = pop();
  const Entry a = pop();
  const asmjit::Operand rhs = float_operand(b);
  const RegId result = own(a);
  a_.emit(inst, xmm(result), rhs);
  push_reg(wide ? ValType::kF64 : ValType::kF32, result);
}

void FunctionCompiler::float_compare(const Instr& instr, bool wide) {
  Entry b = pop();
  Entry a = pop();
  Condition condition;
  condition.inst = wide ? Inst::kIdUcomisd : Inst::kIdUcomiss;
  // Unordered sets CF, ZF and PF: "above" conditions are false then, as they must be. So less-than compares
  // the other way round.
  switch (instr.opcode) {
    case Opcode::kF32Lt:
    case Opcode::kF64Lt:
      std::swap(a, b);
      condition.cc = CondCode::kA;
      break;
    case Opcode::kF32Gt:
    case Opcode::kF64Gt:
      condition.cc = CondCode::kA;
      break;
    case Opcode::kF32Le:
    case Opcode::kF64Le:
      std::swap(a, b);
      condition.cc = CondCode::kAE;
      break;
    case Opcode::kF32Ge:
    case Opcode::kF64Ge:
      condition.cc = CondCode::kAE;
      break;
    case Opcode::kF32Eq:
    case Opcode::kF64Eq:
      condition.cc = CondCode::kE;
      condition.parity = Condition::Parity::kAndOrdered;
      break;
    default:
      condition.cc = CondCode::kNE;
      condition.parity = Condition::Parity::kOrUnordered;
      break;
  }
  condition.a = xmm(use(a));
  condition.b = float_operand(b);
  use_condition(condition);
}

// minss returns its second operand for NaNs and for zeros of either sign, so both cases go their own way.
void FunctionCompiler::float_min_max(bool wide, bool max) {
  const Entry b = pop();
  const Entry a = pop();
  const x86::Xmm right = xmm(use(b));
  const RegId result_reg = own(a);
  const x86::Xmm result = xmm(result_reg);
  const Label special = a_.new_label();
  const Label done = a_.new_label();
  a_.emit(wide ? Inst::kIdUcomisd : Inst::kIdUcomiss, result, right);
  a_.je(special);  // equal or unordered
  if (max)
    a_.emit(wide ? Inst::kIdMaxsd : Inst::kIdMaxss, result, right);
  else
    a_.emit(wide ? Inst::kIdMinsd : Inst::kIdMinss, result, right);
  a_.bind(done);
  out_of_line(special, [this, result, right, wide, max, done] {
    const Label nan = a_.new_label();
    a_.jp(nan);
    // Equal: the same bits, or zeros whose signs decide.
    a_.emit(max ? Inst::kIdAndps : Inst::kIdOrps, result, right);
    a_.jmp(done);
    a_.bind(nan);
    a_.emit(wide ? Inst::kIdAddsd : Inst::kIdAddss, result, right);
    a_.jmp(done);
  });
  push_reg(wide ? ValType::kF64 : ValType::kF32, result_reg);
}

void FunctionCompiler::float_round(bool wide, int mode) {
  const Entry a = pop();
  const RegId source = use(a);
  const RegId result = result_like(a, true);
  a_.emit(wide ? Inst::kIdRoundsd : Inst::kIdRoundss, xmm(result), xmm(source), asmjit::imm(mode));
  push_reg(a.type, result);
}

namespace {
constexpr uint64_t kSign32 = 0x80000000;
constexpr uint64_t kSign64 = 0x8000000000000000;
constexpr uint64_t kRest32 = 0x7fffffff;
constexpr uint64_t kRest64 = 0x7fffffffffffffff;
}  // namespace

void FunctionCompiler::float_bits(Opcode op, bool wide) {
  const Entry a = pop();
  const RegId result = own(a);
  if (op == Opcode::kF32Abs || op == Opcode::kF64Abs)
    a_.andps(xmm(result), constant16(wide ? kRest64 : kRest32, 0));
  else
    a_.xorps(xmm(result), constant16(wide ? kSign64 : kSign32, 0));
  push_reg(a.type, result);
}

void FunctionCompiler::float_copysign(bool wide) {
  const Entry b = pop();
  const Entry a = pop();
  const RegId sign = use(b);
  const RegId result = own(a);
  a_.movaps(x86::xmm15, xmm(sign));
  a_.andps(x86::xmm15, constant16(wide ? kSign64 : kSign32, 0));
  a_.andps(xmm(result), constant16(wide ? kRest64 : kRest32, 0));
  a_.orps(xmm(result), x86::xmm15);
  push_reg(a.type, result);
}

}  // namespace hindsight::jit::baseline
