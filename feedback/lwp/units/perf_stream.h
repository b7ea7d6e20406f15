// The byte stream of a perf event's ring, as records. Finds each one, puts it together where it wraps around
// the end of the ring, and counts what is no sample. Hands samples to whoever knows their layout. A pure
// function of bytes and two positions; the layouts are those of linux/perf_event.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hindsight::lwp {

// Sums of one walk. consumed == record_bytes + malformed_bytes, always: no byte is passed over in silence.
struct StreamCounts {
  uint64_t consumed = 0;         // all that was offered
  uint64_t record_bytes = 0;     // of records that made sense
  uint64_t malformed_bytes = 0;  // of records that did not, and of what followed a lost boundary
  uint64_t malformed = 0;        // places where that happened
  uint64_t samples = 0;          // sample records that their reader accepted
  uint64_t lost = 0;             // samples, as told by PERF_RECORD_LOST and PERF_RECORD_LOST_SAMPLES
  uint64_t throttled = 0;        // PERF_RECORD_THROTTLE
  uint64_t other = 0;            // well-formed records of other types
};

// Copies `size` bytes at a free-running position out of the ring, across its end where needed. The ring's size is a power of two.
void copy_out(std::span<const std::byte> data, uint64_t position, void* to, size_t size);

class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // The body of one PERF_RECORD_SAMPLE, contiguous, valid during the call only, and its header's misc. False:
  // not the expected layout, counted as malformed; the walk goes on after it.
  virtual bool read_sample(uint16_t misc, std::span<const std::byte> body) = 0;
};

// Walks the records between the free-running positions `tail` and `head` of the ring `data`, whose size is a
// power of two. After a header that cannot be, the rest is given up: the next boundary is not known.
// `scratch` holds records that wrap; kept by the caller so that steady state allocates nothing. Reads nothing
// outside `data`, whatever it holds.
StreamCounts walk_perf_stream(std::span<const std::byte> data, uint64_t tail, uint64_t head,
                              std::vector<std::byte>& scratch, SampleReader& reader);

}  // namespace hindsight::lwp
