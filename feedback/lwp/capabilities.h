// Does this processor have Lightweight Profiling? CPUID Fn8000_0001 ECX[15] and Fn8000_001C, every field. No
// processor made since 2017 does; the decoder serves the ones that did, and the reason that `native` gives
// for its refusal.
#pragma once

#include <cstdint>
#include <string>

#include "feedback/pmu/cpuid.h"

namespace hindsight::lwp {

// EAX (usable now) and EDX (in the hardware) share this layout.
struct FeatureSet {
  bool available = false;         // 0
  bool value = false;             // 1: LWPVAL
  bool instructions = false;      // 2
  bool branches = false;          // 3
  bool dcache_misses = false;     // 4
  bool core_clocks = false;       // 5
  bool reference_clocks = false;  // 6
  bool continuous = false;        // 29
  bool timestamps = false;        // 30
  bool interrupt = false;         // 31
  friend bool operator==(const FeatureSet&, const FeatureSet&) = default;
};

FeatureSet decode_features(uint32_t reg);

struct Capabilities {
  bool present = false;  // Fn8000_0001 ECX[15]
  FeatureSet usable;     // EAX: what the operating system has switched on for this process
  FeatureSet hardware;   // EDX
  // EBX
  uint32_t control_block_bytes = 0;
  uint32_t record_bytes = 0;
  uint32_t max_event_id = 0;
  uint32_t event_offset = 0;  // of EventInterval1 in the control block
  // ECX
  uint32_t latency_bits = 0;
  bool data_address = false;
  uint32_t latency_rounded_bits = 0;
  uint32_t version = 0;
  uint32_t min_buffer_records = 0;
  bool branch_prediction = false;
  bool ip_filtering = false;
  bool cache_level_filtering = false;
  bool latency_filtering = false;
};

// `ecx_80000001` is that register; the leaf is ignored unless its bit 15 is set.
Capabilities decode_capabilities(uint32_t ecx_80000001, const pmu::CpuidRegisters& leaf_8000001c);

// The calling thread's processor.
Capabilities detect_capabilities();

// Why native LWP is not used, one sentence. This version drives it nowhere, so there is always a reason.
std::string why_not_native(const Capabilities& capabilities);

}  // namespace hindsight::lwp
