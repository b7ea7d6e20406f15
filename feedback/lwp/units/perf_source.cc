#include "feedback/lwp/units/perf_source.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "feedback/lwp/units/perf_ring.h"
#include "feedback/pmu/perf_event.h"

namespace hindsight::lwp {
namespace {

// 195 samples: 46 ms at 4 kHz. Kept small because kernel.perf_event_mlock_kb bounds the sum over all threads
// of a user.
constexpr size_t kDataPages = 8;
// A paused event keeps a period, because the kernel has none that means never.
constexpr uint64_t kIdlePeriodNs = 1'000'000'000;

class PerfSampleSource final : public SampleSource {
 public:
  PerfSampleSource(pmu::FileDescriptor fd, void* map, size_t page, CodeRange guest_code)
      : fd_(std::move(fd)), map_(static_cast<std::byte*>(map)), page_(page), guest_code_(guest_code) {}
  ~PerfSampleSource() override { munmap(map_, page_ * (1 + kDataPages)); }

  std::string_view name() const override { return "clock/perf"; }

  Status set_period(uint64_t period_ns) override {
    if (period_ns == 0) {
      if (ioctl(fd_.get(), PERF_EVENT_IOC_DISABLE, 0) != 0) return failed("pausing");
      running_ = false;
      return {};
    }
    if (ioctl(fd_.get(), PERF_EVENT_IOC_PERIOD, &period_ns) != 0) return failed("changing the period of");
    if (!running_ && ioctl(fd_.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return failed("starting");
    running_ = true;
    period_ns_ = period_ns;
    return {};
  }

  void drain(std::vector<RawSample>& out, UnitCounters& counters) override {
    auto* page = reinterpret_cast<perf_event_mmap_page*>(map_);
    const std::span<const std::byte> data(map_ + page_, page_ * kDataPages);
    // Acquire: the kernel wrote the records before this head. Release: our copies are done before the kernel
    // sees their space free. (Protocol of linux/perf_event.h.)
    const uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
    std::atomic_ref tail(page->data_tail);
    const uint64_t from = tail.load(std::memory_order_relaxed);  // ours alone
    if (from == head) return;
    const size_t before = out.size();
    const PerfParseResult parsed = parse_perf_ring(data, from, head, period_ns_, out);
    tail.store(from + parsed.consumed, std::memory_order_release);
    const auto kept = std::remove_if(out.begin() + static_cast<ptrdiff_t>(before), out.end(),
                                     [&](const RawSample& s) { return !guest_code_.contains(s.pc); });
    const auto dropped = static_cast<uint64_t>(out.end() - kept);
    out.erase(kept, out.end());
    counters.non_guest += dropped + parsed.without_registers;
    counters.samples += parsed.samples - dropped;
    counters.lost += parsed.lost;
    counters.throttled += parsed.throttled;
    counters.malformed += parsed.malformed;
  }

 private:
  static Status failed(const char* what) {
    return make_error(ErrorKind::kResource,
                      fmt::format("{} the task clock failed: {}", what, pmu::explain_perf_errno(errno)));
  }

  pmu::FileDescriptor fd_;
  std::byte* map_;
  size_t page_;
  CodeRange guest_code_;
  bool running_ = false;
  uint64_t period_ns_ = 0;  // the last one that was not a pause
};

perf_event_attr task_clock_attr(uint64_t period_ns) {
  perf_event_attr attr = pmu::make_perf_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  attr.sample_period = period_ns != 0 ? period_ns : kIdlePeriodNs;
  attr.sample_type = kPerfSampleType;
  attr.sample_regs_user = kPerfRegisterMask;
  attr.disabled = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;  // the same time base as the timer source
  return attr;
}

Result<std::unique_ptr<PerfSampleSource>> open_source(uint64_t period_ns, CodeRange guest_code) {
  HINDSIGHT_ASSIGN(pmu::FileDescriptor fd, pmu::open_perf_event(task_clock_attr(period_ns), "task clock"));
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* map = mmap(nullptr, page * (1 + kDataPages), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) {
    const int error = errno;
    return make_error(
        ErrorKind::kResource,
        fmt::format("the task clock's ring cannot be mapped: {}",
                    error == EPERM ? "the limit kernel.perf_event_mlock_kb is used up" : strerror(error)));
  }
  return std::make_unique<PerfSampleSource>(std::move(fd), map, page, guest_code);
}

}  // namespace

Result<std::unique_ptr<SampleSource>> PerfSource::open(uint64_t period_ns, CodeRange guest_code) {
  HINDSIGHT_ASSIGN(std::unique_ptr<PerfSampleSource> source, open_source(period_ns, guest_code));
  if (period_ns != 0) HINDSIGHT_TRY(source->set_period(period_ns));
  return source;
}

std::string PerfSource::refusal() {
  const auto source = open_source(0, {});
  return source ? std::string() : source.error().message;
}

}  // namespace hindsight::lwp
