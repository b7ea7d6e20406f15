// Writes what the kernel would write into a perf event's ring, field by field in the documented order of
// linux/perf_event.h. It writes at free-running positions of a ring between two guard pages: a reader that
// looks one byte outside dies.
#pragma once

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

namespace hindsight::lwp {

// The variable fields of one sample; which are written says the sample type.
struct SampleFields {
  uint64_t identifier = 0;
  uint64_t ip = 0;
  uint32_t pid = 41, tid = 42;
  uint64_t time = 0;
  uint64_t address = 0;
  uint32_t cpu = 0;
  uint64_t period = 0;
  std::vector<std::byte> raw{};
  std::vector<perf_branch_entry> branches{};
  uint64_t weight = 0;
  uint64_t data_source = 0;
};

inline perf_branch_entry branch(uint64_t from, uint64_t to, bool mispredicted, bool predicted) {
  perf_branch_entry e{};
  e.from = from;
  e.to = to;
  e.mispred = mispredicted;
  e.predicted = predicted;
  return e;
}

class GuardedRing {
 public:
  explicit GuardedRing(size_t size = 4096, uint64_t start = 0) : size_(size), tail(start), head(start) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    total_ = size + 2 * page;
    map_ = static_cast<std::byte*>(
        mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map_, page, PROT_NONE);
    mprotect(map_ + page + size, page, PROT_NONE);
    data_ = map_ + page;
    std::memset(data_, 0xEE, size);
  }
  ~GuardedRing() { munmap(map_, total_); }
  GuardedRing(const GuardedRing&) = delete;
  GuardedRing& operator=(const GuardedRing&) = delete;

  std::span<const std::byte> data() const { return {data_, size_}; }
  std::byte& at(uint64_t position) { return data_[position % size_]; }
  size_t size() const { return size_; }

  void bytes(const void* from, size_t n) {
    for (size_t i = 0; i < n; ++i, ++head) at(head) = static_cast<const std::byte*>(from)[i];
  }
  void word(uint64_t w) { bytes(&w, sizeof w); }
  void half(uint32_t w) { bytes(&w, sizeof w); }
  void header(uint32_t type, size_t size, uint16_t misc = PERF_RECORD_MISC_USER) {
    const perf_event_header h{type, misc, static_cast<uint16_t>(size)};
    bytes(&h, sizeof h);
  }
  void record(uint32_t type, std::initializer_list<uint64_t> words) {
    header(type, sizeof(perf_event_header) + words.size() * sizeof(uint64_t));
    for (const uint64_t w : words) word(w);
  }
  void lost(uint64_t n) { record(PERF_RECORD_LOST, {7, n}); }
  void throttle() { record(PERF_RECORD_THROTTLE, {1, 2, 3}); }

  // One PERF_RECORD_SAMPLE, exactly `type`'s fields. Returns its size.
  size_t sample(uint64_t type, const SampleFields& f,
                uint16_t misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP) {
    const uint64_t begin = head;
    header(PERF_RECORD_SAMPLE, 0, misc);
    if (type & PERF_SAMPLE_IDENTIFIER) word(f.identifier);
    if (type & PERF_SAMPLE_IP) word(f.ip);
    if (type & PERF_SAMPLE_TID) {
      half(f.pid);
      half(f.tid);
    }
    if (type & PERF_SAMPLE_TIME) word(f.time);
    if (type & PERF_SAMPLE_ADDR) word(f.address);
    if (type & PERF_SAMPLE_CPU) {
      half(f.cpu);
      half(0);
    }
    if (type & PERF_SAMPLE_PERIOD) word(f.period);
    if (type & PERF_SAMPLE_RAW) {
      // The kernel rounds the size word and the data together up to eight bytes.
      const size_t padded = (f.raw.size() + sizeof(uint32_t) + 7) / 8 * 8 - sizeof(uint32_t);
      half(static_cast<uint32_t>(padded));
      bytes(f.raw.data(), f.raw.size());
      for (size_t i = f.raw.size(); i < padded; ++i) bytes("", 1);
    }
    if (type & PERF_SAMPLE_BRANCH_STACK) {
      word(f.branches.size());
      for (const perf_branch_entry& e : f.branches) bytes(&e, sizeof e);
    }
    if (type & PERF_SAMPLE_WEIGHT_TYPE) word(f.weight);
    if (type & PERF_SAMPLE_DATA_SRC) word(f.data_source);
    const uint64_t end = head;
    head = begin;
    header(PERF_RECORD_SAMPLE, end - begin, misc);
    head = end;
    return end - begin;
  }

 private:
  std::byte* map_ = nullptr;
  std::byte* data_ = nullptr;
  size_t total_ = 0;
  size_t size_;

 public:
  uint64_t tail;
  uint64_t head;
};

// PERF_SAMPLE_RAW of Linux's ibs_op source: the capability word, then the registers in MSR order.
struct IbsRegisters {
  uint32_t caps = 0;
  uint64_t op_ctl = 0;
  uint64_t rip = 0;
  uint64_t op_data = 0;
  uint64_t op_data2 = 0;
  uint64_t op_data3 = 0;
  uint64_t linear_address = 0;
  uint64_t physical_address = 0;
  uint64_t branch_target = 0;  // written where the capabilities have bit 5
  uint64_t op_data4 = 0;       // ... bit 10

  std::vector<std::byte> raw() const {
    std::vector<std::byte> out;
    const auto put = [&](const auto& value) {
      const auto* p = reinterpret_cast<const std::byte*>(&value);
      for (size_t i = 0; i < sizeof value; ++i) out.push_back(p[i]);
    };
    put(caps);
    for (const uint64_t reg : {op_ctl, rip, op_data, op_data2, op_data3, linear_address, physical_address}) {
      put(reg);
    }
    if (caps & 1u << 5) put(branch_target);
    if (caps & 1u << 10) put(op_data4);
    return out;
  }
};

}  // namespace hindsight::lwp
