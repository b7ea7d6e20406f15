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

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// By the load that an iteration begins with.
using CarriedWords = std::map<const llvm::LoadInst*, llvm::PHINode*>;

// Those of a loop. Adds to its preheader, header and latch. Bounded: looks at so many operations of the loop.
void add_carried_words(IrModule& ir, llvm::Function& function, llvm::Loop& loop, const llvm::LoopInfo& loops,
                       llvm::ScalarEvolution& evolution, CarriedWords& words);

// A block that leads to this one within `loop`; to the header of a loop within, from outside of it. Null: there is none.
const llvm::BasicBlock* one_before(const llvm::BasicBlock& block, const llvm::Loop& loop,
                                   const llvm::LoopInfo& loops);
// The store of an iteration that comes last before `before`, on some way there, to the place and of the type of a load from a
// place that stays. Null: none was seen.
const llvm::StoreInst* last_store(const llvm::LoadInst& load, const llvm::Instruction& before,
                                  const llvm::Loop& loop, const llvm::LoopInfo& loops,
                                  llvm::ScalarEvolution& evolution);

}  // namespace hindsight::jit::optimizing
