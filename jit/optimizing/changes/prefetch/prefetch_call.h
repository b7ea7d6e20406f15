// A prefetch in a loop that LLVM may make vectors of. Its own prefetch keeps a loop scalar. This is a call of a function that
// nobody defines, and of which the vectorizer makes one for each lane. So it costs as much for each iteration either way, and
// the loop becomes vectors where it would without it. Before code is emitted a pass makes prefetches of them all
// (spread_prefetches.h).
//
// The vectorizer takes calls of functions that have a variant for vectors. This one is said to have one, of more lanes than
// there will ever be, so that it is never asked for.
//
// To LLVM the call touches memory that nothing else does. So it stays where it is, and moves for nobody.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// `place`: an i64, any.
llvm::CallInst* add_prefetch_call(IrModule& ir, llvm::IRBuilder<>& b, llvm::Value* place);

bool is_prefetch_call(const llvm::Instruction& instruction);

}  // namespace hindsight::jit::optimizing
