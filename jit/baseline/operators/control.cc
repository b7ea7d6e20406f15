// Structured control: blocks, branches, select, and the fusion of comparisons with what follows them.
#include <bit>

#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

using Kind = Entry::Kind;
using Parity = Condition::Parity;

Condition Condition::inverted() const {
  Condition other = *this;
  other.cc = x86::negateCond(cc);
  if (parity == Parity::kAndOrdered) other.parity = Parity::kOrUnordered;
  if (parity == Parity::kOrUnordered) other.parity = Parity::kAndOrdered;
  return other;
}

// --- conditions

void FunctionCompiler::emit_condition(const Condition& condition) {
  a_.emit(condition.inst, condition.a, condition.b);
}

void FunctionCompiler::jump_if(const Condition& condition, const Label& to) {
  switch (condition.parity) {
    case Parity::kIgnore:
      a_.j(condition.cc, to);
      break;
    case Parity::kAndOrdered: {
      const Label no = a_.new_label();
      a_.jp(no);
      a_.j(condition.cc, to);
      a_.bind(no);
      break;
    }
    case Parity::kOrUnordered:
      a_.jp(to);
      a_.j(condition.cc, to);
      break;
  }
}

void FunctionCompiler::set_from_condition(const Condition& condition, const x86::Gp& to) {
  a_.set(condition.cc, to.r8());
  if (condition.parity == Parity::kAndOrdered) {
    a_.setnp(x86::r11b);
    a_.and_(to.r8(), x86::r11b);
  } else if (condition.parity == Parity::kOrUnordered) {
    a_.setp(x86::r11b);
    a_.or_(to.r8(), x86::r11b);
  }
  a_.movzx(to.r32(), to.r8());
}

// An i32 as a condition: "is not zero".
Condition FunctionCompiler::pop_condition() {
  const Entry value = pop();
  Condition condition;
  condition.cc = x86::CondCode::kNE;
  if (value.kind == Kind::kSlot) {
    condition.inst = x86::Inst::kIdCmp;
    condition.a = home(value, 4);
    condition.b = asmjit::imm(0);
  } else {
    condition.inst = x86::Inst::kIdTest;
    condition.a = condition.b = gp(use(value), false);
  }
  return condition;
}

void FunctionCompiler::use_condition(Condition condition) {
  Instr next;
  for (;;) {
    const WasmOffset here = reader_.position();
    switch (static_cast<Opcode>(module_.bytes[here.value])) {
      case Opcode::kI32Eqz:
        reader_.next(next);
        begin_instruction(next);
        condition = condition.inverted();
        continue;
      case Opcode::kBrIf:
        reader_.next(next);
        begin_instruction(next);
        return branch_if(next.index, condition);
      case Opcode::kIf:
        reader_.next(next);
        begin_instruction(next);
        return enter_if(next, condition);
      case Opcode::kSelect:
        reader_.next(next);
        begin_instruction(next);
        return select(condition);
      default: {
        const RegId result = alloc(false);
        emit_condition(condition);
        set_from_condition(condition, gp(result, false));
        return push_reg(ValType::kI32, result);
      }
    }
  }
}

void FunctionCompiler::select(const Condition& condition) {
  sample_choice(condition);
  const Entry b = pop();
  const Entry a = pop();
  // Operands are loaded before the comparison; only moves, so that its operands stay as they are.
  if (wasm::in_vector_register(a.type)) {
    const RegId result = own(a);
    const RegId other = use(b);
    const Label keep = a_.new_label();
    emit_condition(condition);
    jump_if(condition, keep);
    move_reg(result, other, a.type);
    a_.bind(keep);
    return push_reg(a.type, result);
  }
  const bool wide = is_wide(a.type);
  if (condition.parity == Parity::kOrUnordered) {
    // a if not equal or unordered.
    const RegId result = own(b);
    const RegId other = use(a);
    emit_condition(condition);
    a_.cmov(condition.cc, gp(result, wide), gp(other, wide));
    a_.cmovp(gp(result, wide), gp(other, wide));
    return push_reg(a.type, result);
  }
  const RegId result = own(a);
  const RegId other = use(b);
  emit_condition(condition);
  a_.cmov(x86::negateCond(condition.cc), gp(result, wide), gp(other, wide));
  if (condition.parity == Parity::kAndOrdered) a_.cmovp(gp(result, wide), gp(other, wide));
  push_reg(a.type, result);
}

// --- caches at labels

void FunctionCompiler::merge_cache(Control& to) {
  if (!to.targeted) {
    to.at_label = cache_;
    to.targeted = true;
    return;
  }
  to.at_label.agree(cache_);
}

void FunctionCompiler::restore_cache(const LocalCache& cache) {
  // Registers that a fused comparison still holds as temporaries are dead at a label.
  finish_instruction();
  forget_locals();
  for (uint32_t left = cache.registers; left; left &= left - 1) {
    const auto r = static_cast<RegId>(std::countr_zero(left));
    cache_local(cache.local[r], r);
  }
}

void FunctionCompiler::mark_unreachable() {
  reachable_ = false;
  if (recorder_) recorder_->drop_run();
  dead_depth_ = 0;
  pending_instructions_ = 0;
  pop_to(controls_.back().base);
  finish_instruction();
  forget_locals();
}

// At a label: the operands are those of `control`'s parameters or results, all in their slots.
void FunctionCompiler::set_height(size_t height, const Control& control, bool results) {
  pop_to(height);
  flushed_ = std::min(flushed_, stack_.size());
  const uint32_t n = results ? control.type.result_count() : control.type.param_count();
  for (uint32_t i = 0; i < n; ++i) push_slot(results ? control.type.result(i) : control.type.param(i));
}

// --- blocks

void FunctionCompiler::control(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kUnreachable:
      trap_here(TrapCode::kUnreachable);
      return mark_unreachable();
    case Opcode::kBlock:
      return enter_block(instr, Control::Kind::kBlock);
    case Opcode::kLoop:
      return enter_loop(instr);
    case Opcode::kIf:
      return enter_if(instr, pop_condition());
    case Opcode::kElse:
      return do_else();
    case Opcode::kEnd:
      return do_end();
    case Opcode::kBr:
      return branch(instr.index);
    case Opcode::kBrIf:
      return branch_if(instr.index, pop_condition());
    case Opcode::kBrTable:
      return branch_table(instr);
    case Opcode::kReturn:
      return do_return();
    default:
      return;  // nop
  }
}

void FunctionCompiler::enter_block(const Instr& instr, Control::Kind kind) {
  flush_all();
  const bool in_innermost_loop = kind != Control::Kind::kLoop && controls_.back().in_innermost_loop;
  const uint32_t loop =
      kind == Control::Kind::kLoop ? static_cast<uint32_t>(controls_.size()) : controls_.back().loop;
  Control& control = controls_.emplace_back();
  control.kind = kind;
  control.in_innermost_loop = in_innermost_loop;
  control.loop = loop;
  control.type = instr.block;
  control.base = static_cast<uint32_t>(stack_.size()) - instr.block.param_count();
  control.label = a_.new_label();
  control.outer_handler = handler_;
}

void FunctionCompiler::enter_loop(const Instr& instr) {
  const uint32_t loop = next_loop_++;
  count_instructions();
  enter_block(instr, Control::Kind::kLoop);
  controls_.back().in_innermost_loop = innermost_[loop];
  controls_.back().selects = body_.loops[loop].selects;
  // The back edges are not known yet: no cached local survives.
  forget_locals();
  if (innermost_[loop] && samples_values()) {
    controls_.back().counts_turns = true;
    controls_.back().offset = instr.offset;
    begin_turns();
  }
  if (innermost_[loop] && !recording_) a_.align_code(64);
  a_.bind(controls_.back().label);
  if (options_.loop_entries && !recording_ && !body_.has_handlers && !body_.has_tail_calls &&
      !options_.trace) {
    loop_entries_.push_back({LoopIndex(loop), controls_.back().label,
                             locals_count() + static_cast<uint32_t>(stack_.size()), CodeOffset(0)});
  }
  if (controls_.back().counts_turns) count_turn();
  osr_poll(loop);
}

void FunctionCompiler::osr_poll(uint32_t loop) {
  if (!options_.osr_polls) return;
  const x86::Mem at = Emitter::at({osr_slots_.id + loop}, 8);
  const Label enter = a_.new_label();
  const Label resume = a_.new_label();
  a_.cmp(at, 0);
  a_.jne(enter);
  a_.bind(resume);
  out_of_line(enter, [this, at, resume, table = note_nest(loop, resume)] {
    // Loaded once more: the slot may have been emptied meanwhile.
    a_.mov(x86::rax, at);
    a_.test(x86::rax, x86::rax);
    a_.jz(resume);
    a_.mov(x86::rdi, x86::rbx);
    a_.lea(x86::rsi, x86::ptr(x86::rbp, frame_disp_));
    const Label nest = a_.new_label();
    if (table) {
      a_.test(x86::eax, 1);
      a_.jnz(nest);
    }
    pc_map_.add_row({CodeOffset(static_cast<uint32_t>(a_.offset())), offset_, kLoopGoesOn});
    a_.call(x86::rax);
    row(offset_);
    a_.jmp(epilogue_);
    if (!table) return;
    a_.bind(nest);
    call_nest(*table);
  });
}

void FunctionCompiler::enter_if(const Instr& instr, const Condition& condition) {
  end_traced_run(TraceEnd::kBranch);
  // Flushing uses moves and scratch registers only, so the condition's operands stay as they are.
  enter_block(instr, Control::Kind::kIf);
  Control& control = controls_.back();
  control.else_label = a_.new_label();
  const Label then = a_.new_label();
  count_branch(condition, then, control.else_label, Jumps::kIfNotTaken);
  emit_condition(condition);
  jump_if(condition.inverted(), control.else_label);
  a_.bind(then);
  control.at_else = cache_;
}

void FunctionCompiler::do_else() {
  Control& control = controls_.back();
  if (reachable_) {
    flush_all();
    count_instructions();
    merge_cache(control);
    a_.jmp(control.label);
  }
  control.kind = Control::Kind::kElse;
  a_.bind(control.else_label);
  reachable_ = true;
  set_height(control.base, control, false);
  restore_cache(control.at_else);
}

void FunctionCompiler::do_end() {
  Control& control = controls_.back();
  switch (control.kind) {
    case Control::Kind::kFunction:
      if (reachable_) {
        count_instructions(TraceEnd::kReturn);
        load_return_values();
      }
      epilogue();
      controls_.pop_back();
      return;
    case Control::Kind::kLoop: {
      // Jumps to a loop go to its header: its end is nothing but where it is left, usually.
      if (reachable_ && knows_turns(control)) sample_turns(control);
      end_of_nests(control);
      controls_.pop_back();
      return;
    }
    case Control::Kind::kIf: {
      if (reachable_) {
        flush_all();
        count_instructions();
        merge_cache(control);
      }
      // Without an else the parameters are the results, already in their slots.
      if (!control.targeted) {
        control.at_label = control.at_else;
        control.targeted = true;
      } else {
        control.at_label.agree(control.at_else);
      }
      a_.bind(control.else_label);
      break;
    }
    case Control::Kind::kTry:
    case Control::Kind::kCatch:
    case Control::Kind::kTryTable:
      end_try(control);
      [[fallthrough]];
    case Control::Kind::kBlock:
    case Control::Kind::kElse:
      if (!control.targeted) {  // nothing joins: go on as we are, dead or alive
        controls_.pop_back();
        return;
      }
      if (reachable_) {
        flush_all();
        count_instructions();
        merge_cache(control);
      }
      break;
  }
  a_.bind(control.label);
  reachable_ = true;
  set_height(control.base, control, true);
  restore_cache(control.at_label);
  resume_here(control, control.label, control.at_label);
  controls_.pop_back();
}

// --- branches

uint32_t FunctionCompiler::branch_arity(const Control& to) const {
  return to.kind == Control::Kind::kLoop ? to.type.param_count() : to.type.result_count();
}

// Whether a jump has to move operands (all of them being in their own slots) or return.
bool FunctionCompiler::needs_moves(const Control& to) const {
  if (to.kind == Control::Kind::kFunction) return true;
  const uint32_t arity = branch_arity(to);
  return arity != 0 && stack_.size() - arity != to.base;
}

// Stores the top `arity` operands to the slots from operand `to_base` on. Changes no state: code after a
// conditional jump goes on with the registers as they are. Ascending, so a slot is read before it is written.
void FunctionCompiler::move_results(uint32_t arity, uint32_t to_base) {
  for (uint32_t i = 0; i < arity; ++i) {
    ++steps_;
    const Entry& entry = stack_[stack_.size() - arity + i];
    if (entry.kind == Kind::kSlot && entry.index == to_base + i) continue;
    store_entry(slot(locals_count() + to_base + i), entry);
  }
}

// The function's results, from the top of the stack to where the convention wants them. Changes no state.
void FunctionCompiler::load_return_values() {
  const auto arity = static_cast<uint32_t>(type_.results.size());
  if (arity == 1) {
    load_into(wasm::in_vector_register(type_.results[0]) ? RegId{16} : RegId{0}, stack_.back());
  } else {
    int32_t at = kThreadResults;
    for (uint32_t i = 0; i < arity; ++i) {
      ++steps_;
      store_entry(x86::Mem(x86::r14, at, 8), stack_[stack_.size() - arity + i]);
      at += static_cast<int32_t>(8 * words_of(type_.results[i]));
    }
  }
}

void FunctionCompiler::do_return() {
  count_instructions(TraceEnd::kReturn);
  load_return_values();
  a_.jmp(epilogue_);
  mark_unreachable();
}

void FunctionCompiler::branch(uint32_t depth) {
  Control& to = control_at(depth);
  if (to.kind == Control::Kind::kFunction) return do_return();
  const RunRecorder::Moved moved{branch_arity(to), to.base};
  if (to.kind == Control::Kind::kLoop)
    end_traced_run(TraceEnd::kJump, moved);
  else
    count_instructions(TraceEnd::kFallThrough, moved);
  move_results(branch_arity(to), to.base);
  if (to.kind == Control::Kind::kLoop)
    count_jump(to);
  else
    merge_cache(to);
  a_.jmp(to.label);
  mark_unreachable();
}

void FunctionCompiler::branch_if(uint32_t depth, const Condition& condition) {
  Control& to = control_at(depth);
  end_traced_run(TraceEnd::kBranch);
  const bool returns = to.kind == Control::Kind::kFunction;
  const uint32_t arity = branch_arity(to);
  // Operands that a jump delivers in place are flushed for good: then the jump needs no code of its own.
  const bool in_place = !returns && stack_.size() - arity == to.base;
  if (in_place && arity) flush_all();
  // A trace is told of the return on a way of its own.
  const bool direct = returns ? arity == 0 && !recorder_ : arity == 0 || in_place;
  const Label go_on = a_.new_label();
  const Control* const loop = to.kind == Control::Kind::kLoop ? &to : nullptr;
  if (direct) {
    count_branch(condition, to.label, go_on, Jumps::kIfTaken, loop);
    emit_condition(condition);
    jump_if(condition, to.label);
    a_.bind(go_on);
    // Compared with a constant, it nearly always iterates as often as is written there; many count down to 0.
    if (to.kind == Control::Kind::kLoop)
      to.varies = condition.inst != x86::Inst::kIdCmp || !condition.b.isImm() ||
                  condition.b.as<asmjit::Imm>().value() == 0;
    if (!returns && to.kind != Control::Kind::kLoop) merge_cache(to);
    return;
  }
  const Label taken = a_.new_label();
  count_branch(condition, taken, go_on, Jumps::kIfNotTaken, loop);
  emit_condition(condition);
  jump_if(condition.inverted(), go_on);
  a_.bind(taken);
  if (returns) {
    trace_run(TraceEnd::kReturn, 0, {});
    load_return_values();
    a_.jmp(epilogue_);
  } else {
    move_results(arity, to.base);
    if (to.kind != Control::Kind::kLoop) merge_cache(to);
    a_.jmp(to.label);
  }
  a_.bind(go_on);
}

void FunctionCompiler::branch_table(const Instr& instr) {
  const Entry selector = pop();
  const RegId index = own(selector);
  count_instructions(TraceEnd::kTable);
  flush_all();
  const uint32_t stamp = ++br_tables_;
  std::vector<uint32_t> with_moves;
  const Control* loop = nullptr;
  JumpTable table;
  table.label = a_.new_label();
  table.targets.reserve(reader_.br_table().size());
  for (const uint32_t depth : reader_.br_table()) {
    ++steps_;
    Control& to = control_at(depth);
    if (to.kind == Control::Kind::kLoop) loop = &to;
    if (to.stamp != stamp) {
      to.stamp = stamp;
      if (needs_moves(to)) {
        to.stamped = a_.new_label();
        with_moves.push_back(depth);
      } else {
        to.stamped = to.label;
      }
      if (to.kind != Control::Kind::kLoop && to.kind != Control::Kind::kFunction) merge_cache(to);
    }
    table.targets.push_back(to.stamped);
  }
  const auto last = static_cast<uint32_t>(table.targets.size() - 1);  // the default
  a_.mov(x86::r11d, last);
  a_.cmp(gp(index, false), x86::r11d);
  a_.cmova(gp(index, false), x86::r11d);
  if (recorder_) trace_word(gp(index, true));
  a_.lea(x86::r11, Emitter::at(table.label));
  a_.movsxd(gp(index, true), x86::dword_ptr(x86::r11, gp(index, true), 2));
  a_.add(x86::r11, gp(index, true));
  if (recorder_) {
    a_.mov(gp(index, true), x86::r11);
    trace_word(gp(index, true));
    a_.mov(x86::r11, gp(index, true));
  }
  count_computed_jump(loop);
  a_.jmp(x86::r11);
  for (const uint32_t depth : with_moves) {
    Control& to = control_at(depth);
    a_.bind(to.stamped);
    if (to.kind == Control::Kind::kFunction) {
      trace_run(TraceEnd::kReturn, 0, {});
      load_return_values();
      a_.jmp(epilogue_);
    } else {
      move_results(branch_arity(to), to.base);
      a_.jmp(to.label);
    }
  }
  jump_tables_.push_back(std::move(table));
  mark_unreachable();
}

}  // namespace hindsight::jit::baseline
