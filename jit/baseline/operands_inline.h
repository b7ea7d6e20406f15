// The steps that every instruction takes, inline: operands and registers (operands.cc has the rest), and
// the frame around an instruction. Included by function_compiler.h alone.
#pragma once

namespace hindsight::jit::baseline {

inline bool is_float_reg(RegId r) {
  return r >= 16;
}

inline void FunctionCompiler::row(WasmOffset offset) {
  pc_map_.add_row({CodeOffset(static_cast<uint32_t>(a_.offset())), offset});
}

inline void FunctionCompiler::begin_instruction(const Instr& instr) {
  offset_ = instr.offset;
  row(offset_);
  if (!wasm::is_structure(instr.opcode)) ++pending_instructions_;
  if (recorder_) [[unlikely]]
    recorder_->instruction(instr);
}

inline void FunctionCompiler::finish_instruction() {
  free_ |= temp_;
  temp_ = 0;
  locked_ = 0;
}

inline RegId FunctionCompiler::alloc(bool floating) {
  ++steps_;
  const uint32_t candidates = free_ & (floating ? kFloatRegs : kGpRegs);
  RegId reg;
  if (candidates) [[likely]] {
    const uint32_t preferred = candidates & (kPreferredGpRegs | kFloatRegs);
    reg = static_cast<RegId>(__builtin_ctz(preferred ? preferred : candidates));
  } else {
    reg = take_register(floating);
  }
  free_ &= ~bit(reg);
  temp_ |= bit(reg);
  return reg;
}

inline Entry FunctionCompiler::pop() {
  Entry entry = stack_.back();
  stack_.pop_back();
  if (flushed_ > stack_.size()) flushed_ = stack_.size();
  if (entry.kind == Entry::Kind::kReg) {
    operand_regs_ &= ~bit(entry.reg);
    temp_ |= bit(entry.reg);
  } else if (entry.kind == Entry::Kind::kLocal) {
    last_ref_[entry.local] = static_cast<uint32_t>(entry.bits);
  }
  return entry;
}

inline void FunctionCompiler::push_reg(ValType type, RegId reg) {
  Entry entry;
  entry.kind = Entry::Kind::kReg;
  entry.type = type;
  entry.reg = reg;
  entry.index = static_cast<uint32_t>(stack_.size());
  temp_ &= ~bit(reg);
  free_ &= ~bit(reg);
  own_by_stack(reg, entry.index);
  stack_.push_back(entry);
}

inline void FunctionCompiler::push_const(ValType type, uint64_t bits, uint64_t high) {
  Entry entry;
  entry.kind = Entry::Kind::kConst;
  entry.type = type;
  entry.bits = bits;
  entry.high = high;
  entry.index = static_cast<uint32_t>(stack_.size());
  stack_.push_back(entry);
}

inline void FunctionCompiler::push_local(uint32_t local) {
  Entry entry;
  entry.kind = Entry::Kind::kLocal;
  entry.type = body_.locals[local];
  entry.local = local;
  entry.index = static_cast<uint32_t>(stack_.size());
  entry.bits = last_ref_[local];
  last_ref_[local] = entry.index;
  stack_.push_back(entry);
}

inline void FunctionCompiler::push_slot(ValType type) {
  Entry entry;
  entry.type = type;
  entry.index = static_cast<uint32_t>(stack_.size());
  if (flushed_ == stack_.size()) ++flushed_;
  stack_.push_back(entry);
}

inline void FunctionCompiler::release(RegId reg) {
  temp_ &= ~bit(reg);
  free_ |= bit(reg);
}

inline void FunctionCompiler::forget_local(uint32_t local) {
  const RegId reg = local_reg_[local];
  if (reg == kNoReg) return;
  local_reg_[local] = kNoReg;
  cache_.registers &= ~bit(reg);
  if (locked_ & bit(reg)) {
    // Still read by this instruction; freed at its end.
    locked_ &= ~bit(reg);
    temp_ |= bit(reg);
  } else {
    free_ |= bit(reg);
  }
}

inline void FunctionCompiler::forget_locals() {
  while (cache_.registers) forget_local(cache_.local[__builtin_ctz(cache_.registers)]);
}

inline void FunctionCompiler::cache_local(uint32_t local, RegId reg) {
  temp_ &= ~bit(reg);
  free_ &= ~bit(reg);
  local_reg_[local] = reg;
  cache_.registers |= bit(reg);
  cache_.local[reg] = local;
}

inline RegId FunctionCompiler::use(const Entry& entry) {
  if (entry.kind == Entry::Kind::kReg) return entry.reg;
  if (entry.kind == Entry::Kind::kLocal) {
    RegId reg = local_reg_[entry.local];
    if (reg == kNoReg) {
      reg = alloc(wasm::in_vector_register(entry.type));
      load_into(reg, entry);
      cache_local(entry.local, reg);
    }
    locked_ |= bit(reg);
    return reg;
  }
  return own(entry);
}

inline RegId FunctionCompiler::own(const Entry& entry) {
  if (entry.kind == Entry::Kind::kReg) return entry.reg;
  const RegId reg = alloc(wasm::in_vector_register(entry.type));
  load_into(reg, entry);
  return reg;
}

inline RegId FunctionCompiler::result_like(const Entry& entry, bool floating) {
  if (entry.kind == Entry::Kind::kReg && is_float_reg(entry.reg) == floating) return entry.reg;
  return alloc(floating);
}

}  // namespace hindsight::jit::baseline
