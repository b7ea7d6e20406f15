// Says which events the hardware unit asks the kernel for on which processor. It is a pure function, so that
// every processor family can be tested on any machine. It asks for much and expects refusals; each request
// lists its attempts, the newest form first, and the kernel's answer decides. Only what names the very
// instruction is asked for: a late interrupt would be worse than what baseline code counts.
//
// Intel. Loads: the load-latency event with PEBS (address, latency, data source). It is 0BH/10H on Nehalem
// and Westmere, and CDH/01H from Sandy Bridge on. On Golden Cove and Raptor Cove it goes together with the
// auxiliary event 03H/82H in front of it in one group. On Gracemont and its successors it is D0H/05H. The
// kernel's own list in sysfs wins over this table. Hybrid processors need each event once a core type.
// Branches: the LBR through PERF_SAMPLE_BRANCH_STACK. Instructions: C0H/00H with PEBS.
//
// AMD. Loads, branches and instructions: the ibs_op unit. Taken branches: LBRv2 (Zen 4 and later) or BRS (Zen
// 3, which samples taken branches only, unfiltered, at a fixed period).
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedback/lwp/format/branch_kinds.h"
#include "feedback/lwp/format/record.h"
#include "feedback/lwp/units/hardware/hardware_records.h"
#include "feedback/lwp/units/unit.h"
#include "feedback/pmu/architectural.h"
#include "feedback/pmu/event_sources.h"
#include "feedback/pmu/processor.h"

namespace hindsight::lwp {

struct HardwareMachine {
  pmu::Vendor vendor = pmu::Vendor::kUnknown;
  pmu::ProcessorSignature signature;
  std::string microarchitecture;
  pmu::AmdPmu amd;  // AMD and Hygon only
  std::vector<pmu::EventSource> sources;
};

// The machine that this runs on.
HardwareMachine detect_hardware_machine();

// Loads faster than this many cycles are not sampled on Intel: above every first- and second-level hit.
inline constexpr uint32_t kLoadLatencyThreshold = 30;

// branch_sample_type for these kinds in user mode. Nothing asked for: all.
uint64_t branch_sample_type(const BranchKinds& kinds);

struct HardwareAttempt {
  perf_event_attr attr{};
  std::optional<perf_event_attr> leader{};  // opened first, as the head of the group; it only counts
  bool weight_struct = false;
  std::string how{};  // what the accuracy rests on
};

struct HardwareRequest {
  HardwareEventKind kind = HardwareEventKind::kLoads;
  std::string name{};             // "PEBS loads on cpu_core"
  std::vector<EventId> events{};  // what its samples become
  bool fixed_period = false;      // set_frequency only switches it on and off
  std::vector<HardwareAttempt> attempts{};
};

struct HardwareGap {
  EventId event;
  std::string reason;  // why nothing is asked for at all
};

struct HardwarePlan {
  std::vector<HardwareRequest> requests;
  std::vector<HardwareGap> gaps;
};

// `frequency_hz` above 0: samples per second that the kernel aims for, for each event.
HardwarePlan plan_hardware(const HardwareMachine& machine, uint32_t frequency_hz,
                           const BranchKinds& kinds = {});

}  // namespace hindsight::lwp
