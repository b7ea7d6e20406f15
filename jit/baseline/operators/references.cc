// Typed function references. Entries know of what is never null, so that nothing is tested twice within a
// block.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

using Kind = Entry::Kind;

// A test of an operand that was popped. Its register, if it has one, is not allocated again before the end of
// the instruction.
Condition FunctionCompiler::is_null(const Entry& reference) {
  Condition condition;
  condition.cc = x86::CondCode::kE;
  if (reference.kind == Kind::kSlot) {
    condition.inst = x86::Inst::kIdCmp;
    condition.a = home(reference, 8);
    condition.b = asmjit::imm(0);
  } else {
    condition.inst = x86::Inst::kIdTest;
    condition.a = condition.b = gp(use(reference), true);
  }
  return condition;
}

// Puts back what was popped, with a type that says that it is not null.
void FunctionCompiler::push_non_null(const Entry& reference, const Condition& tested) {
  if (reference.kind == Kind::kLocal)
    push_local(reference.local);
  else if (reference.kind == Kind::kSlot)
    push_slot(reference.type);
  else
    push_reg(reference.type, static_cast<RegId>(tested.a.as<x86::Gp>().id()));
  stack_.back().type = wasm::non_null(reference.type);
}

void FunctionCompiler::ref_as_non_null() {
  if (wasm::is_non_null(top().type)) return;
  const Entry reference = pop();
  const Condition null = is_null(reference);
  emit_condition(null);
  trap_if(null.cc, TrapCode::kNullReference);
  push_non_null(reference, null);
}

void FunctionCompiler::branch_on_null(uint32_t depth) {
  if (wasm::is_non_null(top().type)) return;
  const Entry reference = pop();
  const Condition null = is_null(reference);
  branch_if(depth, null);
  push_non_null(reference, null);
}

// The label takes the reference, too: it goes to its slot, and the test keeps its register.
void FunctionCompiler::branch_on_non_null(uint32_t depth) {
  if (wasm::is_non_null(top().type)) return branch(depth);
  const Entry reference = pop();
  const Condition null = is_null(reference);
  if (reference.kind == Kind::kLocal) {
    push_local(reference.local);
  } else {
    if (reference.kind != Kind::kSlot) a_.mov(home(reference), null.a.as<x86::Gp>());
    push_slot(reference.type);
  }
  branch_if(depth, null.inverted());
  pop();
}

// The FuncRef to call, to rax.
void FunctionCompiler::pop_callee() {
  constexpr RegId kRef = 0;  // rax is nobody's argument
  claim(kRef);
  const Entry reference = pop();
  load_into(kRef, reference);
  if (!wasm::is_non_null(reference.type)) {
    a_.test(x86::rax, x86::rax);
    trap_if(x86::CondCode::kZ, TrapCode::kNullFunctionReference);
  }
  sample_callee();
  trace_callee();
}

void FunctionCompiler::call_ref(const Instr& instr) {
  const wasm::FuncType& type = module_.types[instr.index];
  count_instructions(TraceEnd::kIndirectCall);
  pop_callee();
  pass_arguments(type);
  load_callee_context();
  a_.call(x86::qword_ptr(x86::rax, offsetof(FuncRef, code)));
  note_call();
  finish_call(type);
}

void FunctionCompiler::return_call_ref(const Instr& instr) {
  count_instructions(TraceEnd::kIndirectTailCall);
  pop_callee();
  pass_arguments(module_.types[instr.index], true);
  load_callee_context();
  a_.mov(x86::rax, x86::qword_ptr(x86::rax, offsetof(FuncRef, code)));
  tail_jump();
}

}  // namespace hindsight::jit::baseline
