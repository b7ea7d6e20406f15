// Linear memory.
//
// Under guard pages an access with a 32-bit index is base + index + offset with no check. Index and offset
// are both less than 2^32, so the address lies within the reservation of 8 GiB and more. It faults if it is
// not accessible. I1 makes the index safe: its register is zero-extended. An index of 64 bits is compared
// with the instance's constant limit (see MemoryCell); small offsets are left to the guard pages that follow.
//
// The base of memory 0 is pinned; that of another one is loaded where it is used.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

namespace Inst = x86::Inst;

x86::Gp FunctionCompiler::memory_base(uint32_t memory) {
  if (memory == 0) return x86::r15;
  const RegId base = alloc(false);
  a_.mov(gp(base, true), x86::qword_ptr(x86::rbx, vm_layout_.memory_base(memory)));
  return gp(base, true);
}

// Explicit bounds: the `size` bytes in front of r11, an offset from `base`, if they are in the memory.
x86::Mem FunctionCompiler::checked_up_to(uint32_t memory, const x86::Gp& base, uint32_t size) {
  const RegId record = alloc(false);
  a_.mov(gp(record, true), x86::qword_ptr(x86::rbx, vm_layout_.memory_record(memory)));
  a_.cmp(x86::r11, x86::qword_ptr(gp(record, true), offsetof(MemoryRecord, byte_length)));
  release(record);
  trap_if(x86::CondCode::kA, TrapCode::kMemoryOutOfBounds);
  return x86::ptr(base, x86::r11, 0, -static_cast<int32_t>(size), size);
}

// The operand of an access of `size` bytes. May use r11, which then belongs to the operand.
x86::Mem FunctionCompiler::address(const Entry& index, const Instr& instr, uint32_t size) {
  const uint64_t offset = instr.bits;
  if (module_.memories[instr.index].is64) return address64(index, instr, size);
  const x86::Gp base = memory_base(instr.index);
  if (options_.bounds == BoundsChecks::kExplicit) {
    const uint64_t end = offset + size;
    // r11 = index + offset + size: at most 2^33 + 8, never wraps.
    if (index.is_const()) {
      a_.mov(x86::r11, asmjit::imm((index.bits & UINT32_MAX) + end));
    } else {
      const x86::Gp reg = gp(use(index), true);
      if (end <= INT32_MAX) {
        a_.lea(x86::r11, x86::ptr(reg, static_cast<int32_t>(end)));
      } else {
        a_.mov(x86::r11, asmjit::imm(end));
        a_.add(x86::r11, reg);
      }
    }
    return checked_up_to(instr.index, base, size);
  }
  if (index.is_const()) {
    const uint64_t address = (index.bits & UINT32_MAX) + offset;
    if (address <= INT32_MAX) return x86::ptr(base, static_cast<int32_t>(address), size);
    a_.mov(x86::r11, asmjit::imm(address));
    return x86::ptr(base, x86::r11, 0, 0, size);
  }
  const x86::Gp reg = gp(use(index), true);
  if (offset <= INT32_MAX) return x86::ptr(base, reg, 0, static_cast<int32_t>(offset), size);
  a_.mov(x86::r11, asmjit::imm(offset));
  a_.add(x86::r11, reg);
  return x86::ptr(base, x86::r11, 0, 0, size);
}

// The same for an index of 64 bits: the sum with the offset must not wrap.
x86::Mem FunctionCompiler::address64(const Entry& index, const Instr& instr, uint32_t size) {
  const uint64_t offset = instr.bits;
  const x86::Gp base = memory_base(instr.index);
  const bool guarded = options_.bounds == BoundsChecks::kGuardPages;
  // offset + size <= kGuardedOffset, without wrapping; also what a displacement can hold.
  const bool small_offset = offset <= kGuardedOffset - 16;
  if (guarded && small_offset && index.is_const() && index.bits <= kGuardedOffset - 16 - offset)
    return x86::ptr(base, static_cast<int32_t>(index.bits + offset), size);
  const x86::Gp reg = gp(use(index), true);
  if (guarded && small_offset) {
    a_.cmp(reg, x86::qword_ptr(x86::rbx, vm_layout_.memory_limit(instr.index)));
    trap_if(x86::CondCode::kA, TrapCode::kMemoryOutOfBounds);
    return x86::ptr(base, reg, 0, static_cast<int32_t>(offset), size);
  }
  if (guarded) {
    a_.mov(x86::r11, asmjit::imm(offset));
    a_.add(x86::r11, reg);
    trap_if(x86::CondCode::kC, TrapCode::kMemoryOutOfBounds);
    a_.cmp(x86::r11, x86::qword_ptr(x86::rbx, vm_layout_.memory_limit(instr.index)));
    trap_if(x86::CondCode::kA, TrapCode::kMemoryOutOfBounds);
    return x86::ptr(base, x86::r11, 0, 0, size);
  }
  // r11 = index + offset + size; of the two sums each may wrap.
  a_.mov(x86::r11, asmjit::imm(offset));
  a_.add(x86::r11, reg);
  trap_if(x86::CondCode::kC, TrapCode::kMemoryOutOfBounds);
  a_.add(x86::r11, size);
  trap_if(x86::CondCode::kC, TrapCode::kMemoryOutOfBounds);
  return checked_up_to(instr.index, base, size);
}

void FunctionCompiler::load(const Instr& instr, asmjit::InstId inst, ValType type, uint32_t size,
                            bool wide_register) {
  const Entry index = pop();
  const x86::Mem from = address(index, instr, size);
  const bool floating = wasm::is_float(type);
  trace_access(from);
  // Where the code is watched, a load leaves its index alone: a time sample after it takes the address from
  // the registers.
  const RegId result = options_.lwp_counting ? alloc(floating) : result_like(index, floating);
  if (floating)
    a_.emit(inst, xmm(result), from);
  else if (inst == Inst::kIdMov)
    a_.mov(gp(result, wide_register), from);
  else
    a_.emit(inst, gp(result, wide_register), from);
  push_reg(type, result);
}

void FunctionCompiler::store(const Instr& instr, uint32_t size) {
  const Entry value = pop();
  const Entry index = pop();
  if (wasm::is_float(value.type)) {
    const RegId reg = use(value);
    const x86::Mem to = address(index, instr, size);
    trace_access(to);
    a_.emit(size == 8 ? Inst::kIdMovsd : Inst::kIdMovss, to, xmm(reg));
    return;
  }
  if (value.is_const() &&
      (size < 8 || static_cast<int64_t>(value.bits) == static_cast<int32_t>(value.bits))) {
    const x86::Mem to = address(index, instr, size);
    trace_access(to);
    const auto bits = static_cast<int32_t>(value.bits);
    a_.emit(Inst::kIdMov, to,
            size == 1   ? asmjit::imm(static_cast<int8_t>(bits))
            : size == 2 ? asmjit::imm(static_cast<int16_t>(bits))
                        : asmjit::imm(bits));
    return;
  }
  const RegId reg = use(value);
  const x86::Mem to = address(index, instr, size);
  trace_access(to);
  switch (size) {
    case 1:
      return (void)a_.mov(to, x86::gpb(reg));
    case 2:
      return (void)a_.mov(to, x86::gpw(reg));
    case 4:
      return (void)a_.mov(to, x86::gpd(reg));
    default:
      return (void)a_.mov(to, x86::gpq(reg));
  }
}

void FunctionCompiler::bulk(const Instr& instr) {
  const auto both = [](uint32_t high, uint32_t low) { return (uint64_t{high} << 32) | low; };
  switch (instr.opcode) {
    case Opcode::kMemorySize: {
      const RegId result = alloc(false);
      a_.mov(gp(result, true), x86::qword_ptr(x86::rbx, vm_layout_.memory_record(instr.index)));
      a_.mov(gp(result, true), x86::qword_ptr(gp(result, true), offsetof(MemoryRecord, byte_length)));
      a_.shr(gp(result, true), 16);  // pages of 64 KiB, at most 65536 if an i32: I1 holds
      return push_reg(module_.memories[instr.index].address(), result);
    }
    case Opcode::kMemoryGrow: {
      const Entry delta = pop();
      const Argument arguments[] = {immediate_argument(instr.index), entry_argument(delta)};
      call_builtin(offsetof(Builtins, memory_grow), arguments);
      const ValType type = module_.memories[instr.index].address();
      if (type == ValType::kI32) a_.mov(x86::eax, x86::eax);
      return push_reg(type, 0);
    }
    case Opcode::kMemoryInit: {
      const Entry n = pop(), src = pop(), dst = pop();
      const Argument arguments[] = {immediate_argument(both(instr.index, instr.index2)), entry_argument(dst),
                                    entry_argument(src), entry_argument(n)};
      sample_value(n, kValueSiteByteCount);
      trace_bulk({{dst, instr.index2}, {n, {}}});
      return call_builtin(offsetof(Builtins, memory_init), arguments);
    }
    case Opcode::kDataDrop: {
      const Argument arguments[] = {immediate_argument(instr.index)};
      return call_builtin(offsetof(Builtins, data_drop), arguments);
    }
    case Opcode::kMemoryCopy: {
      const Entry n = pop(), src = pop(), dst = pop();
      const Argument arguments[] = {immediate_argument(both(instr.index, instr.index2)), entry_argument(dst),
                                    entry_argument(src), entry_argument(n)};
      sample_value(n, kValueSiteByteCount);
      trace_bulk({{dst, instr.index}, {src, instr.index2}, {n, {}}});
      return call_builtin(offsetof(Builtins, memory_copy), arguments);
    }
    case Opcode::kMemoryFill: {
      const Entry n = pop(), value = pop(), dst = pop();
      const Argument arguments[] = {immediate_argument(instr.index), entry_argument(dst),
                                    entry_argument(value), entry_argument(n)};
      sample_value(n, kValueSiteByteCount);
      trace_bulk({{dst, instr.index}, {n, {}}});
      return call_builtin(offsetof(Builtins, memory_fill), arguments);
    }
    default:
      return;
  }
}

}  // namespace hindsight::jit::baseline
