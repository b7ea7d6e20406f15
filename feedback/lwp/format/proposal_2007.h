// Reads what the Lightweight Profiling proposal of July 2007 describes, where it differs from the final
// specification. Read-only: nothing writes these formats, no processor was sold with them; simulators and
// papers of that time use them.
//
// What differs: EventIds are one lower, as there were no value samples yet. The control block packs its
// header into 40 bytes. An event slot names its event (selector) instead of standing at its event's place,
// and the CPUID leaf is another. What does not: the 32 bytes of a record and the flags of its events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "feedback/lwp/format/capabilities.h"
#include "feedback/lwp/format/control_block.h"
#include "feedback/lwp/format/record.h"

namespace hindsight::lwp {

enum class EventId2007 : uint8_t { kNone = 0, kInstructions = 1, kBranches = 2, kDcacheMisses = 3 };

// The final name; kNone for ids that the proposal does not define.
EventId final_event(EventId2007 id);

// The record in the final numbering and layout. Empty for any EventId that the proposal does not define.
std::optional<EventRecord> from_2007_record(const EventRecord& record);

// CPUID Fn8000_001C as proposed. EAX: 0 enabled, 1 instructions, 2 branches, 3 DCache misses, 31 interrupt.
// EDX: the same as available, but with the interrupt at 1 and the events from 2. EBX: block size in bytes,
// record size, events at a time, version. Since the proposal left the presence bit open, the leaf is
// believed. `event_offset` is the fixed 40 of its control block.
Capabilities decode_2007_capabilities(const pmu::CpuidRegisters& leaf_8000001c);

// Its control block: 40 bytes, then one slot of 8 for each event at a time, EBX[23:16] of them. The places
// of whole words follow from the order of its fields and from those 40 bytes; see unconfirmed.h for the bits
// within.
inline constexpr uint32_t k2007EventOffset = 40;
inline constexpr uint32_t k2007SlotSize = 8;

// Flags: bit n is EventId n of 2007; bits 0 and 31 as below.
inline constexpr uint32_t k2007FlagEnabled = 1u << 0;
inline constexpr uint32_t k2007FlagInterrupt = 1u << 31;

struct Filters2007 {
  uint32_t min_latency_cycles = 0;  // 0: any; the stored number is this divided by 16
  bool by_cache_level = false;      // CLF; without it the four levels are ignored
  bool northbridge = false;         // NBC
  bool remote_cache = false;        // RDC
  bool ram = false;                 // RAM
  bool other = false;               // OTH
  bool no_direct_branches = false;  // NDB: unconditional RIP-relative branches are not counted
  friend bool operator==(const Filters2007&, const Filters2007&) = default;
};

struct EventSlot2007 {
  uint32_t interval = 0;                      // EventInterval, 26 bits
  EventId2007 selector = EventId2007::kNone;  // EventId; kNone: the slot is not used
  uint32_t counter = 0;    // EventCounter, 26 bits: counts down, freezes at zero until stored
  bool duplicate = false;  // an earlier slot names the same event: this one is ignored
  friend bool operator==(const EventSlot2007&, const EventSlot2007&) = default;
};

struct ControlBlock2007 {
  static constexpr unsigned kMaxSlots = 26;  // what 8 bits of block size have room for

  uint32_t flags = 0;
  uint32_t buffer_size = 0;  // bytes, rounded down to whole records
  uint32_t random_bits = 0;
  uint64_t buffer_base = 0;  // its low 5 bits are ignored, and zero here
  uint32_t head = 0;
  uint32_t tail = 0;
  uint64_t missed_events = 0;
  uint32_t threshold = 0;  // bytes; 0: never
  Filters2007 filters;
  unsigned slot_count = 0;
  std::array<EventSlot2007, kMaxSlots> slots{};

  bool enabled() const { return flags & k2007FlagEnabled; }
  // The slot that counts `id`: the earliest that names it. Null if none does.
  const EventSlot2007* slot_for(EventId2007 id) const;
  // Bits of the final control block's Flags for the events that the slots select.
  uint32_t selected_events() const;
};

// Reads a block of `events` slots (LWPMaxEvents, at most kMaxSlots) from its bytes. kUsage if there are fewer
// than 40 + 8 * events of them, or more slots than can be.
Result<ControlBlock2007> decode_2007_control_block(std::span<const std::byte> bytes, unsigned events);

}  // namespace hindsight::lwp
