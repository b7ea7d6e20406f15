#include "feedback/lwp/units/perf_sample.h"

#include <linux/perf_event.h>

#include <cstring>

namespace hindsight::lwp {
namespace {

// Takes fields off the front; once something was missing, everything is.
class BodyCursor {
 public:
  explicit BodyCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T take() {
    T value{};
    const auto from = take_bytes(sizeof(T));
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take_bytes(uint64_t size) {
    if (size > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  bool ended_well() const { return !failed_ && bytes_.empty(); }
  void fail() { failed_ = true; }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

}  // namespace

const uint64_t kKnownSampleFields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                    PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
                                    PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK |
                                    PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC;

BranchEntry PerfSample::branch(size_t i) const {
  BranchEntry entry;
  std::memcpy(&entry, branches.data() + i * sizeof entry, sizeof entry);
  return entry;
}

std::optional<PerfSample> parse_perf_sample(std::span<const std::byte> body, uint64_t sample_type) {
  if (sample_type & ~kKnownSampleFields) return std::nullopt;
  PerfSample s;
  BodyCursor cursor(body);
  // The kernel's order; see the comment at PERF_RECORD_SAMPLE.
  if (sample_type & PERF_SAMPLE_IDENTIFIER) s.identifier = cursor.take<uint64_t>();
  if (sample_type & PERF_SAMPLE_IP) s.ip = cursor.take<uint64_t>();
  if (sample_type & PERF_SAMPLE_TID) {
    s.pid = cursor.take<uint32_t>();
    s.tid = cursor.take<uint32_t>();
  }
  if (sample_type & PERF_SAMPLE_TIME) s.time = cursor.take<uint64_t>();
  if (sample_type & PERF_SAMPLE_ADDR) s.address = cursor.take<uint64_t>();
  if (sample_type & PERF_SAMPLE_CPU) {
    s.cpu = cursor.take<uint32_t>();
    cursor.take<uint32_t>();  // reserved
  }
  if (sample_type & PERF_SAMPLE_PERIOD) s.period = cursor.take<uint64_t>();
  if (sample_type & PERF_SAMPLE_RAW) s.raw = cursor.take_bytes(cursor.take<uint32_t>());
  if (sample_type & PERF_SAMPLE_BRANCH_STACK) {
    const auto count = cursor.take<uint64_t>();
    if (count > UINT16_MAX) {  // a record has 64 KiB at most: no overflow below
      cursor.fail();
    } else {
      s.branches = cursor.take_bytes(count * sizeof(BranchEntry));
    }
  }
  if (sample_type & PERF_SAMPLE_WEIGHT_TYPE) s.weight = cursor.take<uint64_t>();
  if (sample_type & PERF_SAMPLE_DATA_SRC) s.data_source = cursor.take<uint64_t>();
  if (!cursor.ended_well()) return std::nullopt;
  return s;
}

std::optional<uint64_t> perf_sample_identifier(std::span<const std::byte> body) {
  if (body.size() < sizeof(uint64_t)) return std::nullopt;
  uint64_t identifier;
  std::memcpy(&identifier, body.data(), sizeof identifier);
  return identifier;
}

}  // namespace hindsight::lwp
