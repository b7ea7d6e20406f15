// Reads the byte stream that the kernel writes into a perf event's mmap ring. A pure function of bytes and
// two positions, so that wrapped, truncated and malformed streams can be tested without a kernel. See
// perf_event_open(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "feedback/lwp/format/sample.h"

namespace hindsight::lwp {

// The fields of one sample, fixed here for the attr that opens the event and the parser that reads it.
// IP | TID | TIME | REGS_USER, in the order in which the kernel writes them. Not PERIOD: a software clock
// reports the period it was opened with, whatever it was changed to.
extern const uint64_t kPerfSampleType;
// The sixteen general registers. Segment registers must stay out: the kernel refuses ds, es, fs and gs with
// EINVAL.
extern const uint64_t kPerfRegisterMask;

struct PerfParseResult {
  uint64_t consumed =
      0;  // bytes; always all that was offered: after a malformed record nothing can be trusted
  uint64_t samples = 0;    // appended
  uint64_t lost = 0;       // as told by PERF_RECORD_LOST and PERF_RECORD_LOST_SAMPLES
  uint64_t throttled = 0;  // PERF_RECORD_THROTTLE
  uint64_t malformed = 0;  // sizes that cannot be, samples of another layout
  uint64_t without_registers =
      0;               // samples of a thread without user registers, or of 32-bit code; not appended
  uint64_t other = 0;  // well-formed records of other types
};

// Parses the records between positions `tail` and `head` of the ring `data` and appends the samples to
// `out`, each with `period_ns`. The positions are free-running byte counts as in perf_event_mmap_page.
// Precondition: the size of `data` is a power of two. Reads nothing outside `data`, whatever it holds.
PerfParseResult parse_perf_ring(std::span<const std::byte> data, uint64_t tail, uint64_t head,
                                uint64_t period_ns, std::vector<RawSample>& out);

}  // namespace hindsight::lwp
