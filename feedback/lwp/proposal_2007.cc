#include "feedback/lwp/proposal_2007.h"

namespace hindsight::lwp {

using pmu::bit;
using pmu::bits;

std::optional<EventRecord> from_2007_record(const EventRecord& record) {
  if (record.event_id < 1 || record.event_id > 3) return std::nullopt;
  EventRecord converted = record;
  ++converted.event_id;
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
  c.event_offset = 40;
  c.latency_bits = bits(leaf.ecx, 4, 0);
  c.data_address = bit(leaf.ecx, 5);
  c.cache_level_filtering = bit(leaf.ecx, 30);
  c.latency_filtering = bit(leaf.ecx, 31);
  return c;
}

}  // namespace hindsight::lwp
