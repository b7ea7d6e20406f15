// AMD Instruction-Based Sampling, execution side. One operation in so many is tagged at dispatch and followed
// until it retires. It says exactly who it was. It says whether it was a load that missed, for how long and
// to where. It says whether it was a branch, how it went and whether that had been predicted. This is the
// hardware that is closest to LWP, whose events 2, 3 and 4 one sample can be.
//
// Decodes what Linux's ibs_op PMU puts into PERF_SAMPLE_RAW. First come the IBS capabilities. Then come the
// registers IBS_OP_CTL, IBS_OP_RIP, IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3, IBS_DC_LINAD, IBS_DC_PHYSAD,
// and, where the capabilities say so, IBS_BRTARGET and IBS_OP_DATA4. Register layouts: AMD's Processor
// Programming References for families 10h to 1Ah.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "feedback/lwp/format/record.h"
#include "feedback/pmu/processor.h"

namespace hindsight::lwp {

// Bits of CPUID Fn8000_001B EAX, and of a raw sample's first word.
inline constexpr uint32_t kIbsBranchTarget = 1u << 5;  // IBS_BRTARGET
inline constexpr uint32_t kIbsRipInvalid = 1u << 7;    // IBS_OP_DATA[38] means something
inline constexpr uint32_t kIbsOpData4 = 1u << 10;      // IBS_OP_DATA4
inline constexpr uint32_t kIbsZen4 = 1u << 11;         // five-bit data source

struct IbsSample {
  uint64_t rip = 0;
  bool rip_valid = true;

  bool branch = false;  // a branch that retired
  bool taken = false;
  bool mispredicted = false;
  std::optional<uint64_t> target;  // only taken branches have one

  bool load = false;  // not a software prefetch
  bool l1_miss = false;
  std::optional<uint64_t> address;
  uint32_t latency = 0;  // cycles from the miss to the data; loads that missed only
  MissSource source = MissSource::kNone;
};

// Empty if `raw` has not the size that its own capability word implies. `processor` decides what errata and
// the family change.
std::optional<IbsSample> decode_ibs_raw(std::span<const std::byte> raw,
                                        const pmu::ProcessorSignature& processor);

}  // namespace hindsight::lwp
