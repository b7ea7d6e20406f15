// The processor's data caches, from CPUID leaf 4 (Intel) or Fn8000_001D (AMD), which share their format, or
// from sysfs where CPUID says nothing. Pure decoders and one reader of the running machine; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "feedback/pmu/x86_64.h"

namespace hindsight::lwp {

// Bytes, 0 where there is no such cache or nobody says.
struct CacheSizes {
  uint64_t l1_data = 0;
  uint64_t l2 = 0;
  uint64_t l3 = 0;
  friend bool operator==(const CacheSizes&, const CacheSizes&) = default;
};

// `leaf` answers subleaves 0, 1, ... of either leaf; the first that names no cache ends the list. (Intel SDM
// vol. 2A, CPUID; AMD APM vol. 3, E.4.15.)
CacheSizes decode_cache_leaves(const std::function<pmu::CpuidRegisters(uint32_t subleaf)>& leaf);

// "32K", "1024K", "32M" as in sysfs; empty if it is no such thing.
std::optional<uint64_t> parse_cache_size(const std::string& text);

CacheSizes detect_cache_sizes();

}  // namespace hindsight::lwp
