// Tail calls: jumps that leave nothing of the caller.
//
// LLVM promises a jump only for a call marked musttail, and allows that, in the C convention, only between
// functions of the same type. All functions of the guest have the same convention with nothing on the stack
// (see jit/abi/vm_context.h). So a function with tail calls has, and calls at its tail have, the one type
// that names every argument register and no parameter. That type has integers and references as i64, and
// floating point as the xmm register's vector of which it is the lowest element. Which results there are is
// the same by validation.
//
// A call to itself is a branch to its start. The call of an inlined function is its body, at whose end the
// caller returns. A tail call in that body is a jump again if its caller's was.
#include "jit/abi/call_layout.h"
#include "jit/optimizing/generate/function_generator.h"

namespace hindsight::jit::optimizing {

using llvm::Value;

Value* FunctionGenerator::erase(Value* value) {
  llvm::Type* const type = value->getType();
  if (type->isPointerTy()) return b_.CreatePtrToInt(value, ir_.i64);
  if (type->isIntegerTy()) return b_.CreateZExt(value, ir_.i64);
  if (type->isVectorTy()) return b_.CreateBitCast(value, ir_.f32x4);
  llvm::Type* const vector = llvm::FixedVectorType::get(type, type->isFloatTy() ? 4 : 2);
  return b_.CreateBitCast(b_.CreateInsertElement(llvm::PoisonValue::get(vector), value, uint64_t{0}),
                          ir_.f32x4);
}

Value* FunctionGenerator::restore(Value* erased, llvm::Type* type) {
  if (erased->getType() == type) return erased;
  if (type->isPointerTy()) return b_.CreateIntToPtr(erased, type);
  if (type->isIntegerTy()) return b_.CreateTrunc(erased, type);
  if (type->isVectorTy()) return b_.CreateBitCast(erased, type);
  llvm::Type* const vector = llvm::FixedVectorType::get(type, type->isFloatTy() ? 4 : 2);
  return b_.CreateExtractElement(b_.CreateBitCast(erased, vector), uint64_t{0});
}

// The function's arguments, to its locals.
void FunctionGenerator::store_parameters() {
  const wasm::FuncType& type = ir_.wasm.type_of(index_);
  const CallLayout layout(type);
  unsigned next = 1;
  for (size_t i = 0; i < type.params.size(); ++i) {
    llvm::Type* const local = ir_.type_of(type.params[i]);
    const ArgPlace place = layout.params[i];
    Value* value = nullptr;
    if (place.kind == ArgPlace::Kind::kThread) {
      value = load_runtime(local, thread_, kThreadArguments + static_cast<int64_t>(place.index), false);
    } else if (!is_erased()) {
      if (wasm::is_non_null(type.params[i])) function_->getArg(next)->addAttr(llvm::Attribute::NonNull);
      value = function_->getArg(next++);
    } else if (place.kind == ArgPlace::Kind::kInt) {
      value = restore(function_->getArg(place.index), local);
    } else {
      value = restore(function_->getArg(1 + kIntArgRegisters + place.index), local);
    }
    b_.CreateStore(value, top().locals[i]);
  }
}

// What a call passes: in registers what it returns, the rest stored where the callee looks for it.
std::vector<Value*> FunctionGenerator::pop_arguments(const wasm::FuncType& type, Value* context,
                                                     bool erased) {
  const CallLayout layout(type);
  std::vector<Value*> args{context};
  if (erased) {
    args.resize(1 + kIntArgRegisters, llvm::PoisonValue::get(ir_.i64));
    args.resize(args.size() + kFloatArgRegisters, llvm::PoisonValue::get(ir_.f32x4));
  }
  const size_t first = stack_.size() - type.params.size();
  for (size_t i = 0; i < type.params.size(); ++i) {
    Value* const value = stack_[first + i];
    const ArgPlace place = layout.params[i];
    if (place.kind == ArgPlace::Kind::kThread)
      store_runtime(value, thread_, kThreadArguments + static_cast<int64_t>(place.index));
    else if (!erased)
      args.push_back(value);
    else
      args[place.kind == ArgPlace::Kind::kInt ? place.index : 1 + kIntArgRegisters + place.index] =
          erase(value);
  }
  stack_.resize(first);
  return args;
}

void FunctionGenerator::emit_return_call(const wasm::Instr& instr) {
  const FuncIndex callee(instr.index);
  const wasm::FuncType& type = ir_.wasm.type_of(callee);
  if (callee == index_ && again_ && top().tail) return begin_again();
  if (should_inline(callee)) return enter_inlined(callee, instr.offset, /*tail=*/true);
  if (callee == index_ && whole_) return return_native(type, whole_, vmctx());
  Value* context = vmctx();
  if (ir_.wasm.is_imported(callee))
    context = load_runtime(ir_.ptr, vmctx(), ir_.layout.func_context(callee.value), true);
  return_native(type, load_runtime(ir_.ptr, vmctx(), ir_.layout.func_code(callee.value), false), context);
}

void FunctionGenerator::emit_return_call_indirect(const wasm::Instr& instr) {
  Value* const reference = check_callee(instr, table_index());
  Value* const context = callee_context(reference);
  Value* const code = load_runtime(ir_.ptr, reference, offsetof(FuncRef, code), false);
  return_native(ir_.wasm.types[instr.index], code, context);
}

void FunctionGenerator::emit_return_call_ref(const wasm::Instr& instr) {
  Value* const reference = pop();
  trap_if(b_.CreateIsNull(reference), TrapCode::kNullFunctionReference);
  Value* const context = callee_context(reference);
  Value* const code = load_runtime(ir_.ptr, reference, offsetof(FuncRef, code), false);
  return_native(ir_.wasm.types[instr.index], code, context);
}

void FunctionGenerator::return_native(const wasm::FuncType& type, Value* code, Value* context) {
  if (!top().tail) {  // the native function goes on after this activation
    call_native(type, code, context, /*leaves=*/true);
    return return_from_activation();
  }
  calls_ = true;
  const std::vector<Value*> args = pop_arguments(type, context, true);
  llvm::CallInst* const call = b_.CreateCall(ir_.erased_type(type), code, args);
  call->setTailCallKind(llvm::CallInst::TCK_MustTail);
  call->setDoesNotThrow();
  call->addFnAttr(llvm::Attribute::NoMerge);
  if (call->getType()->isVoidTy())
    b_.CreateRetVoid();
  else
    b_.CreateRet(call);
  reachable_ = false;
}

// The function once more, from its start, in its own frame. The stack check was made.
void FunctionGenerator::begin_again() {
  const Activation& whole = activations_.front();
  const wasm::FuncType& type = ir_.wasm.type_of(index_);
  const size_t first = stack_.size() - type.params.size();
  for (size_t i = 0; i < whole.locals.size(); ++i) {
    llvm::Type* const local = whole.locals[i]->getAllocatedType();
    b_.CreateStore(i < type.params.size() ? stack_[first + i] : llvm::Constant::getNullValue(local),
                   whole.locals[i]);
  }
  stack_.resize(first);
  b_.CreateBr(again_);
  calls_itself_again_ = true;
  reachable_ = false;
}

// The results are on the stack: what called the activation, natively or in place, gets them.
void FunctionGenerator::return_from_activation() {
  branch_to(control_[top().control_base]);
  reachable_ = false;
}

}  // namespace hindsight::jit::optimizing
