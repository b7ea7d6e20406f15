// Any loop in two versions, between which it chooses when it is entered and whenever a strip of iterations is
// over. strips.h asks for a counted innermost loop and gives copies that LLVM vectorizes and unrolls. This
// takes loops with inner loops, searches and loops with several ways out, as they stand when LLVM is done
// with them. It costs one decrement an iteration:
//
//     before:   goes to head
//     head:     count = the strip's length; if (with) goto the loop as it was, else goto its copy
//     versions: ...; an iteration goes on by way of: if (--left != 0) goto header, else goto tail
//     tail:     the values of the version that ran; a strip of `count` iterations is over; back to head
//     exits:    count - left + 1 iterations were done since the head; what came after the loop
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <map>
#include <string_view>

namespace hindsight::jit::optimizing {

struct VersionChoice {
  llvm::Value* count = nullptr;  // i32, at least 1
  llvm::Value* with = nullptr;   // i1: the loop as it was
};

class CellCode;

// As the loop's cell has it, for a strip of at least kShortestVersionStrip iterations.
VersionChoice choice_of(const CellCode& cell, llvm::IRBuilder<>& b);

// Why a loop cannot be had in two versions; empty: it can. The loop has to be simplified and in LCSSA form.
std::string_view why_not_in_versions(const llvm::Loop& loop, const llvm::DominatorTree& dominators);

// How often the loop iterates when it is entered, as its branches' counts or weights have it; 0: they do not say.
double expected_turns(const llvm::Loop& loop);
size_t instructions_of(const llvm::Loop& loop);
// The most that a loop may have, to have it twice.
inline constexpr size_t kMostInstructionsTwice = 1000;
// Entering a strip costs as much as a few iterations: a loop that is left sooner had better not have any.
inline constexpr double kShortLoopTurns = 48;
inline constexpr int32_t kShortestVersionStrip = 64;

struct LoopVersions {
  llvm::BasicBlock* with_entry = nullptr;  // preheader of the loop as it was
  // What the header's phis are in the head, and what they become in the tail.
  std::map<llvm::PHINode*, llvm::Value*> first, next;
};

// `choose` emits into the head. `ended` emits, before an instruction whose block it may split, what is to be
// done when so many iterations (i32) were done: first in the tail, then where the loop is left.
// Precondition: why_not_in_versions() said nothing. Analyses know nothing of the change; the loop's own set of
// blocks stays, but for the block by which its iterations go on.
LoopVersions make_versions(
    llvm::Loop& loop, llvm::DebugLoc location, const std::function<VersionChoice(llvm::IRBuilder<>&)>& choose,
    const std::function<void(llvm::Instruction* before, llvm::Value* iterations)>& ended);

}  // namespace hindsight::jit::optimizing
