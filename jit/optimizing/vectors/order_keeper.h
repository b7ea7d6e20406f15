// Holds LLVM's passes over loops and branches to the order of stores and of what may trap, around each run of one.
//
// To LLVM a load can be made earlier than a store that it does not overlap. Stores of several iterations can be made at once. In
// WebAssembly a trap shows what was stored before it. Most of what moves stores is left out (pass_order.cc). For what is worth having,
// something is done before the pass and undone after it.
//
// - LICM and JumpThreading make loads earlier, out of a loop or into what comes before a block. They move none past what might not return.
//   So a wall, a piece of assembly that touches nothing but may not return, stands before each load that would pass a store.
// - SimpleLoopUnswitch computes a loop's condition before the loop, loads included, where a part of the loop does not change it. Not of a loop
//   that stores.
// - LoopVectorize makes vectors of loops. Each gets the condition that it stays within memory (memory_reach.h). It is looked at after the
//   vectorizer's own, which asks whether there are iterations enough. Where it does not hold, the scalar loop takes all iterations. A loop
//   that stores and whose reach is not known stays scalar.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/ValueHandle.h>

#include <vector>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

class OrderKeeper {
 public:
  // All of them outlive the passes that run.
  OrderKeeper(IrModule& ir, llvm::FunctionAnalysisManager& functions);
  OrderKeeper(const OrderKeeper&) = delete;
  OrderKeeper& operator=(const OrderKeeper&) = delete;

  // Hears of the passes of the pass manager that is built with `callbacks`. Under explicit checks there is nothing to keep.
  void listen(llvm::PassInstrumentationCallbacks& callbacks);

 private:
  // A loop that may become vectors.
  struct Entered {
    llvm::BasicBlock* before;
    llvm::WeakTrackingVH inside;
  };
  void before(llvm::StringRef pass, const llvm::Any& unit);
  void after(llvm::StringRef pass);
  void keep_in_loop(llvm::Loop& loop);
  void keep_whole(llvm::Loop& loop);
  void keep_in_blocks(llvm::Function& function);
  void ask_reaches(llvm::Function& function);
  void guard_vectors();
  bool may_trap(const llvm::LoadInst& load) const;
  bool stores(const llvm::Instruction& instruction) const;

  IrModule& ir_;
  llvm::FunctionAnalysisManager& functions_;
  std::vector<Entered> entered_;
  llvm::SmallPtrSet<const llvm::BasicBlock*, 32>
      scalar_blocks_;  // those that there were before the vectorizer
};

}  // namespace hindsight::jit::optimizing
