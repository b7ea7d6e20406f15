#include "feedback/pmu/architectural.h"

namespace hindsight::pmu {
namespace {

constexpr uint64_t flag(bool on, unsigned position) {
  return static_cast<uint64_t>(on) << position;
}

}  // namespace

std::string_view to_string(ArchitecturalEvent event) {
  switch (event) {
    case ArchitecturalEvent::kCoreCycles:
      return "unhalted core cycles";
    case ArchitecturalEvent::kInstructionsRetired:
      return "instructions retired";
    case ArchitecturalEvent::kReferenceCycles:
      return "unhalted reference cycles";
    case ArchitecturalEvent::kLlcReferences:
      return "last-level cache references";
    case ArchitecturalEvent::kLlcMisses:
      return "last-level cache misses";
    case ArchitecturalEvent::kBranchesRetired:
      return "branches retired";
    case ArchitecturalEvent::kBranchMissesRetired:
      return "branch misses retired";
  }
  return "unknown";
}

ArchitecturalPmu decode_architectural_pmu(const CpuidRegisters& leaf) {
  ArchitecturalPmu pmu;
  pmu.version = static_cast<uint8_t>(bits(leaf.eax, 7, 0));
  if (pmu.version == 0) return pmu;
  pmu.general_counters = static_cast<uint8_t>(bits(leaf.eax, 15, 8));
  pmu.general_width = static_cast<uint8_t>(bits(leaf.eax, 23, 16));
  const unsigned vector_length = bits(leaf.eax, 31, 24);
  for (unsigned i = 0; i < kArchitecturalEventCount; ++i) {
    pmu.events[i] = i < vector_length && !bit(leaf.ebx, i);
  }
  if (pmu.version >= 2) {
    pmu.fixed_counters = static_cast<uint8_t>(bits(leaf.edx, 4, 0));
    pmu.fixed_width = static_cast<uint8_t>(bits(leaf.edx, 12, 5));
    pmu.fixed_mask = static_cast<uint32_t>((uint64_t{1} << pmu.fixed_counters) - 1);
  }
  if (pmu.version >= 5) {
    pmu.fixed_mask |= leaf.ecx;
    pmu.any_thread_deprecated = bit(leaf.edx, 15);
  }
  return pmu;
}

uint8_t decode_amd_core_counters(uint32_t ecx_80000001, const CpuidRegisters& leaf_80000022) {
  if (bit(leaf_80000022.eax, 0)) return static_cast<uint8_t>(bits(leaf_80000022.ebx, 3, 0));
  return bit(ecx_80000001, 23) ? 6 : 4;
}

AmdPmu decode_amd_pmu(uint32_t ecx_80000001, uint32_t ebx_80000008, uint32_t eax_8000001b,
                      const CpuidRegisters& leaf_80000022) {
  AmdPmu pmu;
  const bool v2 = bit(leaf_80000022.eax, 0);
  pmu.version = v2 ? 2 : 1;
  pmu.core_counters = decode_amd_core_counters(ecx_80000001, leaf_80000022);
  if (v2) {
    pmu.northbridge_counters = static_cast<uint8_t>(bits(leaf_80000022.ebx, 15, 10));
    pmu.memory_counters = static_cast<uint8_t>(bits(leaf_80000022.ebx, 21, 16));
  }
  pmu.branch_sampling = bit(ebx_80000008, 31);
  if (bit(leaf_80000022.eax, 1)) pmu.branch_stack = static_cast<uint8_t>(bits(leaf_80000022.ebx, 9, 4));
  pmu.ibs = bit(ecx_80000001, 10);
  if (pmu.ibs) pmu.ibs_features = eax_8000001b;
  return pmu;
}

uint64_t encode_perfevtsel(const EventSelect& s) {
  return (s.event & 0xFFu) | uint64_t{s.unit_mask} << 8 | flag(s.user, 16) | flag(s.kernel, 17) |
         flag(s.edge, 18) | flag(s.pin_control, 19) | flag(s.interrupt, 20) | flag(s.any_thread, 21) |
         flag(s.enable, 22) | flag(s.invert, 23) | uint64_t{s.counter_mask} << 24;
}

uint64_t encode_intel_raw(const EventSelect& s) {
  EventSelect raw = s;
  raw.user = raw.kernel = raw.interrupt = raw.enable = false;
  return encode_perfevtsel(raw);
}

uint64_t encode_amd_raw(const EventSelect& s) {
  return (s.event & 0xFFu) | uint64_t{s.unit_mask} << 8 | flag(s.edge, 18) | flag(s.invert, 23) |
         uint64_t{s.counter_mask} << 24 | uint64_t{(s.event >> 8) & 0xFu} << 32;
}

EventSelect architectural_event(ArchitecturalEvent event) {
  struct Code {
    uint8_t event, unit_mask;
  };
  constexpr Code kCodes[kArchitecturalEventCount] = {{0x3C, 0x00}, {0xC0, 0x00}, {0x3C, 0x01}, {0x2E, 0x4F},
                                                     {0x2E, 0x41}, {0xC4, 0x00}, {0xC5, 0x00}};
  const Code code = kCodes[static_cast<unsigned>(event)];
  EventSelect select;
  select.event = code.event;
  select.unit_mask = code.unit_mask;
  return select;
}

std::optional<EventSelect> amd_event(ArchitecturalEvent event) {
  EventSelect select;
  switch (event) {
    case ArchitecturalEvent::kCoreCycles:
      select.event = 0x76;
      return select;
    case ArchitecturalEvent::kInstructionsRetired:
      select.event = 0xC0;
      return select;
    case ArchitecturalEvent::kReferenceCycles:
      select.event = 0x120;
      select.unit_mask = 0x01;
      return select;
    case ArchitecturalEvent::kBranchesRetired:
      select.event = 0xC2;
      return select;
    case ArchitecturalEvent::kBranchMissesRetired:
      select.event = 0xC3;
      return select;
    case ArchitecturalEvent::kLlcReferences:
    case ArchitecturalEvent::kLlcMisses:
      break;
  }
  return std::nullopt;
}

std::string_view fixed_counter_name(unsigned counter) {
  constexpr std::string_view kNames[] = {
      "instructions retired",     "unhalted core cycles",    "unhalted reference cycles", "top-down slots",
      "top-down bad speculation", "top-down frontend bound", "top-down retiring"};
  return counter < std::size(kNames) ? kNames[counter] : std::string_view();
}

uint64_t encode_fixed_control(unsigned counter, bool kernel, bool user, bool any_thread, bool interrupt) {
  return (flag(kernel, 0) | flag(user, 1) | flag(any_thread, 2) | flag(interrupt, 3)) << (4 * counter);
}

}  // namespace hindsight::pmu
