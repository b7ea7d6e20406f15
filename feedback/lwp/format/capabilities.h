// Does this processor have Lightweight Profiling? CPUID Fn8000_0001 ECX[15] and Fn8000_001C, every field. No
// processor made since 2017 does; the decoder serves the ones that did, and the reason that `native` gives
// for its refusal.
#pragma once

#include <cstdint>
#include <string>

#include "feedback/pmu/x86_64.h"

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
uint32_t encode_features(const FeatureSet& features);

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
  uint32_t latency_bits = 0;           // 4:0, of the latency counter; longer latencies read as its maximum
  bool data_address = false;           // 5, DCache records hold the data's address
  uint32_t latency_rounded_bits = 0;   // 8:6, low bits of a latency that are always 0
  uint32_t version = 0;                // 15:9
  uint32_t min_buffer_records = 0;     // 23:16, a multiple of 32; 0: no minimum
  bool branch_prediction = false;      // 28, branches can be filtered by, and records tell, the prediction
  bool ip_filtering = false;           // 29
  bool cache_level_filtering = false;  // 30
  bool latency_filtering = false;      // 31
  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

// `ecx_80000001` is that register; the leaf is ignored unless its bit 15 is set.
Capabilities decode_capabilities(uint32_t ecx_80000001, const pmu::CpuidRegisters& leaf_8000001c);

// The registers that decode to `capabilities`: what an emulated processor answers. Sizes are stored in the
// units of their fields, rounded down, and fields keep their width. `ecx_80000001` holds only the presence
// bit, for the caller to merge.
struct EncodedCapabilities {
  uint32_t ecx_80000001 = 0;
  pmu::CpuidRegisters leaf_8000001c;
  friend bool operator==(const EncodedCapabilities&, const EncodedCapabilities&) = default;
};
EncodedCapabilities encode_capabilities(const Capabilities& capabilities);

// The calling thread's processor.
Capabilities detect_capabilities();

// Why native LWP cannot be used, one sentence; empty: it can.
std::string why_not_native(const Capabilities& capabilities);

}  // namespace hindsight::lwp
