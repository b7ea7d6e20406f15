// Calls of nests (jit/abi/nest_exits.h), and where the code goes on after them.
//
// A nest returns into the frame that called it, with a number that says how its loop was left. The number is an index of the loop's table of
// distances, which lies with the constants. What it leads to is in one of these states:
//   - A loop's header. Nothing is cached there (I3), so that the table leads to the label itself.
//   - The end of the nest's loop, or of a block around it. The nest has left every operand of the label in its slot, and so did this code
//     before it called. The locals are in their slots (I2). What is left is that the label's code may expect some of them in registers.
//     A piece of code out of line, a resume point, loads these and jumps to the label.
//   - The function's return. The results are in the slots of the first operands; a resume point loads them.
// A frame has one resume point, however many loops lead to it. No code that runs without nests is made longer by them, but where a loop has
// results: they go to their slots at its end.
//
// Instructions that are pending where a loop ends are counted by what follows, as if they had run here: at most one straight run.
#include <bit>

#include "jit/baseline/function_compiler.h"
#include "jit/wasm/loop_nests.h"

namespace hindsight::jit::baseline {

static_assert(kMostNestLevels == wasm::kMostLoopLevels);
static_assert(kNestLeft == 0 && kNestLeftAfterPoll == 1 && kNestEnded == 2 && nest_label(2, 1) == 3);

std::optional<Label> FunctionCompiler::note_nest(uint32_t index, const Label& after_poll) {
  const wasm::LoopInfo& loop = body_.loops[index];
  // A trace says what every instruction does, which a nest's code does not.
  if (loop.too_deep || recorder_) return {};
  const Label table = a_.new_label();
  nest_tables_.push_back({table, static_cast<uint32_t>(nest_ways_.size())});
  nest_ways_.push_back(controls_.back().label);
  nest_ways_.push_back(after_poll);
  nest_ways_.push_back(resume_entry(controls_.back()));
  for (uint64_t left = loop.targets; left; left &= left - 1) {
    ++steps_;
    Control& to = control_at(static_cast<uint32_t>(std::countr_zero(left)));
    nest_ways_.push_back(to.kind == Control::Kind::kLoop ? to.label : resume_entry(to));
  }
  return table;
}

const Label& FunctionCompiler::resume_entry(Control& control) {
  if (control.resume == kNoIndex) {
    control.resume = static_cast<uint32_t>(resume_points_.size());
    ResumePoint& point = resume_points_.emplace_back();
    point.entry = a_.new_label();
    point.offset = offset_;
    if (control.kind == Control::Kind::kFunction) point.kind = ResumePoint::Kind::kReturn;
  }
  return resume_points_[control.resume].entry;
}

void FunctionCompiler::resume_here(const Control& control, const Label& label, const LocalCache& cache) {
  if (control.resume == kNoIndex) return;
  ResumePoint& point = resume_points_[control.resume];
  point.kind = ResumePoint::Kind::kLabel;
  point.label = label;
  point.offset = offset_;
  point.cache = cache;
}

void FunctionCompiler::end_of_nests(const Control& loop) {
  if (loop.resume == kNoIndex || !reachable_) return;
  flush_all();
  const Label here = a_.new_label();
  a_.bind(here);
  resume_here(loop, here, cache_);
}

void FunctionCompiler::call_nest(const Label& table) {
  a_.dec(x86::rax);
  pc_map_.add_row({CodeOffset(static_cast<uint32_t>(a_.offset())), offset_, kLoopGoesOn});
  a_.call(x86::rax);
  row(offset_);
  a_.mov(x86::eax, x86::eax);  // the upper half is undefined
  a_.lea(x86::r11, Emitter::at(table));
  a_.movsxd(x86::rax, x86::dword_ptr(x86::r11, x86::rax, 2));
  a_.add(x86::rax, x86::r11);
  a_.jmp(x86::rax);
}

void FunctionCompiler::emit_resume_points() {
  if (nest_tables_.empty()) return;
  // No nest leaves its loop by dead code.
  for (const ResumePoint& point : resume_points_)
    if (point.kind == ResumePoint::Kind::kNever) a_.bind(point.entry);
  row(kNoWasmOffset);
  a_.ud2();
  pop_to(0);
  for (const ResumePoint& point : resume_points_) {
    restore_cache(LocalCache());
    switch (point.kind) {
      case ResumePoint::Kind::kNever:
        continue;
      case ResumePoint::Kind::kLabel:
        a_.bind(point.entry);
        row(point.offset);
        for (uint32_t left = point.cache.registers; left; left &= left - 1) {
          const auto reg = static_cast<RegId>(std::countr_zero(left));
          ++steps_;
          Entry local;
          local.kind = Entry::Kind::kLocal;
          local.local = point.cache.local[reg];
          local.type = body_.locals[local.local];
          load_into(reg, local);
        }
        a_.jmp(point.label);
        continue;
      case ResumePoint::Kind::kReturn:
        a_.bind(point.entry);
        row(point.offset);
        for (const ValType type : type_.results) push_slot(type);
        load_return_values();
        pop_to(0);
        a_.jmp(epilogue_);
        continue;
    }
  }
  row(kNoWasmOffset);
}

void FunctionCompiler::emit_nest_tables() {
  if (nest_tables_.empty()) return;
  a_.align_data(4);
  for (size_t i = 0; i < nest_tables_.size(); ++i) {
    const size_t end = i + 1 < nest_tables_.size() ? nest_tables_[i + 1].first : nest_ways_.size();
    a_.bind(nest_tables_[i].label);
    const uint64_t base = a_.offset();
    for (size_t way = nest_tables_[i].first; way < end; ++way)
      a_.embed32(static_cast<uint32_t>(a_.offset_of(nest_ways_[way]) - base));
  }
}

}  // namespace hindsight::jit::baseline
