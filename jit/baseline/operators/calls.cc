// Calls of functions and builtins, and traps.
#include <algorithm>
#include <array>

#include "jit/abi/type_registry.h"
#include "jit/baseline/function_compiler.h"
#include "jit/baseline/stubs.h"

namespace hindsight::jit::baseline {

using Kind = Entry::Kind;

namespace {
constexpr RegId kIntArguments[] = {7, 6, 2, 1, 8, 9};  // rdi, rsi, rdx, rcx, r8, r9
constexpr RegId kScratch = 11;
constexpr RegId kFloatScratch = 31;
}  // namespace

// Puts arguments where the convention wants them. Register sources are moved in parallel. A move is made when
// no pending move still reads its destination; a cycle is opened through the scratch register. What comes
// from memory or is constant is loaded last, into registers that nobody reads any more.
void FunctionCompiler::move_arguments(std::span<const Argument> arguments, std::span<const ArgPlace> places) {
  struct Move {
    RegId to, from;
    ValType type;
  };
  std::array<Move, 16> moves;
  size_t pending = 0;
  const auto target = [&](size_t i) {
    return static_cast<RegId>(places[i].kind == ArgPlace::Kind::kFloat ? 16 + places[i].index
                                                                       : kIntArguments[places[i].index]);
  };
  const auto source = [&](const Argument& argument) {
    if (argument.immediate) return kNoReg;
    if (argument.entry.kind == Kind::kReg) return argument.entry.reg;
    if (argument.entry.kind == Kind::kLocal) return local_reg_[argument.entry.local];
    return kNoReg;
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    ++steps_;
    if (places[i].kind == ArgPlace::Kind::kThread) {
      store_entry(x86::Mem(x86::r14, kThreadArguments + static_cast<int32_t>(places[i].index), 8),
                  arguments[i].entry);
    } else if (const RegId from = source(arguments[i]); from != kNoReg && from != target(i)) {
      moves[pending++] = {target(i), from, arguments[i].entry.type};
    }
  }
  while (pending > 0) {
    size_t ready = pending;
    for (size_t i = 0; i < pending && ready == pending; ++i) {
      const RegId to = moves[i].to;
      // A move from the register to itself was left out, but its argument still occupies the register. No
      // other argument has the same target, so only `from`s matter.
      if (std::none_of(moves.begin(), moves.begin() + static_cast<ptrdiff_t>(pending),
                       [to](const Move& m) { return m.from == to; }))
        ready = i;
    }
    if (ready == pending) {
      const RegId from = moves[0].from;
      const RegId scratch = from >= 16 ? kFloatScratch : kScratch;
      if (from >= 16)
        a_.movaps(xmm(scratch), xmm(from));
      else
        a_.mov(gp(scratch, true), gp(from, true));
      for (size_t i = 0; i < pending; ++i)
        if (moves[i].from == from) moves[i].from = scratch;
      continue;
    }
    const Move move = moves[ready];
    if (move.to >= 16)
      a_.movaps(xmm(move.to), xmm(move.from));
    else
      a_.mov(gp(move.to, is_wide(move.type)), gp(move.from, is_wide(move.type)));
    moves[ready] = moves[--pending];
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (places[i].kind == ArgPlace::Kind::kThread) continue;
    if (arguments[i].immediate)
      load_const(target(i), ValType::kI64, arguments[i].value);
    else if (source(arguments[i]) == kNoReg)
      load_into(target(i), arguments[i].entry);
  }
}

void FunctionCompiler::finish_call(const wasm::FuncType& type) {
  finish_instruction();
  forget_locals();  // the callee clobbered every register
  if (type.results.size() == 1) {
    const ValType result = type.results[0];
    const RegId reg = wasm::in_vector_register(result) ? 16 : 0;
    if (result == ValType::kI32) a_.mov(x86::eax, x86::eax);  // I1
    return push_reg(result, reg);
  }
  int32_t at = kThreadResults;
  for (const ValType result : type.results) {
    ++steps_;
    push_slot(result);
    if (result == ValType::kV128) {
      a_.movups(x86::xmm15, x86::ptr(x86::r14, at));
      store_reg(home(stack_.back()), kFloatScratch, result);
    } else {
      a_.mov(x86::r11, x86::qword_ptr(x86::r14, at));
      a_.mov(home(stack_.back()), x86::r11);
    }
    at += static_cast<int32_t>(8 * words_of(result));
  }
}

// Pops a call's arguments and puts them where the callee wants them. Keeps rax. After a tail call nothing
// else that is on the stack is wanted.
void FunctionCompiler::pass_arguments(const wasm::FuncType& type, bool tail) {
  call_layout_.assign(type);
  arguments_.resize(type.params.size());
  for (size_t i = arguments_.size(); i-- > 0;) arguments_[i] = entry_argument(pop());
  if (!tail) spill_all();
  move_arguments(arguments_, call_layout_.params);
}

void FunctionCompiler::load_callee(FuncIndex callee) {
  if (module_.is_imported(callee))
    a_.mov(x86::rdi, x86::qword_ptr(x86::rbx, vm_layout_.func_context(callee.value)));
  else
    a_.mov(x86::rdi, x86::rbx);
}

void FunctionCompiler::call(const Instr& instr) {
  const FuncIndex callee(instr.index);
  const wasm::FuncType& type = module_.type_of(callee);
  count_instructions(TraceEnd::kCall);
  pass_arguments(type);
  load_callee(callee);
  a_.call(x86::qword_ptr(x86::rbx, vm_layout_.func_code(callee.value)));
  note_call();
  finish_call(type);
}

// Pops the table index of a call and leaves the FuncRef that it names, checked, in rax.
void FunctionCompiler::check_callee(const Instr& instr) {
  constexpr RegId kRef = 0;  // rax is nobody's argument
  claim(kRef);
  const Entry selector = pop();
  const RegId index = use(selector);
  const x86::Gp ref = gp(kRef, true);
  a_.mov(ref, x86::qword_ptr(x86::rbx, kVmTables));
  a_.mov(ref, x86::qword_ptr(ref, static_cast<int32_t>(8 * instr.index2)));
  a_.cmp(gp(index, true), x86::qword_ptr(ref, offsetof(TableRecord, size)));  // I1
  trap_if(x86::CondCode::kAE, TrapCode::kUndefinedElement);
  a_.mov(ref, x86::qword_ptr(ref, offsetof(TableRecord, elements)));
  a_.mov(ref, x86::qword_ptr(ref, gp(index, true), 3));
  a_.test(ref, ref);
  trap_if(x86::CondCode::kZ, TrapCode::kUninitializedElement);
  const wasm::FuncType& type = module_.types[instr.index];
  if (refers_to_types(type)) {
    a_.mov(x86::r11, x86::qword_ptr(x86::rbx, kVmTypeIds));
    a_.mov(x86::r11d, x86::dword_ptr(x86::r11, static_cast<int32_t>(4 * instr.index)));
    a_.cmp(x86::dword_ptr(ref, offsetof(FuncRef, type_id)), x86::r11d);
  } else {
    types_.emplace_back(type);
    a_.cmp(x86::dword_ptr(ref, offsetof(FuncRef, type_id)), types_.back().value());
  }
  trap_if(x86::CondCode::kNE, TrapCode::kIndirectCallTypeMismatch);
  sample_value(selector, kValueSiteCallIndirect);
  trace_callee();
}

void FunctionCompiler::trace_callee() {
  if (!recorder_) return;
  const RegId word = alloc(false);
  a_.mov(gp(word, false), x86::dword_ptr(x86::rax, offsetof(FuncRef, func_index)));
  trace_word(gp(word, true));
  release(word);
}

// Of the FuncRef in rax. By a branch where it is this function's own, so that what the callee accesses does not wait for the
// loads that led to the FuncRef.
void FunctionCompiler::load_callee_context() {
  const x86::Mem theirs = x86::qword_ptr(x86::rax, offsetof(FuncRef, callee_context));
  const Label own = a_.new_label();
  a_.mov(x86::rdi, x86::rbx);
  a_.cmp(x86::rbx, theirs);
  a_.je(own);
  a_.mov(x86::rdi, theirs);
  a_.bind(own);
}

void FunctionCompiler::call_indirect(const Instr& instr) {
  const wasm::FuncType& type = module_.types[instr.index];
  count_instructions(TraceEnd::kIndirectCall);
  check_callee(instr);
  pass_arguments(type);
  load_callee_context();
  a_.call(x86::qword_ptr(x86::rax, offsetof(FuncRef, code)));
  note_call();
  finish_call(type);
}

// Tail calls. Arguments are in registers and in the ThreadState, never in a frame. So the frame can go before
// the jump, whatever the two functions take.
void FunctionCompiler::return_call(const Instr& instr) {
  const FuncIndex callee(instr.index);
  count_instructions(TraceEnd::kTailCall);
  pass_arguments(module_.type_of(callee), true);
  load_callee(callee);
  a_.mov(x86::rax, x86::qword_ptr(x86::rbx, vm_layout_.func_code(callee.value)));
  tail_jump();
}

void FunctionCompiler::return_call_indirect(const Instr& instr) {
  count_instructions(TraceEnd::kIndirectTailCall);
  check_callee(instr);
  pass_arguments(module_.types[instr.index], true);
  load_callee_context();
  a_.mov(x86::rax, x86::qword_ptr(x86::rax, offsetof(FuncRef, code)));
  tail_jump();
}

void FunctionCompiler::tail_jump() {
  leave_frame();
  a_.jmp(x86::rax);
  mark_unreachable();
}

// The result, if any, is in rax afterwards.
void FunctionCompiler::call_builtin(size_t offset, std::span<const Argument> arguments) {
  static constexpr ArgPlace kPlaces[] = {{ArgPlace::Kind::kInt, 1},
                                         {ArgPlace::Kind::kInt, 2},
                                         {ArgPlace::Kind::kInt, 3},
                                         {ArgPlace::Kind::kInt, 4},
                                         {ArgPlace::Kind::kInt, 5}};
  spill_all();
  move_arguments(arguments, std::span(kPlaces).first(arguments.size()));
  a_.mov(x86::rdi, x86::rbx);
  a_.mov(x86::rax, x86::qword_ptr(x86::rbx, kVmBuiltins));
  a_.call(x86::qword_ptr(x86::rax, static_cast<int32_t>(offset)));
  finish_instruction();
  forget_locals();
}

// Never shared between positions: the call's return address is the trap's position.
void FunctionCompiler::trap_here(TrapCode code) {
  a_.push_byte(static_cast<uint8_t>(code));
  a_.call(RareStub::kTrap);
  // The return address must lie inside this position's row and version.
  a_.ud2();
}

void FunctionCompiler::trap_if(x86::CondCode cc, TrapCode code) {
  out_of_line_.push_back({a_.j_later(cc), offset_, static_cast<uint32_t>(code)});
}

}  // namespace hindsight::jit::baseline
