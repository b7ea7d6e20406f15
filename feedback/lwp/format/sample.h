// A raw clock sample: where a guest thread stood when its CPU time was sampled, with its registers. The
// monitor, which knows the code, makes of it a clock record (event 5). Where the instruction in front of pc
// is a load, it also makes a DCache-miss record (event 4) with the address that the registers give.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "feedback/lwp/format/record.h"

namespace hindsight::lwp {

// General registers in x86 encoding order, the order of ModRM and SIB fields.
enum class Register : uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
};
inline constexpr unsigned kRegisterCount = 16;

// A gather loads at as many places as it has lanes, and a scatter stores there: one lane of its indices, whichever it is.
struct VectorIndex {
  uint64_t value;  // sign-extended
  uint8_t vector;  // the register's number
  uint8_t bits;    // of the lane: 32 or 64; 0: nothing in front of pc looks like one, or nobody looked
};

struct RawSample {
  uint64_t pc;                         // of the next instruction: a stalled load ends here
  uint64_t time_ns;                    // CLOCK_MONOTONIC
  uint64_t registers[kRegisterCount];  // x86 encoding order
  uint64_t period_ns;                  // the CPU time this sample stands for
  VectorIndex vector_index;

  uint64_t operator[](Register r) const { return registers[static_cast<unsigned>(r)]; }
};

// The records of one raw sample. `pc` is the instruction to be charged: for a miss the load itself, not the
// sampled pc. The miss record's latency and source are estimates of the caller.
constexpr EventRecord make_clock_record(const RawSample& sample, bool with_time) {
  return make_clock_record(sample.pc, with_time ? sample.time_ns : 0);
}
constexpr EventRecord make_dcache_miss_record(const RawSample& sample, uint64_t load_pc,
                                              std::optional<uint64_t> address, uint32_t latency,
                                              MissSource source, bool with_time) {
  return make_dcache_miss_record(load_pc, address, latency, source, with_time ? sample.time_ns : 0);
}

// From a signal handler on the sampled thread (producer) to the monitor (consumer). Bounded, never allocates
// after construction; full: the newest sample is dropped and counted.
//
// `head_` counts samples published. It is stored with release after the sample is written and loaded with
// acquire by the consumer: who sees the count sees the samples. `tail_` counts samples taken. It is stored
// with release after the copy and loaded with acquire by the producer. Who sees the slot free no longer
// races with the copy.
class SampleQueue {
 public:
  static constexpr uint32_t kCapacity = 512;  // 128 ms at 4 kHz

  // Default-initialized: pages that no sample reaches are never touched. Without memory for its slots the
  // queue is not usable(), and must not be used.
  SampleQueue() : slots_(new (std::nothrow) RawSample[kCapacity]) {}
  bool usable() const { return slots_ != nullptr; }

  // Producer: a slot to fill, or null (counted as dropped) if the queue is full. Then publish().
  RawSample* claim() {
    const uint64_t head = head_.load(std::memory_order_relaxed);  // own variable
    if (head - tail_.load(std::memory_order_acquire) == kCapacity) {
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return nullptr;
    }
    return &slots_[head % kCapacity];
  }
  void publish() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // Consumer: false if empty.
  bool pop(RawSample& out) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);  // own variable
    if (tail == head_.load(std::memory_order_acquire)) return false;
    out = slots_[tail % kCapacity];
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }  // a statistic

 private:
  std::unique_ptr<RawSample[]> slots_;
  alignas(64) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> dropped_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace hindsight::lwp
