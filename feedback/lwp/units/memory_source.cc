#include "feedback/lwp/units/memory_source.h"

#include <linux/perf_event.h>

namespace hindsight::lwp {
namespace {

// The level number together with the remote flag, where the kernel filled it in.
LoadOrigin from_level_number(unsigned number, bool remote) {
  switch (number) {
    case PERF_MEM_LVLNUM_L1:
      return {.missed_l1 = false};
    case PERF_MEM_LVLNUM_LFB:
      return {};
    case PERF_MEM_LVLNUM_L3:
      return {.source = remote ? MissSource::kRemote : MissSource::kLocalL3};
    case PERF_MEM_LVLNUM_ANY_CACHE:
      return {.source = remote ? MissSource::kRemote : MissSource::kNone};
    case PERF_MEM_LVLNUM_RAM:
      return {.source = MissSource::kDram};
    default:  // L2, L4, CXL, I/O, persistent memory, and numbers given out after this was written
      return {.source = MissSource::kOther};
  }
}

LoadOrigin from_level_mask(unsigned mask) {
  if (mask & PERF_MEM_LVL_MISS) {
    // A miss names the level that missed. Only a missed L3 says where the data was not, never where it was.
    return {};
  }
  if (mask & (PERF_MEM_LVL_IO | PERF_MEM_LVL_UNC)) return {.source = MissSource::kOther};
  if (mask & (PERF_MEM_LVL_LOC_RAM | PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2)) {
    return {.source = MissSource::kDram};
  }
  if (mask & (PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2)) return {.source = MissSource::kRemote};
  if (mask & PERF_MEM_LVL_L3) return {.source = MissSource::kLocalL3};
  if (mask & PERF_MEM_LVL_L2) return {.source = MissSource::kOther};
  if (mask & PERF_MEM_LVL_LFB) return {};
  if (mask & PERF_MEM_LVL_L1) return {.missed_l1 = false};
  return {};
}

}  // namespace

LoadOrigin decode_perf_data_source(uint64_t data_source) {
  perf_mem_data_src s;
  s.val = data_source;
  // Kernels before the level numbers (4.14) leave the field 0; newer ones say 15 for "not available".
  const bool has_number = s.mem_lvl_num != 0 && s.mem_lvl_num != PERF_MEM_LVLNUM_NA;
  // Level number with a MISS in the mask (an unknown source after a missed L3) tells as little as the mask.
  if (has_number && !(s.mem_lvl & PERF_MEM_LVL_MISS)) return from_level_number(s.mem_lvl_num, s.mem_remote);
  return from_level_mask(s.mem_lvl);
}

bool perf_data_source_is_load(uint64_t data_source) {
  perf_mem_data_src s;
  s.val = data_source;
  return s.mem_op & PERF_MEM_OP_LOAD;
}

MissSource decode_ibs_data_source(uint64_t op_data2, bool extended, bool zen) {
  const unsigned low = op_data2 & 7;
  if (extended) {
    switch (static_cast<unsigned>((op_data2 >> 6) & 3) << 3 | low) {
      case 1:  // L3 or another core's cache in the same core complex
        return MissSource::kLocalL3;
      case 2:  // a cache of another core complex of the same node
      case 5:  // ... of another node
        return MissSource::kRemote;
      case 3:
        return MissSource::kDram;
      case 6:   // long-latency DIMM
      case 7:   // MMIO, configuration, PCI, APIC
      case 8:   // extension memory (CXL)
      case 12:  // coherent memory of another kind of processor
        return MissSource::kOther;
      default:  // no valid status, or reserved
        return MissSource::kNone;
    }
  }
  switch (low) {
    case 1:
      return MissSource::kLocalL3;
    case 2:
      return zen ? MissSource::kLocalL3 : MissSource::kRemote;
    case 3:
      return MissSource::kDram;
    case 4:
      return zen ? MissSource::kRemote : MissSource::kNone;
    case 7:
      return MissSource::kOther;
    default:
      return MissSource::kNone;
  }
}

}  // namespace hindsight::lwp
