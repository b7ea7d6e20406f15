#include "jit/optimizing/generate/function_generator.h"

#include <algorithm>

#include "jit/abi/builtins.h"

namespace hindsight::jit::optimizing {

using llvm::BasicBlock;
using llvm::Value;
using wasm::Opcode;

FunctionGenerator::FunctionGenerator(IrModule& ir, FuncIndex index, llvm::Function* function,
                                     llvm::Function* whole)
    : ir_(ir),
      index_(index),
      function_(function),
      whole_(whole),
      begin_(ir.wasm.body(index).begin),
      b_(ir.context) {}

void FunctionGenerator::generate() {
  begin_entry();
  const wasm::FuncType& type = ir_.wasm.type_of(index_);
  Activation& activation = top();
  store_parameters();
  for (size_t i = type.params.size(); i < activation.body.locals.size(); ++i)
    b_.CreateStore(llvm::Constant::getNullValue(ir_.type_of(activation.body.locals[i])),
                   activation.locals[i]);
  if (is_erased()) {
    again_ = make_block("again");
    b_.CreateBr(again_);
    b_.SetInsertPoint(again_);
  }
  ControlFrame frame{.kind = ControlFrame::Kind::kFunction};
  frame.type.func_type = &type;
  frame.offset = activation.body.begin;
  make_label(frame, "return");
  control_.push_back(std::move(frame));
  run();
  finish_entry();
}

void FunctionGenerator::generate_from(const OsrPoint& point) {
  entered_running_ = true;
  begin_entry();
  Activation& activation = top();
  Value* const frame_slots = restore(function_->getArg(1), ir_.ptr);
  const int64_t slot_bytes = activation.body.uses_v128 ? 16 : 8;
  uint32_t slot = 0;
  const auto load_slot = [&](llvm::Type* type) -> Value* {
    return load_runtime(type, frame_slots, slot_bytes * slot++, /*invariant=*/false);
  };
  for (size_t i = 0; i < activation.body.locals.size(); ++i)
    b_.CreateStore(load_slot(ir_.type_of(activation.body.locals[i])), activation.locals[i]);
  for (llvm::Type* type : point.stack) stack_.push_back(load_slot(type));
  for (const ControlFrame& enclosing : point.frames) {
    ControlFrame frame = enclosing;
    if (frame.kind == ControlFrame::Kind::kLoop) frame.kind = ControlFrame::Kind::kPeeledLoop;
    make_label(frame, frame.is_loop() ? "again" : "end");
    control_.push_back(std::move(frame));
  }
  activation.reader.seek(point.offset);
  run();
  finish_entry();
}

void FunctionGenerator::begin_entry(const NestShape* nest) {
  entry_ = make_block("entry");
  start_ = make_block("start");
  activations_.emplace_back(ir_.wasm, index_);
  Activation& activation = top();
  activation.scope = function_->getSubprogram();
  const std::vector<wasm::ValType>& locals = activation.body.locals;
  if (nest) {
    activation.locals.resize(locals.size());
    for (const uint32_t local : nest->used) activation.locals[local] = make_slot(ir_.type_of(locals[local]));
  } else {
    for (const wasm::ValType local : locals) activation.locals.push_back(make_slot(ir_.type_of(local)));
  }
  b_.SetInsertPoint(entry_);
  set_position(begin_);
  thread_ = entry_field(kVmThread);
  if (!ir_.wasm.memories.empty()) entry_field(kVmMemoryBase);
  b_.SetInsertPoint(start_);
}

// The stack check comes last because only now is it known whether the function calls anything.
void FunctionGenerator::finish_entry() {
  b_.SetInsertPoint(entry_);
  b_.SetCurrentDebugLocation(llvm::DILocation::get(ir_.context, begin_.value, 0, function_->getSubprogram()));
  const wasm::FunctionBody& body = ir_.wasm.body(index_);
  frame_estimate_ =
      256 + (body.uses_v128 ? 16 : 8) * (static_cast<uint32_t>(body.locals.size()) + body.max_stack);
  has_loops_ = !body.loops.empty() || calls_itself_again_;
  emit_stack_check();
  b_.CreateBr(start_);
}

void FunctionGenerator::run() {
  while (!activations_.empty() && !moves_too_much()) step();
}

void FunctionGenerator::step() {
  wasm::Instr instr;
  top().reader.next(instr);
  set_position(instr.offset);
  if (reachable_) {
    emit(instr);
  } else {
    skip_dead(instr);
  }
}

void FunctionGenerator::emit(const wasm::Instr& instr) {
  if (emit_exception(instr)) return;
  const auto code = static_cast<uint32_t>(instr.opcode);
  const auto between = [code](Opcode first, Opcode last) {
    return code >= static_cast<uint32_t>(first) && code <= static_cast<uint32_t>(last);
  };
  const auto from = [code](Opcode first) { return code - static_cast<uint32_t>(first); };
  if (wasm::is_simd(instr.opcode)) return emit_simd(instr);
  if (code <= static_cast<uint32_t>(Opcode::kReturnCallRef)) return emit_control(instr);
  if (code <= static_cast<uint32_t>(Opcode::kSelectT)) return emit_parametric(instr);
  if (between(Opcode::kLocalGet, Opcode::kGlobalSet)) return emit_variable(instr);
  if (between(Opcode::kTableGet, Opcode::kTableSet)) return emit_reference(instr);
  if (between(Opcode::kI32Load, Opcode::kMemoryGrow)) return emit_memory(instr);
  if (between(Opcode::kI32Const, Opcode::kF64Const)) return emit_constant(instr);
  if (between(Opcode::kI32Eqz, Opcode::kI32GeU)) return emit_integer_compare(from(Opcode::kI32Eqz), false);
  if (between(Opcode::kI64Eqz, Opcode::kI64GeU)) return emit_integer_compare(from(Opcode::kI64Eqz), true);
  if (between(Opcode::kF32Eq, Opcode::kF32Ge)) return emit_float_compare(from(Opcode::kF32Eq));
  if (between(Opcode::kF64Eq, Opcode::kF64Ge)) return emit_float_compare(from(Opcode::kF64Eq));
  if (between(Opcode::kI32Clz, Opcode::kI32Rotr)) return emit_integer_operator(from(Opcode::kI32Clz), false);
  if (between(Opcode::kI64Clz, Opcode::kI64Rotr)) return emit_integer_operator(from(Opcode::kI64Clz), true);
  if (between(Opcode::kF32Abs, Opcode::kF32Copysign))
    return emit_float_operator(from(Opcode::kF32Abs), false);
  if (between(Opcode::kF64Abs, Opcode::kF64Copysign)) return emit_float_operator(from(Opcode::kF64Abs), true);
  if (code >> 8 == 0xfe) return emit_atomic(instr);
  switch (instr.opcode) {
    case Opcode::kI32WrapI64:
    case Opcode::kI64ExtendI32S:
    case Opcode::kI64ExtendI32U:
    case Opcode::kI32Extend8S:
    case Opcode::kI32Extend16S:
    case Opcode::kI64Extend8S:
    case Opcode::kI64Extend16S:
    case Opcode::kI64Extend32S:
      return emit_integer_conversion(instr);
    case Opcode::kMemoryInit:
    case Opcode::kDataDrop:
    case Opcode::kMemoryCopy:
    case Opcode::kMemoryFill:
      return emit_bulk(instr);
    case Opcode::kBrOnNull:
    case Opcode::kBrOnNonNull:
      return emit_br_on_null(instr);
    case Opcode::kRefAsNonNull:
    case Opcode::kRefNull:
    case Opcode::kRefIsNull:
    case Opcode::kRefFunc:
    case Opcode::kTableInit:
    case Opcode::kElemDrop:
    case Opcode::kTableCopy:
    case Opcode::kTableGrow:
    case Opcode::kTableSize:
    case Opcode::kTableFill:
      return emit_reference(instr);
    default:
      return emit_float_conversion(instr);
  }
}

void FunctionGenerator::emit_parametric(const wasm::Instr& instr) {
  if (instr.opcode == Opcode::kDrop) {
    pop();
    return;
  }
  Value* const choose_first = condition(pop());
  Value* const second = pop();
  Value* const first = pop();
  Value* const chosen = b_.CreateSelect(choose_first, first, second);
  // The producer chose a select over a branch. The backend would turn it back into one in loops, where it
  // guesses that branches predict well (x86-cmov-conversion). Marked so, it stays a conditional move.
  if (auto* select = llvm::dyn_cast<llvm::SelectInst>(chosen)) {
    select->setMetadata(llvm::LLVMContext::MD_unpredictable, llvm::MDNode::get(b_.getContext(), {}));
    select->setMetadata(llvm::LLVMContext::MD_prof, ir_.hinted_weights(instr.offset, /*in_loop=*/true));
  }
  push(chosen);
}

void FunctionGenerator::emit_variable(const wasm::Instr& instr) {
  if (instr.opcode == Opcode::kGlobalGet || instr.opcode == Opcode::kGlobalSet) {
    const wasm::Global& global = ir_.wasm.globals[instr.index];
    Value* base = vmctx();
    int64_t offset = 0;
    if (global.imported) {
      base = load_runtime(ir_.ptr, entry_field(kVmImportedGlobals), int64_t{8} * instr.index, true);
    } else {
      offset = ir_.layout.global(instr.index);
    }
    if (instr.opcode == Opcode::kGlobalGet) {
      llvm::LoadInst* const value =
          load_runtime(ir_.type_of(global.type.type), base, offset, !global.type.mutable_);
      if (wasm::is_non_null(global.type.type))
        value->setMetadata(llvm::LLVMContext::MD_nonnull, llvm::MDNode::get(ir_.context, {}));
      push(value);
    } else {
      store_runtime(pop(), base, offset);
    }
    return;
  }
  llvm::AllocaInst* const slot = top().locals[instr.index];
  switch (instr.opcode) {
    case Opcode::kLocalGet:
      push(b_.CreateLoad(slot->getAllocatedType(), slot));
      break;
    case Opcode::kLocalSet:
      b_.CreateStore(pop(), slot);
      break;
    default:
      b_.CreateStore(stack_.back(), slot);
      break;  // local.tee
  }
}

void FunctionGenerator::emit_constant(const wasm::Instr& instr) {
  switch (instr.opcode) {
    case Opcode::kI32Const:
      push(int32(static_cast<uint32_t>(instr.bits)));
      break;
    case Opcode::kI64Const:
      push(int64(instr.bits));
      break;
    case Opcode::kF32Const:
      push(llvm::ConstantFP::get(ir_.context, llvm::APFloat(llvm::APFloat::IEEEsingle(),
                                                            llvm::APInt(32, instr.bits & 0xffffffffu))));
      break;
    default:
      push(llvm::ConstantFP::get(ir_.context,
                                 llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, instr.bits))));
      break;
  }
}

void FunctionGenerator::set_position(WasmOffset offset) {
  const Activation& activation = top();
  b_.SetCurrentDebugLocation(llvm::DILocation::get(ir_.context, offset.value, activation.site + 1,
                                                   activation.scope, activation.inlined_at));
}

llvm::AllocaInst* FunctionGenerator::make_slot(llvm::Type* type) {
  auto* slot = new llvm::AllocaInst(type, 0, nullptr, llvm::Align(type->isVectorTy() ? 16 : 8), "", entry_);
  slots_.push_back(slot);
  return slot;
}

BasicBlock* FunctionGenerator::make_block(const char* name) {
  return BasicBlock::Create(ir_.context, name, function_);
}

Value* FunctionGenerator::pop() {
  Value* const value = stack_.back();
  stack_.pop_back();
  return value;
}

Value* FunctionGenerator::condition(Value* i32_value) {
  if (auto* extended = llvm::dyn_cast<llvm::ZExtInst>(i32_value); extended && extended->getSrcTy() == ir_.i1)
    return extended->getOperand(0);
  return b_.CreateICmpNE(i32_value, int32(0));
}

void FunctionGenerator::push_condition(Value* i1_value) {
  push(b_.CreateZExt(i1_value, ir_.i32));
}

Value* FunctionGenerator::runtime_field(Value* base, int64_t offset) {
  return offset == 0 ? base : b_.CreateConstInBoundsGEP1_64(ir_.i8, base, static_cast<uint64_t>(offset));
}

llvm::LoadInst* FunctionGenerator::load_runtime(llvm::Type* type, Value* base, int64_t offset,
                                                bool invariant) {
  llvm::LoadInst* load = b_.CreateAlignedLoad(type, runtime_field(base, offset), llvm::Align(1));
  if (type != ir_.i8) load->setAlignment(llvm::Align(4));
  if (invariant) load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir_.context, {}));
  return ir_.mark(load, IrModule::World::kRuntime);
}

llvm::StoreInst* FunctionGenerator::store_runtime(Value* value, Value* base, int64_t offset) {
  return ir_.mark(b_.CreateAlignedStore(value, runtime_field(base, offset), llvm::Align(4)),
                  IrModule::World::kRuntime);
}

// Invariant: entry_ dominates every block, and its terminator is added last.
Value* FunctionGenerator::entry_field(int64_t vmctx_offset, llvm::Type* type) {
  Value*& field = entry_fields_[vmctx_offset];
  if (!field) {
    llvm::IRBuilder<>::InsertPointGuard keep(b_);
    b_.SetInsertPoint(entry_);
    b_.SetCurrentDebugLocation(
        llvm::DILocation::get(ir_.context, begin_.value, 0, function_->getSubprogram()));
    field = load_runtime(type, vmctx(), vmctx_offset, true);
  }
  return field;
}

llvm::CallInst* FunctionGenerator::call_builtin(size_t builtin_offset, llvm::Type* result,
                                                std::initializer_list<Value*> args) {
  std::vector<Value*> all{vmctx()};
  std::vector<llvm::Type*> types{ir_.ptr};
  for (Value* arg : args) {
    all.push_back(arg);
    types.push_back(arg->getType());
  }
  Value* const code =
      load_runtime(ir_.ptr, entry_field(kVmBuiltins), static_cast<int64_t>(builtin_offset), true);
  llvm::CallInst* call = b_.CreateCall(llvm::FunctionType::get(result, types, false), code, all);
  call->setDoesNotThrow();
  // Its return address is a wasm position: two of them must not become one.
  call->addFnAttr(llvm::Attribute::NoMerge);
  return call;
}

void FunctionGenerator::trap(TrapCode code) {
  llvm::CallInst* call =
      call_builtin(offsetof(Builtins, trap), ir_.void_type, {int32(static_cast<uint32_t>(code))});
  call->setDoesNotReturn();
  call->addFnAttr(llvm::Attribute::Cold);
  b_.CreateUnreachable();
}

void FunctionGenerator::trap_if(Value* condition, TrapCode code) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition); known && known->isZero()) return;
  BasicBlock* const trapping = make_block("trap");
  BasicBlock* const next = make_block("");
  b_.CreateCondBr(condition, trapping, next, ir_.unlikely);
  b_.SetInsertPoint(trapping);
  trap(code);
  b_.SetInsertPoint(next);
}

}  // namespace hindsight::jit::optimizing
