#include "feedback/lwp/units/hardware/ibs.h"

#include <cstring>

#include "feedback/lwp/units/memory_source.h"

namespace hindsight::lwp {
namespace {

constexpr size_t kFixedRegisters = 7;  // IBS_OP_CTL to IBS_DC_PHYSAD

constexpr bool bit(uint64_t word, unsigned position) {
  return (word >> position) & 1;
}

// Erratum 1293 of the first Zen 3 models. For software prefetches, and for loads that found the line
// already on its way, DataSrc and the L2-miss bit are not valid.
bool has_erratum_1293(const pmu::ProcessorSignature& p) {
  return p.family == 0x19 && p.model <= 0x0F;
}

}  // namespace

std::optional<IbsSample> decode_ibs_raw(std::span<const std::byte> raw,
                                        const pmu::ProcessorSignature& processor) {
  uint32_t caps;
  if (raw.size() < sizeof caps) return std::nullopt;
  std::memcpy(&caps, raw.data(), sizeof caps);
  const size_t registers = kFixedRegisters + (caps & kIbsBranchTarget ? 1 : 0) + (caps & kIbsOpData4 ? 1 : 0);
  if (raw.size() != sizeof caps + registers * sizeof(uint64_t)) return std::nullopt;
  const auto reg = [&](size_t i) {
    uint64_t word;
    std::memcpy(&word, raw.data() + sizeof caps + i * sizeof word, sizeof word);
    return word;
  };
  const uint64_t op_data = reg(2), op_data2 = reg(3), op_data3 = reg(4);

  IbsSample s;
  s.rip = reg(1);
  s.rip_valid = !((caps & kIbsRipInvalid) && bit(op_data, 38));

  s.branch = bit(op_data, 37);
  s.taken = s.branch && bit(op_data, 35);
  s.mispredicted = s.branch && bit(op_data, 36);
  if (s.taken && (caps & kIbsBranchTarget)) s.target = reg(kFixedRegisters);

  const bool prefetch = bit(op_data3, 21);
  s.load = bit(op_data3, 0) && !prefetch;
  if (!s.load) return s;
  if (bit(op_data3, 17)) s.address = reg(5);
  if (bit(op_data3, 14)) {
    // Uncacheable: miss bits, latency and source are not valid, but the data came from outside all caches.
    s.l1_miss = true;
    s.source = MissSource::kOther;
    return s;
  }
  s.l1_miss = bit(op_data3, 7);
  if (!s.l1_miss) return s;
  s.latency = static_cast<uint32_t>((op_data3 >> 32) & 0xFFFF);
  const bool line_on_its_way = bit(op_data3, 16);
  if (line_on_its_way && has_erratum_1293(processor)) return s;
  const bool zen = processor.family >= 0x17;
  const bool l2_miss = bit(op_data3, 20);  // older families do not have the bit
  s.source = zen && !l2_miss ? MissSource::kOther : decode_ibs_data_source(op_data2, caps & kIbsZen4, zen);
  return s;
}

}  // namespace hindsight::lwp
