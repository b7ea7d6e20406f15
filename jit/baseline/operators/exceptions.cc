// Exceptions: throwing, and the landings of those who catch (jit/abi/exception.h).
//
// A landing finds every operand below the try in its slot, because blocks are entered so. It finds every
// local in its slot, because locals are written through. So it has only the pinned registers to load again,
// from the VmContext* that the frame keeps for this. The caught exception stands on the operand stack below
// what the catch pushes. There `rethrow` finds it, and so does optimized code that takes over in a loop
// inside the catch.
//
// What no clause takes jumps to the landing of the handler around, with the exception in rax, or is thrown
// on.
#include <algorithm>
#include <span>

#include "jit/abi/exception.h"
#include "jit/baseline/function_compiler.h"

namespace hindsight::jit::baseline {

using ControlKind = Control::Kind;

void FunctionCompiler::exception_instruction(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kTry:
    case Opcode::kTryTable:
      return enter_try(instr);
    case Opcode::kCatch:
    case Opcode::kCatchAll:
      return do_catch(instr);
    case Opcode::kDelegate:
      return do_delegate(instr.index);
    case Opcode::kThrow:
      return throw_tag(instr);
    case Opcode::kRethrow:
      return rethrow(instr.index);
    default:
      return throw_ref();
  }
}

// --- throwing

void FunctionCompiler::note_call() {
  // What is called counts its own branches.
  if (const uint32_t loop = controls_.back().loop; loop != kNoIndex) controls_[loop].counts_otherwise = true;
  if (handler_ == kNoIndex) return;
  use_handler(handler_);
  caught_calls_.push_back({static_cast<uint32_t>(a_.offset()), handler_});
}

// rsi: the builtin's second argument.
void FunctionCompiler::throw_by(size_t builtin) {
  a_.mov(x86::rdi, x86::rbx);
  a_.mov(x86::rax, x86::qword_ptr(x86::rbx, kVmBuiltins));
  a_.call(x86::qword_ptr(x86::rax, static_cast<int32_t>(builtin)));
}

void FunctionCompiler::never_returns() {
  note_call();
  // The return address must lie inside this position's row and version.
  a_.ud2();
  mark_unreachable();
}

void FunctionCompiler::throw_tag(const Instr& instr) {
  count_instructions();
  const std::vector<ValType>& values = module_.type_of_tag(instr.index).params;
  auto at = static_cast<int32_t>(kThreadArguments + 8 * words_of(values));
  for (size_t i = values.size(); i-- > 0;) {
    ++steps_;
    at -= static_cast<int32_t>(8 * words_of(values[i]));
    store_entry(x86::Mem(x86::r14, at, 8), pop());
  }
  a_.mov(x86::esi, instr.index);
  throw_by(offsetof(Builtins, throw_exception));
  never_returns();
}

void FunctionCompiler::throw_ref() {
  constexpr RegId kRsi = 6;
  count_instructions();
  load_into(kRsi, pop());
  throw_by(offsetof(Builtins, throw_reference));
  never_returns();
}

void FunctionCompiler::rethrow(uint32_t depth) {
  count_instructions();
  a_.mov(x86::rsi, slot(locals_count() + control_at(depth).base));
  throw_by(offsetof(Builtins, throw_reference));
  never_returns();
}

// --- catching

void FunctionCompiler::enter_try(const Instr& instr) {
  const bool table = instr.opcode == Opcode::kTryTable;
  if (table && reader_.catches().empty()) return enter_block(instr, ControlKind::kBlock);
  enter_block(instr, table ? ControlKind::kTryTable : ControlKind::kTry);
  Control& control = controls_.back();
  control.handler = handler_ = static_cast<uint32_t>(handlers_.size());
  handlers_.push_back({a_.new_label(), false});
  if (table) control.catches = reader_.catches();
}

// Where an exception arrives, in rax.
void FunctionCompiler::land() {
  a_.mov(x86::rbx, x86::qword_ptr(x86::rbp, -48));
  a_.mov(x86::r14, x86::qword_ptr(x86::rbx, kVmThread));
  if (body_.has_memory_access) a_.mov(x86::r15, x86::qword_ptr(x86::rbx, kVmMemoryBase));
  trace_land();
}

// The exception in rax goes to the handler `outer`, or out of the function.
void FunctionCompiler::throw_on(uint32_t outer) {
  if (outer != kNoIndex) {
    a_.jmp(handlers_[outer].landing);
    return;
  }
  a_.mov(x86::rbx, x86::qword_ptr(x86::rbp, -48));
  a_.mov(x86::rsi, x86::rax);
  throw_by(offsetof(Builtins, throw_reference));
  a_.ud2();
}

// Keeps rax.
void FunctionCompiler::skip_unless(uint32_t tag, const Label& next) {
  a_.mov(x86::r11, x86::qword_ptr(x86::rbx, vm_layout_.tag(tag)));
  a_.cmp(x86::r11, x86::qword_ptr(x86::rax, kExceptionTag));
  a_.jne(next);
}

void FunctionCompiler::do_catch(const Instr& instr) {
  if (reachable_) branch(0);
  Control& control = controls_.back();
  const bool first = control.kind == ControlKind::kTry;
  if (first) {
    control.kind = ControlKind::kCatch;
    handler_ = control.outer_handler;
    control.has_else = handlers_[control.handler].used;
    control.else_label = handlers_[control.handler].landing;
  }
  if (!control.has_else) return;  // nothing comes here
  a_.bind(control.else_label);
  if (first) land();
  control.has_else = instr.opcode == Opcode::kCatch;
  if (control.has_else) {
    control.else_label = a_.new_label();
    skip_unless(instr.index, control.else_label);
  }
  reachable_ = true;
  pop_to(control.base);
  flushed_ = std::min(flushed_, stack_.size());
  restore_cache(LocalCache());
  push_slot(ValType::kExnRef);
  a_.mov(home(stack_.back()), x86::rax);
  if (instr.opcode != Opcode::kCatch) return;
  int32_t at = kExceptionValues;
  for (const ValType type : module_.type_of_tag(instr.index).params) {
    push_slot(type);
    copy_value(home(stack_.back()), x86::Mem(x86::rax, at), type);
    at += static_cast<int32_t>(8 * words_of(type));
  }
}

// Through a scratch register; keeps rax.
void FunctionCompiler::copy_value(const x86::Mem& to, const x86::Mem& from, ValType type) {
  ++steps_;
  if (type == ValType::kV128) {
    a_.movups(x86::xmm15, from);
    a_.movups(to, x86::xmm15);
  } else {
    a_.mov(x86::r11, from);
    a_.mov(to, x86::r11);
  }
}

void FunctionCompiler::do_delegate(uint32_t depth) {
  Control& control = controls_.back();
  const Control& target = control_at(depth + 1);  // labels are counted from outside of the try
  const bool catches = target.kind == ControlKind::kTry || target.kind == ControlKind::kTryTable;
  const uint32_t outer = catches ? target.handler : target.outer_handler;
  handler_ = control.outer_handler;
  if (handlers_[control.handler].used) {
    use_handler(outer);
    out_of_line(handlers_[control.handler].landing, [this, outer] { throw_on(outer); });
  }
  control.kind = ControlKind::kBlock;
  do_end();
}

// At the `end` of a try, of its last catch, or of a try_table.
void FunctionCompiler::end_try(Control& control) {
  handler_ = control.outer_handler;
  const uint32_t outer = control.outer_handler;
  switch (control.kind) {
    case ControlKind::kCatch:
      if (reachable_) branch(0);
      if (!control.has_else) return;
      use_handler(outer);
      return out_of_line(control.else_label, [this, outer] { throw_on(outer); });
    case ControlKind::kTry:  // without a catch
      if (!handlers_[control.handler].used) return;
      use_handler(outer);
      return out_of_line(handlers_[control.handler].landing, [this, outer] { throw_on(outer); });
    default:
      break;
  }
  if (!handlers_[control.handler].used) return;
  std::vector<Clause> clauses;
  bool catches_all = false;
  for (const wasm::CatchClause& clause : control.catches) {
    ++steps_;
    Control& to = control_at(clause.label + 1);
    clauses.push_back({clause, to.label, to.base, to.kind == ControlKind::kFunction});
    if (to.kind != ControlKind::kLoop && to.kind != ControlKind::kFunction) {
      to.at_label.registers = 0;
      to.targeted = true;
    }
    catches_all = clause.catches_all();
    if (catches_all) break;  // what follows is never tried
  }
  if (!catches_all) use_handler(outer);
  out_of_line(handlers_[control.handler].landing,
              [this, outer, clauses = std::move(clauses)] { try_clauses(outer, clauses); });
}

void FunctionCompiler::try_clauses(uint32_t outer, const std::vector<Clause>& clauses) {
  land();
  for (const Clause& clause : clauses) {
    if (clause.clause.catches_all()) return deliver(clause);
    const Label next = a_.new_label();
    skip_unless(clause.clause.tag, next);
    deliver(clause);
    a_.bind(next);
  }
  throw_on(outer);
}

// The exception in rax goes on at the clause's label.
void FunctionCompiler::deliver(const Clause& clause) {
  const bool all = clause.clause.catches_all();
  const bool reference = clause.clause.takes_reference();
  std::span<const ValType> values;
  if (!all) values = module_.type_of_tag(clause.clause.tag).params;
  int32_t from = kExceptionValues;
  if (!clause.returns) {
    uint32_t index = locals_count() + clause.base;
    for (const ValType type : values) {
      copy_value(slot(index++), x86::Mem(x86::rax, from), type);
      from += static_cast<int32_t>(8 * words_of(type));
    }
    if (reference) a_.mov(slot(index), x86::rax);
    a_.jmp(clause.label);
    return;
  }
  if (recorder_) {
    free_ &= ~bit(0);  // rax lives
    trace_run(TraceEnd::kReturn, 0, {});
    free_ |= bit(0);
  }
  if (values.size() + (reference ? 1 : 0) == 1) {  // rax or xmm0; a reference is where it belongs
    if (!reference && values[0] == ValType::kV128)
      a_.movups(x86::xmm0, x86::ptr(x86::rax, from));
    else if (!reference && wasm::is_float(values[0]))
      a_.movsd(x86::xmm0, x86::qword_ptr(x86::rax, from));
    else if (!reference)
      a_.mov(x86::rax, x86::qword_ptr(x86::rax, from));
  } else {
    int32_t to = kThreadResults;
    for (const ValType type : values) {
      copy_value(x86::Mem(x86::r14, to), x86::Mem(x86::rax, from), type);
      from += static_cast<int32_t>(8 * words_of(type));
      to += static_cast<int32_t>(8 * words_of(type));
    }
    if (reference) a_.mov(x86::qword_ptr(x86::r14, to), x86::rax);
  }
  a_.jmp(epilogue_);
}

}  // namespace hindsight::jit::baseline
