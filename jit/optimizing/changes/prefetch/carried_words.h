// Words that a loop carries in memory: a random number's state, a position in a buffer. Each iteration loads the word from a place
// that stays, and stores there what it has computed from it alone. As a variable of the loop it would be a recurrence, which a
// prefetch slice runs ahead (prefetch_slice.h). A compiler leaves it in memory where some other store may be to it.
//
// So such a variable is made, beside memory: a phi that starts with what the word is before the loop, and goes on as stores go
// on. Nothing of the program uses it. It is a guess, as it does not see other stores to the word. What no slice uses is dead.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>

#include <map>
#include <utility>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// What is known of loops' words, while the code stays as it is.
struct CarriedWords {
  std::map<const llvm::LoadInst*, llvm::PHINode*> phis;  // by the load that an iteration begins with
  // What stored_before() has found.
  mutable std::map<std::pair<const llvm::LoadInst*, const llvm::Loop*>, const llvm::StoreInst*> stores = {};
};

// Those of a loop. Adds to its preheader, header and latch. Bounded: looks at so many operations of the loop.
void add_carried_words(IrModule& ir, llvm::Function& function, llvm::Loop& loop, const llvm::LoopInfo& loops,
                       llvm::ScalarEvolution& evolution, CarriedWords& words);

// The store of an iteration that comes last before a load from a place that stays, on some way there, to the same place and of
// the same type. Null: none was seen.
const llvm::StoreInst* stored_before(const llvm::LoadInst& load, const llvm::Loop& loop,
                                     const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution,
                                     const CarriedWords& words);

}  // namespace hindsight::jit::optimizing
