// Locals, globals, drop and select.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

void FunctionCompiler::set_local(uint32_t local, bool tee) {
  const Entry value = pop();
  if (value.kind == Entry::Kind::kLocal && value.local == local) {
    if (tee) push_local(local);
    return;
  }
  materialize_local(local);
  forget_local(local);
  if (value.is_const()) {
    store_entry(slot(local), value);
    if (tee) push_const(value.type, value.bits, value.high);
    return;
  }
  // I2: written through; the register goes on as a cache.
  const RegId reg = own(value);
  store_reg(slot(local), reg, value.type);
  cache_local(local, reg);
  if (tee) push_local(local);
}

void FunctionCompiler::variable(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kDrop:
      pop();
      return;
    case Opcode::kSelect:
    case Opcode::kSelectT:
      return select(pop_condition());
    case Opcode::kLocalGet:
      return push_local(instr.index);
    case Opcode::kLocalSet:
      return set_local(instr.index, false);
    case Opcode::kLocalTee:
      return set_local(instr.index, true);
    default:
      break;
  }
  const ValType type = module_.globals[instr.index].type.type;
  const bool get = instr.opcode == Opcode::kGlobalGet;
  Entry value;
  if (!get) value = pop();
  x86::Mem cell;
  if (vm_layout_.global_is_imported(instr.index)) {
    const RegId reg = alloc(false);
    a_.mov(gp(reg, true), x86::qword_ptr(x86::rbx, kVmImportedGlobals));
    a_.mov(gp(reg, true), x86::qword_ptr(gp(reg, true), static_cast<int32_t>(8 * instr.index)));
    cell = x86::ptr(gp(reg, true), 0, 8);
  } else {
    cell = x86::ptr(x86::rbx, vm_layout_.global(instr.index), 8);
  }
  if (!get) return store_entry(cell, value);
  const bool wide = is_wide(type);
  cell.setSize(size_of(type));
  const RegId result = alloc(wasm::in_vector_register(type));
  if (type == ValType::kV128)
    a_.movups(xmm(result), cell);
  else if (!wasm::is_float(type))
    a_.mov(gp(result, wide), cell);
  else if (wide)
    a_.movsd(xmm(result), cell);
  else
    a_.movss(xmm(result), cell);
  push_reg(type, result);
}

}  // namespace hindsight::jit::baseline
