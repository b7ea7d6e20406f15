// The kernel as the hardware unit sees it: opening events, their shared ring, switching them. An interface,
// so that a machine without a PMU can play one that has, or one that answers EACCES to half of it. Any
// thread.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "feedback/pmu/perf_event.h"

namespace hindsight::lwp {

// The mapped ring of one event; unmapped by the destructor.
class PerfRingMemory {
 public:
  virtual ~PerfRingMemory() = default;
  virtual perf_event_mmap_page& page() = 0;
  virtual std::span<const std::byte> data() = 0;
};

class PerfKernel {
 public:
  // Opens `attr` for the calling thread, on any processor, as a member of `group` where that is not -1.
  // `error` gets the errno.
  virtual Result<pmu::FileDescriptor> open(const perf_event_attr& attr, std::string_view what, int group,
                                           int* error) = 0;
  virtual Result<uint64_t> identifier(const pmu::FileDescriptor& event) = 0;
  virtual Result<std::unique_ptr<PerfRingMemory>> map(const pmu::FileDescriptor& event,
                                                      size_t data_pages) = 0;
  // From now on `event` writes into the ring of `owner`.
  virtual Status share_ring(const pmu::FileDescriptor& event, const pmu::FileDescriptor& owner) = 0;
  // A whole group where `leader` leads one.
  virtual Status enable(const pmu::FileDescriptor& leader) = 0;
  virtual Status disable(const pmu::FileDescriptor& leader) = 0;
  // Samples a second for an event opened with attr.freq.
  virtual Status set_frequency(const pmu::FileDescriptor& event, uint64_t hz) = 0;

 protected:
  ~PerfKernel() = default;  // not virtual: a static one has nothing that exit() would destroy
};

// The one that runs.
PerfKernel& linux_perf_kernel();

}  // namespace hindsight::lwp
