#include "feedback/lwp/calibration/tlb_reach.h"

#include <algorithm>

namespace hindsight::lwp {
namespace {

using Cpuid = std::function<pmu::CpuidRegisters(uint32_t leaf, uint32_t subleaf)>;

constexpr uint64_t kPageBytes = 4096;
// Haswell has so many, Zen 1,536. QEMU tells each guest of 512, the K10's; and where a hypervisor hides that a Zen 5
// counts by 32 entries, its 4,096 are 128.
constexpr uint64_t kLeastBelieved = 1024;
constexpr uint64_t kMostBelieved = 1 << 20;

uint64_t amd_entries(const Cpuid& cpuid) {
  constexpr uint32_t kSecondLevel = 0x8000'0006, kFeatures = 0x8000'0021;
  constexpr unsigned kCountsBy32 = 14;  // L2TlbSizeX32, in eax
  const uint64_t entries = pmu::bits(cpuid(kSecondLevel, 0).ebx, 27, 16);
  return pmu::bit(cpuid(kFeatures, 0).eax, kCountsBy32) ? 32 * entries : entries;
}

// A list of translation caches, each with the pages that it is for. Several may share the pages of 4 KiB, as one with
// those of 2 MiB and one with those of 1 GiB do.
uint64_t intel_entries(const Cpuid& cpuid) {
  constexpr uint32_t kLeaf = 0x18, kMostSubleaves = 64, kData = 1, kUnified = 3, kSecondLevel = 2;
  uint64_t entries = 0;
  const uint32_t last = std::min(cpuid(kLeaf, 0).eax, kMostSubleaves);
  for (uint32_t i = 0; i <= last; ++i) {
    const pmu::CpuidRegisters r = cpuid(kLeaf, i);
    const uint32_t type = pmu::bits(r.edx, 4, 0), level = pmu::bits(r.edx, 7, 5);
    const bool small_pages = pmu::bit(r.ebx, 0);
    if ((type == kData || type == kUnified) && level == kSecondLevel && small_pages)
      entries += uint64_t{pmu::bits(r.ebx, 31, 16)} * r.ecx;
  }
  return entries;
}

// Bytes that name a cache each, in registers whose highest bit is clear. The lowest byte of eax is none of them.
uint64_t intel_entries_by_descriptor(const Cpuid& cpuid) {
  constexpr uint32_t kLeaf = 2;
  const pmu::CpuidRegisters r = cpuid(kLeaf, 0);
  for (const uint32_t part : {r.eax & ~0xffu, r.ebx, r.ecx, r.edx}) {
    if (pmu::bit(part, 31)) continue;
    for (unsigned at = 0; at < 32; at += 8) {
      switch (pmu::bits(part, at + 7, at)) {
        case 0xc1:
          return 1024;
        case 0xc3:
          return 1536;
        case 0xca:
          return 512;
        default:
          break;
      }
    }
  }
  return 0;
}

}  // namespace

std::optional<uint64_t> decode_tlb_reach(const Cpuid& cpuid) {
  for (const auto entries_of : {amd_entries, intel_entries, intel_entries_by_descriptor}) {
    const uint64_t entries = entries_of(cpuid);
    if (entries >= kLeastBelieved && entries <= kMostBelieved) return entries * kPageBytes;
  }
  return std::nullopt;
}

std::optional<uint64_t> detect_tlb_reach() {
  return decode_tlb_reach(&pmu::cpuid);
}

}  // namespace hindsight::lwp
