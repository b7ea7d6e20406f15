#include "feedback/lwp/format/capabilities.h"

#include <fmt/format.h>

#include "feedback/lwp/format/control_block.h"

namespace hindsight::lwp {

using pmu::bit;
using pmu::bits;

FeatureSet decode_features(uint32_t reg) {
  return {.available = bit(reg, 0),
          .value = bit(reg, 1),
          .instructions = bit(reg, 2),
          .branches = bit(reg, 3),
          .dcache_misses = bit(reg, 4),
          .core_clocks = bit(reg, 5),
          .reference_clocks = bit(reg, 6),
          .continuous = bit(reg, 29),
          .timestamps = bit(reg, 30),
          .interrupt = bit(reg, 31)};
}

uint32_t encode_features(const FeatureSet& f) {
  const auto at = [](bool on, unsigned position) { return on ? 1u << position : 0u; };
  return at(f.available, 0) | at(f.value, 1) | at(f.instructions, 2) | at(f.branches, 3) |
         at(f.dcache_misses, 4) | at(f.core_clocks, 5) | at(f.reference_clocks, 6) | at(f.continuous, 29) |
         at(f.timestamps, 30) | at(f.interrupt, 31);
}

Capabilities decode_capabilities(uint32_t ecx_80000001, const pmu::CpuidRegisters& leaf) {
  Capabilities c;
  c.present = bit(ecx_80000001, 15);
  if (!c.present) return c;
  c.usable = decode_features(leaf.eax);
  c.hardware = decode_features(leaf.edx);
  c.control_block_bytes = bits(leaf.ebx, 7, 0) * 8;
  c.record_bytes = bits(leaf.ebx, 15, 8);
  c.max_event_id = bits(leaf.ebx, 23, 16);
  c.event_offset = bits(leaf.ebx, 31, 24);
  c.latency_bits = bits(leaf.ecx, 4, 0);
  c.data_address = bit(leaf.ecx, 5);
  c.latency_rounded_bits = bits(leaf.ecx, 8, 6);
  c.version = bits(leaf.ecx, 15, 9);
  c.min_buffer_records = bits(leaf.ecx, 23, 16) * 32;
  c.branch_prediction = bit(leaf.ecx, 28);
  c.ip_filtering = bit(leaf.ecx, 29);
  c.cache_level_filtering = bit(leaf.ecx, 30);
  c.latency_filtering = bit(leaf.ecx, 31);
  return c;
}

EncodedCapabilities encode_capabilities(const Capabilities& c) {
  if (!c.present) return {};
  // `value` in the bits [high:low].
  const auto field = [](uint32_t value, unsigned high, unsigned low) {
    return bits(value, high - low, 0) << low;
  };
  EncodedCapabilities e;
  e.ecx_80000001 = 1u << 15;
  e.leaf_8000001c.eax = encode_features(c.usable);
  e.leaf_8000001c.edx = encode_features(c.hardware);
  e.leaf_8000001c.ebx = field(c.control_block_bytes / 8, 7, 0) | field(c.record_bytes, 15, 8) |
                        field(c.max_event_id, 23, 16) | field(c.event_offset, 31, 24);
  e.leaf_8000001c.ecx = field(c.latency_bits, 4, 0) | field(c.data_address, 5, 5) |
                        field(c.latency_rounded_bits, 8, 6) | field(c.version, 15, 9) |
                        field(c.min_buffer_records / 32, 23, 16) | field(c.branch_prediction, 28, 28) |
                        field(c.ip_filtering, 29, 29) | field(c.cache_level_filtering, 30, 30) |
                        field(c.latency_filtering, 31, 31);
  return e;
}

Capabilities detect_capabilities() {
  return decode_capabilities(pmu::cpuid(0x80000001).ecx, pmu::cpuid(0x8000001C));
}

std::string why_not_native(const Capabilities& c) {
  if (!c.present) return "the processor has no Lightweight Profiling (CPUID Fn8000_0001 ECX[15] is 0)";
  if (!c.usable.available) {
    return "the processor has Lightweight Profiling, but the operating system has not enabled it (XCR0[62])";
  }
  if (c.record_bytes != kRecordSize || c.event_offset != kEventOffset) {
    return fmt::format(
        "the processor's records of {} bytes or its event offset of {} are not the known layout",
        c.record_bytes, c.event_offset);
  }
  return {};
}

}  // namespace hindsight::lwp
