#include "feedback/lwp/format/proposal_2007.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace hindsight::lwp {

using pmu::bit;
using pmu::bits;

namespace {

// Flags of a DCache record as proposed (bits 28 and 29:31 of its first word).
constexpr unsigned k2007MissSourceShift = 13;
constexpr uint16_t k2007MissAddressValid = 1u << 12;

// The block's whole words.
struct Words {
  uint32_t flags;
  uint32_t size_and_random;
  uint64_t buffer_base;
  uint32_t head;
  uint32_t tail;
  uint64_t missed_events;
  uint32_t threshold;
  uint32_t filters;
};
static_assert(sizeof(Words) == k2007EventOffset);
static_assert(offsetof(Words, size_and_random) == 4);
static_assert(offsetof(Words, buffer_base) == 8);
static_assert(offsetof(Words, head) == 16);
static_assert(offsetof(Words, tail) == 20);
static_assert(offsetof(Words, missed_events) == 24);
static_assert(offsetof(Words, threshold) == 32);
static_assert(offsetof(Words, filters) == 36);

constexpr uint32_t kCounterMask = (1u << kCounterBits) - 1;

Filters2007 decode_filters(uint32_t word) {
  return {.min_latency_cycles = ((word & k2007MinLatencyMask) >> std::countr_zero(k2007MinLatencyMask)) * 16,
          .by_cache_level = (word & k2007FilterCacheLevel) != 0,
          .northbridge = (word & k2007FilterNorthbridge) != 0,
          .remote_cache = (word & k2007FilterRemoteCache) != 0,
          .ram = (word & k2007FilterRam) != 0,
          .other = (word & k2007FilterOther) != 0,
          .no_direct_branches = (word & k2007FilterNoDirectBranches) != 0};
}

}  // namespace

EventId final_event(EventId2007 id) {
  switch (id) {
    case EventId2007::kInstructions:
      return EventId::kInstructions;
    case EventId2007::kBranches:
      return EventId::kBranches;
    case EventId2007::kDcacheMisses:
      return EventId::kDcacheMiss;
    case EventId2007::kNone:
      break;
  }
  return EventId::kNone;
}

std::optional<EventRecord> from_2007_record(const EventRecord& record) {
  const EventId id = final_event(static_cast<EventId2007>(record.event_id));
  if (id == EventId::kNone) return std::nullopt;
  EventRecord converted = record;
  converted.event_id = static_cast<uint8_t>(id);
  if (id == EventId::kDcacheMiss) {
    converted.flags = static_cast<uint16_t>((record.flags >> k2007MissSourceShift) << kMissSourceShift);
    if (record.flags & k2007MissAddressValid) converted.flags |= kMissAddressValid;
  }
  return converted;
}

Capabilities decode_2007_capabilities(const pmu::CpuidRegisters& leaf) {
  Capabilities c;
  c.present = bit(leaf.edx, 0);
  if (!c.present) return c;
  c.usable = {.available = bit(leaf.eax, 0),
              .instructions = bit(leaf.eax, 1),
              .branches = bit(leaf.eax, 2),
              .dcache_misses = bit(leaf.eax, 3),
              .interrupt = bit(leaf.eax, 31)};
  c.hardware = {.available = true,
                .instructions = bit(leaf.edx, 2),
                .branches = bit(leaf.edx, 3),
                .dcache_misses = bit(leaf.edx, 4),
                .interrupt = bit(leaf.edx, 1)};
  c.control_block_bytes = bits(leaf.ebx, 7, 0);
  c.record_bytes = bits(leaf.ebx, 15, 8);
  c.max_event_id = bits(leaf.ebx, 23, 16);
  c.version = bits(leaf.ebx, 31, 24);
  c.event_offset = k2007EventOffset;
  c.latency_bits = bits(leaf.ecx, 4, 0);
  c.data_address = bit(leaf.ecx, 5);
  c.cache_level_filtering = bit(leaf.ecx, 30);
  c.latency_filtering = bit(leaf.ecx, 31);
  return c;
}

const EventSlot2007* ControlBlock2007::slot_for(EventId2007 id) const {
  if (id == EventId2007::kNone) return nullptr;
  for (unsigned i = 0; i < slot_count; ++i) {
    if (slots[i].selector == id) return &slots[i];
  }
  return nullptr;
}

uint32_t ControlBlock2007::selected_events() const {
  uint32_t events = 0;
  for (unsigned i = 0; i < slot_count; ++i) {
    const EventId id = final_event(slots[i].selector);
    if (id != EventId::kNone) events |= flag_of(id);
  }
  return events;
}

Result<ControlBlock2007> decode_2007_control_block(std::span<const std::byte> bytes, unsigned events) {
  if (events > ControlBlock2007::kMaxSlots) {
    return make_error(ErrorKind::kUsage, fmt::format("a control block of 2007 cannot have {} event slots, at "
                                                     "most {}",
                                                     events, ControlBlock2007::kMaxSlots));
  }
  if (bytes.size() < k2007EventOffset + size_t{events} * k2007SlotSize) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} bytes are less than a control block of 2007 with {} event slots",
                                  bytes.size(), events));
  }
  Words words;
  std::memcpy(&words, bytes.data(), sizeof words);
  ControlBlock2007 block;
  block.flags = words.flags;
  block.buffer_size = (words.size_and_random & kBufferSizeMask) / kRecordSize * kRecordSize;
  block.random_bits = words.size_and_random >> kRandomShift;
  block.buffer_base = words.buffer_base & ~uint64_t{kRecordSize - 1};
  block.head = words.head;
  block.tail = words.tail;
  block.missed_events = words.missed_events;
  block.threshold = words.threshold;
  block.filters = decode_filters(words.filters);
  block.slot_count = events;
  for (unsigned i = 0; i < events; ++i) {
    uint32_t slot[2];
    std::memcpy(slot, bytes.data() + k2007EventOffset + size_t{i} * k2007SlotSize, sizeof slot);
    const auto selector = static_cast<EventId2007>(slot[0] >> k2007SelectorShift);
    // The slots before this one are in place: whoever is there first counts the event.
    const bool duplicate = block.slot_for(selector) != nullptr;
    block.slots[i] = {.interval = slot[0] & kCounterMask,
                      .selector = selector,
                      .counter = slot[1] & kCounterMask,
                      .duplicate = duplicate};
  }
  return block;
}

}  // namespace hindsight::lwp
