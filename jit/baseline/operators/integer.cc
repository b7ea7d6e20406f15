// Integer arithmetic, comparisons and bit counting.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

using x86::CondCode;
namespace Inst = x86::Inst;

void FunctionCompiler::int_alu(uint32_t number, bool wide, bool commutative) {
  Entry b = pop();
  Entry a = pop();
  if (commutative && (a.is_const() || (!owned(a) && owned(b)))) std::swap(a, b);
  const ValType type = wide ? ValType::kI64 : ValType::kI32;
  const asmjit::Operand rhs = int_operand(b, wide);
  const bool adds = number == kAluAdd || (number == kAluSub && rhs.isImm());
  if (adds && !owned(a) && a.kind == Entry::Kind::kLocal && !rhs.isMem()) {
    // A three-operand add: the local's register stays a cache.
    const RegId left = use(a);
    const RegId result = alloc(false);
    if (rhs.isImm()) {
      int64_t value = rhs.as<asmjit::Imm>().value();
      if (number == kAluSub) value = -value;
      // -(-2^31) is no 32-bit displacement; modulo 2^32 it is -2^31 again.
      if (!wide || value == static_cast<int32_t>(value)) {
        a_.lea(gp(result, wide), x86::ptr(x86::gpq(left), static_cast<int32_t>(value)));
        return push_reg(type, result);
      }
    } else {
      a_.lea(gp(result, wide), x86::ptr(x86::gpq(left), x86::gpq(rhs.as<x86::Gp>().id())));
      return push_reg(type, result);
    }
    release(result);
  }
  const RegId result = own(a);
  a_.alu(number, wide, result, rhs);
  push_reg(type, result);
}

void FunctionCompiler::int_mul(bool wide) {
  Entry b = pop();
  Entry a = pop();
  if (a.is_const() || (!owned(a) && owned(b))) std::swap(a, b);
  const asmjit::Operand rhs = int_operand(b, wide);
  RegId result;
  if (rhs.isImm()) {
    const RegId left = use(a);
    result = owned(a) ? left : alloc(false);
    a_.imul(gp(result, wide), gp(left, wide), rhs.as<asmjit::Imm>());
  } else {
    result = own(a);
    a_.emit(Inst::kIdImul, gp(result, wide), rhs);
  }
  push_reg(wide ? ValType::kI64 : ValType::kI32, result);
}

void FunctionCompiler::int_shift(asmjit::InstId inst, asmjit::InstId bmi2, bool wide) {
  const ValType type = wide ? ValType::kI64 : ValType::kI32;
  if (top().is_const()) {
    const Entry b = pop();
    const Entry a = pop();
    const RegId result = own(a);
    const auto count = static_cast<uint32_t>(b.bits & (wide ? 63 : 31));
    if (count) a_.emit(inst, gp(result, wide), asmjit::imm(count));
    return push_reg(type, result);
  }
  if (bmi2 && features_.bmi2) {
    const Entry b = pop();
    const Entry a = pop();
    const RegId count = use(b);
    const RegId left = use(a);
    const RegId result = owned(a) ? left : alloc(false);
    a_.emit(bmi2, gp(result, wide), gp(left, wide), gp(count, wide));
    return push_reg(type, result);
  }
  constexpr RegId kCount = 1;  // cl
  claim(kCount);
  const Entry b = pop();
  const Entry a = pop();
  load_into(kCount, b);
  const RegId result = own(a);
  a_.emit(inst, gp(result, wide), x86::cl);
  // I1 where the count may be zero: a 32-bit shift writes its register all the same; say it again for
  // certain.
  if (!wide) a_.mov(gp(result, false), gp(result, false));
  push_reg(type, result);
}

void FunctionCompiler::int_divide(bool wide, bool is_signed, bool remainder) {
  constexpr RegId kLow = 0;   // rax
  constexpr RegId kHigh = 2;  // rdx
  claim(kLow);
  claim(kHigh);
  const Entry b = pop();
  const Entry a = pop();
  const RegId divisor = use(b);
  load_into(kLow, a);
  const uint64_t all_ones = wide ? ~uint64_t{0} : uint64_t{UINT32_MAX};
  if (!b.is_const() || b.bits == 0) {
    a_.test(gp(divisor, wide), gp(divisor, wide));
    trap_if(CondCode::kZ, TrapCode::kIntegerDivideByZero);
  }
  if (!b.is_const()) sample_value(b, kValueSiteDivisor);
  const Label done = a_.new_label();
  if (is_signed && (!b.is_const() || b.bits == all_ones)) {
    a_.cmp(gp(divisor, wide), -1);
    if (remainder) {
      // INT_MIN % -1 faults in idiv; x % -1 is 0 for every x.
      const Label minus_one = a_.new_label();
      a_.je(minus_one);
      out_of_line(minus_one, [this, done] {
        a_.xor_(x86::edx, x86::edx);
        a_.jmp(done);
      });
    } else {
      const Label fine = a_.new_label();
      a_.jne(fine);
      // INT_MIN is the one value whose negation overflows.
      a_.mov(gp(11, wide), gp(kLow, wide));
      a_.neg(gp(11, wide));
      trap_if(CondCode::kO, TrapCode::kIntegerOverflow);
      a_.bind(fine);
    }
  }
  if (is_signed) {
    if (wide)
      a_.cqo();
    else
      a_.cdq();
    a_.idiv(gp(divisor, wide));
  } else {
    a_.xor_(x86::edx, x86::edx);
    a_.div(gp(divisor, wide));
  }
  a_.bind(done);
  push_reg(wide ? ValType::kI64 : ValType::kI32, remainder ? kHigh : kLow);
}

void FunctionCompiler::int_compare(CondCode cc, bool wide) {
  Entry b = pop();
  Entry a = pop();
  if (a.is_const() && !b.is_const()) {
    std::swap(a, b);
    cc = x86::reverseCond(cc);
  }
  Condition condition;
  condition.cc = cc;
  condition.a = gp(use(a), wide);
  if (b.is_const() && b.bits == 0) {
    // test leaves carry and overflow clear, as a comparison with zero does.
    condition.inst = Inst::kIdTest;
    condition.b = condition.a;
  } else {
    condition.inst = Inst::kIdCmp;
    condition.b = int_operand(b, wide);
  }
  use_condition(condition);
}

void FunctionCompiler::int_eqz(bool wide) {
  const Entry a = pop();
  Condition condition;
  condition.cc = CondCode::kE;
  condition.inst = Inst::kIdTest;
  condition.a = condition.b = gp(use(a), wide);
  use_condition(condition);
}

void FunctionCompiler::int_count(const Instr& instr, bool wide) {
  const ValType type = wide ? ValType::kI64 : ValType::kI32;
  const bool clz = instr.opcode == Opcode::kI32Clz || instr.opcode == Opcode::kI64Clz;
  const bool ctz = instr.opcode == Opcode::kI32Ctz || instr.opcode == Opcode::kI64Ctz;
  const uint32_t width = wide ? 64 : 32;
  const Entry a = pop();
  const RegId source = use(a);
  if (clz ? features_.lzcnt : ctz ? features_.tzcnt : features_.popcnt) {
    const RegId result = result_like(a, false);
    // The result does not depend on the old register, but some processors wait for it.
    a_.emit(clz   ? Inst::kIdLzcnt
            : ctz ? Inst::kIdTzcnt
                  : Inst::kIdPopcnt,
            gp(result, wide), gp(source, wide));
    return push_reg(type, result);
  }
  const RegId result = alloc(false);
  if (clz || ctz) {
    // bsr and bsf leave their result undefined for 0.
    a_.mov(x86::r11d, clz ? 2 * width - 1 : width);
    a_.emit(clz ? Inst::kIdBsr : Inst::kIdBsf, gp(result, wide), gp(source, wide));
    a_.cmovz(gp(result, wide), gp(11, wide));
    // The bit's number from the top: (width-1) - n, and (2*width-1) ^ (width-1) = width.
    if (clz) a_.xor_(gp(result, wide), width - 1);
    return push_reg(type, result);
  }
  // Bits in pairs, nibbles and bytes; the product sums the bytes in its top byte.
  const auto mask = [&](uint64_t pattern) {
    if (wide)
      a_.mov(x86::r11, asmjit::imm(pattern));
    else
      a_.mov(x86::r11d, asmjit::imm(static_cast<uint32_t>(pattern)));
  };
  const x86::Gp x = gp(result, wide);
  const RegId other_reg = alloc(false);
  const x86::Gp other = gp(other_reg, wide);
  const x86::Gp m = gp(11, wide);
  a_.mov(x, gp(source, wide));
  a_.mov(other, x);
  a_.shr(other, 1);
  mask(0x5555555555555555);
  a_.and_(other, m);
  a_.sub(x, other);
  mask(0x3333333333333333);
  a_.mov(other, x);
  a_.and_(x, m);
  a_.shr(other, 2);
  a_.and_(other, m);
  a_.add(x, other);
  a_.mov(other, x);
  a_.shr(other, 4);
  a_.add(x, other);
  mask(0x0f0f0f0f0f0f0f0f);
  a_.and_(x, m);
  mask(0x0101010101010101);
  a_.imul(x, m);
  a_.shr(x, width - 8);
  push_reg(type, result);
}

void FunctionCompiler::int_extend(ValType to, uint32_t bits) {
  const Entry a = pop();
  const RegId source = use(a);
  const RegId result = result_like(a, false);
  const bool wide = is_wide(to);
  if (bits == 8)
    a_.movsx(gp(result, wide), x86::gpb(source));
  else if (bits == 16)
    a_.movsx(gp(result, wide), x86::gpw(source));
  else
    a_.movsxd(gp(result, true), gp(source, false));
  push_reg(to, result);
}

}  // namespace hindsight::jit::baseline
