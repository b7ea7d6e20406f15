// Says where a sampled load found its data, in the words of event 4. It reads Linux's perf_mem_data_src
// (Intel's PEBS, translated by the kernel per microarchitecture) and AMD's IBS registers.
//
// The record knows local L3, remote cache, DRAM and other. The core's own L2 is "other", as with all units;
// so are persistent and CXL-attached memory, I/O and uncached accesses. A line that was already on its way
// (in a fill buffer) came from nobody knows where.
#pragma once

#include <cstdint>

#include "feedback/lwp/format/record.h"

namespace hindsight::lwp {

struct LoadOrigin {
  bool missed_l1 = true;  // false: the first-level cache delivered, so there is no event 4
  MissSource source = MissSource::kNone;
  friend bool operator==(const LoadOrigin&, const LoadOrigin&) = default;
};

// PERF_SAMPLE_DATA_SRC of a load. The newer fields (level number, remote) win over the older level mask where
// both are filled in.
LoadOrigin decode_perf_data_source(uint64_t data_source);

// Is it a load at all? Stores and prefetches are sampled by some events, too.
bool perf_data_source_is_load(uint64_t data_source);

// DataSrc of IBS_OP_DATA2. `extended`: CPUID Fn8000_001B EAX[11], five bits with finer meanings (Zen 4 and
// later). `zen`: family 17h and later, where value 2 is the core complex's own cache; before, it was another
// core's.
MissSource decode_ibs_data_source(uint64_t op_data2, bool extended, bool zen);

}  // namespace hindsight::lwp
