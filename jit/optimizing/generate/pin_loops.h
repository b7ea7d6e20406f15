// Pins that LLVM can vectorize around. A load that its loop does not need on every way, such as one under a
// mask, has to be executed in each iteration. The inline assembly that sees to it (protect.h) keeps a loop
// from being vectorized. Instead each iteration's value goes into a bitwise or that is carried to the loop's
// end, where one piece of assembly uses it. So no iteration's load can be left out, or moved after the loop
// or into a branch. An or is a reduction like any other. Where the loop can be left for other code before an iteration, its
// marker takes the value (loop_exits.h).
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace hindsight::jit::optimizing {

struct Pin {
  llvm::CallInst* user = nullptr;
  llvm::LoadInst* load = nullptr;
};

// Replaces those of `pins`, all the function's, whose innermost loop calls nothing and passes through the
// load in every iteration. That has to go for all pins of the loop: any that stays would keep it from being
// vectorized. Gives the loops the form that LLVM's loop passes give them. Returns whether anything changed.
bool carry_pins(std::vector<Pin>& pins, llvm::LoopInfo& loops, llvm::DominatorTree& dominators);

}  // namespace hindsight::jit::optimizing
