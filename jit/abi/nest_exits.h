// How code of a loop nest says where its caller, baseline code, goes on. A nest is a loop with all that is in it, as a unit of
// compiling. Baseline code calls it at the loop's header as
//   i32 nest(vmctx, frame)
// with the frame of jit/code/code_version.h. The nest reads the locals that it uses from there. When the loop is left, it writes
// back the locals that it changed and that are still read. The values of the branch go to the operand slots where they belong. It returns one
// of the numbers below, by which the caller finds the place. Numbers need no address: they mean the same in every baseline version of a function.
#pragma once

#include <bit>
#include <cstdint>

namespace hindsight::jit {

// Level 0 is the nest's loop, level k the k-th frame around it. Branches over more levels than this make the loop no nest.
inline constexpr uint32_t kMostNestLevels = 63;

inline constexpr uint32_t kNestLeft = 0;           // the loop's header, before its poll
inline constexpr uint32_t kNestLeftAfterPoll = 1;  // the same after it: an iteration of progress (for tests)
inline constexpr uint32_t kNestEnded = 2;          // after the loop's `end`, with its results

// The label of a frame around the nest: a block's end, a loop's header, the function's return. `targets`: LoopInfo::targets.
// Precondition: 1 <= level <= kMostNestLevels, and its bit is set.
constexpr uint32_t nest_label(uint64_t targets, uint32_t level) {
  return 3 + static_cast<uint32_t>(std::popcount(targets & ((uint64_t{1} << level) - 1)));
}
// What the slot of a nest's exit holds for running code to leave with this number, one of the first two. Null: it stays.
inline const void* nest_leave_word(uint32_t number) {
  return reinterpret_cast<const void*>(uintptr_t{number} + 1);
}
// How much of its work a nest has done: iterations of its loop, where that can be left and is not short. Elsewhere nothing is
// counted, and code without changes is what it is for who asks for no exits. Generated code adds to it with plain 64-bit
// moves, others read it (relaxed). Where threads run the same nest an addition may be lost, as in a LoopCell: an error of a
// measurement, never of a result.
struct alignas(64) NestWork {
  uint64_t done = 0;
};

// How many numbers there are.
constexpr uint32_t nest_numbers(uint64_t targets) {
  return 3 + static_cast<uint32_t>(std::popcount(targets));
}

}  // namespace hindsight::jit
