#include "jit/optimizing/ir/ir_module.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "jit/abi/call_layout.h"
#include "jit/abi/nest_exits.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {

IrModule::IrModule(llvm::LLVMContext& llvm_context, const OptimizeRequest& optimize_request,
                   const HostTarget& host_machine)
    : request(optimize_request),
      wasm(*optimize_request.module),
      layout(*optimize_request.module),
      context(llvm_context),
      module("hindsight", llvm_context),
      host(host_machine),
      void_type(llvm::Type::getVoidTy(context)),
      i1(llvm::Type::getInt1Ty(context)),
      i8(llvm::Type::getInt8Ty(context)),
      i16(llvm::Type::getInt16Ty(context)),
      i32(llvm::Type::getInt32Ty(context)),
      i64(llvm::Type::getInt64Ty(context)),
      f32(llvm::Type::getFloatTy(context)),
      f64(llvm::Type::getDoubleTy(context)),
      ptr(llvm::PointerType::getUnqual(context)),
      f32x4(llvm::FixedVectorType::get(f32, 4)),
      v128(llvm::FixedVectorType::get(i64, 2)),
      debug_(module) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
  module.setPICLevel(llvm::PICLevel::BigPIC);
  file_ = debug_.createFile(wasm.name.empty() ? "module.wasm" : wasm.name, "");
  debug_.createCompileUnit(llvm::dwarf::DW_LANG_C, file_, "hindsight", true, "", 0, "",
                           llvm::DICompileUnit::LineTablesOnly);
  scope_type_ = debug_.createSubroutineType(debug_.getOrCreateTypeArray({}));

  for (const Request& change : request.changes) {
    if (change.site.kind == ChangeKind::kWeighBranches)
      weighed_.emplace(change.site.at.value, what_of<BranchCounts>(change));
    if (change.site.kind == ChangeKind::kSplitCold)
      one_sided_.emplace(change.site.at.value, what_of<BranchCounts>(change));
  }
  position_kind_ = context.getMDKindID("hindsight.position");
  llvm::MDBuilder metadata(context);
  unlikely = metadata.createBranchWeights(1, 1u << 20);
  likely = metadata.createBranchWeights(1u << 20, 1);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("worlds");
  llvm::Metadata* scopes[3] = {metadata.createAnonymousAliasScope(domain, "memory"),
                               metadata.createAnonymousAliasScope(domain, "runtime"),
                               metadata.createAnonymousAliasScope(domain, "cells")};
  for (size_t i = 0; i < 3; ++i) {
    scope_[i] = llvm::MDNode::get(context, {scopes[i]});
    others_[i] = llvm::MDNode::get(context, {scopes[(i + 1) % 3], scopes[(i + 2) % 3]});
  }
}

llvm::Type* IrModule::type_of(wasm::ValType type) const {
  if (wasm::is_reference(type)) return ptr;
  switch (type) {
    case wasm::ValType::kI32:
      return i32;
    case wasm::ValType::kI64:
      return i64;
    case wasm::ValType::kF32:
      return f32;
    case wasm::ValType::kF64:
      return f64;
    case wasm::ValType::kV128:
      return v128;
    default:
      return i64;
  }
}

llvm::Type* IrModule::native_result(const wasm::FuncType& type) const {
  return type.results.size() == 1 ? type_of(type.results[0]) : void_type;
}

llvm::FunctionType* IrModule::native_type(const wasm::FuncType& type) const {
  const CallLayout call(type);
  std::vector<llvm::Type*> params{ptr};
  for (size_t i = 0; i < type.params.size(); ++i)
    if (call.params[i].kind != ArgPlace::Kind::kThread) params.push_back(type_of(type.params[i]));
  return llvm::FunctionType::get(native_result(type), params, false);
}

llvm::FunctionType* IrModule::erased_type(const wasm::FuncType& type) const {
  std::vector<llvm::Type*> params{ptr};
  params.insert(params.end(), kIntArgRegisters, i64);
  params.insert(params.end(), kFloatArgRegisters, f32x4);
  return llvm::FunctionType::get(native_result(type), params, false);
}

llvm::Function* IrModule::make_function(llvm::FunctionType* type, const std::string& name,
                                        FuncIndex function) {
  auto* made = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  made->setVisibility(llvm::GlobalValue::HiddenVisibility);
  made->setDSOLocal(true);
  made->addFnAttr(llvm::Attribute::NoUnwind);
  // LLVM's own inliner knows nothing of inline sites and entry slots.
  made->addFnAttr(llvm::Attribute::NoInline);
  made->addFnAttr("frame-pointer", "all");
  // A tail call that the program did not ask for would hide its caller from backtraces and turn runaway
  // recursion into an endless loop. Those that it asked for are musttail, which this does not concern.
  made->addFnAttr("disable-tail-calls", "true");
  // Frames larger than a page touch each of their pages, so none steps over the stack's guard page.
  made->addFnAttr("probe-stack", "inline-asm");
  made->addFnAttr("target-cpu", host.cpu);
  if (!host.features.empty()) made->addFnAttr("target-features", host.features);
  if (host.vector_bits != 0) made->addFnAttr("prefer-vector-width", std::to_string(host.vector_bits));
  made->addFnAttr("no-trapping-math", "true");
  llvm::Argument* vmctx = made->getArg(0);
  vmctx->setName("vmctx");
  vmctx->addAttr(llvm::Attribute::NonNull);
  vmctx->addAttr(llvm::Attribute::NoUndef);
  vmctx->addAttr(llvm::Attribute::getWithDereferenceableBytes(context, layout.total_bytes()));
  made->setSubprogram(make_scope(function));
  return made;
}

llvm::DISubprogram* IrModule::make_scope(FuncIndex function) {
  const uint32_t line = wasm.body(function).begin.value;
  return debug_.createFunction(file_, wasm.function_name(function), "", file_, line, scope_type_, line,
                               llvm::DINode::FlagZero,
                               llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
}

llvm::DISubprogram* IrModule::scope_of(FuncIndex function) {
  llvm::DISubprogram*& scope = scopes_[function.value];
  if (!scope) scope = make_scope(function);
  return scope;
}

llvm::Constant* IrModule::frame_bytes() {
  llvm::GlobalVariable* symbol = module.getNamedGlobal(kFrameBytesSymbol);
  if (!symbol) {
    symbol = new llvm::GlobalVariable(module, i8, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
                                      nullptr, kFrameBytesSymbol);
    symbol->setVisibility(llvm::GlobalValue::HiddenVisibility);
    symbol->setDSOLocal(true);
    // An address in this range fits an immediate operand.
    llvm::Metadata* const range[] = {
        llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i64, 0)),
        llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i64, uint64_t{1} << 31))};
    symbol->setMetadata(llvm::LLVMContext::MD_absolute_symbol, llvm::MDNode::get(context, range));
  }
  return llvm::ConstantExpr::getPtrToInt(symbol, i64);
}

llvm::Constant* IrModule::loop_cell(uint32_t index) {
  return outside_variable(cell_symbol(index), sizeof(LoopCell));
}

llvm::Constant* IrModule::nest_work() {
  return outside_variable(kNestWorkSymbol, sizeof(NestWork));
}

llvm::Constant* IrModule::outside_variable(const std::string& name, size_t bytes) {
  if (llvm::GlobalVariable* known = module.getNamedGlobal(name)) return known;
  auto* made = new llvm::GlobalVariable(module, llvm::ArrayType::get(i8, bytes), /*isConstant=*/false,
                                        llvm::GlobalValue::ExternalLinkage, nullptr, name);
  made->setAlignment(llvm::Align(alignof(LoopCell)));
  return made;
}

llvm::Constant* IrModule::personality() {
  return llvm::cast<llvm::Constant>(
      module.getOrInsertFunction(kPersonalitySymbol, llvm::FunctionType::get(i32, /*isVarArg=*/true))
          .getCallee());
}

uint32_t IrModule::add_inline_site(InlineSite site) {
  inline_sites.push_back(site);
  inlined.insert(site.callee.value);
  return static_cast<uint32_t>(inline_sites.size() - 1);
}

std::optional<uint32_t> IrModule::memory_of(const llvm::Value* base, const llvm::Value* vmctx) const {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(base);
  if (!load) return std::nullopt;
  llvm::APInt offset(64, 0);
  const llvm::Value* from = load->getPointerOperand()->stripAndAccumulateConstantOffsets(
      module.getDataLayout(), offset, /*AllowNonInbounds=*/true);
  if (from != vmctx) return std::nullopt;
  for (uint32_t i = 0; i < wasm.memories.size(); ++i)
    if (offset == static_cast<uint64_t>(layout.memory_base(i))) return i;
  return std::nullopt;
}

uint64_t IrModule::least_bytes(uint32_t memory) const {
  return std::min(wasm.memories[memory].limits.min, wasm::kMaxPages) * wasm::kPageBytes;
}

bool IrModule::is_always_there(const llvm::Value* base, const llvm::APInt& end,
                               const llvm::Value* vmctx) const {
  const std::optional<uint32_t> memory = memory_of(base, vmctx);
  return memory && !end.isNegative() && end.ule(least_bytes(*memory));
}

bool IrModule::is_among(const llvm::Instruction& access, World world) const {
  const llvm::MDNode* const scopes = access.getMetadata(llvm::LLVMContext::MD_alias_scope);
  return scopes != nullptr && llvm::is_contained(scopes->operands(), scope_of(world));
}

// What practically never happens is mostly a loop's guard or its remainder. LLVM places these well by itself,
// and would move them out of the way if it were told. Measured, that makes the loop slower.
static constexpr uint64_t kCertain = 100;

llvm::MDNode* IrModule::hinted_weights(WasmOffset offset, bool in_loop) const {
  if (const auto seen = one_sided_.find(offset.value);
      seen != one_sided_.end() && request.split_cold && !in_loop)
    return seen->second.taken == 0 ? unlikely : likely;
  if (const auto seen = weighed_.find(offset.value); seen != weighed_.end()) {
    // One more on each side: that something was never seen does not say that it cannot happen. Weights have
    // 32 bits.
    uint64_t taken = seen->second.taken, not_taken = seen->second.not_taken;
    if (std::min(taken, not_taken) * kCertain < taken + not_taken) return nullptr;
    for (; std::max(taken, not_taken) >= uint64_t{1} << 31; taken /= 2) not_taken /= 2;
    return llvm::MDBuilder(context).createBranchWeights(static_cast<uint32_t>(taken + 1),
                                                        static_cast<uint32_t>(not_taken + 1));
  }
  // As strong as __builtin_expect: advice, where `unlikely` is knowledge.
  constexpr uint32_t kMostly = 2000;
  const std::optional<bool> hint = wasm.branch_hint(offset);
  if (!hint) return nullptr;
  return llvm::MDBuilder(context).createBranchWeights(*hint ? kMostly : 1, *hint ? 1 : kMostly);
}

llvm::MDNode* IrModule::exit_counts(WasmOffset offset, bool taken_leaves) const {
  const auto seen = weighed_.find(offset.value);
  if (seen == weighed_.end()) return nullptr;
  const BranchCounts& counts = seen->second;
  const auto number = [&](uint64_t count) -> llvm::Metadata* {
    return llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i64, count));
  };
  return llvm::MDNode::get(context, {number(taken_leaves ? counts.taken : counts.not_taken),
                                     number(counts.taken + counts.not_taken)});
}

llvm::MDNode* IrModule::branch_weights(double taken, double not_taken) const {
  constexpr double kScale = 1000;
  return llvm::MDBuilder(context).createBranchWeights(1 + static_cast<uint32_t>(kScale * taken),
                                                      1 + static_cast<uint32_t>(kScale * not_taken));
}

void IrModule::remember_position(llvm::Instruction& access) {
  auto* const number = llvm::ConstantInt::get(i32, positions_.size());
  positions_.push_back(access.getDebugLoc().get());
  access.setMetadata(position_kind_, llvm::MDNode::get(context, {llvm::ConstantAsMetadata::get(number)}));
}

llvm::DILocation* IrModule::position_of(const llvm::Instruction& access) const {
  if (const llvm::MDNode* node = access.getMetadata(position_kind_)) {
    const auto* number = llvm::mdconst::extract<llvm::ConstantInt>(node->getOperand(0));
    return positions_[number->getZExtValue()];
  }
  return access.getDebugLoc().get();
}

void IrModule::restore_positions() {
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        if (!instruction.getMetadata(position_kind_)) continue;
        if (!instruction.getDebugLoc() || instruction.getDebugLoc().getLine() == 0)
          instruction.setDebugLoc(position_of(instruction));
      }
    }
  }
}

}  // namespace hindsight::jit::optimizing
