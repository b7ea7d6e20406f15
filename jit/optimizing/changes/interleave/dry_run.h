// A dry run: searches of the next iterations, several at once, whose results are thrown away. It is the form
// of interleaving for loops that interleave_shape.h refuses, as programs mostly have them: they store what they
// find, count visits, are left early, call something afterwards, or do not know how often they go round.
//
//     header:  if (left == 0) goto group                   once in `width` iterations, or in a strip
//     rest:    the loop as it was; --left
//     group:   countdown -= iterations since the last group; left = cell->enabled ? width : a strip
//              if (!cell->enabled) goto rest
//     warm:    width times: head up to the first load that may be far; prefetch it
//     heads:   width times: head; its search, if it needs one, becomes active, and what its first step loads
//              is prefetched
//     rounds:  until none is active: one step of each active search, then prefetch what its next step loads;
//              goto rest
//
// A turn of a loop within the search that follows pointers itself is a step too, as on a level of a skip list. The next step
// then begins in the middle of the search's own.
//
// Then the iterations run unchanged, in order, and find what they load in the cache. So nothing that the
// program can see depends on the dry run, whatever its tails store. It costs each search twice, which the trial
// weighs against what is saved.
//
// What a dry run computes is a guess:
//   - Its loads are clamped (speculation.h). Memory is as it is before the first of the iterations.
//   - It does not store. But what heads read and write at a place that stays, as a random number's state, is
//     kept beside memory (Place). So are the first bytes of what they write in a place that stays, as a word that
//     is looked up (Buffer).
//   - It goes past what the search's course does not hang on: what is done with what it finds, say.
//   - Results of calls are unknown. Where a branch needs one, the dry run goes on to the search, or ends it.
//   - What an iteration takes from the one before comes from its head, or from what its tail computes with
//     that. Where ways meet, one is taken. What hangs on a search's result stays as it is.
// Steps of a search and turns of loops within are bounded. A guess may go round for ever.
#pragma once

#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>

#include <functional>
#include <map>

#include "jit/optimizing/changes/interleave/interleave_code.h"
#include "jit/optimizing/changes/interleave/interleave_parameters.h"
#include "jit/optimizing/changes/interleave/node_lines.h"

namespace hindsight::jit::optimizing {

struct DryRunShape {
  // A word of memory that stays where it is while the loop runs, and that heads load and the loop stores to.
  struct Place {
    llvm::Value* address = nullptr;
    llvm::Type* type = nullptr;
    uint32_t memory = 0;
    llvm::Value* next = nullptr;  // stored after the search, if it can be computed without that
  };

  // Bytes from a place on that stays where it is while the loop runs. Heads store to some of them, by an index, and heads or
  // steps load some. What lies further on is as memory has it.
  struct Buffer {
    static constexpr uint32_t kBytes = kBytesBesideMemory;
    const llvm::SCEV* begin = nullptr;  // its address for the guest, in 32 bits
    llvm::Value* base = nullptr;        // where the memory begins
    uint32_t memory = 0;
    uint64_t stored_bytes = 0;  // by one store
  };

  // A loop within the search, whose turns are steps as well.
  struct Within {
    llvm::Loop* loop = nullptr;
    std::vector<KnownLoad> steps;  // what its next turn loads
    std::vector<llvm::Instruction*>
        live;  // of the search's step, in front of the loop: needed in it, or behind it
  };

  InterleaveShape parts;  // loops and blocks, head and steps; `ahead` are phis that the dry run carries along
  InterleaveStarts starts;              // of steps alone
  std::vector<llvm::PHINode*> carried;  // of the search's header: what its course hangs on
  size_t step_instructions = 0;         // of which steps keep what the course hangs on
  std::vector<Within> within;
  std::vector<Place> places;
  std::map<const llvm::Instruction*, size_t> at_place;  // accesses of heads
  std::vector<Buffer> buffers;
  std::map<const llvm::Instruction*, size_t> in_buffer;           // stores of heads, loads of heads and steps
  llvm::SmallPtrSet<const llvm::Instruction*, 16> unknown;        // computed from what a call returns, say
  std::map<const llvm::Instruction*, llvm::BasicBlock*> guesses;  // where branches go that hang on these
  std::map<const llvm::PHINode*, llvm::Value*> ways;              // taken where ways of a tail meet
  // Loads of heads that may be far, if the next head can be known before they are.
  llvm::SmallPtrSet<const llvm::Instruction*, 8> far;
  std::set<uint32_t> memories;  // that it reads
  llvm::Value* ends = nullptr;  // the condition of the loop's latch, if it can be known ahead
};

// The shape of the searches that `load` belongs to, if `chase` is one (chased_loops.h), or why a dry run of them
// would find nothing. Changes nothing.
std::expected<DryRunShape, std::string> find_dry_run_shape(const IrModule& ir, llvm::LoadInst& load,
                                                           llvm::Loop& chase, const StallsAt& stalls,
                                                           llvm::LoopInfo& loops,
                                                           llvm::DominatorTree& dominators,
                                                           const llvm::PostDominatorTree& postdominators,
                                                           llvm::ScalarEvolution& evolution);

// No analysis survives. Loops are neither simplified nor in LCSSA form.
void emit_dry_run(IrModule& ir, llvm::Function& function, DryRunShape& shape, const llvm::LoopInfo& loops,
                  llvm::ScalarEvolution& evolution, uint32_t cell, const llvm::DebugLoc& location);

}  // namespace hindsight::jit::optimizing
