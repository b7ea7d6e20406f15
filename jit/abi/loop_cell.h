// LoopCell: the data that a loop with a speculative change (a prefetch slice) shares with the trial that
// judges it. Generated code takes the iterations it did from `countdown`: one by one, or a whole strip at
// once where the loop is counted. When `countdown` becomes negative it calls builtins->strip_ended. It reads
// `enabled` and `distance` in the loop. So a trial can alternate between with and without, and tune the
// distance, in running code, with no recompile and no second version.
//
// Concurrency: the cell belongs to a code version, not to a thread. If two threads run the loop they share
// the countdown; a lost decrement makes one strip longer, which the strip's own iteration count cannot see.
// That is a benign, bounded error of a measurement, never of a result, since prefetches do not change
// results. The runtime reads and writes the fields with relaxed atomic_ref operations; generated code with
// plain 32-bit moves, which x86-64 makes untorn.
//
// A strip's end is also where single loads are timed (runtime/adaptive/timed_loads.h). There, generated code
// leaves in `upcoming[i]` the place at which the cell's i-th hinted load will look some iterations from now.
// That is far enough that neither the prefetch nor the core's own running ahead has touched it. Written only
// in the cold block that calls strip_ended, so it costs nothing in between.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hindsight::jit {

inline constexpr uint32_t kMostTimedLoads = 3;  // of one cell

struct alignas(64) LoopCell {
  int32_t countdown = 0;  // iterations left in this strip
  uint32_t enabled = 0;   // 1: execute the slice
  uint32_t distance = 0;  // of a prefetch: iterations ahead; of interleaved searches: how many at once
  uint32_t strip_length = 1024;
  // The fields after this line are the runtime's only.
  uint32_t site = 0;  // index into CodeVersion::answers
  uint32_t reserved = 0;
  void* trial = nullptr;  // runtime/engine's trial state of this loop
  // Host addresses, 0 where the loop ends before; not checked against the memory. Written by generated code.
  uint64_t upcoming[kMostTimedLoads] = {};
  void* timed_loads = nullptr;  // runtime/engine's statistics of these loads
};
inline constexpr int32_t kCellCountdown = 0;
inline constexpr int32_t kCellEnabled = 4;
inline constexpr int32_t kCellDistance = 8;
inline constexpr int32_t kCellUpcoming = 32;
static_assert(offsetof(LoopCell, countdown) == kCellCountdown &&
              offsetof(LoopCell, enabled) == kCellEnabled && offsetof(LoopCell, distance) == kCellDistance &&
              offsetof(LoopCell, upcoming) == kCellUpcoming && sizeof(LoopCell) == 64);

}  // namespace hindsight::jit
