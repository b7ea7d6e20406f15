// Code that tells a reader everything it does: CompileOptions::trace. base/trace.h is the contract; what a
// run computes is described by run_recorder.h. Words are appended to ThreadState::trace_at; room is asked for
// once a run.
#include "jit/baseline/function_compiler.h"
#include "jit/baseline/stubs.h"

namespace hindsight::jit::baseline {

namespace {
const x86::Mem kTraceAt = x86::qword_ptr(x86::r14, kThreadTraceAt);

int32_t run_word(uint32_t id) {
  return static_cast<int32_t>(~id);  // sign-extended by the move that stores it
}
}  // namespace

void FunctionCompiler::trace_word(const x86::Gp& word) {
  a_.mov(x86::r11, kTraceAt);
  a_.mov(x86::qword_ptr(x86::r11), word);
  a_.add(kTraceAt, 8);
}

// In the prologue: r11 and rax are nobody's, the arguments are where the caller put them.
void FunctionCompiler::trace_enter() {
  if (!recorder_) return;
  const uint32_t id = recorder_->enter();
  a_.mov(x86::r11, kTraceAt);
  a_.mov(x86::qword_ptr(x86::r11), asmjit::imm(run_word(id)));
  a_.mov(x86::qword_ptr(x86::r11, 8), x86::rbp);
  a_.mov(x86::rax, x86::qword_ptr(x86::rbx, kVmMemoryBase));
  a_.mov(x86::qword_ptr(x86::r11, 16), x86::rax);
  a_.add(kTraceAt, 24);
}

// At a landing, where rax is the exception.
void FunctionCompiler::trace_land() {
  if (!recorder_) return;
  const uint32_t id = recorder_->land();
  a_.mov(x86::r11, kTraceAt);
  a_.mov(x86::qword_ptr(x86::r11), asmjit::imm(run_word(id)));
  a_.mov(x86::qword_ptr(x86::r11, 8), x86::rbp);
  a_.add(kTraceAt, 16);
}

void FunctionCompiler::trace_run(TraceEnd end, uint32_t instructions, RunRecorder::Moved moved) {
  if (!recorder_) return;
  if (end == TraceEnd::kFallThrough && instructions == 0 && moved.arity == 0 && recorder_->empty()) return;
  const CodeOffset here(static_cast<uint32_t>(a_.offset()));
  const uint32_t id = recorder_->end_run(end, instructions, offset_, here, moved);
  const Label full = a_.new_label();
  const Label resume = a_.new_label();
  a_.mov(x86::r11, kTraceAt);
  a_.cmp(x86::r11, x86::qword_ptr(x86::r14, kThreadTraceEnd));
  a_.jae(full);
  a_.bind(resume);
  a_.mov(x86::qword_ptr(x86::r11), asmjit::imm(run_word(id)));
  a_.add(kTraceAt, 8);
  out_of_line(full, [this, resume] {
    a_.call_near(reinterpret_cast<const void*>(hindsight_stub_trace_full));
    a_.mov(x86::r11, kTraceAt);
    a_.jmp(resume);
  });
}

void FunctionCompiler::trace_outcome(const Condition& condition, const Label& taken, const Label& fall) {
  if (!recorder_) return;
  traced_branches_.push_back({&recorder_->last_run(), taken, fall});
  // The condition's operands belong to this instruction, so allocating leaves them as they are.
  const RegId outcome = alloc(false);
  emit_condition(condition);
  set_from_condition(condition, gp(outcome, false));
  trace_word(gp(outcome, true));
  release(outcome);
}

void FunctionCompiler::trace_jump(const Label& target) {
  if (recorder_) traced_branches_.push_back({&recorder_->last_run(), target, target});
}

void FunctionCompiler::trace_access(const x86::Mem& at) {
  if (!recorder_) return;
  const RegId address = alloc(false);
  const RegId buffer = alloc(false);
  a_.lea(gp(address, true), at);
  a_.mov(gp(buffer, true), kTraceAt);
  a_.mov(x86::qword_ptr(gp(buffer, true)), gp(address, true));
  a_.add(kTraceAt, 8);
  release(address);
  release(buffer);
  recorder_->access_at(CodeOffset(static_cast<uint32_t>(a_.offset())));
}

void FunctionCompiler::trace_bulk(std::initializer_list<BulkWord> words) {
  if (!recorder_) return;
  const RegId word = alloc(false);
  for (const auto& [entry, memory] : words) {
    load_into(word, entry);
    if (memory) a_.add(gp(word, true), x86::qword_ptr(x86::rbx, vm_layout_.memory_base(*memory)));
    trace_word(gp(word, true));
  }
  release(word);
  recorder_->access_at(CodeOffset(static_cast<uint32_t>(a_.offset())));
}

void FunctionCompiler::publish_trace(const CodeVersion& version) {
  if (!recorder_) return;
  for (const TracedBranch& branch : traced_branches_) {
    branch.run->taken = CodeOffset(static_cast<uint32_t>(a_.offset_of(branch.taken)));
    branch.run->fall = CodeOffset(static_cast<uint32_t>(a_.offset_of(branch.fall)));
  }
  auto function = recorder_->finish();
  function->code = reinterpret_cast<uint64_t>(version.begin());
  options_.trace->publish(std::move(function));
}

}  // namespace hindsight::jit::baseline
