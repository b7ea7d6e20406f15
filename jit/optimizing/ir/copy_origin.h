// Which load or store of the program a copy of it, or a prefetch, is for. Code is the same without: it is there to be shown, where a
// dump is asked for.
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/Metadata.h>

#include <optional>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

inline constexpr const char* kCopyOf = "hindsight.copy_of";

inline void tell_origin(const IrModule& ir, llvm::Instruction& copy, const llvm::Instruction& original) {
  if (!ir.request.dump_ir) return;
  const llvm::DILocation* const position = ir.position_of(original);
  if (position == nullptr) return;
  llvm::Constant* const offset = llvm::ConstantInt::get(ir.i32, position->getLine());
  copy.setMetadata(kCopyOf, llvm::MDNode::get(ir.context, {llvm::ConstantAsMetadata::get(offset)}));
}

inline std::optional<WasmOffset> origin_of(const llvm::Instruction& copy) {
  const llvm::MDNode* const node = copy.getMetadata(kCopyOf);
  if (node == nullptr) return std::nullopt;
  const auto* const offset = llvm::mdconst::extract<llvm::ConstantInt>(node->getOperand(0));
  return WasmOffset(static_cast<uint32_t>(offset->getZExtValue()));
}

}  // namespace hindsight::jit::optimizing
