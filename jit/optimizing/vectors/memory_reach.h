// What a loop touches of memory, from its first iteration to its last, compared with the memory's length before it.
//
// A loop that stays within memory traps in none of its accesses, and so shows nothing of their order. It may have vectors, or its
// iterations in any other order. Memory never shrinks, so the length before the loop is good for as long as it runs. A loop that would pass
// the end takes its iterations one by one, in a copy that is exact.
//
// An access in iteration k is at base + invariant + the sum of what varies. Each part of the sum has a lowest and a highest value over all
// iterations. A part is one of these:
// - step * k.
// - A zero-extended counter, whose wrapping is ruled out by a condition of its own.
// - Anything whose type or mask bounds it.
//
// Then all bytes lie between a first and a last one. The distance between the two is less than 2^63. So, as unsigned numbers, both are
// below the length exactly if all between them are, too. base + invariant may be anywhere modulo 2^64.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

struct MemoryReach {
  enum class Kind : uint8_t {
    kShowsNothing,  // nothing traps, or nothing is stored: no order shows
    kKnown,         // `inside` says whether the loop stays within memory
    kUnknown,       // cannot be said before the loop
  };
  Kind kind = Kind::kUnknown;
  llvm::Value* inside = nullptr;  // i1, at the end of the loop's preheader
};

// Emits into the preheader. Precondition: the loop is simplified and innermost. `backedges`: how often its backedge is taken (i64,
// available there), if that is not to be asked of `evolution`. `evolution` knows it where LLVM's vectorizer does.
MemoryReach find_memory_reach(const IrModule& ir, llvm::Loop& loop, llvm::ScalarEvolution& evolution,
                              llvm::Value* backedges = nullptr);

// Says of a loop that it is only entered where it stays within memory.
llvm::MDNode* inside_memory(llvm::LLVMContext& context);
bool is_inside_memory(const llvm::Loop& loop);
// The same of one load or store: where it stands it does not trap.
void mark_inside_memory(llvm::Instruction& access);
bool is_inside_memory(const llvm::Instruction& access);

}  // namespace hindsight::jit::optimizing
