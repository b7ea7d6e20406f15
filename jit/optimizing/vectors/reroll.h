// Undoes the unrolling that a compiler did to a loop before it became WebAssembly, so that it can be made for the
// host's vectors instead. clang unrolls small loops by two or four for every WebAssembly target.
//
// The loop's one block has to consist of `copies` copies of one body. Each store, each reduction's operand and each
// value carried to the next copy has its like in every copy. Alike are the same operators on operands that are alike.
// Such operands are loads that are one copy's step further, induction variables that are one step further, or the same
// values from outside.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>

#include <optional>
#include <utility>
#include <vector>

#include "jit/optimizing/vectors/affine_access.h"

namespace hindsight::jit::optimizing {

struct Rerolling {
  unsigned copies = 1;
  // Stores of all copies but the first.
  std::vector<llvm::Instruction*> stores;
  // `phi` gets from iteration to iteration what the first copy alone makes of it. That is `value`, or if there are
  // `leaves`, these joined with the phi by the operator of `last`.
  struct Carried {
    llvm::PHINode* phi;
    llvm::Instruction* last;  // what the phi gets in the loop as it is
    llvm::Value* value;
    std::vector<llvm::Value*> leaves;
  };
  std::vector<Carried> carried;
  // Values of the first copy that are one copy's step further in each of the others, which scalar evolution says of the
  // iterations there were. `value` is to be computed anew as start + step * (copies done). The operators that it is
  // made of now may give that for the old iterations alone.
  struct Advancing {
    llvm::Instruction* value;
    const llvm::SCEV* start;
    int64_t step;  // of one copy
  };
  std::vector<Advancing> advancing;
  // Pairs of groups that rerolling puts in another order: right only if they do not overlap.
  std::vector<std::pair<size_t, size_t>> apart;
};

// Innermost loop of one block, in LCSSA form. With copies == 1 nothing is to be done.
Rerolling find_copies(const llvm::Loop& loop, const AffineAccesses& accesses,
                      llvm::ScalarEvolution& evolution);

// The step of a header phi that is an induction variable; nothing if it is none.
std::optional<int64_t> induction_step(llvm::PHINode& phi, const llvm::Loop& loop,
                                      llvm::ScalarEvolution& evolution);

}  // namespace hindsight::jit::optimizing
