// References, tables and element segments.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

void FunctionCompiler::table(const Instr& instr) {
  const auto both = [](uint32_t high, uint32_t low) { return (uint64_t{high} << 32) | low; };
  switch (instr.opcode) {
    case Opcode::kRefNull:
      return push_const(instr.ref_type, 0);
    case Opcode::kRefIsNull:
      return int_eqz(true);
    case Opcode::kRefFunc: {
      const RegId result = alloc(false);
      a_.lea(gp(result, true), x86::ptr(x86::rbx, vm_layout_.func(instr.index)));
      return push_reg(wasm::non_null(ValType::kFuncRef), result);
    }
    case Opcode::kTableGet: {
      const Entry index = pop();
      const Argument arguments[] = {immediate_argument(instr.index), entry_argument(index)};
      call_builtin(offsetof(Builtins, table_get), arguments);
      return push_reg(module_.tables[instr.index].element, 0);
    }
    case Opcode::kTableSet: {
      const Entry value = pop(), index = pop();
      const Argument arguments[] = {immediate_argument(instr.index), entry_argument(index),
                                    entry_argument(value)};
      return call_builtin(offsetof(Builtins, table_set), arguments);
    }
    case Opcode::kTableSize: {
      const RegId result = alloc(false);
      a_.mov(gp(result, true), x86::qword_ptr(x86::rbx, kVmTables));
      a_.mov(gp(result, true), x86::qword_ptr(gp(result, true), static_cast<int32_t>(8 * instr.index)));
      a_.mov(gp(result, false), x86::dword_ptr(gp(result, true), offsetof(TableRecord, size)));
      return push_reg(ValType::kI32, result);
    }
    case Opcode::kTableGrow: {
      const Entry delta = pop(), init = pop();
      const Argument arguments[] = {immediate_argument(instr.index), entry_argument(init),
                                    entry_argument(delta)};
      call_builtin(offsetof(Builtins, table_grow), arguments);
      a_.mov(x86::eax, x86::eax);
      return push_reg(ValType::kI32, 0);
    }
    case Opcode::kTableFill: {
      const Entry n = pop(), value = pop(), index = pop();
      const Argument arguments[] = {immediate_argument(instr.index), entry_argument(index),
                                    entry_argument(value), entry_argument(n)};
      return call_builtin(offsetof(Builtins, table_fill), arguments);
    }
    case Opcode::kTableCopy: {
      const Entry n = pop(), src = pop(), dst = pop();
      const Argument arguments[] = {immediate_argument(both(instr.index, instr.index2)), entry_argument(dst),
                                    entry_argument(src), entry_argument(n)};
      return call_builtin(offsetof(Builtins, table_copy), arguments);
    }
    case Opcode::kTableInit: {
      const Entry n = pop(), src = pop(), dst = pop();
      const Argument arguments[] = {immediate_argument(both(instr.index, instr.index2)), entry_argument(dst),
                                    entry_argument(src), entry_argument(n)};
      return call_builtin(offsetof(Builtins, table_init), arguments);
    }
    case Opcode::kElemDrop: {
      const Argument arguments[] = {immediate_argument(instr.index)};
      return call_builtin(offsetof(Builtins, elem_drop), arguments);
    }
    default:
      return;
  }
}

}  // namespace hindsight::jit::baseline
