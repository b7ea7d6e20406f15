// Calls: through entry slots, to itself, through tables, and in place.
#include <algorithm>

#include "jit/abi/builtins.h"
#include "jit/abi/call_layout.h"
#include "jit/optimizing/generate/function_generator.h"
#include "jit/optimizing/generate/inline_cost.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {

using llvm::Value;

bool FunctionGenerator::should_inline(FuncIndex callee) const {
  if (!ir_.request.tuning.inline_functions || ir_.wasm.is_imported(callee)) return false;
  if (!ir_.room_for_inline_site()) return false;
  InlineSituation situation{.depth = static_cast<uint32_t>(activations_.size() - 1),
                            .inlined_bytes = inlined_bytes_};
  situation.recursive = std::any_of(activations_.begin(), activations_.end(),
                                    [callee](const Activation& a) { return a.function == callee; });
  situation.in_loop = in_loop();
  situation.has_asked_load = situation.in_loop && has_asked_load(ir_.request, callee, ir_.wasm.body(callee));
  situation.growth = inlined_growth(ir_.request);
  return worth_inlining(ir_.wasm.body(callee), situation);
}

bool FunctionGenerator::in_loop() const {
  return std::any_of(control_.begin(), control_.end(),
                     [](const ControlFrame& frame) { return frame.is_loop(); });
}

void FunctionGenerator::emit_call(const wasm::Instr& instr) {
  const FuncIndex callee(instr.index);
  if (should_inline(callee)) return enter_inlined(callee, instr.offset, /*tail=*/false);
  const wasm::FuncType& type = ir_.wasm.type_of(callee);
  // Itself: no slot to read. A newer version takes over from outside, with the next call through the slot.
  if (callee == index_ && whole_) return call_native(type, whole_, vmctx());
  Value* context = vmctx();
  if (ir_.wasm.is_imported(callee)) {
    // The slot of an import never changes its owner.
    context = load_runtime(ir_.ptr, vmctx(), ir_.layout.func_context(callee.value), true);
  }
  // Invariant: the slot is read at every call, so that published code is entered at once. LLVM cannot keep
  // the value across a call, which may write any memory.
  Value* const code = load_runtime(ir_.ptr, vmctx(), ir_.layout.func_code(callee.value), false);
  call_native(type, code, context);
}

// Pops a table index; the FuncRef that it names, checked.
Value* FunctionGenerator::check_callee(const wasm::Instr& instr, Value* index) {
  Value* const reference = table_element(instr, index);
  check_reference(instr, reference);
  return reference;
}

Value* FunctionGenerator::table_index() {
  return b_.CreateZExt(pop(), ir_.i64);
}

// The same without a look at what the FuncRef is.
Value* FunctionGenerator::table_element(const wasm::Instr& instr, Value* index) {
  Value* const table = table_record(instr.index2);
  Value* const size = load_runtime(ir_.i64, table, offsetof(TableRecord, size), false);
  trap_if(b_.CreateICmpUGE(index, size), TrapCode::kUndefinedElement);
  Value* const elements = load_runtime(ir_.ptr, table, offsetof(TableRecord, elements), false);
  Value* const element = b_.CreateGEP(ir_.ptr, elements, index);
  return load_runtime(ir_.ptr, element, 0, false);
}

void FunctionGenerator::check_reference(const wasm::Instr& instr, Value* reference) {
  trap_if(b_.CreateIsNull(reference), TrapCode::kUninitializedElement);
  Value* const actual = load_runtime(ir_.i32, reference, offsetof(FuncRef, type_id), false);
  Value* const expected = load_runtime(ir_.i32, entry_field(kVmTypeIds), int64_t{4} * instr.index, true);
  trap_if(b_.CreateICmpNE(actual, expected), TrapCode::kIndirectCallTypeMismatch);
}

void FunctionGenerator::emit_call_indirect(const wasm::Instr& instr) {
  if (enter_likely_targets(instr)) return;
  Value* const index = table_index();
  Value* const reference = check_callee(instr, index);
  sample_call(instr, index);
  call_reference(instr, reference);
}

// Counts a call that is not in place, and records one in thousands: where calls go by now that were not
// foreseen. As the baseline tier does at every call, which this one need not, since the others go where its
// profile said.
void FunctionGenerator::sample_call(const wasm::Instr& instr, Value* target) {
  if (!ir_.request.options.lwp_counting) return;
  Value* const left = b_.CreateSub(load_runtime(ir_.i32, thread_, kThreadLwpValues, false), int32(1));
  store_runtime(left, thread_, kThreadLwpValues);
  llvm::BasicBlock* const record = make_block("record");
  llvm::BasicBlock* const next = make_block("");
  b_.CreateCondBr(b_.CreateICmpSLT(left, int32(0)), record, next, ir_.unlikely);
  b_.SetInsertPoint(record);
  const uint32_t site = instr.opcode == wasm::Opcode::kCallRef ? kValueSiteCallRef : kValueSiteCallIndirect;
  call_builtin(offsetof(Builtins, lwp_value_sampled), ir_.void_type,
               {llvm::Constant::getNullValue(ir_.ptr), int32(instr.offset.value), target, int32(site)})
      ->setCallingConv(llvm::CallingConv::PreserveMost);
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

// What a record says of a call_ref: the callee's index in its own module.
Value* FunctionGenerator::callee_index(Value* reference) {
  return b_.CreateZExt(load_runtime(ir_.i32, reference, offsetof(FuncRef, func_index), true), ir_.i64);
}

// Nearly always this function's own, and then it is taken from here: by a branch, which is foreseen. What is loaded comes after the
// object that is called, its table of functions, the element of ours and the FuncRef behind that, and whatever the callee accesses
// comes after its context. So calls could not overlap, at some 30 cycles each.
Value* FunctionGenerator::callee_context(Value* reference) {
  Value* const loaded = load_runtime(ir_.ptr, reference, offsetof(FuncRef, callee_context), false);
  llvm::BasicBlock* const own = b_.GetInsertBlock();
  llvm::BasicBlock* const others = make_block("context.of.another");
  llvm::BasicBlock* const next = make_block("");
  b_.CreateCondBr(b_.CreateICmpNE(loaded, vmctx()), others, next, ir_.unlikely);
  b_.SetInsertPoint(others);
  // Volatile: else LLVM knows that it is the same as what was compared, and uses that in either case.
  llvm::LoadInst* const again = load_runtime(ir_.ptr, reference, offsetof(FuncRef, callee_context), false);
  again->setVolatile(true);
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  llvm::PHINode* const context = b_.CreatePHI(ir_.ptr, 2);
  context->addIncoming(vmctx(), own);
  context->addIncoming(again, others);
  return context;
}

void FunctionGenerator::call_reference(const wasm::Instr& instr, Value* reference) {
  Value* const context = callee_context(reference);
  Value* const code = load_runtime(ir_.ptr, reference, offsetof(FuncRef, code), false);
  call_native(ir_.wasm.types[instr.index], code, context);
}

// What is never null by its type, LLVM knows of parameters, results, globals and elements of tables.
void FunctionGenerator::emit_call_ref(const wasm::Instr& instr) {
  if (enter_likely_targets(instr)) return;
  Value* const reference = pop();
  trap_if(b_.CreateIsNull(reference), TrapCode::kNullFunctionReference);
  sample_call(instr, callee_index(reference));
  call_reference(instr, reference);
}

void FunctionGenerator::call_native(const wasm::FuncType& type, Value* code, Value* context, bool leaves) {
  calls_ = true;
  moved_values_ += type.params.size() + type.results.size();
  ControlFrame* const catcher = handler_below(control_.size(), leaves);
  if (catcher && code == whole_)
    code = load_runtime(ir_.ptr, vmctx(), ir_.layout.func_code(index_.value), false);
  const bool erased = code == whole_ && is_erased();
  const std::vector<Value*> args = pop_arguments(type, context, erased);
  llvm::CallBase* call = nullptr;
  if (catcher) {
    call = invoke(*catcher, ir_.native_result(type), code, args, make_block(""));
  } else {
    call = b_.CreateCall(erased ? ir_.erased_type(type) : ir_.native_type(type), code, args);
    call->setDoesNotThrow();  // that LLVM would have to know of
    // The return address is a position of the backtrace: calls of two positions must not become one.
    call->addFnAttr(llvm::Attribute::NoMerge);
  }
  if (type.results.size() == 1) {
    if (wasm::is_non_null(type.results[0])) call->addRetAttr(llvm::Attribute::NonNull);
    push(call);
    return;
  }
  int64_t at = kThreadResults;
  for (const wasm::ValType result : type.results) {
    push(load_runtime(ir_.type_of(result), thread_, at, false));
    at += 8 * words_of(result);
  }
}

void FunctionGenerator::enter_inlined(FuncIndex callee, WasmOffset call_site, bool tail) {
  const wasm::FuncType& type = ir_.wasm.type_of(callee);
  const size_t first = stack_.size() - type.params.size();
  const std::vector<Value*> args(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
  begin_activation(callee, call_site, tail, args);
  stack_.resize(first);
  ControlFrame frame{.kind = ControlFrame::Kind::kFunction};
  frame.type.func_type = &type;
  frame.offset = top().body.begin;
  frame.height = static_cast<uint32_t>(first);
  make_label(frame, "inlined.return");
  control_.push_back(std::move(frame));
}

// The body is generated from here on; its frame is to be pushed.
FunctionGenerator::Activation& FunctionGenerator::begin_activation(FuncIndex callee, WasmOffset call_site,
                                                                   bool tail,
                                                                   const std::vector<Value*>& args) {
  llvm::DILocation* const at = b_.getCurrentDebugLocation().get();
  const uint32_t caller_site = top().site;
  const bool caller_is_tail = top().tail;
  Activation& activation = activations_.emplace_back(ir_.wasm, callee);
  activation.tail = tail && caller_is_tail;
  activation.returns_caller = tail;
  activation.site = ir_.add_inline_site(
      {.callee = callee, .call_site = call_site, .caller_site = caller_site, .tail = tail});
  activation.scope = ir_.scope_of(callee);
  // Distinct: two calls at one offset (of two copies of a loop) are two inlined bodies.
  activation.inlined_at = llvm::DILocation::getDistinct(ir_.context, at->getLine(), at->getColumn(),
                                                        at->getScope(), at->getInlinedAt());
  activation.control_base = control_.size();
  inlined_bytes_ += activation.body.end.value - activation.body.begin.value;
  for (size_t i = 0; i < activation.body.locals.size(); ++i) {
    llvm::Type* const local = ir_.type_of(activation.body.locals[i]);
    llvm::AllocaInst* const slot = make_slot(local);
    activation.locals.push_back(slot);
    b_.CreateStore(i < args.size() ? args[i] : llvm::Constant::getNullValue(local), slot);
  }
  return activation;
}

// Small leaves live in the reserve that every caller's check leaves below the limit. What has a loop may be
// widened and spill any number of vectors; beside a loop the check costs nothing.
void FunctionGenerator::emit_stack_check() {
  checks_stack_ = calls_ || has_loops_ || always_check_stack_ || frame_estimate_ > kUncheckedLeafBytes;
  if (!checks_stack_) return;
  entry_field(kVmBuiltins);  // must be there before the entry block gets its terminator
  Value* const frame = b_.CreateIntrinsic(llvm::Intrinsic::frameaddress, {ir_.ptr}, {int32(0)});
  Value* const lowest = b_.CreateSub(b_.CreatePtrToInt(frame, ir_.i64), ir_.frame_bytes());
  llvm::LoadInst* const limit = load_runtime(ir_.i64, thread_, kThreadStackLimit, false);
  // Another thread sets the limit to interrupt this one.
  limit->setVolatile(true);
  llvm::BasicBlock* const failed = make_block("stack.check.failed");
  llvm::BasicBlock* const passed = make_block("stack.check.passed");
  b_.CreateCondBr(b_.CreateICmpULT(lowest, limit), failed, passed, ir_.unlikely)
      ->setMetadata(kStackCheck, llvm::MDNode::get(ir_.context, {}));
  b_.SetInsertPoint(failed);
  llvm::CallInst* const call = call_builtin(offsetof(Builtins, stack_check_failed), ir_.void_type, {});
  call->setDoesNotReturn();
  call->addFnAttr(llvm::Attribute::Cold);
  b_.CreateUnreachable();
  b_.SetInsertPoint(passed);
}

}  // namespace hindsight::jit::optimizing
