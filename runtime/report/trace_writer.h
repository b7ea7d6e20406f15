// Writes LWP records as a trace, one after the other, in constant memory. Three forms:
//
//   lines   JSON Lines, one object a record, for scripts and for `hindsight lwp records`
//   chrome  Chrome's trace-event JSON, for Perfetto (ui.perfetto.dev) and chrome://tracing: a track a thread,
//           with the clock samples joined into slices by function, stalls and the guest's events as marks on it,
//           and a counter for each kind of value that the guest samples
//   raw     the 32-byte records as they were in the rings (final layout), nothing else
//
// Lines. The first object is {"hindsight_trace":1,"program":...,"start_ns":...}, the last one
// {"end":true,"unit":...,"records":written,"left_out":...,"emitted":...,"missed":...,"lost":...}. In between, a record is
// as follows.
//     ns             since start_ns, which is CLOCK_MONOTONIC; with "drained":true, when it was read, not when it happened
//     thread         kernel id
//     id, flags, data1, data2, address   the record's own fields; address in hexadecimal, a string. Integers may need 64 bits
//     function, wasm, tier               where it was, if that is known; wasm is the byte offset in the module, a string
//     guest          true: the guest asked for it (module hindsight_lwp); then "name", if it named these flags
//     guest_address  of a DCache miss: the address in linear memory, a string
//     guest_memory   the index of that memory, unless it is 0
//     cpu_ns         of a clock record: the CPU time that it stands for
// Fields that say nothing are left out. Readers ignore fields that they do not know.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/engine/hindsight.h"

namespace hindsight::report {

enum class TraceFormat : uint8_t { kLines, kChrome, kRaw };

// By the file's name: .jsonl, .json, .lwp. kUsage for any other.
Result<TraceFormat> trace_format_of(std::string_view path);

struct TraceHead {
  std::string program;
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC; times are given since then
};
struct TraceEnd {
  std::string unit;
  uint64_t emitted = 0, missed = 0, lost = 0;
};

// One thread at a time.
class TraceWriter {
 public:
  // At most `limit` records are written; the rest is counted.
  TraceWriter(std::ostream& out, TraceFormat format, TraceHead head, uint64_t limit);
  void add(const LwpRecord& record);
  // Once, after the last record. kResource: something could not be written (the disk is full); what came
  // after that counts as left out.
  Status finish(const TraceEnd& end);

  uint64_t written() const { return written_; }
  uint64_t left_out() const { return left_out_; }

 private:
  struct Slice {  // of consecutive clock samples in one function
    std::string function;
    uint64_t begin = 0, end = 0;  // ns
    uint64_t samples = 0;
    bool optimized = false;
  };
  void add_line(const LwpRecord& record);
  void add_chrome(const LwpRecord& record);
  void put_slice(int32_t thread, const Slice& slice);
  void put(std::string_view object);
  uint64_t since_start(uint64_t time_ns) const {
    return time_ns > head_.start_ns ? time_ns - head_.start_ns : 0;
  }

  std::ostream& out_;
  const TraceFormat format_;
  const TraceHead head_;
  const uint64_t limit_;
  uint64_t written_ = 0, left_out_ = 0;
  bool first_ = true;
  std::map<int32_t, Slice> slices_;  // by thread; the open ones
};

}  // namespace hindsight::report
