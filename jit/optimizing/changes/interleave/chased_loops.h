// Which loop is a search: one whose next load waits for what its last one brought.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <vector>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// Whether `from` is computed with `phi`, within one iteration of `loop` and without another load between.
bool reaches(const llvm::Value* from, const llvm::PHINode* phi, const llvm::Loop& loop);

// Whether the next value of `phi`, of the loop's header, needs a load of this iteration: as the value itself, or to choose it.
bool is_fed_by_load(const llvm::PHINode& phi, const llvm::Loop& loop);

// Whether the load's address hangs on how far the loop has come, and that on what it has loaded.
bool is_chased(const llvm::LoadInst& load, const llvm::Loop& loop);

// The loops around `load` that may be a search it belongs to, the likeliest first. Those come first whose own
// progress the load's address hangs on, in a way that is no stride, from the innermost outwards. Then come
// those in which another load's does. All of their steps wait for what this load brings, as where a record's
// bytes go through a table one after the other.
std::vector<llvm::Loop*> chased_loops(const IrModule& ir, const llvm::LoadInst& load,
                                      const llvm::LoopInfo& loops);

// The blocks of the loop around a search that come before it: from its header on.
std::vector<llvm::BasicBlock*> blocks_before(const llvm::Loop& search);

// Whether calls lead from the function back into it, as far as they are to be seen here.
bool is_recursive(const llvm::Function& function);

}  // namespace hindsight::jit::optimizing
