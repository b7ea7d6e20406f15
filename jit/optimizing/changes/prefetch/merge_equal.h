// Slices of one loop have much in common: the row's index, the key, its hash. Each is made by itself, because two slices may read the
// same phi differently. What came out the same is computed once.
#pragma once

#include <llvm/IR/BasicBlock.h>

namespace hindsight::jit::optimizing {

// Of the instructions after `first` (null: from the block's beginning) and before `end`, the later of two that compute or load the same
// gives way to the earlier one. Precondition: nothing between them writes memory that they load.
void merge_equal(llvm::Instruction* first, llvm::Instruction& end);

}  // namespace hindsight::jit::optimizing
