// Atomic accesses, waiting and notifying. Everything is sequentially consistent, as WebAssembly has it.
//
// On x86-64 a plain load is as strong as that needs, if every store is an exchange. The rest are instructions
// with a LOCK prefix, which xchg has by itself. An address that is no multiple of the access's size traps:
// the processor would do it, slowly, but other engines and the specification do not.
//
// Narrow results are zero-extended. xadd and xchg leave the upper part of their register as it was, so that
// it is extended afterwards.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

using wasm::AtomicAccess;
using wasm::AtomicKind;
using x86::CondCode;
namespace Inst = x86::Inst;

namespace {

// The register as `size` bytes.
x86::Gp sized(RegId reg, uint32_t size) {
  switch (size) {
    case 1:
      return x86::gpb(reg);
    case 2:
      return x86::gpw(reg);
    case 4:
      return x86::gpd(reg);
    default:
      return x86::gpq(reg);
  }
}

}  // namespace

// The operand of an atomic access: as address(), and aligned.
x86::Mem FunctionCompiler::atomic_address(Entry index, const Instr& instr, uint32_t size) {
  const uint64_t mask = size - 1;
  if (index.is_const()) {
    // The trap does not return: what is compiled after it is never run.
    if ((index.bits + instr.bits) & mask) trap_here(TrapCode::kUnalignedAtomic);
  } else if (mask != 0) {
    // Into a register once, for the test and the access.
    const RegId reg = use(index);
    if (index.kind == Entry::Kind::kSlot) {
      index.kind = Entry::Kind::kReg;
      index.reg = reg;
    }
    if ((instr.bits & mask) == 0) {
      a_.test(x86::gpb(reg), asmjit::imm(static_cast<int32_t>(mask)));
    } else {
      a_.lea(x86::r11d, x86::ptr(x86::gpq(reg), static_cast<int32_t>(instr.bits & mask)));
      a_.test(x86::r11b, asmjit::imm(static_cast<int32_t>(mask)));
    }
    trap_if(CondCode::kNZ, TrapCode::kUnalignedAtomic);
  }
  return address(index, instr, size);
}

// Is the value that this instruction makes dropped by the next one?
bool FunctionCompiler::result_is_dropped() const {
  return static_cast<Opcode>(module_.bytes[reader_.position().value]) == Opcode::kDrop;
}

void FunctionCompiler::atomic(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kAtomicFence:
      // As strong as mfence, and faster on every processor there is. The lowest slot of the frame, or what is
      // saved there, is not changed.
      a_.lock().or_(x86::dword_ptr(x86::rsp), 0);
      return;
    case Opcode::kMemoryAtomicNotify:
    case Opcode::kMemoryAtomicWait32:
    case Opcode::kMemoryAtomicWait64:
      return wait_or_notify(instr);
    default:
      break;
  }
  const AtomicAccess access = wasm::atomic_access(static_cast<uint16_t>(instr.opcode));
  const uint32_t size = 1u << access.log2;
  const ValType type = access.wide ? ValType::kI64 : ValType::kI32;
  switch (access.kind) {
    case AtomicKind::kLoad:
      return atomic_load(instr, type, size);
    case AtomicKind::kStore:
      return atomic_store(instr, size);
    case AtomicKind::kAdd:
      return atomic_add(instr, type, size, false);
    case AtomicKind::kSub:
      return atomic_add(instr, type, size, true);
    case AtomicKind::kAnd:
      return atomic_logic(instr, Inst::kIdAnd, type, size);
    case AtomicKind::kOr:
      return atomic_logic(instr, Inst::kIdOr, type, size);
    case AtomicKind::kXor:
      return atomic_logic(instr, Inst::kIdXor, type, size);
    case AtomicKind::kExchange:
      return atomic_exchange(instr, type, size);
    case AtomicKind::kCompareExchange:
      return atomic_compare_exchange(instr, type, size);
  }
}

void FunctionCompiler::atomic_load(const Instr& instr, ValType type, uint32_t size) {
  const Entry index = pop();
  const x86::Mem from = atomic_address(index, instr, size);
  trace_access(from);
  const RegId result = options_.lwp_counting ? alloc(false) : result_like(index, false);
  if (size < 4)
    a_.movzx(x86::gpd(result), from);
  else
    a_.mov(sized(result, size), from);
  push_reg(type, result);
}

void FunctionCompiler::atomic_store(const Instr& instr, uint32_t size) {
  const Entry value = pop();
  const Entry index = pop();
  const RegId reg = own(value);
  const x86::Mem to = atomic_address(index, instr, size);
  trace_access(to);
  a_.xchg(to, sized(reg, size));
}

// The value that an exchange of `size` bytes left in a register, with its upper part cleared.
void FunctionCompiler::push_narrow(ValType type, RegId reg, uint32_t size) {
  if (size < 4) a_.movzx(x86::gpd(reg), sized(reg, size));
  push_reg(type, reg);
}

void FunctionCompiler::atomic_add(const Instr& instr, ValType type, uint32_t size, bool subtract) {
  const Entry value = pop();
  const Entry index = pop();
  if (result_is_dropped()) {
    atomic_update(instr, subtract ? Inst::kIdSub : Inst::kIdAdd, value, index, size);
    return push_const(type, 0);
  }
  const RegId reg = own(value);
  const x86::Mem at = atomic_address(index, instr, size);
  trace_access(at);
  trace_access(at);
  if (subtract) a_.neg(sized(reg, size));
  a_.lock().xadd(at, sized(reg, size));
  push_narrow(type, reg, size);
}

// Nobody wants the old value: one instruction does it.
void FunctionCompiler::atomic_update(const Instr& instr, asmjit::InstId inst, const Entry& value,
                                     const Entry& index, uint32_t size) {
  asmjit::Operand operand;
  const auto bits = static_cast<int64_t>(value.bits);
  if (value.is_const() && (size < 8 || bits == static_cast<int32_t>(bits)))
    operand = size == 1   ? asmjit::imm(static_cast<int8_t>(bits))
              : size == 2 ? asmjit::imm(static_cast<int16_t>(bits))
                          : asmjit::imm(static_cast<int32_t>(bits));
  else
    operand = sized(use(value), size);
  const x86::Mem at = atomic_address(index, instr, size);
  trace_access(at);
  trace_access(at);
  a_.lock().emit(inst, at, operand);
}

void FunctionCompiler::atomic_logic(const Instr& instr, asmjit::InstId inst, ValType type, uint32_t size) {
  constexpr RegId kOld = 0;  // rax
  if (result_is_dropped()) {
    const Entry value = pop();
    const Entry index = pop();
    atomic_update(instr, inst, value, index, size);
    return push_const(type, 0);
  }
  claim(kOld);
  const Entry value = pop();
  const Entry index = pop();
  const RegId operand = use(value);
  const x86::Mem at = atomic_address(index, instr, size);
  trace_access(at);
  trace_access(at);
  const RegId changed = alloc(false);
  if (size < 4)
    a_.movzx(x86::eax, at);
  else
    a_.mov(sized(kOld, size), at);
  const Label again = a_.new_label();
  a_.bind(again);
  a_.mov(gp(changed, size == 8), gp(kOld, size == 8));
  a_.emit(inst, gp(changed, size == 8), gp(operand, size == 8));
  // Failed, it has loaded what is there now, and left what is above it zero.
  a_.lock().cmpxchg(at, sized(changed, size));
  a_.jne(again);
  push_reg(type, kOld);
}

void FunctionCompiler::atomic_exchange(const Instr& instr, ValType type, uint32_t size) {
  const Entry value = pop();
  const Entry index = pop();
  const RegId reg = own(value);
  const x86::Mem at = atomic_address(index, instr, size);
  trace_access(at);
  trace_access(at);
  a_.xchg(at, sized(reg, size));
  push_narrow(type, reg, size);
}

// A narrow comparison takes the low part of the expected value, whatever is above it.
void FunctionCompiler::atomic_compare_exchange(const Instr& instr, ValType type, uint32_t size) {
  constexpr RegId kExpected = 0;  // rax, which then has the old value
  claim(kExpected);
  const Entry replacement = pop();
  const Entry expected = pop();
  const Entry index = pop();
  const RegId reg = use(replacement);
  load_into(kExpected, expected);
  const x86::Mem at = atomic_address(index, instr, size);
  trace_access(at);
  trace_access(at);
  a_.lock().cmpxchg(at, sized(reg, size));
  // Where the exchange succeeds nothing is written to rax: what is above the value is still there.
  if (size == 4 && is_wide(type)) a_.mov(x86::eax, x86::eax);
  push_narrow(type, kExpected, size);
}

void FunctionCompiler::wait_or_notify(const Instr& instr) {
  const bool notify = instr.opcode == Opcode::kMemoryAtomicNotify;
  Entry timeout;
  if (!notify) timeout = pop();
  const Entry value = pop();  // expected, or how many to wake
  const Entry index = pop();
  const Argument arguments[] = {immediate_argument(instr.index), entry_argument(index),
                                immediate_argument(instr.bits), entry_argument(value),
                                entry_argument(timeout)};
  const size_t builtin = notify                                        ? offsetof(Builtins, atomic_notify)
                         : instr.opcode == Opcode::kMemoryAtomicWait32 ? offsetof(Builtins, atomic_wait32)
                                                                       : offsetof(Builtins, atomic_wait64);
  call_builtin(builtin, std::span(arguments).first(notify ? 4 : 5));
  a_.mov(x86::eax, x86::eax);  // I1
  push_reg(ValType::kI32, 0);
}

}  // namespace hindsight::jit::baseline
