#include "feedback/lwp/units/unit.h"

#include <fmt/format.h>

namespace hindsight::lwp {

std::string_view to_string(Accuracy accuracy) {
  return accuracy == Accuracy::kExact ? "exact" : "estimated";
}

Status check_frequency(uint32_t hz) {
  if (hz > kMaxFrequency) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} samples a second are more than {}", hz, kMaxFrequency));
  }
  return {};
}

size_t Unit::drain_ring(std::vector<EventRecord>& out) {
  constexpr size_t kChunk = 256;
  const size_t before = out.size();
  // What comes in meanwhile waits for the next drain: a thread that never stops recording cannot hold the
  // monitor.
  const size_t slots = ring_->block().buffer_size() / kRecordSize;
  for (size_t taken = 0; taken < slots;) {
    const size_t at = out.size();
    out.resize(at + kChunk);
    const size_t n = ring_->read(std::span(out).subspan(at));
    out.resize(at + n);
    taken += n;
    if (n < kChunk) break;
  }
  return out.size() - before;
}

}  // namespace hindsight::lwp
