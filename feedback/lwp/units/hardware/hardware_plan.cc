#include "feedback/lwp/units/hardware/hardware_plan.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "feedback/lwp/units/hardware/ibs.h"
#include "feedback/pmu/perf_event.h"

namespace hindsight::lwp {
namespace {

// What every sample of a hardware event begins with; more is added by kind.
constexpr uint64_t kBaseSample =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

// BRS holds 16 branches and its kernel driver wants a period above that. This one costs 250 interrupts a
// second at 250 million taken branches a second.
constexpr uint64_t kBrsPeriod = 1'000'003;

// AMD core events.
constexpr uint64_t kAmdTakenBranches = 0xC4;
constexpr uint64_t kInstructionsRetired = 0xC0;
constexpr uint64_t kIntelBranches = 0xC4;

// IBS_OP_CTL in attr.config, and the kernel's user-mode filter in config2.
constexpr uint64_t kIbsCountOps = 1u << 19;
constexpr uint64_t kIbsSoftwareFilter = 1;

perf_event_attr sampling_attr(uint32_t type, uint64_t config, uint32_t hz) {
  perf_event_attr attr = pmu::make_perf_attr(type, config);
  attr.freq = 1;
  attr.sample_freq = hz;
  attr.sample_type = kBaseSample;
  attr.disabled = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;  // the time base of the clock samples
  return attr;
}

// How a microarchitecture's load-latency event is encoded, where sysfs does not say.
struct LoadEvent {
  uint64_t config = 0;     // 0: there is none
  bool auxiliary = false;  // needs the auxiliary event in its group
};
constexpr uint64_t kLoadsNehalem = 0x100B;
constexpr uint64_t kLoadsSandyBridge = 0x01CD;
constexpr uint64_t kLoadsGracemont = 0x05D0;
constexpr uint64_t kLoadsAuxiliary = 0x8203;

LoadEvent load_event_of(std::string_view microarchitecture) {
  const auto any_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, microarchitecture) != names.end();
  };
  if (any_of({"Nehalem", "Westmere"})) return {kLoadsNehalem, false};
  if (any_of({"Gracemont", "Crestmont", "Skymont", "Darkmont", "Sierra Forest", "Grand Ridge",
              "Clearwater Forest"})) {
    return {kLoadsGracemont, false};
  }
  if (any_of(
          {"Golden Cove", "Raptor Cove", "Sapphire Rapids", "Emerald Rapids", "Alder Lake", "Raptor Lake"})) {
    return {kLoadsSandyBridge, true};
  }
  if (any_of({"Sandy Bridge",  "Ivy Bridge",   "Haswell",   "Broadwell",    "Skylake",
              "Cascade Lake",  "Cooper Lake",  "Kaby Lake", "Whiskey Lake", "Coffee Lake",
              "Comet Lake",    "Cannon Lake",  "Ice Lake",  "Tiger Lake",   "Rocket Lake",
              "Sunny Cove",    "Redwood Cove", "Lion Cove", "Cougar Cove",  "Granite Rapids",
              "Diamond Rapids"})) {
    return {kLoadsSandyBridge, false};
  }
  return {};
}

// One core PMU of an Intel processor.
struct CorePmu {
  std::string name;
  uint32_t type;
  const pmu::EventSource* source;  // null: sysfs does not list it
  std::string microarchitecture;
};

std::vector<CorePmu> core_pmus(const HardwareMachine& m) {
  std::vector<CorePmu> out;
  for (const pmu::EventSource& s : m.sources) {
    if (s.kind == pmu::SourceKind::kCore) out.push_back({s.name, PERF_TYPE_RAW, &s, m.microarchitecture});
    if (s.kind != pmu::SourceKind::kHybridCore) continue;
    const auto type = s.name == "cpu_core" ? pmu::CoreType::kPerformance : pmu::CoreType::kEfficiency;
    out.push_back({s.name, s.type, &s, std::string(core_microarchitecture(m.microarchitecture, type))});
  }
  // The plain type still gives the kernel the chance to say why not.
  if (out.empty()) out.push_back({"cpu", PERF_TYPE_RAW, nullptr, m.microarchitecture});
  return out;
}

std::optional<perf_event_attr> load_attr(const CorePmu& core, uint32_t hz, bool& auxiliary) {
  perf_event_attr attr = sampling_attr(core.type, 0, hz);
  attr.sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC;
  attr.precise_ip = 2;  // 3 would ask for a counter that load latency cannot use on newer cores
  const LoadEvent known = load_event_of(core.microarchitecture);
  attr.config = known.config;
  auxiliary = known.auxiliary;
  if (core.source && core.source->has_event("mem-loads")) {
    if (const auto listed = encode_terms(*core.source, core.source->events.at("mem-loads"))) {
      attr.config = listed->config;
      auxiliary = core.source->has_event("mem-loads-aux");
    }
  }
  if (attr.config == 0) return std::nullopt;
  attr.config1 = kLoadLatencyThreshold;  // "ldlat", config1:0-15 wherever it exists
  return attr;
}

void plan_intel_core(const CorePmu& core, uint32_t hz, const BranchKinds& kinds, HardwarePlan& plan) {
  const std::string suffix = core.name == "cpu" ? "" : " on " + core.name;
  bool auxiliary = false;
  if (const auto attr = load_attr(core, hz, auxiliary)) {
    HardwareRequest loads{
        .kind = HardwareEventKind::kLoads, .name = "PEBS loads" + suffix, .events = {EventId::kDcacheMiss}};
    // WEIGHT_STRUCT came with Linux 5.12; before, one weight.
    for (const uint64_t weight : {uint64_t{PERF_SAMPLE_WEIGHT_STRUCT}, uint64_t{PERF_SAMPLE_WEIGHT}}) {
      HardwareAttempt attempt{.attr = *attr};
      attempt.attr.sample_type |= weight;
      attempt.weight_struct = weight == PERF_SAMPLE_WEIGHT_STRUCT;
      if (auxiliary) {
        attempt.leader = pmu::make_perf_attr(core.type, kLoadsAuxiliary);
        attempt.leader->disabled = 1;
        attempt.leader->use_clockid = 1;
        attempt.leader->clockid = CLOCK_MONOTONIC;
        attempt.attr.disabled = 0;  // follows its leader
      }
      attempt.how = fmt::format(
          "PEBS samples of loads slower than {} cycles: instruction, address, latency and "
          "source as the processor saw them",
          kLoadLatencyThreshold);
      loads.attempts.push_back(std::move(attempt));
    }
    plan.requests.push_back(std::move(loads));
  } else {
    plan.gaps.push_back(
        {EventId::kDcacheMiss,
         fmt::format("PEBS loads{}: {} has no load-latency event that is known here", suffix,
                     core.microarchitecture.empty() ? "this processor" : core.microarchitecture)});
  }

  HardwareRequest branches{.kind = HardwareEventKind::kBranchStack,
                           .name = "LBR branches" + suffix,
                           .events = {EventId::kBranches}};
  HardwareAttempt stack{.attr = sampling_attr(core.type, kIntelBranches, hz)};
  stack.attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
  stack.attr.branch_sample_type = branch_sample_type(kinds);
  stack.how =
      "last-branch records: source, target and prediction of taken branches; those not taken are not seen";
  branches.attempts.push_back(std::move(stack));
  plan.requests.push_back(std::move(branches));

  HardwareRequest instructions{.kind = HardwareEventKind::kInstructions,
                               .name = "PEBS instructions" + suffix,
                               .events = {EventId::kInstructions}};
  HardwareAttempt precise{.attr = sampling_attr(core.type, kInstructionsRetired, hz)};
  precise.attr.precise_ip = 2;
  precise.how = "PEBS samples of retired instructions: the instruction itself";
  instructions.attempts.push_back(std::move(precise));
  plan.requests.push_back(std::move(instructions));
}

bool has_brs_only(const HardwareMachine& m) {
  return m.amd.branch_stack == 0 &&
         (m.amd.branch_sampling || m.microarchitecture == "Zen 3" || m.microarchitecture == "Zen 3+");
}
bool has_lbr_v2(const HardwareMachine& m) {
  return m.amd.branch_stack > 0 || (m.signature.family == 0x19 && m.microarchitecture.starts_with("Zen 4")) ||
         m.signature.family >= 0x1A;
}

HardwareRequest ibs_request(const pmu::EventSource& source, uint32_t hz) {
  HardwareRequest ibs{.kind = HardwareEventKind::kIbs,
                      .name = "IBS operations",
                      .events = {EventId::kInstructions, EventId::kBranches, EventId::kDcacheMiss}};
  perf_event_attr attr = sampling_attr(source.type, 0, hz);
  attr.sample_type |= PERF_SAMPLE_RAW;
  if (source.has_format("cnt_ctl")) attr.config |= kIbsCountOps;
  const std::string how =
      source.has_format("cnt_ctl")
          ? "IBS samples of dispatched operations: exact, weighted by operations; one record a sample"
          : "IBS samples by cycles: exact, weighted by time; one record a sample";
  if (source.has_format("swfilt")) {
    HardwareAttempt user_only{.attr = attr};
    user_only.attr.config2 = kIbsSoftwareFilter;
    user_only.how = how;
    ibs.attempts.push_back(std::move(user_only));
  }
  // Without the filter IBS cannot leave the kernel out, which needs the right to profile it.
  HardwareAttempt everything{.attr = attr};
  everything.attr.exclude_kernel = everything.attr.exclude_hv = 0;
  everything.how = how;
  ibs.attempts.push_back(std::move(everything));
  return ibs;
}

void plan_amd(const HardwareMachine& m, uint32_t hz, const BranchKinds& kinds, HardwarePlan& plan) {
  if (const pmu::EventSource* source = pmu::find_source(m.sources, "ibs_op")) {
    plan.requests.push_back(ibs_request(*source, hz));
  } else {
    const std::string reason =
        m.amd.ibs ? "IBS: the processor has it, the kernel offers no ibs_op source"
        : m.signature.family < 0x10
            ? "IBS: family " + fmt::format("{:x}h", m.signature.family) + " is older than it"
            : "IBS: not there (CPUID Fn8000_0001 ECX[10] is 0)";
    for (const EventId event : {EventId::kInstructions, EventId::kBranches, EventId::kDcacheMiss}) {
      plan.gaps.push_back({event, reason});
    }
  }
  if (has_lbr_v2(m) || has_brs_only(m)) {
    const bool brs = !has_lbr_v2(m);
    HardwareRequest branches{.kind = HardwareEventKind::kBranchStack,
                             .name = brs ? "BRS branches" : "LBRv2 branches",
                             .events = {EventId::kBranches},
                             .fixed_period = brs};
    HardwareAttempt stack{.attr = sampling_attr(PERF_TYPE_RAW, kAmdTakenBranches, hz)};
    stack.attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
    if (brs) {
      stack.attr.freq = 0;
      stack.attr.sample_period = kBrsPeriod;
      stack.attr.branch_sample_type = branch_sample_type({});
      stack.how = "branch sampling: source and target of 16 taken branches in a row, without the prediction";
    } else {
      stack.attr.branch_sample_type = branch_sample_type(kinds);
      stack.how =
          "last-branch records: source, target and prediction of taken branches; those not taken are not "
          "seen";
    }
    branches.attempts.push_back(std::move(stack));
    plan.requests.push_back(std::move(branches));
  } else {
    plan.gaps.push_back({EventId::kBranches, "branch stack: this processor has none (Zen 3 and later do)"});
  }
}

}  // namespace

uint64_t branch_sample_type(const BranchKinds& k) {
  const uint64_t user = PERF_SAMPLE_BRANCH_USER;
  const bool nothing = !k.conditional && !k.calls && !k.returns && !k.indirect_jumps && !k.others;
  if (k.others || nothing) return user | PERF_SAMPLE_BRANCH_ANY;
  return user | (k.conditional ? PERF_SAMPLE_BRANCH_COND : 0) | (k.calls ? PERF_SAMPLE_BRANCH_ANY_CALL : 0) |
         (k.returns ? PERF_SAMPLE_BRANCH_ANY_RETURN : 0) |
         (k.indirect_jumps ? PERF_SAMPLE_BRANCH_IND_JUMP : 0);
}

HardwareMachine detect_hardware_machine() {
  HardwareMachine m;
  m.vendor = pmu::decode_vendor(pmu::cpuid(0));
  m.signature = pmu::decode_signature(pmu::cpuid(1).eax);
  m.microarchitecture = pmu::microarchitecture(m.vendor, m.signature);
  if (m.vendor == pmu::Vendor::kAmd || m.vendor == pmu::Vendor::kHygon) {
    m.amd = pmu::decode_amd_pmu(pmu::cpuid(0x80000001).ecx, pmu::cpuid(0x80000008).ebx,
                                pmu::cpuid(0x8000001B).eax, pmu::cpuid(0x80000022));
  }
  m.sources = pmu::read_event_sources(pmu::SourceDetail::kSamplers);
  return m;
}

HardwarePlan plan_hardware(const HardwareMachine& m, uint32_t hz, const BranchKinds& kinds) {
  HardwarePlan plan;
  switch (m.vendor) {
    case pmu::Vendor::kIntel:
      for (const CorePmu& core : core_pmus(m)) plan_intel_core(core, hz, kinds, plan);
      break;
    case pmu::Vendor::kAmd:
    case pmu::Vendor::kHygon:
      plan_amd(m, hz, kinds, plan);
      break;
    case pmu::Vendor::kZhaoxin:
    case pmu::Vendor::kUnknown:
      for (const EventId event : {EventId::kInstructions, EventId::kBranches, EventId::kDcacheMiss}) {
        plan.gaps.push_back({event, "no way to sample it precisely is known for this vendor's processors"});
      }
      break;
  }
  return plan;
}

}  // namespace hindsight::lwp
