// Every place and meaning that no public text or program confirms, each as one constant. In the final layout
// these are most filters, two flags of the DCache record, and what a zero threshold means. Their values are
// the 2007 proposal's, or follow from the confirmed neighbours. In the proposal it is what only its lost
// figure showed. Whoever finds the publication (43724) or the figure corrects them here and nowhere else.
// Nothing in the library or its tests knows them except by name.
#pragma once

#include <bit>
#include <cstdint>

namespace hindsight::lwp {

// Filters word of the control block. Latency: the low byte, in units of this many cycles.
inline constexpr uint32_t kFilterMinLatencyMask = 0xFF;
inline constexpr uint32_t kFilterLatencyUnitCycles = 16;
constexpr uint32_t filter_min_latency(uint32_t units) {
  return units << std::countr_zero(kFilterMinLatencyMask) & kFilterMinLatencyMask;
}
constexpr uint32_t min_latency_cycles(uint32_t filters) {
  return ((filters & kFilterMinLatencyMask) >> std::countr_zero(kFilterMinLatencyMask)) *
         kFilterLatencyUnitCycles;
}
// CLF: count only DCache misses served from the levels chosen by the four bits after it.
inline constexpr uint32_t kFilterCacheLevel = 1u << 8;
inline constexpr uint32_t kFilterNorthbridge = 1u << 9;   // NBC: the cache beside the northbridge (local L3)
inline constexpr uint32_t kFilterRemoteCache = 1u << 10;  // RDC
inline constexpr uint32_t kFilterRam = 1u << 11;          // RAM
inline constexpr uint32_t kFilterOther = 1u << 12;        // OTH: devices, configuration space
inline constexpr uint32_t kFilterNoMispredicted = 1u << 25;  // NMB: mispredicted branches are not counted
inline constexpr uint32_t kFilterNoPredicted = 1u << 26;     // NPB: rightly predicted ones are not
inline constexpr uint32_t kFilterNoConditional = 1u << 28;   // NCB: conditional branches are not
inline constexpr uint32_t kFilterInvertIpRange = 1u << 30;   // IPI: count outside the range
inline constexpr uint32_t kFilterIpRange = 1u << 31;         // IPF: count by instruction address

// Whether the instruction at LimitIP itself is inside the range. The one at BaseIP is.
inline constexpr bool kLimitIpIsInside = true;

// Flags of a DCache record (event 4): source of the data, and whether Data2 is its address.
inline constexpr unsigned kMissSourceShift = 13;
inline constexpr uint16_t kMissSourceMask = 7u << kMissSourceShift;
inline constexpr uint16_t kMissAddressValid = 1u << 12;

// Whether a threshold of 0 means "never".
inline constexpr bool kZeroThresholdMeansNever = true;

// The 2007 proposal's control block. Its text gives the fields in order and 40 bytes, which leaves no choice
// for whole words. For the bits inside two of them it does: the filters, and a slot's event selector above
// its 26-bit interval.
inline constexpr uint32_t k2007MinLatencyMask = 0xFF;
inline constexpr uint32_t k2007FilterCacheLevel = 1u << 8;
inline constexpr uint32_t k2007FilterNorthbridge = 1u << 9;
inline constexpr uint32_t k2007FilterRemoteCache = 1u << 10;
inline constexpr uint32_t k2007FilterRam = 1u << 11;
inline constexpr uint32_t k2007FilterOther = 1u << 12;
inline constexpr uint32_t k2007FilterNoDirectBranches = 1u << 13;
inline constexpr unsigned k2007SelectorShift = 26;  // of the slot's first word

}  // namespace hindsight::lwp
