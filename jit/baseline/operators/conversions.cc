// Conversions between number types.
//
// Float to integer: the processor answers "integer indefinite" (only the top bit set) for everything that
// does not fit. So the fast path checks the result for that, and the exact question is asked out of line.
#include <bit>

#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

using x86::CondCode;
namespace Inst = x86::Inst;

void FunctionCompiler::conversion(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kI32WrapI64: {
      const Entry a = pop();
      const RegId source = use(a);
      const RegId result = result_like(a, false);
      a_.mov(gp(result, false), gp(source, false));  // I1
      return push_reg(ValType::kI32, result);
    }
    case Opcode::kI64ExtendI32S:
      return int_extend(ValType::kI64, 32);
    case Opcode::kI64ExtendI32U: {
      const Entry a = pop();
      return push_reg(ValType::kI64, own(a));  // I1: it is extended already
    }
    case Opcode::kI32ReinterpretF32:
    case Opcode::kI64ReinterpretF64: {
      const Entry a = pop();
      const bool wide = is_wide(a.type);
      const RegId result = alloc(false);
      if (a.kind == Entry::Kind::kSlot)
        a_.mov(gp(result, wide), place(a, wide ? 8 : 4));
      else if (wide)
        a_.movq(gp(result, true), xmm(use(a)));
      else
        a_.movd(gp(result, false), xmm(use(a)));
      return push_reg(wide ? ValType::kI64 : ValType::kI32, result);
    }
    case Opcode::kF32ReinterpretI32:
    case Opcode::kF64ReinterpretI64: {
      const Entry a = pop();
      const bool wide = is_wide(a.type);
      const RegId source = use(a);
      const RegId result = alloc(true);
      if (wide)
        a_.movq(xmm(result), gp(source, true));
      else
        a_.movd(xmm(result), gp(source, false));
      return push_reg(wide ? ValType::kF64 : ValType::kF32, result);
    }
    case Opcode::kF32DemoteF64:
    case Opcode::kF64PromoteF32: {
      const bool demote = instr.opcode == Opcode::kF32DemoteF64;
      const Entry a = pop();
      const RegId source = use(a);
      const RegId result = result_like(a, true);
      a_.emit(demote ? Inst::kIdCvtsd2ss : Inst::kIdCvtss2sd, xmm(result), xmm(source));
      return push_reg(demote ? ValType::kF32 : ValType::kF64, result);
    }
#define HINDSIGHT_TRUNCATE(to, from, to_wide, from_wide) \
  case Opcode::k##to##Trunc##from##S:                    \
    return truncate(from_wide, to_wide, true, false);    \
  case Opcode::k##to##Trunc##from##U:                    \
    return truncate(from_wide, to_wide, false, false);   \
  case Opcode::k##to##TruncSat##from##S:                 \
    return truncate(from_wide, to_wide, true, true);     \
  case Opcode::k##to##TruncSat##from##U:                 \
    return truncate(from_wide, to_wide, false, true);    \
  case Opcode::k##from##Convert##to##S:                  \
    return convert(to_wide, from_wide, true);            \
  case Opcode::k##from##Convert##to##U:                  \
    return convert(to_wide, from_wide, false);
      HINDSIGHT_TRUNCATE(I32, F32, false, false)
      HINDSIGHT_TRUNCATE(I32, F64, false, true)
      HINDSIGHT_TRUNCATE(I64, F32, true, false)
      HINDSIGHT_TRUNCATE(I64, F64, true, true)
#undef HINDSIGHT_TRUNCATE
    default:
      return;
  }
}

void FunctionCompiler::truncate(bool from_wide, bool to_wide, bool is_signed, bool saturate) {
  const asmjit::InstId to_int = from_wide ? Inst::kIdCvttsd2si : Inst::kIdCvttss2si;
  const asmjit::InstId compare = from_wide ? Inst::kIdUcomisd : Inst::kIdUcomiss;
  const auto number = [&](double value) {
    x86::Mem m = constant8(from_wide ? std::bit_cast<uint64_t>(value)
                                     : uint64_t{std::bit_cast<uint32_t>(static_cast<float>(value))});
    m.setSize(from_wide ? 8 : 4);
    return m;
  };
  const Entry a = pop();
  const x86::Xmm source = xmm(use(a));
  const RegId result_reg = alloc(false);
  const x86::Gp result = gp(result_reg, to_wide);
  const x86::Gp result64 = gp(result_reg, true);
  const Label odd = a_.new_label();
  const Label done = a_.new_label();

  if (is_signed) {
    a_.emit(to_int, result, source);
    a_.cmp(result, 1);
    a_.jo(odd);  // only for the indefinite value
  } else if (!to_wide) {
    a_.emit(to_int, result64, source);
    a_.mov(x86::r11, result64);
    a_.shr(x86::r11, 32);
    a_.jnz(odd);
  } else {
    const x86::Mem two63 = number(9223372036854775808.0);
    const Label large = a_.new_label();
    a_.emit(compare, source, two63);
    a_.jae(large);
    a_.emit(to_int, result64, source);
    a_.test(result64, result64);
    a_.js(odd);
    out_of_line(large, [this, source, two63, from_wide, to_int, result64, odd, done] {
      a_.movaps(x86::xmm15, source);
      a_.emit(from_wide ? Inst::kIdSubsd : Inst::kIdSubss, x86::xmm15, two63);
      a_.emit(to_int, result64, x86::xmm15);
      a_.test(result64, result64);
      a_.js(odd);
      a_.btc(result64, 63);
      a_.jmp(done);
    });
  }
  a_.bind(done);

  if (saturate) {
    out_of_line(odd, [this, source, compare, result, result64, to_wide, is_signed, done] {
      const Label nan_or_low = a_.new_label();
      a_.xorps(x86::xmm15, x86::xmm15);
      a_.emit(compare, source, x86::xmm15);
      if (is_signed) {
        const Label nan = a_.new_label();
        a_.jp(nan);
        a_.jb(done);  // the indefinite value is the least integer
        if (to_wide)
          a_.mov(result64, asmjit::imm(INT64_MAX));
        else
          a_.mov(result, INT32_MAX);
        a_.jmp(done);
        a_.bind(nan);
        a_.xor_(result.r32(), result.r32());
        a_.jmp(done);
        return;
      }
      a_.jbe(nan_or_low);  // unordered sets CF
      if (to_wide)
        a_.mov(result64, -1);
      else
        a_.mov(result.r32(), UINT32_MAX);
      a_.jmp(done);
      a_.bind(nan_or_low);
      a_.xor_(result.r32(), result.r32());
      a_.jmp(done);
    });
  } else {
    // The least value that fits, or the greatest below it that does not: double has numbers between -2^31 - 1
    // and -2^31 that truncate to -2^31.
    const bool open_bound = from_wide && !to_wide;
    const x86::Mem least = !is_signed   ? x86::Mem()
                           : open_bound ? number(-2147483649.0)
                           : to_wide    ? number(-9223372036854775808.0)
                                        : number(-2147483648.0);
    const Label invalid = a_.new_label();
    out_of_line(odd, [this, source, compare, is_signed, open_bound, least, invalid, done] {
      a_.emit(compare, source, source);
      a_.jp(invalid);
      if (is_signed) {
        const Label overflow = a_.new_label();
        a_.emit(compare, source, least);
        if (open_bound)
          a_.jbe(overflow);
        else
          a_.jb(overflow);
        a_.xorps(x86::xmm15, x86::xmm15);
        a_.emit(compare, source, x86::xmm15);
        a_.jb(done);
        a_.bind(overflow);
      }
      trap_here(TrapCode::kIntegerOverflow);
    });
    out_of_line(invalid, [this] { trap_here(TrapCode::kInvalidConversion); });
  }
  push_reg(to_wide ? ValType::kI64 : ValType::kI32, result_reg);
}

void FunctionCompiler::convert(bool from_wide, bool to_wide, bool is_signed) {
  const asmjit::InstId from_int = to_wide ? Inst::kIdCvtsi2sd : Inst::kIdCvtsi2ss;
  const Entry a = pop();
  const RegId source_reg = use(a);
  const RegId result_reg = alloc(true);
  const x86::Xmm result = xmm(result_reg);
  a_.xorps(result, result);  // the conversion keeps the upper part: do not wait for the old value
  if (is_signed || !from_wide) {
    // I1: an unsigned i32 is a nonnegative 64-bit integer.
    a_.emit(from_int, result, gp(source_reg, from_wide || !is_signed));
    return push_reg(to_wide ? ValType::kF64 : ValType::kF32, result_reg);
  }
  const x86::Gp source = gp(source_reg, true);
  const RegId other_reg = alloc(false);
  const Label large = a_.new_label();
  const Label done = a_.new_label();
  a_.test(source, source);
  a_.js(large);
  a_.emit(from_int, result, source);
  a_.bind(done);
  out_of_line(large, [this, source, result, from_int, to_wide, done, other = gp(other_reg, true)] {
    // Halve, with the lost bit kept sticky so that rounding is right, convert, double.
    a_.mov(x86::r11, source);
    a_.mov(other, source);
    a_.shr(x86::r11, 1);
    a_.and_(other.r32(), 1);
    a_.or_(x86::r11, other);
    a_.emit(from_int, result, x86::r11);
    a_.emit(to_wide ? Inst::kIdAddsd : Inst::kIdAddss, result, result);
    a_.jmp(done);
  });
  push_reg(to_wide ? ValType::kF64 : ValType::kF32, result_reg);
}

}  // namespace hindsight::jit::baseline
