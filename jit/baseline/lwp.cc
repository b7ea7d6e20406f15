// Counting of LWP events: branches retired, values sampled and, where somebody takes these records, instructions retired, for the
// thread's LWP unit.
//
// Instructions are counted when control leaves a straight run of code (jump, label, call, return). So the counter is exact whenever code of
// another block, function or the runtime looks at it. Every executed WebAssembly instruction counts one, except block, loop, else, end and
// nop. An instruction that traps leaves the run that it is in uncounted.
//
// Branches are br_if, if, br_table and the back edges of loops by br. "Taken" is WebAssembly's: the condition
// of a br_if or if was not zero. The target is where execution goes on, taken or not.
//
// Reading, writing and reading a counter again is what most iterations would wait for. So, unless instructions are counted
// too, entries and back edges alone take from it, for the branches that follow. From where a record is due until the unit has seen enough
// (GuestUnit), the thread is in a body of the function in which every branch comes to its stub (bursts.cc).
//
// Values are those that a later compilation may specialize on:
// - The table index of a call_indirect, the callee's index of a call_ref.
// - The divisor of an integer division whose divisor is no constant.
// - The byte count of memory.copy, memory.fill and memory.init.
// - Which of its operands a select chose, in an innermost loop that has few of them. Unless instructions are counted, while branches are recorded.
// - The trip count of an innermost loop that is left at its end, unless it compares there with a constant other than 0.
//
// Indices and divisors are sampled after the instruction's checks of them, so only one that was used is recorded (an INT_MIN / -1 still
// traps). The checks of a byte count are the builtin's, so one that traps is recorded too.
//
// A counter is decremented before the comparison, so no flags are alive. Where a record is due, a stub is called out of line. It reads the
// comparison and the jumps that come next, and says how they will go. All of the work is the stubs' (stubs.h), so that a place that counts
// has little code of its own.
#include "jit/baseline/function_compiler.h"
#include "jit/baseline/stubs.h"

namespace hindsight::jit::baseline {
namespace {

// What a back edge counts for: itself, and about half of the other branches of its loop. Of an innermost loop it is always the same,
// as the trip count is found by it.
constexpr uint32_t kBranchesATurn = 2;

// Of a loop with more, none is sampled: its iterations are long, and each would make as many records. What pays as a branch is one or two
// choices that the next iteration waits for. A median of nine pixels has 38.
constexpr uint32_t kMostSelectsSampled = 4;

}  // namespace

void FunctionCompiler::end_traced_run(TraceEnd end, RunRecorder::Moved moved) {
  if (recorder_) count_instructions(end, moved);
}

void FunctionCompiler::count_instructions(TraceEnd end, RunRecorder::Moved moved) {
  const uint32_t n = std::exchange(pending_instructions_, 0);
  if (recorder_) trace_run(end, n, moved);
  if (!counts_instructions() || n == 0) return;
  a_.count_down(kThreadLwpInstructions, n, RareStub::kInstructions);
}

// Directly before the comparison, to which the stub looks ahead. Ends the straight run too.
void FunctionCompiler::count_branch(const Condition& condition, const Label& taken, const Label& not_taken,
                                    Jumps jumps, const Control* loop) {
  trace_outcome(condition, taken, not_taken);
  if (jumps == Jumps::kIfTaken)
    count_run_and(RareStub::kBranch, RareStub::kRunAndBranch, loop);
  else
    count_run_and(RareStub::kBranchNotTaken, RareStub::kRunAndBranchNotTaken, loop);
}

// Directly before the jump.
void FunctionCompiler::count_jump(const Control& loop) {
  trace_jump(loop.label);
  count_run_and(RareStub::kJump, RareStub::kRunAndJump, &loop);
}

void FunctionCompiler::count_run_and(RareStub branch, RareStub both, const Control* loop) {
  const uint32_t n = std::exchange(pending_instructions_, 0);
  if (!options_.lwp_counting) return;
  if (n == 0 || !counts_instructions())
    count_one_branch(branch, loop);
  else
    a_.count_run_and_branch(n, both);
}

// By a jump that is not taken: a call jumped over at each of them would be one taken jump more for each that the program has.
void FunctionCompiler::call_out_of_line(uint32_t jump, RareStub stub) {
  out_of_line_.push_back({jump, offset_, kStubs + static_cast<uint32_t>(stub)});
}

void FunctionCompiler::count_one_branch(RareStub stub, const Control* loop) {
  const auto count = [&](uint32_t n) {
    call_out_of_line(a_.count_down_and_leave(kThreadLwpBranches, n), stub);
  };
  if (!counts_in_bursts()) return count(1);
  const uint32_t around = controls_.back().loop;
  if (loop != nullptr) {
    // Every way but a jump may be passed without ending the iteration, and another loop's ends none of this one.
    Control& innermost = controls_[controls_.back().loop];
    if (stub != RareStub::kJump &&
        (&innermost != loop || std::exchange(innermost.has_conditional_back_edge, true)))
      innermost.counts_otherwise = true;
    return pass_branch(loop->in_innermost_loop ? kBranchesATurn : 1 + loop->branches / 2, stub);
  }
  if (around != kNoIndex) ++controls_[around].branches;
  pass_branch(0, stub);
}

void FunctionCompiler::count_computed_jump(const Control* loop) {
  if (options_.lwp_counting) count_one_branch(RareStub::kComputedJump, loop);
}

// `load` brings the value to r11, and may use no other register.
template <typename Load>
void FunctionCompiler::sample_site(uint32_t site_flags, const Load& load) {
  if (!samples_values()) return;
  a_.sub(x86::dword_ptr(x86::r14, kThreadLwpValues), 1);
  record_if_negative(site_flags, load);
}

// By the flags of a counter.
template <typename Load>
void FunctionCompiler::record_if_negative(uint32_t site_flags, const Load& load) {
  const Label record = a_.new_label();
  const Label resume = a_.new_label();
  a_.js(record);
  a_.bind(resume);
  out_of_line(record, [this, load, site_flags, resume] {
    load();
    a_.push(asmjit::imm(site_flags));
    a_.push(asmjit::imm(offset_.value));
    a_.call_near(reinterpret_cast<const void*>(hindsight_stub_value));
    a_.lea(x86::rsp, x86::ptr(x86::rsp, 16));
    a_.jmp(resume);
  });
}

void FunctionCompiler::sample_value(const Entry& value, uint32_t site_flags) {
  // A 32-bit move extends an i32. A local comes from its slot, which always holds it (I2): which register
  // caches it by now is another instruction's business.
  sample_site(site_flags, [this, value] {
    const bool wide = is_wide(value.type);
    const x86::Gp to = gp(11, wide);
    switch (value.kind) {
      case Entry::Kind::kReg:
        a_.mov(to, gp(value.reg, wide));
        break;
      case Entry::Kind::kConst:
        load_const(11, value.type, value.bits);
        break;
      case Entry::Kind::kLocal:
      case Entry::Kind::kSlot:
        a_.mov(to, place(value, wide ? 8 : 4));
        break;
    }
  });
}

// Before the comparison, which the rare case makes a second time. Only in innermost loops. A branch in its place can pay where the
// next iteration waits for what was chosen and comes soon; most selects are elsewhere.
void FunctionCompiler::sample_choice(const Condition& condition) {
  if (!controls_.back().in_innermost_loop) return;
  if (counts_in_bursts() && !recording_) return;
  if (controls_[controls_.back().loop].selects > kMostSelectsSampled) return;
  const auto load = [this, condition] {
    const Label first = a_.new_label();
    emit_condition(condition);
    a_.mov(x86::r11d, asmjit::imm(1));  // leaves the flags alone
    jump_if(condition, first);
    a_.mov(x86::r11d, asmjit::imm(0));
    a_.bind(first);
  };
  if (!counts_in_bursts()) return sample_site(kValueSiteSelect, load);
  a_.cmp(x86::dword_ptr(x86::r14, kThreadLwpBranches), 0);
  record_if_negative(kValueSiteSelect, load);
}

void FunctionCompiler::begin_turns() {
  if (!counts_in_bursts()) {
    a_.mov(turns(), 0);
    return;
  }
  a_.mov(x86::r11d, x86::dword_ptr(x86::r14, kThreadLwpBranches));
  a_.mov(turns(), x86::r11d);
}

void FunctionCompiler::count_turn() {
  if (!counts_in_bursts()) a_.sub(turns(), 1);
}

// The counter of branches tells how many back edges there were if each iteration took from it once. If it was reloaded meanwhile the
// number is wrong: once in so many branches, so it is never the usual one.
bool FunctionCompiler::knows_turns(const Control& loop) const {
  return loop.counts_turns && loop.varies && !(counts_in_bursts() && loop.counts_otherwise);
}

// The record is the loop's, not its end's.
void FunctionCompiler::sample_turns(const Control& loop) {
  if (recording_) return;  // it takes nothing from the counter
  const WasmOffset end = std::exchange(offset_, loop.offset);
  sample_site(kValueSiteLoop, [this] {
    a_.mov(x86::r11d, turns());
    if (counts_in_bursts()) {
      a_.sub(x86::r11d, x86::dword_ptr(x86::r14, kThreadLwpBranches));
      a_.sar(x86::r11d, 1);
      static_assert(kBranchesATurn == 2);
    } else {
      a_.neg(x86::r11d);
    }
  });
  offset_ = end;
}

void FunctionCompiler::sample_callee() {
  sample_site(kValueSiteCallRef,
              [this] { a_.mov(x86::r11d, x86::dword_ptr(x86::rax, offsetof(FuncRef, func_index))); });
}

}  // namespace hindsight::jit::baseline
