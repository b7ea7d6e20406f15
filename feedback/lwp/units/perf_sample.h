// One PERF_RECORD_SAMPLE, field by field in the order of linux/perf_event.h, for the fields that the hardware
// unit asks for. The kernel writes exactly what attr.sample_type names, so a body that is too short or too
// long is of another layout, and refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace hindsight::lwp {

// PERF_SAMPLE_* bits that parse_perf_sample knows; a layout with any other is refused.
extern const uint64_t kKnownSampleFields;

// An entry of a branch stack: a taken branch.
struct BranchEntry {
  uint64_t from;
  uint64_t to;
  uint64_t flags;  // bit 0 mispredicted, 1 predicted right, 2 in transaction, 3 abort, ... 24-25 speculation

  bool mispredicted() const { return flags & 1; }
  bool predicted() const { return flags & 2; }  // neither: the processor does not say
  bool aborted() const { return flags & 8; }    // the end of a transaction, no branch
  // PERF_BR_SPEC_WRONG_PATH: recorded, but never retired.
  bool wrong_path() const { return ((flags >> 24) & 3) == 1; }
};

struct PerfSample {
  uint64_t identifier = 0;
  uint64_t ip = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t time = 0;
  uint64_t address = 0;
  uint32_t cpu = 0;
  uint64_t period = 0;
  uint64_t weight = 0;  // PERF_SAMPLE_WEIGHT, or the three parts of WEIGHT_STRUCT as one word
  uint64_t data_source = 0;
  std::span<const std::byte> raw;       // PERF_SAMPLE_RAW, padding included: the kernel rounds up
  std::span<const std::byte> branches;  // whole entries of 24 bytes, the newest first

  size_t branch_count() const { return branches.size() / sizeof(BranchEntry); }
  BranchEntry branch(size_t i) const;
};
static_assert(sizeof(BranchEntry) == 24);

// Empty if `body` is not exactly a sample of `sample_type`. The spans point into `body`.
std::optional<PerfSample> parse_perf_sample(std::span<const std::byte> body, uint64_t sample_type);

// The identifier of a sample whose event was opened with PERF_SAMPLE_IDENTIFIER: the first word.
std::optional<uint64_t> perf_sample_identifier(std::span<const std::byte> body);

}  // namespace hindsight::lwp
