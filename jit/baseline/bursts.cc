// Two bodies of a function, so that a branch costs nothing while nobody records it (Arnold and Ryder, "A framework for reducing the cost
// of instrumented code", PLDI 2001: full duplication).
//
// The quiet body is what runs. It takes from the counter of branches at the function's entry and at back edges, for the branches that
// follow. Where the counter is negative there, it goes on in the recording body, in the same frame.
//
// The recording body has a call of a stub at each branch. It looks at the counter first: where it is negative no more, it goes on in the
// quiet body. Selects are recorded there alone.
//
// Both are made by the same steps from the same bytes. What one of them has besides changes no register but r11 and no operand. So
// at each place, as counted from the function's beginning, both have the same values in the same registers and slots, and a jump is all that
// it takes to go over. A computed jump has its target in r11 by then: it leads to the body where that was loaded.
//
// Loops are not aligned, and not entered from optimized code, in the recording body: it is left within thousands of branches.
#include <algorithm>

#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

// For half of those outside of loops, as a back edge counts half of its loop's. Of a function that has nothing but loops, the first
// iterations would go by without it, which may be all that there are.
void FunctionCompiler::count_entry() {
  if (!counts_in_bursts() || (body_.branches_outside_loops == 0 && body_.loops.empty())) return;
  pass_place(std::max(1u, (body_.branches_outside_loops + 1) / 2));
}

void FunctionCompiler::pass_place(uint32_t count) {
  if (recording_) {
    if (next_place_ == places_.size()) {
      bodies_differ_ = true;
      return;
    }
    const Place& place = places_[next_place_++];
    bodies_differ_ |= place.cached != cache_.registers || place.operands != operand_regs_;
    if (place.jump != 0) a_.direct_here(place.jump);
    a_.look_and_go_back(kThreadLwpBranches, place.after);
    return;
  }
  const uint32_t jump = count == 0 ? 0 : a_.count_down_and_leave(kThreadLwpBranches, count);
  places_.push_back({jump, static_cast<uint32_t>(a_.offset()), cache_.registers, operand_regs_});
}

void FunctionCompiler::pass_branch(uint32_t count, RareStub stub) {
  pass_place(count);
  if (!recording_) return;
  a_.call(stub);
  // The stub looks for what comes next where a jump leads to (stubs.h).
  if (stub != RareStub::kComputedJump) a_.return_to(static_cast<uint32_t>(a_.offset()) + Emitter::kJumpBytes);
}

Status FunctionCompiler::compile_recording_body() {
  if (places_.empty()) return {};
  recording_ = true;
  reader_.seek(body_.begin);
  stack_.clear();
  flushed_ = 0;
  last_ref_.assign(last_ref_.size(), kNoIndex);
  local_reg_.assign(local_reg_.size(), kNoReg);
  free_ = kAllocatable;
  temp_ = locked_ = operand_regs_ = 0;
  cache_ = LocalCache();
  next_victim_ = 0;
  handler_ = kNoIndex;
  reachable_ = true;
  dead_depth_ = next_loop_ = br_tables_ = pending_instructions_ = 0;
  offset_ = body_.begin;
  row(offset_);
  call_layout_.assign(type_);
  cache_parameters();
  count_entry();
  compile_body();
  if (a_.offset() > kMaxCodeBytes || (!bodies_differ_ && next_place_ == places_.size())) return {};
  return make_error(ErrorKind::kInternal, "the two bodies of a function differ",
                    module_.function_name(function_), body_.begin.value);
}

}  // namespace hindsight::jit::baseline
