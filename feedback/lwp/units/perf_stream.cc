#include "feedback/lwp/units/perf_stream.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace hindsight::lwp {

void copy_out(std::span<const std::byte> data, uint64_t position, void* to, size_t size) {
  const size_t offset = position & (data.size() - 1);
  const size_t first = std::min(size, data.size() - offset);
  std::memcpy(to, data.data() + offset, first);
  std::memcpy(static_cast<std::byte*>(to) + first, data.data(), size - first);
}

namespace {

// The record's body in one piece: in place, or put together in `scratch`.
std::span<const std::byte> body_at(std::span<const std::byte> data, uint64_t position, size_t size,
                                   std::vector<std::byte>& scratch) {
  const size_t offset = position & (data.size() - 1);
  if (offset + size <= data.size()) return data.subspan(offset, size);
  if (scratch.size() < size) scratch.resize(size);
  copy_out(data, position, scratch.data(), size);
  return std::span(scratch).first(size);
}

uint64_t word_at(std::span<const std::byte> body, size_t offset) {
  uint64_t word;
  std::memcpy(&word, body.data() + offset, sizeof word);
  return word;
}

// False if the record is too short for its type.
bool take(uint32_t type, uint16_t misc, std::span<const std::byte> body, SampleReader& reader,
          StreamCounts& counts) {
  switch (type) {
    case PERF_RECORD_SAMPLE:
      if (!reader.read_sample(misc, body)) return false;
      ++counts.samples;
      return true;
    case PERF_RECORD_LOST:  // id, lost
      if (body.size() < 16) return false;
      counts.lost += word_at(body, 8);
      return true;
    case PERF_RECORD_LOST_SAMPLES:
      if (body.size() < 8) return false;
      counts.lost += word_at(body, 0);
      return true;
    case PERF_RECORD_THROTTLE:  // time, id, stream id
      if (body.size() < 24) return false;
      ++counts.throttled;
      return true;
    default:
      ++counts.other;
      return true;
  }
}

}  // namespace

StreamCounts walk_perf_stream(std::span<const std::byte> data, uint64_t tail, uint64_t head,
                              std::vector<std::byte>& scratch, SampleReader& reader) {
  StreamCounts counts;
  counts.consumed = head - tail;
  const auto give_up = [&] {
    ++counts.malformed;
    counts.malformed_bytes += head - tail;
    return counts;
  };
  if (!std::has_single_bit(data.size()) || head - tail > data.size()) return give_up();
  while (tail != head) {
    perf_event_header header;
    if (head - tail < sizeof header) return give_up();
    copy_out(data, tail, &header, sizeof header);
    if (header.size < sizeof header || header.size % sizeof(uint64_t) != 0 || header.size > head - tail) {
      return give_up();
    }
    const auto body = body_at(data, tail + sizeof header, header.size - sizeof header, scratch);
    tail += header.size;
    if (take(header.type, header.misc, body, reader, counts)) {
      counts.record_bytes += header.size;
    } else {
      ++counts.malformed;
      counts.malformed_bytes += header.size;
    }
  }
  return counts;
}

}  // namespace hindsight::lwp
