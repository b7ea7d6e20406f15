#include "feedback/pmu/user_counter.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/ticks.h"
#include "feedback/pmu/x86_64.h"

namespace hindsight::pmu {
namespace {

class Processor final : public CounterInstructions {
 public:
  uint64_t rdpmc(uint32_t counter) override { return read_performance_counter(counter); }
  uint64_t rdtsc() override { return read_ticks(); }
};

// A page that changes this often while one thread reads it is being moved about by a kernel that has other
// worries. Then read(2) serves as well.
constexpr int kAttempts = 100;

uint64_t sign_extended(uint64_t value, unsigned width) {
  if (width == 0 || width >= 64) return value;
  const unsigned shift = 64 - width;
  return static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
}

// A field of the page. The kernel writes it from an interrupt on this very processor, so one plain load
// suffices that the compiler may neither repeat nor tear.
template <typename T>
T field(const T& member) {
  return *const_cast<const volatile T*>(&member);
}

}  // namespace

CounterInstructions& processor_instructions() {
  static Processor processor;
  return processor;
}

uint64_t user_time_delta(uint64_t cycles, uint64_t time_offset, uint32_t time_mult, uint16_t time_shift) {
  const uint64_t quotient = cycles >> time_shift;
  const uint64_t rest = cycles & ((uint64_t{1} << time_shift) - 1);
  return time_offset + quotient * time_mult + ((rest * time_mult) >> time_shift);
}

std::optional<UserCount> read_user_count(const perf_event_mmap_page& page, CounterInstructions& cpu) {
  perf_event_mmap_page capabilities{};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint32_t sequence = field(page.lock);
    // Both fences order the compiler only. Reader and writer share a processor, or the reading is thrown away
    // because the thread was moved, which changes `lock`.
    std::atomic_signal_fence(std::memory_order_acq_rel);
    UserCount value;
    value.enabled_ns = field(page.time_enabled);
    value.running_ns = field(page.time_running);
    capabilities.capabilities = field(page.capabilities);
    const uint32_t index = field(page.index);
    value.count = static_cast<uint64_t>(field(page.offset));
    const bool readable = capabilities.cap_user_rdpmc && index != 0;
    uint64_t delta = 0;
    if (capabilities.cap_user_time && value.enabled_ns != value.running_ns) {
      uint64_t cycles = cpu.rdtsc();
      if (capabilities.cap_user_time_short) {
        const uint64_t base = field(page.time_cycles);
        cycles = base + ((cycles - base) & field(page.time_mask));
      }
      const uint16_t shift = field(page.time_shift);
      if (shift < 64) delta = user_time_delta(cycles, field(page.time_offset), field(page.time_mult), shift);
    }
    if (readable) value.count += sign_extended(cpu.rdpmc(index - 1), field(page.pmc_width));
    std::atomic_signal_fence(std::memory_order_acq_rel);
    if (field(page.lock) != sequence) continue;
    if (!readable) return std::nullopt;
    value.enabled_ns += delta;
    value.running_ns += delta;  // it is on a counter, or we would not be here
    return value;
  }
  return std::nullopt;
}

Result<UserCounter> UserCounter::map(const FileDescriptor& event) {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, size, PROT_READ, MAP_SHARED, event.get(), 0);
  if (page == MAP_FAILED) {
    return make_error(ErrorKind::kResource,
                      fmt::format("the event's page cannot be mapped: {}", strerror(errno)));
  }
  return UserCounter(static_cast<perf_event_mmap_page*>(page));
}

UserCounter::~UserCounter() {
  if (page_) munmap(page_, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

std::string rdpmc_state() {
  int error = 0;
  const auto fd = open_perf_event(make_perf_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS),
                                  "instructions", 0, -1, &error);
  if (!fd) return "no hardware counter to read: " + explain_perf_errno(error);
  const auto counter = UserCounter::map(*fd);
  if (!counter) return counter.error().message;
  return counter->permitted() ? "permitted"
                              : "forbidden by the kernel (/sys/devices/cpu/rdpmc, or no such page)";
}

}  // namespace hindsight::pmu
