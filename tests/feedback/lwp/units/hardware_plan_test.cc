// What is asked of the kernel on which processor.
#include "feedback/lwp/units/hardware/hardware_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "feedback/lwp/units/perf_sample.h"

namespace hindsight::lwp {
namespace {

HardwareMachine machine(pmu::Vendor vendor, uint32_t family, uint32_t model,
                        std::vector<pmu::EventSource> sources = {}, uint32_t stepping = 0) {
  HardwareMachine m;
  m.vendor = vendor;
  m.signature = {family, model, stepping};
  m.microarchitecture = pmu::microarchitecture(vendor, m.signature);
  m.sources = std::move(sources);
  return m;
}

pmu::EventSource source(std::string name, uint32_t type, pmu::SourceKind kind,
                        std::map<std::string, std::string> events = {}) {
  return {.name = std::move(name),
          .kind = kind,
          .type = type,
          .cpus = "",
          .formats = {{"event", "config:0-7"}, {"umask", "config:8-15"}, {"ldlat", "config1:0-15"}},
          .events = std::move(events)};
}

const HardwareRequest* find(const HardwarePlan& plan, HardwareEventKind kind, std::string_view name = {}) {
  const auto it = std::ranges::find_if(plan.requests, [&](const HardwareRequest& r) {
    return r.kind == kind && (name.empty() || r.name == name);
  });
  return it == plan.requests.end() ? nullptr : &*it;
}

bool has_gap(const HardwarePlan& plan, EventId event) {
  return std::ranges::any_of(plan.gaps,
                             [&](const HardwareGap& g) { return g.event == event && !g.reason.empty(); });
}

struct IntelCase {
  const char* name;
  uint32_t family, model;
  uint64_t loads;  // 0: none
  bool auxiliary;
};

TEST(HardwarePlan, KnowsTheLoadLatencyEventOfEveryIntelGeneration) {
  const IntelCase cases[] = {
      {"Prescott", 0x0F, 0x04, 0, false},
      {"Merom", 6, 0x0F, 0, false},
      {"Nehalem", 6, 0x1A, 0x100B, false},
      {"Westmere", 6, 0x2C, 0x100B, false},
      {"Sandy Bridge", 6, 0x2A, 0x01CD, false},
      {"Ivy Bridge", 6, 0x3E, 0x01CD, false},
      {"Haswell", 6, 0x3F, 0x01CD, false},
      {"Broadwell", 6, 0x4F, 0x01CD, false},
      {"Skylake", 6, 0x55, 0x01CD, false},
      {"Ice Lake", 6, 0x6A, 0x01CD, false},
      {"Sapphire Rapids", 6, 0x8F, 0x01CD, true},
      {"Emerald Rapids", 6, 0xCF, 0x01CD, true},
      {"Granite Rapids", 6, 0xAD, 0x01CD, false},
      {"Sierra Forest", 6, 0xAF, 0x05D0, false},
      {"Gracemont", 6, 0xBE, 0x05D0, false},
      {"Silvermont", 6, 0x37, 0, false},
      {"Tremont", 6, 0x86, 0, false},
      {"Knights Landing", 6, 0x57, 0, false},
  };
  for (const IntelCase& c : cases) {
    const HardwarePlan plan = plan_hardware(machine(pmu::Vendor::kIntel, c.family, c.model), 250);
    const HardwareRequest* loads = find(plan, HardwareEventKind::kLoads);
    if (c.loads == 0) {
      EXPECT_EQ(loads, nullptr) << c.name;
      EXPECT_TRUE(has_gap(plan, EventId::kDcacheMiss)) << c.name;
      continue;
    }
    ASSERT_NE(loads, nullptr) << c.name;
    ASSERT_EQ(loads->attempts.size(), 2u);
    for (const HardwareAttempt& a : loads->attempts) {
      EXPECT_EQ(a.attr.type, uint32_t{PERF_TYPE_RAW}) << c.name;
      EXPECT_EQ(a.attr.config, c.loads) << c.name;
      EXPECT_EQ(a.attr.config1, kLoadLatencyThreshold) << c.name;
      EXPECT_EQ(a.attr.precise_ip, 2u) << c.name;
      EXPECT_EQ(a.leader.has_value(), c.auxiliary) << c.name;
      if (a.leader) {
        EXPECT_EQ(a.leader->config, 0x8203u);
        EXPECT_EQ(a.leader->sample_period, 0u);  // only counts
      }
    }
    EXPECT_TRUE(loads->attempts[0].attr.sample_type & PERF_SAMPLE_WEIGHT_STRUCT);
    EXPECT_TRUE(loads->attempts[0].weight_struct);
    EXPECT_TRUE(loads->attempts[1].attr.sample_type & PERF_SAMPLE_WEIGHT);
    EXPECT_FALSE(loads->attempts[1].weight_struct);
  }
}

TEST(HardwarePlan, AsksHybridProcessorsForEachCoreType) {
  const HardwarePlan plan = plan_hardware(machine(pmu::Vendor::kIntel, 6, 0x97,
                                                  {source("cpu_core", 4, pmu::SourceKind::kHybridCore,
                                                          {{"mem-loads", "event=0xcd,umask=0x1,ldlat=3"},
                                                           {"mem-loads-aux", "event=0x03,umask=0x82"}}),
                                                   source("cpu_atom", 10, pmu::SourceKind::kHybridCore,
                                                          {{"mem-loads", "event=0xd0,umask=0x5,ldlat=3"}})}),
                                          250);
  const HardwareRequest* big = find(plan, HardwareEventKind::kLoads, "PEBS loads on cpu_core");
  const HardwareRequest* small = find(plan, HardwareEventKind::kLoads, "PEBS loads on cpu_atom");
  ASSERT_TRUE(big && small);
  EXPECT_EQ(big->attempts[0].attr.type, 4u);
  EXPECT_EQ(big->attempts[0].attr.config, 0x01CDu);
  ASSERT_TRUE(big->attempts[0].leader);
  EXPECT_EQ(big->attempts[0].leader->type, 4u);
  EXPECT_EQ(small->attempts[0].attr.type, 10u);
  EXPECT_EQ(small->attempts[0].attr.config, 0x05D0u);
  EXPECT_FALSE(small->attempts[0].leader);
  for (const char* name : {"LBR branches on cpu_core", "LBR branches on cpu_atom"}) {
    EXPECT_NE(find(plan, HardwareEventKind::kBranchStack, name), nullptr) << name;
  }
}

TEST(HardwarePlan, TrustsTheKernelsListMoreThanItsTable) {
  // Meteor Lake's kernel has no auxiliary event; a processor that nobody here knows has a new load event.
  const auto plan = plan_hardware(
      machine(pmu::Vendor::kIntel, 6, 0x8F,
              {source("cpu", 4, pmu::SourceKind::kCore, {{"mem-loads", "event=0xab,umask=0x7,ldlat=3"}})}),
      250);
  const HardwareRequest* loads = find(plan, HardwareEventKind::kLoads);
  ASSERT_TRUE(loads);
  EXPECT_EQ(loads->attempts[0].attr.config, 0x07ABu);
  EXPECT_FALSE(loads->attempts[0].leader);
}

TEST(HardwarePlan, AsksIntelForLastBranchesAndPreciseInstructionsNeverLateOnes) {
  const HardwarePlan plan = plan_hardware(machine(pmu::Vendor::kIntel, 6, 0x5E), 250);
  const HardwareRequest* branches = find(plan, HardwareEventKind::kBranchStack);
  ASSERT_TRUE(branches);
  const perf_event_attr& stack = branches->attempts[0].attr;
  EXPECT_EQ(stack.config, 0x00C4u);
  EXPECT_TRUE(stack.sample_type & PERF_SAMPLE_BRANCH_STACK);
  EXPECT_EQ(stack.branch_sample_type, uint64_t{PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY});
  const HardwareRequest* instructions = find(plan, HardwareEventKind::kInstructions);
  ASSERT_TRUE(instructions);
  ASSERT_EQ(instructions->attempts.size(), 1u);
  EXPECT_EQ(instructions->attempts[0].attr.precise_ip, 2u);
}

pmu::EventSource ibs_op(std::map<std::string, std::string> formats) {
  pmu::EventSource s = source("ibs_op", 11, pmu::SourceKind::kIbs);
  s.formats = std::move(formats);
  return s;
}

TEST(HardwarePlan, UsesIbsForThreeEventsAtOnceOnAmd) {
  const HardwarePlan plan = plan_hardware(
      machine(pmu::Vendor::kAmd, 0x19, 0x11, {ibs_op({{"cnt_ctl", "config:19"}, {"swfilt", "config2:0"}})}),
      250);
  const HardwareRequest* ibs = find(plan, HardwareEventKind::kIbs);
  ASSERT_TRUE(ibs);
  EXPECT_EQ(ibs->events,
            (std::vector<EventId>{EventId::kInstructions, EventId::kBranches, EventId::kDcacheMiss}));
  ASSERT_EQ(ibs->attempts.size(), 2u);
  EXPECT_EQ(ibs->attempts[0].attr.type, 11u);
  EXPECT_EQ(ibs->attempts[0].attr.config, 1u << 19);
  EXPECT_EQ(ibs->attempts[0].attr.config2, 1u);
  EXPECT_TRUE(ibs->attempts[0].attr.exclude_kernel);
  EXPECT_TRUE(ibs->attempts[0].attr.sample_type & PERF_SAMPLE_RAW);
  // Kernels without the filter refuse to leave the kernel out.
  EXPECT_EQ(ibs->attempts[1].attr.config2, 0u);
  EXPECT_FALSE(ibs->attempts[1].attr.exclude_kernel);
  EXPECT_FALSE(ibs->attempts[1].attr.exclude_hv);
}

TEST(HardwarePlan, AsksEachAmdFamilyForTheBranchStackThatItHas) {
  const auto stack_of = [](uint32_t family, uint32_t model,
                           pmu::AmdPmu amd = {}) -> std::optional<HardwareRequest> {
    HardwareMachine m = machine(pmu::Vendor::kAmd, family, model);
    m.amd = amd;
    const HardwarePlan plan = plan_hardware(m, 250);
    if (const HardwareRequest* r = find(plan, HardwareEventKind::kBranchStack)) return *r;
    EXPECT_TRUE(has_gap(plan, EventId::kBranches));
    return std::nullopt;
  };
  EXPECT_FALSE(stack_of(0x10, 0x04));  // K10
  EXPECT_FALSE(stack_of(0x15, 0x02));  // Piledriver
  EXPECT_FALSE(stack_of(0x17, 0x31));  // Zen 2
  const auto zen3 = stack_of(0x19, 0x21);
  ASSERT_TRUE(zen3);
  EXPECT_EQ(zen3->name, "BRS branches");
  EXPECT_TRUE(zen3->fixed_period);
  EXPECT_EQ(zen3->attempts[0].attr.config, 0xC4u);  // its driver takes no other event
  EXPECT_FALSE(zen3->attempts[0].attr.freq);        // nor a frequency
  EXPECT_GT(zen3->attempts[0].attr.sample_period, 16u);
  EXPECT_EQ(zen3->attempts[0].attr.branch_sample_type,
            uint64_t{PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY});
  for (const auto& zen : {stack_of(0x19, 0x11), stack_of(0x19, 0xA0), stack_of(0x1A, 0x02),
                          stack_of(0x19, 0x44, {.branch_stack = 16})}) {
    ASSERT_TRUE(zen);
    EXPECT_EQ(zen->name, "LBRv2 branches");
    EXPECT_TRUE(zen->attempts[0].attr.freq);
  }
}

TEST(HardwarePlan, FiltersBranchesByKindWhereTheProcessorCan) {
  EXPECT_EQ(branch_sample_type({}), uint64_t{PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY});
  EXPECT_EQ(branch_sample_type({false, false, false, false, false}),
            uint64_t{PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY});
  EXPECT_EQ(branch_sample_type({.calls = false, .returns = false, .indirect_jumps = false, .others = false}),
            uint64_t{PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_COND});
  EXPECT_EQ(branch_sample_type({.conditional = false, .others = false}),
            uint64_t{PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_ANY_RETURN |
                     PERF_SAMPLE_BRANCH_IND_JUMP});
  const BranchKinds conditional{.calls = false, .returns = false, .indirect_jumps = false, .others = false};
  const auto stack = [&](const HardwareMachine& m) {
    const HardwarePlan plan = plan_hardware(m, 250, conditional);
    return find(plan, HardwareEventKind::kBranchStack)->attempts[0].attr.branch_sample_type;
  };
  EXPECT_TRUE(stack(machine(pmu::Vendor::kIntel, 6, 0x5E)) & PERF_SAMPLE_BRANCH_COND);
  EXPECT_TRUE(stack(machine(pmu::Vendor::kAmd, 0x1A, 0x02)) & PERF_SAMPLE_BRANCH_COND);
  EXPECT_TRUE(stack(machine(pmu::Vendor::kAmd, 0x19, 0x21)) & PERF_SAMPLE_BRANCH_ANY);  // BRS cannot
}

TEST(HardwarePlan, SaysWhyAProcessorWithoutIbsHasNoSuchEvents) {
  for (const auto& [family, model] : {std::pair{0x0Fu, 0x41u}, {0x19u, 0x11u}}) {
    const HardwarePlan plan = plan_hardware(machine(pmu::Vendor::kAmd, family, model), 250);
    EXPECT_TRUE(has_gap(plan, EventId::kDcacheMiss));
    EXPECT_EQ(find(plan, HardwareEventKind::kInstructions), nullptr);  // they would come late
  }
}

TEST(HardwarePlan, AsksVendorsThatItDoesNotKnowForNothing) {
  for (const auto vendor : {pmu::Vendor::kZhaoxin, pmu::Vendor::kUnknown}) {
    const HardwarePlan plan = plan_hardware(machine(vendor, 7, 0x3B), 250);
    EXPECT_TRUE(plan.requests.empty());
    EXPECT_EQ(plan.gaps.size(), 3u);
  }
}

TEST(HardwarePlan, AsksOnlyForFieldsThatTheParserKnowsAndAlwaysForTheIdentifier) {
  for (const HardwareMachine& m :
       {machine(pmu::Vendor::kIntel, 6, 0x1A), machine(pmu::Vendor::kIntel, 6, 0x8F),
        machine(pmu::Vendor::kAmd, 0x19, 0x21, {ibs_op({})}),
        machine(pmu::Vendor::kAmd, 0x1A, 0x02, {ibs_op({})}),
        machine(pmu::Vendor::kHygon, 0x18, 0x01, {ibs_op({})})}) {
    const HardwarePlan plan = plan_hardware(m, 333);
    EXPECT_FALSE(plan.requests.empty());
    for (const HardwareRequest& r : plan.requests) {
      for (const HardwareAttempt& a : r.attempts) {
        EXPECT_EQ(a.attr.sample_type & ~kKnownSampleFields, 0u) << r.name;
        EXPECT_TRUE(a.attr.sample_type & PERF_SAMPLE_IDENTIFIER) << r.name;
        EXPECT_FALSE(a.how.empty()) << r.name;
        EXPECT_EQ(a.attr.size, sizeof(perf_event_attr));
        if (a.attr.freq) {
          EXPECT_EQ(a.attr.sample_freq, 333u) << r.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hindsight::lwp
