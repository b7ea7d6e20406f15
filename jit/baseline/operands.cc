// Operands and registers: the virtual operand stack, the allocation of registers within a block, and the
// caches of locals. See the invariants in function_compiler.h.
#include <bit>

#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

using Kind = Entry::Kind;

void FunctionCompiler::pop_to(size_t height) {
  while (stack_.size() > height) {
    ++steps_;
    pop();
  }
}

// Where no register is free.
RegId FunctionCompiler::take_register(bool floating) {
  const uint32_t regs = floating ? kFloatRegs : kGpRegs;
  // A cached local costs nothing to forget; an operand costs a store. Victims take turns.
  const uint32_t cached = regs & ~locked_ & ~temp_ & cache_.registers;
  if (cached) {
    const uint32_t behind = cached & (~0u << next_victim_);
    const auto reg = static_cast<RegId>(std::countr_zero(behind ? behind : cached));
    next_victim_ = (reg + 1u) % kRegs;
    forget_local(cache_.local[reg]);
    return reg;
  }
  // The lowest operand is needed last.
  RegId reg = kNoReg;
  uint32_t lowest = kNoIndex;
  for (uint32_t left = regs & operand_regs_; left; left &= left - 1) {
    const auto r = static_cast<RegId>(std::countr_zero(left));
    if (stack_owner_[r] < lowest) {
      lowest = stack_owner_[r];
      reg = r;
    }
  }
  // Invariant: no instruction holds more temporaries than there are registers.
  spill(reg);
  return reg;
}

void FunctionCompiler::claim(RegId reg) {
  if (operand_regs_ & bit(reg)) {
    Entry& entry = stack_[stack_owner_[reg]];
    const uint32_t regs = is_float_reg(reg) ? kFloatRegs : kGpRegs;
    if (free_ & regs) {
      const RegId other = alloc(is_float_reg(reg));
      temp_ &= ~bit(other);
      move_reg(other, reg, entry.type);
      own_by_stack(other, entry.index);
      operand_regs_ &= ~bit(reg);
      entry.reg = other;
      free_ |= bit(reg);
    } else {
      spill(reg);
    }
  } else if (cache_.registers & bit(reg)) {
    forget_local(cache_.local[reg]);
  }
  free_ &= ~bit(reg);
  temp_ |= bit(reg);
}

void FunctionCompiler::spill(RegId reg) {
  Entry& entry = stack_[stack_owner_[reg]];
  store_reg(home(entry), reg, entry.type);
  entry.kind = Kind::kSlot;
  operand_regs_ &= ~bit(reg);
  free_ |= bit(reg);
}

void FunctionCompiler::spill_all() {
  while (operand_regs_) spill(static_cast<RegId>(std::countr_zero(operand_regs_)));
}

void FunctionCompiler::flush_all() {
  for (size_t i = flushed_; i < stack_.size(); ++i) {
    ++steps_;
    Entry& entry = stack_[i];
    switch (entry.kind) {
      case Kind::kSlot:
        continue;
      case Kind::kReg:
        spill(entry.reg);
        continue;
      case Kind::kLocal:
        store_entry(home(entry), entry);
        // Invariant: everything below is flushed and everything above will be, so no entry names the local.
        last_ref_[entry.local] = kNoIndex;
        break;
      case Kind::kConst:
        store_entry(home(entry), entry);
        break;
    }
    entry.kind = Kind::kSlot;
  }
  flushed_ = stack_.size();
}

// The local is about to change: entries that name it take its old value.
void FunctionCompiler::materialize_local(uint32_t local) {
  uint32_t i = last_ref_[local];
  last_ref_[local] = kNoIndex;
  while (i != kNoIndex) {
    ++steps_;
    Entry& entry = stack_[i];
    i = static_cast<uint32_t>(entry.bits);
    const bool floating = wasm::in_vector_register(entry.type);
    const RegId cached = local_reg_[local];
    if (cached != kNoReg && !(locked_ & bit(cached))) {
      // The cache is about to be stale: the entry takes the register over.
      local_reg_[local] = kNoReg;
      cache_.registers &= ~bit(cached);
      own_by_stack(cached, entry.index);
      entry.kind = Kind::kReg;
      entry.reg = cached;
    } else if (free_ & (floating ? kFloatRegs : kGpRegs)) {
      const RegId reg = alloc(floating);
      load_into(reg, entry);
      temp_ &= ~bit(reg);
      own_by_stack(reg, entry.index);
      entry.kind = Kind::kReg;
      entry.reg = reg;
    } else {
      store_entry(home(entry), entry);
      entry.kind = Kind::kSlot;
    }
  }
}

void FunctionCompiler::move_reg(RegId to, RegId from, ValType type) {
  if (to == from) return;
  if (is_float_reg(to))
    a_.movaps(xmm(to), xmm(from));
  else
    a_.mov(gp(to, is_wide(type)), gp(from, is_wide(type)));
}

void FunctionCompiler::store_reg(const x86::Mem& to, RegId from, ValType type) {
  x86::Mem m = to;
  m.setSize(size_of(type));
  if (type == ValType::kV128)
    a_.movups(m, xmm(from));
  else if (!is_float_reg(from))
    a_.mov(m, gp(from, is_wide(type)));
  else if (is_wide(type))
    a_.movsd(m, xmm(from));
  else
    a_.movss(m, xmm(from));
}

void FunctionCompiler::load_const(RegId reg, ValType type, uint64_t bits) {
  if (is_float_reg(reg)) {
    if (bits == 0)
      a_.xorps(xmm(reg), xmm(reg));
    else if (is_wide(type))
      a_.movsd(xmm(reg), constant8(bits));
    else
      a_.movss(xmm(reg), constant8(bits));
    return;
  }
  // mov, never xor: flags may be live.
  if (bits <= UINT32_MAX)
    a_.mov(gp(reg, false), asmjit::imm(static_cast<uint32_t>(bits)));
  else
    a_.mov(gp(reg, true), asmjit::imm(bits));
}

void FunctionCompiler::load_vector_const(RegId reg, uint64_t low, uint64_t high) {
  if ((low | high) == 0)
    a_.xorps(xmm(reg), xmm(reg));
  else if ((low & high) == UINT64_MAX)
    a_.pcmpeqd(xmm(reg), xmm(reg));
  else
    a_.movaps(xmm(reg), constant16(low, high));
}

void FunctionCompiler::load_into(RegId reg, const Entry& entry) {
  const bool wide = is_wide(entry.type);
  switch (entry.kind) {
    case Kind::kReg:
      return move_reg(reg, entry.reg, entry.type);
    case Kind::kConst:
      if (entry.type == ValType::kV128) return load_vector_const(reg, entry.bits, entry.high);
      return load_const(reg, entry.type, entry.bits);
    case Kind::kLocal:
      if (local_reg_[entry.local] != kNoReg) return move_reg(reg, local_reg_[entry.local], entry.type);
      break;
    case Kind::kSlot:
      break;
  }
  if (entry.type == ValType::kV128)
    a_.movups(xmm(reg), place(entry, 16));
  else if (!is_float_reg(reg))
    a_.mov(gp(reg, wide), place(entry, wide ? 8 : 4));
  else if (wide)
    a_.movsd(xmm(reg), place(entry, 8));
  else
    a_.movss(xmm(reg), place(entry, 4));
}

void FunctionCompiler::store_entry(const x86::Mem& to, const Entry& entry) {
  const bool wide = is_wide(entry.type);
  x86::Mem m = to;
  m.setSize(wide ? 8 : 4);
  switch (entry.kind) {
    case Kind::kReg:
      return store_reg(to, entry.reg, entry.type);
    case Kind::kConst:
      if (entry.type == ValType::kV128) break;
      if (!wide || asmjit::Support::isInt32(static_cast<int64_t>(entry.bits))) {
        a_.mov(m, asmjit::imm(static_cast<int32_t>(entry.bits)));
        return;
      }
      a_.mov(x86::r11, asmjit::imm(entry.bits));
      a_.mov(m, x86::r11);
      return;
    case Kind::kLocal:
      if (local_reg_[entry.local] != kNoReg) return store_reg(to, local_reg_[entry.local], entry.type);
      break;
    case Kind::kSlot:
      break;
  }
  if (entry.type == ValType::kV128) {
    load_into(31, entry);
    return store_reg(to, 31, entry.type);
  }
  const x86::Gp scratch = wide ? x86::Gp(x86::r11) : x86::Gp(x86::r11d);
  a_.mov(scratch, place(entry, wide ? 8 : 4));
  a_.mov(m, scratch);
}

asmjit::Operand FunctionCompiler::int_operand(const Entry& entry, bool wide) {
  if (entry.is_const() && (!wide || asmjit::Support::isInt32(static_cast<int64_t>(entry.bits))))
    return asmjit::imm(static_cast<int32_t>(entry.bits));
  if (entry.kind == Kind::kSlot) return place(entry, wide ? 8 : 4);
  return gp(use(entry), wide);
}

asmjit::Operand FunctionCompiler::float_operand(const Entry& entry) {
  const uint32_t size = is_wide(entry.type) ? 8 : 4;
  if (entry.is_const()) {
    x86::Mem m = constant8(entry.bits);
    m.setSize(size);
    return m;
  }
  if (entry.kind == Kind::kSlot) return place(entry, size);
  return xmm(use(entry));
}

x86::Mem FunctionCompiler::constant8(uint64_t bits) {
  auto [it, inserted] = constants8_.try_emplace(bits);
  if (inserted) {
    it->second = a_.new_label();
    constants8_order_.emplace_back(bits, it->second);
  }
  return Emitter::at(it->second);
}

x86::Mem FunctionCompiler::constant16(uint64_t low, uint64_t high) {
  const auto [found, inserted] =
      constants16_index_.try_emplace({low, high}, static_cast<uint32_t>(constants16_.size()));
  if (inserted) constants16_.push_back({low, high, a_.new_label()});
  return Emitter::at(constants16_[found->second].label, 16);
}

}  // namespace hindsight::jit::baseline
