// References and tables. Everything but reading a table's size goes through the runtime.
#include "jit/abi/builtins.h"
#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::Value;
using wasm::Opcode;

Value* FunctionGenerator::table_record(uint32_t table) {
  return load_runtime(ir_.ptr, entry_field(kVmTables), int64_t{8} * table, true);
}

void FunctionGenerator::emit_reference(const wasm::Instr& instr) {
  const auto halves = [&](uint32_t high, uint32_t low) { return int64(uint64_t{high} << 32 | low); };
  Value* const table = int32(instr.index);
  switch (instr.opcode) {
    case Opcode::kRefNull:
      push(llvm::ConstantPointerNull::get(ir_.ptr));
      return;
    case Opcode::kRefAsNonNull:
      trap_if(b_.CreateIsNull(stack_.back()), TrapCode::kNullReference);
      return;
    case Opcode::kRefIsNull:
      push_condition(b_.CreateIsNull(pop()));
      return;
    case Opcode::kRefFunc:
      push(runtime_field(vmctx(), ir_.layout.func(instr.index)));
      return;
    case Opcode::kTableSize: {
      Value* const size =
          load_runtime(ir_.i64, table_record(instr.index), offsetof(TableRecord, size), false);
      push(b_.CreateTrunc(size, ir_.i32));
      return;
    }
    default:
      break;
  }
  calls_ = true;
  switch (instr.opcode) {
    case Opcode::kTableGet: {
      Value* const index = pop();
      llvm::CallInst* const element = call_builtin(offsetof(Builtins, table_get), ir_.ptr, {table, index});
      if (wasm::is_non_null(ir_.wasm.tables[instr.index].element))
        element->addRetAttr(llvm::Attribute::NonNull);
      push(element);
      break;
    }
    case Opcode::kTableSet: {
      Value* const value = pop();
      Value* const index = pop();
      call_builtin(offsetof(Builtins, table_set), ir_.void_type, {table, index, value});
      break;
    }
    case Opcode::kTableGrow: {
      Value* const delta = pop();
      Value* const initial = pop();
      push(call_builtin(offsetof(Builtins, table_grow), ir_.i32, {table, initial, delta}));
      break;
    }
    case Opcode::kElemDrop:
      call_builtin(offsetof(Builtins, elem_drop), ir_.void_type, {int32(instr.index)});
      break;
    default: {
      Value* const count = pop();
      Value* const second = pop();
      Value* const first = pop();
      if (instr.opcode == Opcode::kTableFill) {
        call_builtin(offsetof(Builtins, table_fill), ir_.void_type, {table, first, second, count});
      } else if (instr.opcode == Opcode::kTableCopy) {
        call_builtin(offsetof(Builtins, table_copy), ir_.void_type,
                     {halves(instr.index, instr.index2), first, second, count});
      } else {
        call_builtin(offsetof(Builtins, table_init), ir_.void_type,
                     {halves(instr.index, instr.index2), first, second, count});
      }
      break;
    }
  }
}

}  // namespace hindsight::jit::optimizing
