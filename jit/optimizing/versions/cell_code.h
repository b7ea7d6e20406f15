// Code that reads and writes a LoopCell and the runtime's structures: what every pass emits that leaves a
// choice to a trial.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// The pass's own location: samples of what it adds are the loop's, never a load's.
llvm::DebugLoc loop_location(const IrModule& ir, llvm::Function& function, WasmOffset wasm_loop);

// Removes the users that kept hinted loads apart until now (protect.h).
void remove_temporary_users(llvm::Function& function);

// The wasm loops around an instruction, innermost first, through the calls it was inlined by.
std::vector<WasmOffset> wasm_loops_around(const wasm::Module& module, const llvm::DILocation* at);

class CellCode {
 public:
  CellCode(IrModule& ir, llvm::Function& function, uint32_t cell)
      : ir_(ir), function_(function), cell_(ir.loop_cell(cell)) {}

  llvm::Value* field(llvm::IRBuilder<>& b, int32_t offset) const;
  llvm::Value* load(llvm::IRBuilder<>& b, int32_t offset) const;
  // Loads from the VmContext or what it leads to; `invariant`: never changes while the function runs.
  llvm::Value* runtime_load(llvm::IRBuilder<>& b, llvm::Type* type, llvm::Value* base, int64_t offset,
                            bool invariant) const;

  // countdown -= iterations (i32); below zero the trial has its turn. Before `rest`, whose block is split.
  // `when_ended` emits into the block in which the strip has ended.
  void emit_countdown(llvm::Value* iterations, llvm::Instruction* rest, const llvm::DebugLoc& location,
                      const std::function<void(llvm::Instruction* before)>& when_ended = {}) const;

 private:
  IrModule& ir_;
  llvm::Function& function_;
  llvm::Constant* cell_;
};

}  // namespace hindsight::jit::optimizing
