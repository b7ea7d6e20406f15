// The LWP control block (LWPCB), final layout: how software tells a unit what to record and where, and how
// the two pass the ring's offsets. A thread has its own block. Plain memory on purpose: native code, emulated
// code and this library all address it by offset.
//
// Who writes what while a unit is on: the unit writes flags (once, when loading), head, missed_events and the
// event counters; software writes the tail. Everything else is read when the block is loaded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "feedback/lwp/format/record.h"
#include "feedback/lwp/format/unconfirmed.h"

namespace hindsight::lwp {

// Event slots of our block: EventIds 1 to 6.
inline constexpr unsigned kMaxEvents = 6;
// Where EventInterval1 stands: CPUID Fn8000_001C EBX[31:24] of the processors that had LWP, and ours.
inline constexpr unsigned kEventOffset = 128;

// Flags. Bit n asks for EventId n; after loading it says that the event is really on.
constexpr uint32_t flag_of(EventId id) {
  return 1u << static_cast<unsigned>(id);
}
inline constexpr uint32_t kFlagContinuous = 1u << 29;  // the head never waits for the tail
inline constexpr uint32_t kFlagTimestamps = 1u << 30;  // PTSC: records carry a time stamp
inline constexpr uint32_t kFlagInterrupt = 1u << 31;   // reaching the threshold raises an interrupt

// Second word: BufferSize [27:0] in bytes, Random [31:28].
inline constexpr uint32_t kBufferSizeMask = (1u << 28) - 1;
inline constexpr unsigned kRandomShift = 28;

// Filters; those that no text confirms are in unconfirmed.h.
inline constexpr uint32_t kFilterNoAbsolute = 1u
                                              << 27;  // NAB: branches to an address that is not in the code
inline constexpr uint32_t kFilterNoRelative = 1u << 29;  // NRB: unconditional branches relative to the code

// Intervals and counters are 26-bit signed numbers in the low bits of their words.
inline constexpr unsigned kCounterBits = 26;
inline constexpr int32_t kCounterMax = (1 << (kCounterBits - 1)) - 1;
constexpr int32_t decode_counter(uint32_t word) {
  return static_cast<int32_t>(word << (32 - kCounterBits)) >> (32 - kCounterBits);
}
constexpr uint32_t encode_counter(int32_t value) {
  return static_cast<uint32_t>(value) & ((1u << kCounterBits) - 1);
}

struct EventSlot {
  uint32_t interval = 0;  // encode_counter(); k - 1 records every k-th event
  uint32_t counter = 0;   // encode_counter(); events left before the next record
};

struct alignas(64) ControlBlock {
  uint32_t flags = 0;
  uint32_t size_and_random = 0;
  uint64_t buffer_base = 0;
  uint32_t head = 0;  // byte offset of the next record to be written; the unit's
  uint32_t reserved1 = 0;
  uint64_t missed_events = 0;  // the unit's
  uint32_t threshold = 0;      // bytes used that raise the interrupt
  uint32_t filters = 0;
  uint64_t base_ip = 0;
  uint64_t limit_ip = 0;
  uint64_t reserved2 = 0;
  uint32_t tail = 0;  // byte offset of the next record to be read; software's. On a cache line of its own.
  uint32_t reserved3 = 0;
  uint64_t software[2] = {};
  uint64_t reserved4[5] = {};
  EventSlot events[kMaxEvents];  // events[n - 1] belongs to EventId n

  // In bytes, rounded down to whole records.
  uint32_t buffer_size() const { return (size_and_random & kBufferSizeMask) / kRecordSize * kRecordSize; }
  // Number of low interval bits that are replaced by random ones at each reload.
  unsigned random_bits() const { return size_and_random >> kRandomShift; }
  void set_size_and_random(uint32_t bytes, unsigned random) {
    size_and_random = (bytes & kBufferSizeMask) | random << kRandomShift;
  }
  EventSlot& slot(EventId id) { return events[static_cast<unsigned>(id) - 1]; }
  const EventSlot& slot(EventId id) const { return events[static_cast<unsigned>(id) - 1]; }
};

static_assert(offsetof(ControlBlock, flags) == 0);
static_assert(offsetof(ControlBlock, size_and_random) == 4);
static_assert(offsetof(ControlBlock, buffer_base) == 8);
static_assert(offsetof(ControlBlock, head) == 16);
static_assert(offsetof(ControlBlock, reserved1) == 20);
static_assert(offsetof(ControlBlock, missed_events) == 24);
static_assert(offsetof(ControlBlock, threshold) == 32);
static_assert(offsetof(ControlBlock, filters) == 36);
static_assert(offsetof(ControlBlock, base_ip) == 40);
static_assert(offsetof(ControlBlock, limit_ip) == 48);
static_assert(offsetof(ControlBlock, reserved2) == 56);
static_assert(offsetof(ControlBlock, tail) == 64);
static_assert(offsetof(ControlBlock, reserved3) == 68);
static_assert(offsetof(ControlBlock, software) == 72);
static_assert(offsetof(ControlBlock, reserved4) == 88);
static_assert(offsetof(ControlBlock, events) == kEventOffset);
static_assert(sizeof(EventSlot) == 8);
static_assert(offsetof(EventSlot, interval) == 0);
static_assert(offsetof(EventSlot, counter) == 4);

// Size of a block that ends after its last event, as CPUID states it.
inline constexpr uint32_t kControlBlockBytes = kEventOffset + kMaxEvents * sizeof(EventSlot);
static_assert(sizeof(ControlBlock) >= kControlBlockBytes);

}  // namespace hindsight::lwp
