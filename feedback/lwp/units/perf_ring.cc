#include "feedback/lwp/units/perf_ring.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "feedback/lwp/units/perf_stream.h"
#include "feedback/lwp/units/x86_64.h"

namespace hindsight::lwp {
namespace {

// A sample as our attr makes the kernel write it.
struct SampleBody {
  uint64_t ip;
  uint32_t pid, tid;
  uint64_t time;
  uint64_t abi;
  uint64_t registers[kRegisterCount];  // absent where abi is PERF_SAMPLE_REGS_ABI_NONE
};
constexpr size_t kSampleSize = sizeof(perf_event_header) + sizeof(SampleBody);
constexpr size_t kSampleSizeWithoutRegisters = sizeof(perf_event_header) + offsetof(SampleBody, registers);

RawSample to_sample(const SampleBody& body, uint64_t period_ns) {
  RawSample sample;
  sample.pc = body.ip;
  sample.time_ns = body.time;
  sample.period_ns = period_ns;
  sample.vector_index = {};  // the kernel has none in user samples
  for (unsigned i = 0; i < kRegisterCount; ++i) {
    sample.registers[static_cast<unsigned>(x86_64::kPerfOrder[i])] = body.registers[i];
  }
  return sample;
}

}  // namespace

const uint64_t kPerfSampleType = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER;
const uint64_t kPerfRegisterMask = x86_64::kPerfRegisters;

PerfParseResult parse_perf_ring(std::span<const std::byte> data, uint64_t tail, uint64_t head,
                                uint64_t period_ns, std::vector<RawSample>& out) {
  PerfParseResult result;
  result.consumed = head - tail;
  if (!std::has_single_bit(data.size()) || head - tail > data.size()) {
    result.malformed = 1;
    return result;
  }
  while (tail != head) {
    perf_event_header header;
    if (head - tail < sizeof header) {
      ++result.malformed;
      return result;
    }
    copy_out(data, tail, &header, sizeof header);
    if (header.size < sizeof header || header.size % sizeof(uint64_t) != 0 || header.size > head - tail) {
      ++result.malformed;  // the next record cannot be found
      return result;
    }
    const uint64_t body_at = tail + sizeof header;
    const size_t body_size = header.size - sizeof header;
    tail += header.size;
    switch (header.type) {
      case PERF_RECORD_SAMPLE: {
        SampleBody body{};
        if (header.size != kSampleSize && header.size != kSampleSizeWithoutRegisters) {
          ++result.malformed;
          break;
        }
        copy_out(data, body_at, &body, body_size);
        if (body.abi != PERF_SAMPLE_REGS_ABI_64 || header.size != kSampleSize) {
          ++result.without_registers;
          break;
        }
        out.push_back(to_sample(body, period_ns));
        ++result.samples;
        break;
      }
      case PERF_RECORD_LOST: {
        struct {
          uint64_t id, lost;
        } body;
        if (body_size < sizeof body) {
          ++result.malformed;
          break;
        }
        copy_out(data, body_at, &body, sizeof body);
        result.lost += body.lost;
        break;
      }
      case PERF_RECORD_LOST_SAMPLES: {
        uint64_t lost;
        if (body_size < sizeof lost) {
          ++result.malformed;
          break;
        }
        copy_out(data, body_at, &lost, sizeof lost);
        result.lost += lost;
        break;
      }
      case PERF_RECORD_THROTTLE:
        ++result.throttled;
        break;
      default:
        ++result.other;
        break;
    }
  }
  return result;
}

}  // namespace hindsight::lwp
