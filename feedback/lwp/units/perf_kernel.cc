#include "feedback/lwp/units/perf_kernel.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hindsight::lwp {
namespace {

class Memory final : public PerfRingMemory {
 public:
  Memory(void* map, size_t page_size, size_t data_pages)
      : map_(static_cast<std::byte*>(map)), page_size_(page_size), data_pages_(data_pages) {}
  ~Memory() override { munmap(map_, page_size_ * (1 + data_pages_)); }
  perf_event_mmap_page& page() override { return *reinterpret_cast<perf_event_mmap_page*>(map_); }
  std::span<const std::byte> data() override { return {map_ + page_size_, page_size_ * data_pages_}; }

 private:
  std::byte* map_;
  size_t page_size_;
  size_t data_pages_;
};

Status check(int result, const char* what) {
  if (result == 0) return {};
  return make_error(ErrorKind::kResource, fmt::format("{}: {}", what, pmu::explain_perf_errno(errno)));
}

class Linux final : public PerfKernel {
 public:
  Result<pmu::FileDescriptor> open(const perf_event_attr& attr, std::string_view what, int group,
                                   int* error) override {
    return pmu::open_perf_event(attr, what, /*tid=*/0, group, error);
  }
  Result<uint64_t> identifier(const pmu::FileDescriptor& event) override {
    uint64_t id = 0;
    HINDSIGHT_TRY(check(ioctl(event.get(), PERF_EVENT_IOC_ID, &id), "asking for an event's identifier"));
    return id;
  }
  Result<std::unique_ptr<PerfRingMemory>> map(const pmu::FileDescriptor& event, size_t data_pages) override {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* map = mmap(nullptr, page * (1 + data_pages), PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
    if (map == MAP_FAILED) {
      const int error = errno;
      return make_error(
          ErrorKind::kResource,
          fmt::format("the ring of the hardware events cannot be mapped: {}",
                      error == EPERM ? "the limit kernel.perf_event_mlock_kb is used up" : strerror(error)));
    }
    return std::make_unique<Memory>(map, page, data_pages);
  }
  Status share_ring(const pmu::FileDescriptor& event, const pmu::FileDescriptor& owner) override {
    return check(ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, owner.get()), "sharing a ring");
  }
  Status enable(const pmu::FileDescriptor& leader) override {
    return check(ioctl(leader.get(), PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP), "starting an event");
  }
  Status disable(const pmu::FileDescriptor& leader) override {
    return check(ioctl(leader.get(), PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP), "stopping an event");
  }
  Status set_frequency(const pmu::FileDescriptor& event, uint64_t hz) override {
    return check(ioctl(event.get(), PERF_EVENT_IOC_PERIOD, &hz), "changing an event's rate");
  }
};

}  // namespace

PerfKernel& linux_perf_kernel() {
  static Linux kernel;
  return kernel;
}

}  // namespace hindsight::lwp
