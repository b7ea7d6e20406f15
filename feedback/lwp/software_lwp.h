// The LWP state of one thread, in software: what LLWPCB, SLWPCB, LWPINS, LWPVAL and a retiring event do, to
// the letter of the final specification, without the instructions. Units that count for themselves build on
// it, and so does whoever emulates the instructions for native programs.
//
// One thread at a time, like the hardware state it stands for. Never buffers: every record is in the ring
// when the call returns, so SLWPCB has only counters to flush.
//
// Does not apply the control block's filters: it is told about events that already passed them.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "feedback/lwp/control_block.h"
#include "feedback/lwp/ring.h"

namespace hindsight::lwp {

class SoftwareLwp {
 public:
  struct Options {
    // Events this state is able to count, as bits of the control block's Flags; the block gets back what it
    // asked for and what exists.
    uint32_t events = flag_of(EventId::kValue) | flag_of(EventId::kInstructions) |
                      flag_of(EventId::kBranches) | flag_of(EventId::kDcacheMiss) |
                      flag_of(EventId::kCoreClocks) | flag_of(EventId::kReferenceClocks) | kFlagContinuous |
                      kFlagInterrupt;
    // Shorter intervals are raised to this, except those of value samples, which may be 0.
    int32_t minimum_interval = 0;
    uint64_t random_seed = 0x9E3779B97F4A7C15;  // not 0
  };

  SoftwareLwp() : SoftwareLwp(Options{}) {}
  explicit SoftwareLwp(const Options& options) : options_(options), random_(options.random_seed) {}

  // LLWPCB. Flushes the old block first, then takes the counters from `block` (negative ones as 0) and writes
  // back the Flags that are on. Null switches off. A block that the hardware would refuse gives kUsage and
  // leaves LWP off.
  Status load(ControlBlock* block);

  // SLWPCB: flushes the counters and returns the block; null while off.
  ControlBlock* store();

  // LWPINS. Returns the carry flag: true if the ring was full. Off: does nothing, false. Needs no Flags bit.
  bool insert(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags);

  // LWPVAL: counts one value event; its record, if this is the one, holds the operands.
  void value(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags);

  // One event happened at record.address: counts it, and stores `record` when the counter goes negative.
  // False if it was only counted, or is not on.
  bool retire(const EventRecord& record);

  // Threshold interrupts so far; the caller delivers them.
  uint64_t interrupts() const { return interrupts_; }

 private:
  void flush();
  int32_t reload_value(unsigned slot);
  StoreResult put(const EventRecord& record);

  Options options_;
  ControlBlock* block_ = nullptr;
  RingWriter writer_;
  std::array<int32_t, kMaxEvents> counters_{};
  std::array<int32_t, kMaxEvents> intervals_{};
  uint32_t on_ = 0;
  unsigned random_bits_ = 0;
  uint64_t random_;
  uint64_t interrupts_ = 0;
};

}  // namespace hindsight::lwp
