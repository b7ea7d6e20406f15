// The part of the quiescence scan that runs in the kick signal's handler.
#pragma once

#include <ucontext.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/exec/guest_thread.h"

namespace hindsight::rt {

inline constexpr size_t kMaxScanRanges = 256;

// One scan's question. Written by the scanner before it raises `generation`, read by handlers afterwards. A
// handler that is late (its scanner gave up) may see a mixture of two questions. It can only set `live` flags
// that need not be set. It answers with the generation that it read first, which no later scanner takes for
// its own.
struct ScanQuestion {
  std::atomic<uint64_t> generation{0};
  std::atomic<size_t> count{0};
  std::atomic<uintptr_t> begin[kMaxScanRanges];
  std::atomic<uintptr_t> end[kMaxScanRanges];
  std::atomic<bool> live[kMaxScanRanges];
};
ScanQuestion& scan_question() noexcept;

// Async-signal-safe. Looks at the interrupted registers of the calling thread, and at what its entries have on stacks.
// That includes stacks that it is not on now.
void answer_scan(GuestThread& thread, const ucontext_t& context) noexcept;

}  // namespace hindsight::rt
