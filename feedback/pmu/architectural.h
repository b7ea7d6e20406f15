// Architectural performance monitoring, decoded. What CPUID leaf 0AH promises (Intel SDM volume 3B, chapter
// "Performance Monitoring"; versions 1 to 5), and the event encodings that go with it. Also the layout in
// which Linux takes raw events (PERF_TYPE_RAW). Pure functions; nothing here touches an MSR: ring 3 cannot.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "feedback/pmu/x86_64.h"

namespace hindsight::pmu {

// Numbered as the bits of CPUID 0AH EBX.
enum class ArchitecturalEvent : uint8_t {
  kCoreCycles,
  kInstructionsRetired,
  kReferenceCycles,
  kLlcReferences,
  kLlcMisses,
  kBranchesRetired,
  kBranchMissesRetired,
};
inline constexpr unsigned kArchitecturalEventCount = 7;

std::string_view to_string(ArchitecturalEvent event);

struct ArchitecturalPmu {
  uint8_t version = 0;           // 0: the processor (or its hypervisor) offers none
  uint8_t general_counters = 0;  // IA32_PMCx per logical processor
  uint8_t general_width = 0;     // bits
  uint8_t fixed_counters = 0;    // contiguous IA32_FIXED_CTRx from 0; version 2 and up
  uint8_t fixed_width = 0;       // bits; version 2 and up
  uint32_t fixed_mask =
      0;  // bit i: IA32_FIXED_CTRi exists; version 5 lists them, below that the contiguous ones
  bool any_thread_deprecated = false;  // version 5: the AnyThread bit must stay 0
  std::array<bool, kArchitecturalEventCount> events{};

  bool has(ArchitecturalEvent event) const { return events[static_cast<unsigned>(event)]; }
  // Several hardware threads of one core could be counted as one (version 3 and 4; deprecated in 5).
  bool has_any_thread() const { return version >= 3 && !any_thread_deprecated; }
  // Global control, status and overflow control exist from version 2 on.
  bool has_global_control() const { return version >= 2; }
};

// Decodes CPUID leaf 0AH. All absent where the version is 0 (every AMD processor, most virtual machines). An
// event exists only if its bit is inside the announced EBX vector and 0.
ArchitecturalPmu decode_architectural_pmu(const CpuidRegisters& leaf0a);

// AMD says elsewhere what it has. There are six core counters where CPUID 8000_0001 ECX[23] (PerfCtrExtCore)
// is set, four legacy ones otherwise. Or there is the number in CPUID 8000_0022 EBX[3:0] where EAX[0]
// (PerfMonV2) is set. This is what the instruction says; a hypervisor may still refuse the MSRs.
uint8_t decode_amd_core_counters(uint32_t ecx_80000001, const CpuidRegisters& leaf_80000022);

// What AMD processors say of their monitoring, from the leaves that replace 0AH there.
struct AmdPmu {
  uint8_t version = 0;               // 1: MSRs one by one; 2: global control and status (PerfMonV2)
  uint8_t core_counters = 0;         // a logical processor
  uint8_t northbridge_counters = 0;  // data fabric, shared by a die; version 2 only
  uint8_t memory_counters = 0;       // unified memory controllers; version 2 only
  bool branch_sampling = false;      // BRS: Zen 3's saturating buffer of 16 taken branches, no prediction
  uint8_t branch_stack = 0;          // entries of LBRv2, Zen 4 and later; 0: none
  bool ibs = false;
  uint32_t ibs_features = 0;  // CPUID Fn8000_001B EAX
};
// `ecx_80000001`, `ebx_80000008`, `eax_8000001b`: those registers, 0 where the leaf does not exist.
AmdPmu decode_amd_pmu(uint32_t ecx_80000001, uint32_t ebx_80000008, uint32_t eax_8000001b,
                      const CpuidRegisters& leaf_80000022);

// Fields of IA32_PERFEVTSELx, as one PERF_TYPE_RAW config on Intel.
struct EventSelect {
  uint16_t event = 0;  // AMD uses 12 bits, Intel 8
  uint8_t unit_mask = 0;
  bool user = true;
  bool kernel = false;
  bool edge = false;
  bool pin_control = false;
  bool interrupt = false;
  bool any_thread = false;  // version 3
  bool enable = true;
  bool invert = false;
  uint8_t counter_mask = 0;
};

// The register as the manual draws it: event 7:0, umask 15:8, USR 16, OS 17, E 18, PC 19. Then INT 20, ANY
// 21, EN 22, INV 23, CMASK 31:24.
uint64_t encode_perfevtsel(const EventSelect& select);

// What perf_event_open takes as PERF_TYPE_RAW config: the kernel owns USR, OS, INT and EN and refuses them.
uint64_t encode_intel_raw(const EventSelect& select);
// AMD: event[7:0] | umask << 8 | edge 18 | invert 23 | cmask << 24 | event[11:8] << 32.
uint64_t encode_amd_raw(const EventSelect& select);

// The architectural event's event/umask pair, counting in ring 3.
EventSelect architectural_event(ArchitecturalEvent event);

// The same count on AMD, whose core counters see no last-level cache (the L3 has counters of its own): empty
// for that. Reference cycles are event 120H, with its high bits away from the low ones; family 19h model 10h
// and later.
std::optional<EventSelect> amd_event(ArchitecturalEvent event);

// What IA32_FIXED_CTRi counts: instructions, core cycles, reference cycles, then top-down slots (Ice Lake)
// and, on efficiency cores, the top-down categories; empty beyond what is architectural.
std::string_view fixed_counter_name(unsigned counter);

// IA32_FIXED_CTR_CTRL, four bits a counter: ring 0, ring 3, AnyThread (version 3), interrupt on overflow.
uint64_t encode_fixed_control(unsigned counter, bool kernel, bool user, bool any_thread, bool interrupt);

}  // namespace hindsight::pmu
