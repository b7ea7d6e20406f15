// Exceptions (jit/abi/exception.h).
//
// A call from which a handler of this function may catch is an LLVM invoke. Its landing pad leads to the
// handler's block, which compares tags. What no clause takes goes to the next handler out, by a branch, or is
// thrown on. As in the baseline tier a caught exception stands on the operand stack below what its `catch`
// pushes.
//
// The runtime that unwinds restores no callee-saved registers, so such a call must not keep values in any. It
// has the convention preserve_none, which preserves rbp alone. That convention passes its first four integers
// in r12 to r15. Then it goes on with rdi, rsi, rdx, rcx, r8, r9 and xmm0 to xmm7. So after four arguments
// that do not matter, it is the guest's own. LLVM knows the callee by its address only, so it never sees the
// two conventions together.
//
// A handler of a function that is inlined, and the one around the call in whose place it is, are like any
// two.
#include "jit/abi/builtins.h"
#include "jit/abi/call_layout.h"
#include "jit/abi/exception.h"
#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::BasicBlock;
using llvm::Value;
using wasm::Opcode;
using Kind = ControlFrame::Kind;

namespace {
constexpr size_t kRegistersBefore = 4;  // r12 to r15
}  // namespace

bool FunctionGenerator::emit_exception(const wasm::Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kTry:
    case Opcode::kTryTable:
      begin_block(instr);
      begin_try(instr.opcode == Opcode::kTryTable);
      return true;
    case Opcode::kCatch:
    case Opcode::kCatchAll:
      begin_catch(instr);
      return true;
    case Opcode::kDelegate:
      end_delegate(instr.index);
      return true;
    case Opcode::kThrow:
      emit_throw(instr.index);
      return true;
    case Opcode::kRethrow:
      throw_by(offsetof(Builtins, throw_reference), stack_[frame_at(instr.index).height], handler());
      return true;
    case Opcode::kThrowRef:
      throw_by(offsetof(Builtins, throw_reference), pop(), handler());
      return true;
    default:
      return false;
  }
}

void FunctionGenerator::begin_try(bool table) {
  ControlFrame& frame = control_.back();
  if (table) {
    frame.catches = top().reader.catches();
    if (!frame.catches.empty()) frame.kind = Kind::kTryTable;
  } else {
    frame.kind = Kind::kTry;
  }
}

// Finds the innermost handler among the frames below `end`, for what is thrown by the innermost activation.
// With `leaves`, the innermost activation is left by a tail call, and its caller throws. An activation in
// place of a tail call has left its caller likewise.
ControlFrame* FunctionGenerator::handler_below(size_t end, bool leaves) {
  for (size_t a = activations_.size(); a-- > 0;) {
    const Activation& activation = activations_[a];
    if (!leaves && activation.body.has_handlers) {
      for (size_t i = end; i-- > activation.control_base;)
        if (control_[i].is_handler()) return &control_[i];
    }
    leaves = activation.returns_caller;
    end = activation.control_base;
  }
  return nullptr;
}

// One more way to the handler: from the current block, which it ends.
void FunctionGenerator::branch_to_handler(ControlFrame& frame, Value* exception) {
  if (!frame.exception) {
    BasicBlock* const block = make_block("handler");
    llvm::IRBuilder<> at_block(block);
    at_block.SetCurrentDebugLocation(b_.getCurrentDebugLocation());
    frame.exception = at_block.CreatePHI(ir_.ptr, 2);
  }
  frame.exception->addIncoming(exception, b_.GetInsertBlock());
  b_.CreateBr(frame.exception->getParent());
}

BasicBlock* FunctionGenerator::landing_of(ControlFrame& frame) {
  if (frame.landing) return frame.landing;
  llvm::IRBuilder<>::InsertPointGuard keep(b_);
  function_->setPersonalityFn(ir_.personality());
  frame.landing = make_block("landing");
  b_.SetInsertPoint(frame.landing);
  llvm::LandingPadInst* const pad = b_.CreateLandingPad(llvm::StructType::get(ir_.ptr, ir_.i32), 0);
  pad->setCleanup(true);
  branch_to_handler(frame, b_.CreateExtractValue(pad, 0));
  return frame.landing;
}

// Ends the current block; goes on in `next`.
llvm::InvokeInst* FunctionGenerator::invoke(ControlFrame& handler, llvm::Type* result, Value* code,
                                            std::vector<Value*> args, BasicBlock* next) {
  args.insert(args.begin(), kRegistersBefore, llvm::PoisonValue::get(ir_.i64));
  std::vector<llvm::Type*> types;
  for (Value* arg : args) types.push_back(arg->getType());
  llvm::InvokeInst* const call =
      b_.CreateInvoke(llvm::FunctionType::get(result, types, false), code, next, landing_of(handler), args);
  call->setCallingConv(llvm::CallingConv::PreserveNone);
  call->addFnAttr(llvm::Attribute::NoMerge);
  b_.SetInsertPoint(next);
  return call;
}

// `handler`: that of this function which catches it; null: none.
void FunctionGenerator::throw_by(size_t builtin, Value* argument, ControlFrame* handler) {
  calls_ = true;
  llvm::CallBase* call = nullptr;
  if (handler) {
    Value* const code = load_runtime(ir_.ptr, entry_field(kVmBuiltins), static_cast<int64_t>(builtin), true);
    call = invoke(*handler, ir_.void_type, code, {vmctx(), argument}, make_block("never"));
  } else {
    call = call_builtin(builtin, ir_.void_type, {argument});
  }
  call->setDoesNotReturn();
  call->addFnAttr(llvm::Attribute::Cold);
  b_.CreateUnreachable();
  reachable_ = false;
}

void FunctionGenerator::emit_throw(uint32_t tag) {
  const std::vector<wasm::ValType>& values = ir_.wasm.type_of_tag(tag).params;
  const size_t first = stack_.size() - values.size();
  int64_t at = kThreadArguments;
  for (size_t i = 0; i < values.size(); ++i) {
    store_runtime(stack_[first + i], thread_, at);
    at += 8 * words_of(values[i]);
  }
  stack_.resize(first);
  throw_by(offsetof(Builtins, throw_exception), int32(tag), handler());
}

// An exception that no clause of a handler took.
void FunctionGenerator::throw_on(ControlFrame* outer, Value* exception) {
  if (outer)
    branch_to_handler(*outer, exception);
  else
    throw_by(offsetof(Builtins, throw_reference), exception, nullptr);
}

// Goes on in a new block if the exception has the tag; returns the block for those that have not.
BasicBlock* FunctionGenerator::branch_unless(Value* exception, uint32_t tag) {
  Value* const actual = load_runtime(ir_.ptr, exception, kExceptionTag, false);
  Value* const wanted = load_runtime(ir_.ptr, vmctx(), ir_.layout.tag(tag), true);
  BasicBlock* const caught = make_block("caught");
  BasicBlock* const next = make_block("next");
  b_.CreateCondBr(b_.CreateICmpEQ(actual, wanted), caught, next);
  b_.SetInsertPoint(caught);
  return next;
}

void FunctionGenerator::push_values(Value* exception, uint32_t tag) {
  int64_t at = kExceptionValues;
  for (const wasm::ValType type : ir_.wasm.type_of_tag(tag).params) {
    push(load_runtime(ir_.type_of(type), exception, at, false));
    at += 8 * words_of(type);
  }
}

void FunctionGenerator::begin_catch(const wasm::Instr& instr) {
  ControlFrame& frame = control_.back();
  if (reachable_) branch_to(frame);
  if (frame.kind == Kind::kTry) {
    frame.kind = Kind::kCatch;
    frame.else_block = frame.exception ? frame.exception->getParent() : nullptr;
  }
  stack_.resize(frame.height);
  reachable_ = frame.else_block != nullptr;
  if (!reachable_) return;  // nothing is thrown, or on-stack replacement began inside an earlier catch
  b_.SetInsertPoint(frame.else_block);
  const bool all = instr.opcode == Opcode::kCatchAll;
  frame.else_block = all ? nullptr : branch_unless(frame.exception, instr.index);
  push(frame.exception);
  if (!all) push_values(frame.exception, instr.index);
}

void FunctionGenerator::end_delegate(uint32_t depth) {
  ControlFrame& frame = control_.back();
  if (frame.exception) {
    const bool reachable = reachable_;
    llvm::IRBuilder<>::InsertPointGuard keep(b_);
    b_.SetInsertPoint(frame.exception->getParent());
    // Labels are counted from outside of the try. Around a nest there are none that catch, whatever the program has there.
    const size_t around = control_.size() - 1;
    throw_on(handler_below(depth < around ? around - depth : 0, false), frame.exception);
    reachable_ = reachable;
  }
  frame.kind = Kind::kBlock;
  end_block();
}

// The frame has ended and is no longer on the stack of frames; what is left of it gets its code.
void FunctionGenerator::finish_handler(const ControlFrame& frame) {
  if (frame.kind == Kind::kCatch) {
    if (!frame.else_block) return;
    b_.SetInsertPoint(frame.else_block);
    return throw_on(handler(), frame.exception);
  }
  if (!frame.is_handler() || !frame.exception) return;
  b_.SetInsertPoint(frame.exception->getParent());
  for (const wasm::CatchClause& clause : frame.catches) {
    stack_.resize(frame.height);
    BasicBlock* next = nullptr;
    if (!clause.catches_all()) {
      next = branch_unless(frame.exception, clause.tag);
      push_values(frame.exception, clause.tag);
    }
    if (clause.takes_reference()) push(frame.exception);
    branch_to(frame_at(clause.label));
    if (!next) return;
    b_.SetInsertPoint(next);
  }
  throw_on(handler(), frame.exception);
}

}  // namespace hindsight::jit::optimizing
