// Strips: a counted innermost loop in two copies, between which it chooses once a strip of iterations.
//
//     before:   backedges = how often the loop will go back, known here
//     head:     most = the strip's longest length; count = 1 + umin(remaining, most - 1)
//               if (with) goto with_entry, else goto without_entry
//     with:     the loop as it was, for `count` iterations      without: its copy, the same
//     tail:     values of the two copies meet; remaining backedges? then head, else what came after the loop
//
// Runs of fewer than `shortest` iterations go from before the loop to without, and on to what comes after. They
// pay for two comparisons and none of the rest.
//
// The copies know their trip counts at entry and contain nothing of the choice. So each is optimized
// (vectors, unrolling) like a loop of its own. The copy without is what the loop would be if nothing were
// tried in it.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <map>

namespace hindsight::jit::optimizing {

struct Backedges {
  llvm::Value* count = nullptr;  // i64, at the end of the loop's preheader; null: the loop does not qualify
  bool known_to_llvm = false;    // without knowing it LLVM would neither vectorize the loop nor unroll it
};

// How often the backedge of `loop` is taken. The loop must be innermost, simplified, in LCSSA form and
// counted by its latch alone. Exits that only trap may be anywhere. A loop that never comes to its end has
// 2^64 - 1.
Backedges emit_backedges(const llvm::Loop& loop, const llvm::DominatorTree& dominators,
                         llvm::ScalarEvolution& evolution, const llvm::DebugLoc& location);

// Whether emit_backedges() has a count for it.
bool can_be_in_strips(const llvm::Loop& loop, const llvm::DominatorTree& dominators,
                      llvm::ScalarEvolution& evolution);

// The same for a loop that need not be innermost, nor without other ways out: of its latch alone. The loop
// must be simplified and left by its latch.
Backedges emit_latch_backedges(const llvm::Loop& loop, llvm::ScalarEvolution& evolution,
                               const llvm::DebugLoc& location);

// What the header's phis are in some iteration.
using CarriedValues = std::map<llvm::PHINode*, llvm::Value*>;

struct Strips {
  llvm::BasicBlock* head = nullptr;           // ends in a branch on the choice
  llvm::BasicBlock* with_entry = nullptr;     // preheader of the loop as it was
  llvm::BasicBlock* without_entry = nullptr;  // preheader of the copy
  llvm::BasicBlock* tail = nullptr;           // ends the strip; dominated by head where no run is short
  llvm::Value* count = nullptr;               // i64, in the tail: iterations of this strip, at least 1
  llvm::Value* left = nullptr;  // i64, in the tail: iterations after this strip; 0: it was the last
  // In the tail: what the loop's header phis become in the iteration after this strip, were there one.
  CarriedValues next;
  // In the head: what they are in the strip's first iteration.
  CarriedValues first;
};

struct StripChoice {
  llvm::Value* most_backedges = nullptr;  // i64, below 2^31: the strip's longest length - 1
  llvm::Value* with = nullptr;            // i1
};

// Precondition: `backedges` is what emit_backedges() said, with a count. `choose` emits into the head; `first` is
// Strips::first.
// Analyses know nothing of the change, but the loop's own set of blocks stays what it was. The loop as it was
// is marked to be neither vectorized nor unrolled, until its maker gives it another identity. `shortest`: runs of fewer iterations go round the strips.
Strips make_strips(llvm::Loop& loop, Backedges backedges, llvm::DebugLoc location,
                   const std::function<StripChoice(llvm::IRBuilder<>&, const CarriedValues& first)>& choose,
                   uint32_t shortest = 0);
// The same without a copy, for a place between strips. Strips of at most `most` iterations, below 2^31, are
// those of the loop as it was, which stays free to be vectorized and unrolled. `without_entry` is null.
Strips make_strips(llvm::Loop& loop, Backedges backedges, llvm::DebugLoc location, uint32_t most);

}  // namespace hindsight::jit::optimizing
