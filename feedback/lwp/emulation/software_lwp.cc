#include "feedback/lwp/emulation/software_lwp.h"

#include <x86intrin.h>

#include <algorithm>
#include <bit>

namespace hindsight::lwp {
namespace {

constexpr unsigned slot_of(EventId id) {
  return static_cast<unsigned>(id) - 1;
}

std::unexpected<Fault> page_fault(uint64_t address, const char* reason) {
  return std::unexpected(Fault{FaultKind::kPageFault, address, reason});
}

std::span<std::byte> bytes_of(auto& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
std::span<const std::byte> bytes_of(const auto& value) {
  return std::as_bytes(std::span(&value, 1));
}

const Fault kUnavailable{FaultKind::kInvalidOpcode, 0, "Lightweight Profiling is not available"};

}  // namespace

Capabilities software_capabilities() {
  Capabilities c;
  c.present = true;
  c.hardware = {.available = true,
                .value = true,
                .instructions = true,
                .branches = true,
                .dcache_misses = true,
                .core_clocks = true,
                .reference_clocks = true,
                .continuous = true,
                .timestamps = true,
                .interrupt = true};
  c.usable = c.hardware;
  c.control_block_bytes = kControlBlockBytes;
  c.record_bytes = kRecordSize;
  c.max_event_id = kMaxEvents;
  c.event_offset = kEventOffset;
  c.latency_bits = 31;
  c.data_address = true;
  c.version = 1;
  c.branch_prediction = true;
  c.ip_filtering = true;
  c.cache_level_filtering = true;
  c.latency_filtering = true;
  return c;
}

SoftwareLwp::SoftwareLwp(Memory& memory, const Options& options)
    : memory_(&memory), options_(options), random_(options.random_seed) {}

uint32_t SoftwareLwp::grantable_flags() const {
  uint32_t grantable =
      encode_features(options_.capabilities.usable) & ~1u;  // bit 0 is availability, no event and no mode
  const unsigned events = std::min<unsigned>(options_.capabilities.max_event_id, kMaxEvents);
  for (unsigned slot = events; slot < kMaxEvents; ++slot) grantable &= ~(2u << slot);
  return grantable;
}

uint64_t SoftwareLwp::slot_offset(unsigned slot) const {
  return options_.capabilities.event_offset + uint64_t{slot} * sizeof(EventSlot);
}

Outcome<ControlBlock> SoftwareLwp::read_fixed(uint64_t address) const {
  const auto refuse = [&](const char* reason) {
    return std::unexpected(Fault{FaultKind::kGeneralProtection, address, reason});
  };
  if (!is_canonical(address)) return refuse("the control block's address is not canonical");
  ControlBlock block;
  // Up to the tail, which a reader may be moving; what follows is reserved, or software's.
  const auto fixed = std::span(reinterpret_cast<std::byte*>(&block), offsetof(ControlBlock, tail));
  if (!memory_->read(address, fixed) ||
      !memory_->load_acquire(address + offsetof(ControlBlock, tail), block.tail)) {
    return page_fault(address, "the control block cannot be read");
  }

  const auto ring = RingGeometry::of(block.flags, block.size_and_random, block.threshold);
  if (block.buffer_base == 0 || !is_canonical(block.buffer_base) ||
      !is_canonical(block.buffer_base + ring.size)) {
    return refuse("the buffer is absent or its address is not canonical");
  }
  if (ring.size < 2 * kRecordSize || ring.size / kRecordSize < options_.capabilities.min_buffer_records) {
    return refuse("the buffer holds too few records");
  }
  if (!ring.is_offset(block.head) || !ring.is_offset(block.tail)) {
    return refuse("the head or the tail is no record of the buffer");
  }
  return block;
}

Outcome<void> SoftwareLwp::read_slots(uint64_t address, uint32_t flags, ControlBlock& block) const {
  const uint32_t events = flags >> 1 & ((1u << kMaxEvents) - 1);
  if (events == 0) return {};
  // From the first slot that is on to the last one.
  const auto first = static_cast<unsigned>(std::countr_zero(events));
  const auto last = static_cast<unsigned>(std::bit_width(events) - 1);
  const auto slots = std::as_writable_bytes(std::span(block.events).subspan(first, last - first + 1));
  const uint64_t at = address + slot_offset(first);
  if (!memory_->read(at, slots)) return page_fault(at, "the control block's events cannot be read");
  return {};
}

void SoftwareLwp::take_constants(uint64_t address, const ControlBlock& block) {
  block_ = address;
  filters_ = block.filters;
  random_bits_ = block.random_bits();
  base_ip_ = block.base_ip;
  limit_ip_ = block.limit_ip;
  buffer_ = block.buffer_base;
  ring_ = RingGeometry::of(flags_, block.size_and_random, block.threshold);
  for (unsigned slot = 0; slot < kMaxEvents; ++slot) {
    const int32_t minimum = slot == slot_of(EventId::kValue) ? 0 : std::max(options_.minimum_interval, 0);
    intervals_[slot] = std::max(decode_counter(block.events[slot].interval), minimum);
  }
}

Outcome<void> SoftwareLwp::llwpcb(uint64_t address) {
  if (!options_.capabilities.usable.available) return std::unexpected(kUnavailable);
  if (block_ != 0) {
    if (auto flushed = flush(); !flushed) return flushed;
  }
  if (address == 0) {
    block_ = 0;
    return {};
  }
  Outcome<ControlBlock> block = read_fixed(address);
  if (!block) return std::unexpected(block.error());
  const uint32_t flags = block->flags & grantable_flags();
  if (auto slots = read_slots(address, flags, *block); !slots) return slots;
  if (!memory_->write(address + offsetof(ControlBlock, flags), bytes_of(flags))) {
    return page_fault(address, "the control block cannot be written");
  }
  flags_ = flags;
  take_constants(address, *block);
  head_ = block->head;
  for (unsigned slot = 0; slot < kMaxEvents; ++slot) {
    event_counters_[slot] = std::max(decode_counter(block->events[slot].counter), 0);
  }
  return {};
}

Outcome<uint64_t> SoftwareLwp::slwpcb() {
  if (!options_.capabilities.usable.available) return std::unexpected(kUnavailable);
  if (block_ != 0) {
    if (auto flushed = flush(); !flushed) return std::unexpected(flushed.error());
  }
  return block_;
}

Outcome<void> SoftwareLwp::flush() {
  for (unsigned slot = 0; slot < kMaxEvents; ++slot) {
    if (!(flags_ & 2u << slot)) continue;
    const uint32_t counter = encode_counter(event_counters_[slot]);
    const uint64_t at = block_ + slot_offset(slot) + offsetof(EventSlot, counter);
    if (!memory_->write(at, bytes_of(counter))) {
      return page_fault(at, "the control block's counters cannot be written");
    }
  }
  return {};
}

EventRecord SoftwareLwp::stamped(EventRecord record) const {
  record.core_id = options_.core_id;
  if (flags_ & kFlagTimestamps) {
    record.timestamp = options_.time ? options_.time(options_.time_context) : __rdtsc();
  }
  return record;
}

Outcome<bool> SoftwareLwp::put(const EventRecord& record) {
  // The record itself is written before anything changes. It lies at the head, where nobody reads, so a fault
  // at any of these steps leaves no trace.
  uint32_t tail = 0;
  const uint64_t tail_at = block_ + offsetof(ControlBlock, tail);
  if (!ring_.continuous && !memory_->load_acquire(tail_at, tail)) {
    return page_fault(tail_at, "the tail cannot be read");
  }
  if (!memory_->write(buffer_ + head_, bytes_of(record))) {
    return page_fault(buffer_ + head_, "the event buffer cannot be written");
  }
  const uint32_t next = ring_.following(head_);
  if (!ring_.continuous && next == tail) {
    const uint64_t missed_at = block_ + offsetof(ControlBlock, missed_events);
    uint64_t missed = 0;
    if (!memory_->read(missed_at, bytes_of(missed)) || !memory_->write(missed_at, bytes_of(missed + 1))) {
      return page_fault(missed_at, "the count of missed events cannot be written");
    }
    ++counters_.records;
    ++counters_.missed;
    return true;
  }
  const uint64_t head_at = block_ + offsetof(ControlBlock, head);
  if (!memory_->store_release(head_at, next)) return page_fault(head_at, "the head cannot be written");
  head_ = next;
  ++counters_.records;
  if (!ring_.continuous && ring_.crosses_threshold(next, tail)) ++counters_.interrupts;
  return false;
}

int32_t SoftwareLwp::reload_value(unsigned slot) {
  if (random_bits_ == 0) return intervals_[slot];
  // xorshift64: the low bits of an interval only need to avoid a loop's rhythm.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const int32_t mask = (1 << random_bits_) - 1;
  return (intervals_[slot] & ~mask) | (static_cast<int32_t>(random_) & mask);
}

template <typename MakeRecord>
Outcome<bool> SoftwareLwp::count(uint64_t pc, const EventCounts& events, const MakeRecord& make_record) {
  const bool passes = address_passes(pc);
  // The counters change only once the record, if there is one, is stored.
  std::array<int32_t, kMaxEvents> after = event_counters_;
  uint32_t expired = 0;
  for (unsigned slot = 0; slot < kMaxEvents; ++slot) {
    if (events[slot] == 0 || !(flags_ & 2u << slot)) continue;
    if (!passes) {
      counters_.filtered += events[slot];
      continue;
    }
    if (after[slot] >= 0) {
      // Frozen at -1: a clock may overshoot by more than 26 bits hold.
      after[slot] = static_cast<int32_t>(std::max<int64_t>(int64_t{after[slot]} - events[slot], -1));
    }
    if (after[slot] < 0) expired |= 1u << slot;
  }
  if (expired == 0) {
    event_counters_ = after;
    return false;
  }
  unsigned chosen = last_reported_;
  do {
    chosen = (chosen + 1) % kMaxEvents;
  } while (!(expired & 1u << chosen));
  if (auto stored = put(stamped(make_record(static_cast<EventId>(chosen + 1)))); !stored) return stored;
  after[chosen] = reload_value(chosen);
  event_counters_ = after;
  last_reported_ = chosen;
  if (!std::has_single_bit(expired)) ++counters_.waited;
  return true;
}

Outcome<bool> SoftwareLwp::lwpins(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags) {
  if (!options_.capabilities.usable.available) return std::unexpected(kUnavailable);
  if (block_ == 0) return false;
  const Outcome<bool> missed = put(stamped(make_programmed_record(pc, data2, data1, flags)));
  if (!missed) return missed;
  // It was an instruction too, but made its one record already.
  constexpr unsigned kSlot = slot_of(EventId::kInstructions);
  if (is_on(EventId::kInstructions)) {
    if (!address_passes(pc)) {
      ++counters_.filtered;
    } else {
      event_counters_[kSlot] = std::max(event_counters_[kSlot] - 1, -1);
      if (event_counters_[kSlot] < 0) ++counters_.waited;
    }
  }
  return missed;
}

Outcome<bool> SoftwareLwp::lwpval(uint64_t pc, uint64_t data2, uint32_t data1, uint16_t flags) {
  if (!options_.capabilities.usable.available) return std::unexpected(kUnavailable);
  if (block_ == 0) return false;
  EventCounts events{};
  events[slot_of(EventId::kValue)] = 1;
  events[slot_of(EventId::kInstructions)] = 1;
  return count(pc, events, [&](EventId id) {
    return id == EventId::kValue ? make_value_record(pc, data2, data1, flags) : make_instructions_record(pc);
  });
}

Outcome<bool> SoftwareLwp::retire(const RetiredInstruction& instruction) {
  if (block_ == 0) return false;
  EventCounts events{};
  uint32_t filtered = 0;
  events[slot_of(EventId::kInstructions)] = 1;
  if (instruction.branch && is_on(EventId::kBranches)) {
    const bool passes = branch_passes(*instruction.branch);
    events[slot_of(EventId::kBranches)] = passes;
    filtered += !passes;
  }
  if (instruction.miss && is_on(EventId::kDcacheMiss)) {
    const bool passes = miss_passes(*instruction.miss);
    events[slot_of(EventId::kDcacheMiss)] = passes;
    filtered += !passes;
  }
  events[slot_of(EventId::kCoreClocks)] = instruction.core_clocks;
  events[slot_of(EventId::kReferenceClocks)] = instruction.reference_clocks;
  const Outcome<bool> recorded = count(instruction.pc, events, [&](EventId id) {
    switch (id) {
      case EventId::kBranches: {
        const RetiredBranch& b = *instruction.branch;
        return make_branch_record(instruction.pc, b.next, b.taken,
                                  options_.capabilities.branch_prediction ? b.predicted_right : std::nullopt);
      }
      case EventId::kDcacheMiss: {
        const RetiredMiss& m = *instruction.miss;
        return make_dcache_miss_record(instruction.pc,
                                       options_.capabilities.data_address ? m.address : std::nullopt,
                                       captured_latency(m.latency), m.source);
      }
      case EventId::kCoreClocks:
        return make_clock_record(instruction.pc);
      case EventId::kReferenceClocks:
        return make_reference_clock_record(instruction.pc);
      default:
        return make_instructions_record(instruction.pc);
    }
  });
  if (recorded) counters_.filtered += filtered;
  return recorded;
}

bool SoftwareLwp::address_passes(uint64_t pc) const {
  if (!(filters_ & kFilterIpRange) || !options_.capabilities.ip_filtering) return true;
  const bool inside = pc >= base_ip_ && (pc < limit_ip_ || (kLimitIpIsInside && pc == limit_ip_));
  return inside != ((filters_ & kFilterInvertIpRange) != 0);
}

bool SoftwareLwp::branch_passes(const RetiredBranch& branch) const {
  if (options_.capabilities.branch_prediction && branch.predicted_right) {
    if ((filters_ & kFilterNoMispredicted) && !*branch.predicted_right) return false;
    if ((filters_ & kFilterNoPredicted) && *branch.predicted_right) return false;
  }
  switch (branch.kind) {
    case BranchKind::kConditional:
      return !(filters_ & kFilterNoConditional);
    case BranchKind::kRelative:
      return !(filters_ & kFilterNoRelative);
    case BranchKind::kAbsolute:
      return !(filters_ & kFilterNoAbsolute);
  }
  return true;
}

uint32_t SoftwareLwp::captured_latency(uint32_t latency) const {
  const uint32_t counter_bits = options_.capabilities.latency_bits;
  const uint32_t rounded = ~0u << options_.capabilities.latency_rounded_bits;
  if (counter_bits >= 32) return latency & rounded;
  return std::min(latency, (1u << counter_bits) - 1) & rounded;
}

bool SoftwareLwp::miss_passes(const RetiredMiss& miss) const {
  if (options_.capabilities.latency_filtering) {
    const uint32_t minimum = min_latency_cycles(filters_);
    // A minimum beyond what the latency counter can hold asks for that.
    if (captured_latency(miss.latency) < captured_latency(minimum)) return false;
  }
  if (!options_.capabilities.cache_level_filtering || !(filters_ & kFilterCacheLevel)) return true;
  switch (miss.source) {
    case MissSource::kLocalL3:
      return filters_ & kFilterNorthbridge;
    case MissSource::kRemote:
      return filters_ & kFilterRemoteCache;
    case MissSource::kDram:
      return filters_ & kFilterRam;
    case MissSource::kOther:
      return filters_ & kFilterOther;
    case MissSource::kNone:
      break;
  }
  return false;  // from nowhere known: none of the chosen levels
}

XsaveArea SoftwareLwp::save() const {
  XsaveArea area;
  if (block_ == 0) return area;
  area.block_address = block_;
  area.flags = flags_;
  area.head = head_;
  area.buffer_base = buffer_;
  area.buffer_size = ring_.size;
  area.filters = filters_;
  for (unsigned slot = 0; slot < kMaxEvents; ++slot) {
    area.event_counters[slot] = encode_counter(event_counters_[slot]);
  }
  return area;
}

Outcome<void> SoftwareLwp::restore(const XsaveArea& area) {
  if (!options_.capabilities.usable.available) return std::unexpected(kUnavailable);
  if (area.block_address == 0) {
    block_ = 0;
    return {};
  }
  Outcome<ControlBlock> block = read_fixed(area.block_address);
  if (!block) return std::unexpected(block.error());
  const uint32_t flags = area.flags & grantable_flags();
  if (auto slots = read_slots(area.block_address, flags, *block); !slots) return slots;
  block->set_size_and_random(area.buffer_size, block->random_bits());
  block->buffer_base = area.buffer_base;
  block->filters = area.filters;
  const auto ring = RingGeometry::of(flags, block->size_and_random, block->threshold);
  if (ring.size < 2 * kRecordSize || !ring.is_offset(area.head)) {
    return std::unexpected(Fault{FaultKind::kGeneralProtection, area.block_address,
                                 "the saved head is no record of the buffer"});
  }
  const SoftwareLwp before = *this;
  flags_ = flags;
  take_constants(area.block_address, *block);
  head_ = area.head;
  for (unsigned slot = 0; slot < kMaxEvents; ++slot) {
    event_counters_[slot] = decode_counter(area.event_counters[slot]);
  }
  if (area.pending.id() != EventId::kNone) {
    if (auto stored = put(area.pending); !stored) {
      *this = before;
      return std::unexpected(stored.error());
    }
  }
  return {};
}

}  // namespace hindsight::lwp
