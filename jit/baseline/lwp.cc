// Counting of LWP events: instructions and branches retired and values sampled, for the thread's LWP unit.
//
// Instructions are counted when control leaves a straight run of code (jump, label, call, return), so the
// counter is exact whenever code of another block, function or the runtime looks at it. Every executed
// WebAssembly instruction counts one, except block, loop, else, end and nop. An instruction that traps
// leaves the run that it is in uncounted.
//
// Branches are br_if, if, br_table and the back edges of loops by br. "Taken" is WebAssembly's: the condition
// of a br_if or if was not zero. The target is where execution goes on, taken or not.
//
// Values are those that a later compilation may specialize on: the table index of a call_indirect, the
// callee's index of a call_ref, the divisor of an integer division whose divisor is no constant, the byte
// count of memory.copy, memory.fill and memory.init. Indices and divisors are sampled behind the
// instruction's checks of them, so only one that was used is recorded (an INT_MIN / -1 still traps); the
// checks of a byte count are the builtin's, so one that traps is recorded too.
//
// A counter is decremented before the comparison, so no flags are alive; the out-of-line path that writes the
// record evaluates the comparison a second time, from the same operands.
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

uint32_t FunctionCompiler::save_live(uint32_t registers) {
  const auto count = static_cast<uint32_t>(__builtin_popcount(registers));
  const auto vectors = static_cast<uint32_t>(__builtin_popcount(registers & kFloatRegs));
  const uint32_t bytes = (8 * (count - vectors) + slot_bytes_ * vectors + 15) & ~15u;
  if (bytes) a_.sub(x86::rsp, bytes);
  int32_t at = 0;
  for (uint32_t r = 0; r < kRegs; ++r) {
    if (!(registers & (1u << r))) continue;
    if (r < 16)
      a_.mov(x86::qword_ptr(x86::rsp, at), x86::gpq(r));
    else if (slot_bytes_ == 16)
      a_.movups(x86::ptr(x86::rsp, at), xmm(static_cast<RegId>(r)));
    else
      a_.movsd(x86::qword_ptr(x86::rsp, at), xmm(static_cast<RegId>(r)));
    at += r < 16 ? 8 : static_cast<int32_t>(slot_bytes_);
  }
  return bytes;
}

void FunctionCompiler::restore_live(uint32_t registers, uint32_t bytes) {
  int32_t at = 0;
  for (uint32_t r = 0; r < kRegs; ++r) {
    if (!(registers & (1u << r))) continue;
    if (r < 16)
      a_.mov(x86::gpq(r), x86::qword_ptr(x86::rsp, at));
    else if (slot_bytes_ == 16)
      a_.movups(xmm(static_cast<RegId>(r)), x86::ptr(x86::rsp, at));
    else
      a_.movsd(xmm(static_cast<RegId>(r)), x86::qword_ptr(x86::rsp, at));
    at += r < 16 ? 8 : static_cast<int32_t>(slot_bytes_);
  }
  if (bytes) a_.add(x86::rsp, bytes);
}

void FunctionCompiler::count_instructions(TraceEnd end, RunRecorder::Moved moved) {
  const uint32_t n = std::exchange(pending_instructions_, 0);
  trace_run(end, n, moved);
  if (!options_.lwp_counting || n == 0) return;
  const Label record = a_.newLabel();
  const Label resume = a_.newLabel();
  a_.sub(x86::dword_ptr(x86::r14, kThreadLwpInstructions), n);
  a_.js(record);
  a_.bind(resume);
  out_of_line(record, [this, resume, registers = live()] {
    const uint32_t bytes = save_live(registers);
    a_.mov(x86::rdi, x86::rbx);
    a_.mov(x86::rax, x86::qword_ptr(x86::rbx, kVmBuiltins));
    a_.call(x86::qword_ptr(x86::rax, offsetof(Builtins, lwp_instructions_retired)));
    restore_live(registers, bytes);
    a_.jmp(resume);
  });
}

void FunctionCompiler::count_branch(const Condition& condition, const Label& taken, const Label& not_taken) {
  trace_outcome(condition, taken, not_taken);
  if (!options_.lwp_counting) return;
  const Label record = a_.newLabel();
  const Label resume = a_.newLabel();
  a_.sub(x86::dword_ptr(x86::r14, kThreadLwpBranches), 1);
  a_.js(record);
  a_.bind(resume);
  out_of_line(record, [this, condition, taken, not_taken, resume, registers = live()] {
    const uint32_t bytes = save_live(registers);
    const Label is_taken = a_.newLabel();
    const Label known = a_.newLabel();
    // Its operands are registers that saving does not change, slots relative to rbp, or immediates.
    emit_condition(condition);
    jump_if(condition, is_taken);
    a_.xor_(x86::esi, x86::esi);
    a_.lea(x86::rdx, x86::ptr(not_taken));
    a_.jmp(known);
    a_.bind(is_taken);
    a_.mov(x86::esi, 1);
    a_.lea(x86::rdx, x86::ptr(taken));
    a_.bind(known);
    a_.mov(x86::rdi, x86::rbx);
    a_.mov(x86::rax, x86::qword_ptr(x86::rbx, kVmBuiltins));
    a_.call(x86::qword_ptr(x86::rax, offsetof(Builtins, lwp_branch_retired)));
    restore_live(registers, bytes);
    a_.jmp(resume);
  });
}

void FunctionCompiler::count_jump(const Label& target) {
  trace_jump(target);
  if (!options_.lwp_counting) return;
  const Label record = a_.newLabel();
  a_.sub(x86::dword_ptr(x86::r14, kThreadLwpBranches), 1);
  a_.js(record);
  // Nothing is alive in a register where a loop begins.
  out_of_line(record, [this, target] {
    a_.mov(x86::esi, 1);
    a_.lea(x86::rdx, x86::ptr(target));
    a_.mov(x86::rdi, x86::rbx);
    a_.mov(x86::rax, x86::qword_ptr(x86::rbx, kVmBuiltins));
    a_.call(x86::qword_ptr(x86::rax, offsetof(Builtins, lwp_branch_retired)));
    a_.jmp(target);
  });
}

void FunctionCompiler::count_computed_jump() {
  if (!options_.lwp_counting) return;
  const Label record = a_.newLabel();
  const Label resume = a_.newLabel();
  a_.sub(x86::dword_ptr(x86::r14, kThreadLwpBranches), 1);
  a_.js(record);
  a_.bind(resume);
  out_of_line(record, [this, resume, registers = live() | bit(11)] {
    const uint32_t bytes = save_live(registers);
    a_.mov(x86::esi, 1);
    a_.mov(x86::rdx, x86::r11);
    a_.mov(x86::rdi, x86::rbx);
    a_.mov(x86::rax, x86::qword_ptr(x86::rbx, kVmBuiltins));
    a_.call(x86::qword_ptr(x86::rax, offsetof(Builtins, lwp_branch_retired)));
    restore_live(registers, bytes);
    a_.jmp(resume);
  });
}

// `load` brings the value to rdx, and may use no other register.
template <typename Load>
void FunctionCompiler::sample_site(uint32_t site_flags, const Load& load) {
  if (!samples_values()) return;
  const Label record = a_.newLabel();
  const Label resume = a_.newLabel();
  a_.sub(x86::dword_ptr(x86::r14, kThreadLwpValues), 1);
  a_.js(record);
  a_.bind(resume);
  out_of_line(record, [this, load, site_flags, resume, registers = live()] {
    const uint32_t bytes = save_live(registers);
    load();  // first, while the register it comes from, which may be that of another argument, still has it
    a_.mov(x86::esi, offset_.value);
    a_.mov(x86::ecx, site_flags);
    a_.mov(x86::rdi, x86::rbx);
    a_.mov(x86::rax, x86::qword_ptr(x86::rbx, kVmBuiltins));
    a_.call(x86::qword_ptr(x86::rax, offsetof(Builtins, lwp_value_sampled)));
    restore_live(registers, bytes);
    a_.jmp(resume);
  });
}

void FunctionCompiler::sample_value(const Entry& value, uint32_t site_flags) {
  // A 32-bit move extends an i32. A local comes from its slot, which always holds it (I2): which register
  // caches it by now is another instruction's business.
  sample_site(site_flags, [this, value] {
    const bool wide = is_wide(value.type);
    const x86::Gp to = gp(2, wide);
    switch (value.kind) {
      case Entry::Kind::kReg:
        a_.mov(to, gp(value.reg, wide));
        break;
      case Entry::Kind::kConst:
        load_const(2, value.type, value.bits);
        break;
      case Entry::Kind::kLocal:
      case Entry::Kind::kSlot:
        a_.mov(to, place(value, wide ? 8 : 4));
        break;
    }
  });
}

void FunctionCompiler::sample_callee() {
  sample_site(kValueSiteCallRef,
              [this] { a_.mov(x86::edx, x86::dword_ptr(x86::rax, offsetof(FuncRef, func_index))); });
}

}  // namespace hindsight::jit::baseline
