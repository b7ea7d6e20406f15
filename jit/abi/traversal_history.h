// TraversalHistory: where a loop that follows pointers was in its last traversal, turn by turn, for generated
// code to prefetch from. These are "jump pointers" that the runtime keeps beside the program's memory.
// Sources: A. Roth and G. Sohi, "Effective Jump-Pointer Prefetching for Linked Data Structures", ISCA 1999.
// The history-pointer prefetching of C.-K. Luk and T. Mowry, "Compiler-Based Prefetching for Recursive Data
// Structures", ASPLOS 1996.
//
// Turns are numbered from one place on, the anchor: `places[i]` is where the loop was i turns after it had
// last been there. So a traversal may be one run of the loop, or many short ones that come in the same order,
// or lie on a ring. A turn looks at its own entry (was it the same last time?), writes itself there, and
// prefetches what stood some entries further on:
//
//     if (here == anchor) { period = position; position = 0; }
//     valid += places[position] == here;  places[position] = here;
//     prefetch places[position + distance];  ++position
//
// At first only the first turns of a traversal are written down, `last` says up to where; later ones all write to one
// entry. Whether the way comes again is seen from the first as well as from all, and memory that is touched for nothing
// is what remembering costs most: 10 us for each 4 KiB, or 1,024 turns, in some virtual machines.
//
// Places are offsets in a memory, cut to 32 bits, and hints: a wrong one costs time, and a prefetch faults
// nowhere. So the history never changes what a program does, whatever is in it.
//
// Concurrency: a history belongs to whoever wrote its VmContext into `owner`, for one strip of the loop. It
// is taken by compare-and-exchange (acquire) from 0; the 0 is put back with release. A thread that finds
// another's VmContext there does that strip without the history. An owner that left by a trap finds itself
// there when it comes again, because two threads never run with one VmContext at once. A loop that runs once
// more inside of itself (by a call) gives the history back early. Two threads may then write at once: into
// entries, whose value nobody trusts. So generated code accesses the rest with plain moves. Beside that, the
// runtime reads and clears `valid`, reads `period` and `position`, sets `anchor` to 0 ("take a new one") and raises `last`,
// with relaxed atomic_ref operations. A race there is an error of a measurement, or an anchor lost or kept, about which
// generated code assumes nothing. What it does assume, that an entry lies in `places`, it gets by taking no position beyond
// `last`, which the runtime alone writes and keeps below the capacity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jit/change.h"

namespace hindsight::jit {

// A power of two: of turns between anchors. What is longer is remembered in its first part.
inline constexpr uint32_t kHistoryCapacity = uint32_t{1} << 23;
// Turns that are written down before it is known that they come again.
inline constexpr uint32_t kHistoryFirstPart = uint32_t{1} << 17;
// Entries after these, which are only ever read.
inline constexpr uint32_t kMostTurnsAhead = traits_of(ChangeKind::kJumpPointers).knob.most;

struct alignas(64) TraversalHistory {
  uint32_t* places = nullptr;  // kHistoryCapacity + kMostTurnsAhead, at first 0; null: there is no memory
  uint64_t owner = 0;
  uint32_t position = 0;                  // turns since the anchor
  uint32_t anchor = 0;                    // 0: none yet
  uint32_t period = 0;                    // turns between the last two times at the anchor; 0: not known
  uint32_t valid = 0;                     // turns that were where they had been in the traversal before
  uint32_t last = kHistoryFirstPart - 1;  // entry that may be written
};
inline constexpr int32_t kHistoryPlaces = 0;
inline constexpr int32_t kHistoryOwner = 8;
inline constexpr int32_t kHistoryPosition = 16;
inline constexpr int32_t kHistoryAnchor = 20;
inline constexpr int32_t kHistoryPeriod = 24;
inline constexpr int32_t kHistoryValid = 28;
inline constexpr int32_t kHistoryLast = 32;
static_assert(offsetof(TraversalHistory, places) == kHistoryPlaces &&
              offsetof(TraversalHistory, owner) == kHistoryOwner &&
              offsetof(TraversalHistory, position) == kHistoryPosition &&
              offsetof(TraversalHistory, anchor) == kHistoryAnchor &&
              offsetof(TraversalHistory, period) == kHistoryPeriod &&
              offsetof(TraversalHistory, valid) == kHistoryValid &&
              offsetof(TraversalHistory, last) == kHistoryLast && sizeof(TraversalHistory) == 64);

}  // namespace hindsight::jit
