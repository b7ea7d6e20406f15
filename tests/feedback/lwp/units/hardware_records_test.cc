// Every processor family's samples, as its kernel driver writes them, become the LWP records that they
// should.
#include "feedback/lwp/units/hardware/hardware_records.h"

#include <gtest/gtest.h>

#include <random>

#include "feedback/lwp/units/hardware/hardware_plan.h"
#include "feedback/lwp/units/hardware/ibs.h"
#include "feedback/lwp/units/memory_source.h"
#include "feedback/lwp/units/perf_sample.h"
#include "tests/feedback/lwp/units/kernel_ring.h"

namespace hindsight::lwp {
namespace {

constexpr uint64_t kBase =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
constexpr uint64_t kLoadType = kBase | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_STRUCT;
constexpr uint64_t kOldLoadType = kBase | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT;
constexpr uint64_t kIbsType = kBase | PERF_SAMPLE_RAW;
constexpr uint64_t kStackType = kBase | PERF_SAMPLE_BRANCH_STACK;

constexpr uint64_t kLoads = 101, kOldLoads = 102, kIbs = 103, kStack = 104, kInstructions = 105;

// The words that Linux gives for what PEBS reports (perf_mem_data_src), by the macros of its ABI.
#define HS_LEVEL(name) (PERF_MEM_S(LVL, name) | PERF_MEM_S(LVL, HIT))
constexpr uint64_t kOpLoad = PERF_MEM_S(OP, LOAD);

struct Machine {
  GuardedRing ring{8192, 3 * 8192 - 40};
  HardwareRecorder recorder;
  std::vector<EventRecord> records, taken;
  std::vector<std::byte> scratch;

  explicit Machine(pmu::ProcessorSignature processor = {0x06, 0x5E, 3}, CodeRange code = {})
      : recorder(processor, code) {
    recorder.add({kLoads, HardwareEventKind::kLoads, kLoadType, true, true});
    recorder.add({kOldLoads, HardwareEventKind::kLoads, kOldLoadType, false, true});
    recorder.add({kIbs, HardwareEventKind::kIbs, kIbsType, false, false});
    recorder.add({kStack, HardwareEventKind::kBranchStack, kStackType, false, false});
    recorder.add({kInstructions, HardwareEventKind::kInstructions, kBase, false, true});
  }
  StreamCounts walk() {
    recorder.write_to(records, taken);
    const StreamCounts counts = walk_perf_stream(ring.data(), ring.tail, ring.head, scratch, recorder);
    EXPECT_EQ(counts.record_bytes + counts.malformed_bytes, ring.head - ring.tail);
    ring.tail = ring.head;
    return counts;
  }
  // What one PEBS load becomes.
  EventRecord load(uint64_t data_source, uint64_t weight = 300) {
    ring.sample(kLoadType, {.identifier = kLoads,
                            .ip = 0x401000,
                            .time = 5,
                            .address = 0x7f00,
                            .cpu = 3,
                            .weight = weight,
                            .data_source = data_source});
    walk();
    if (records.empty()) return {};
    const EventRecord record = records.back();
    records.clear();
    return record;
  }
  EventRecord ibs(const IbsRegisters& regs) {
    ring.sample(kIbsType, {.identifier = kIbs, .ip = regs.rip, .time = 6, .cpu = 2, .raw = regs.raw()});
    walk();
    if (records.empty()) return {};
    const EventRecord record = records.back();
    records.clear();
    return record;
  }
};

// ---------------------------------------------------------------- Intel: PEBS

TEST(PebsLoads, BecomeEvent4WithAddressLatencySourceCoreAndTime) {
  Machine m;
  const EventRecord r = m.load(kOpLoad | HS_LEVEL(LOC_RAM) | PERF_MEM_S(LVLNUM, RAM));
  EventRecord expected = make_dcache_miss_record(0x401000, 0x7f00, 300, MissSource::kDram, 5);
  expected.core_id = 3;
  EXPECT_EQ(r, expected);
}

struct SourceCase {
  const char* name;
  uint64_t data_source;
  LoadOrigin origin;
};

// As the drivers for each generation fill it in. Nehalem to Haswell have the level mask, and from Linux
// 4.14 on both. Skylake has remote forwards, Alder Lake and Sapphire Rapids the composite fields.
TEST(PebsLoads, OfEveryGenerationHaveTheirSource) {
  const LoadOrigin l1{.missed_l1 = false}, unknown{}, l3{.source = MissSource::kLocalL3},
      remote{.source = MissSource::kRemote}, dram{.source = MissSource::kDram},
      other{.source = MissSource::kOther};
  const uint64_t rem = PERF_MEM_S(REMOTE, REMOTE);
  const SourceCase cases[] = {
      {"Nehalem, unknown L3 miss", PERF_MEM_S(LVL, MISS) | PERF_MEM_S(LVL, L3), unknown},
      {"Nehalem, L1", HS_LEVEL(L1), l1},
      {"Nehalem, fill buffer", HS_LEVEL(LFB), unknown},
      {"Nehalem, L2", HS_LEVEL(L2), other},
      {"Nehalem, L3", HS_LEVEL(L3) | PERF_MEM_S(SNOOP, HITM), l3},
      {"Nehalem, remote cache", HS_LEVEL(REM_CCE1) | PERF_MEM_S(SNOOP, HIT), remote},
      {"Nehalem, local DRAM", HS_LEVEL(LOC_RAM), dram},
      {"Nehalem, remote DRAM", HS_LEVEL(REM_RAM1), dram},
      {"Nehalem, I/O", HS_LEVEL(IO), other},
      {"Nehalem, uncached", HS_LEVEL(UNC), other},
      {"Haswell, L3", HS_LEVEL(L3) | PERF_MEM_S(LVLNUM, L3), l3},
      {"Haswell, unknown behind L3", PERF_MEM_S(LVL, MISS) | PERF_MEM_S(LVL, L3) | PERF_MEM_S(LVLNUM, L3),
       unknown},
      {"Haswell, L1", HS_LEVEL(L1) | PERF_MEM_S(LVLNUM, L1), l1},
      {"Haswell, not available", PERF_MEM_S(LVL, NA) | PERF_MEM_S(LVLNUM, NA), unknown},
      {"Haswell, I/O", HS_LEVEL(IO) | PERF_MEM_S(LVLNUM, NA), other},
      {"Skylake-X, remote cache forwarded",
       PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVLNUM, ANY_CACHE) | rem | PERF_MEM_S(SNOOPX, FWD), remote},
      {"Skylake-X, remote DRAM", PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVLNUM, RAM) | rem, dram},
      {"Skylake, eDRAM", PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVLNUM, L4), other},
      {"Cascade Lake, persistent memory", PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVLNUM, PMEM), other},
      {"Alder Lake P core, peer core", HS_LEVEL(L3) | PERF_MEM_S(LVLNUM, L3) | PERF_MEM_S(SNOOPX, FWD), l3},
      {"Sapphire Rapids, remote L3", HS_LEVEL(REM_CCE1) | PERF_MEM_S(LVLNUM, L3) | rem, remote},
      {"Sapphire Rapids, CXL", PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVLNUM, CXL), other},
      {"Gracemont, L2", HS_LEVEL(L2) | PERF_MEM_S(LVLNUM, L2), other},
      {"Gracemont, DRAM", HS_LEVEL(LOC_RAM) | PERF_MEM_S(LVLNUM, RAM) | PERF_MEM_S(SNOOP, MISS), dram},
  };
  for (const SourceCase& c : cases) {
    EXPECT_EQ(decode_perf_data_source(kOpLoad | c.data_source), c.origin) << c.name;
    Machine m;
    const EventRecord r = m.load(kOpLoad | c.data_source);
    if (!c.origin.missed_l1) {
      EXPECT_EQ(r, EventRecord{}) << c.name;
      EXPECT_EQ(m.recorder.counts().no_event, 1u) << c.name;
    } else {
      EXPECT_EQ(miss_source(r), c.origin.source) << c.name;
    }
  }
}

TEST(PebsLoads, TakeTheirLatencyFromTheWeightThatTheKernelKnows) {
  Machine m;
  // WEIGHT_STRUCT, Alder Lake and later: cache latency, then the instruction's, then another.
  EXPECT_EQ(m.load(kOpLoad | HS_LEVEL(L3), 77 | uint64_t{500} << 32 | uint64_t{9} << 48).data1, 77u);
  // One weight, kernels before 5.12.
  for (const auto& [weight, latency] :
       {std::pair<uint64_t, uint32_t>{77, 77}, {uint64_t{1} << 40, UINT32_MAX}}) {
    m.ring.sample(
        kOldLoadType,
        {.identifier = kOldLoads, .ip = 1, .weight = weight, .data_source = kOpLoad | HS_LEVEL(L3)});
    m.walk();
    EXPECT_EQ(m.records.back().data1, latency);
  }
}

TEST(PebsLoads, WithoutAnAddressSayThatTheyHaveNone) {
  Machine m;
  m.ring.sample(kLoadType, {.identifier = kLoads, .ip = 1, .data_source = kOpLoad | HS_LEVEL(L3)});
  m.walk();
  EXPECT_EQ(miss_address(m.records.at(0)), std::nullopt);
}

TEST(PebsLoads, AreDroppedAndCountedWhereTheInstructionIsNotExact) {
  Machine m;
  m.ring.sample(kLoadType, {.identifier = kLoads, .ip = 1, .data_source = kOpLoad | HS_LEVEL(L3)},
                PERF_RECORD_MISC_USER);
  m.ring.sample(kBase, {.identifier = kInstructions, .ip = 1}, PERF_RECORD_MISC_USER);
  m.walk();
  EXPECT_TRUE(m.records.empty());
  EXPECT_EQ(m.recorder.counts().inexact, 2u);
}

TEST(PebsLoads, DoNotIncludeStores) {
  Machine m;
  EXPECT_EQ(m.load(PERF_MEM_S(OP, STORE) | HS_LEVEL(L3)), EventRecord{});
  EXPECT_EQ(m.recorder.counts().no_event, 1u);
}

TEST(PebsInstructions, BecomeEvent2) {
  Machine m;
  m.ring.sample(kBase, {.identifier = kInstructions, .ip = 0x1234, .time = 9, .cpu = 1});
  m.walk();
  EventRecord expected = make_instructions_record(0x1234, 9);
  expected.core_id = 1;
  EXPECT_EQ(m.records.at(0), expected);
}

// ---------------------------------------------------------------- branch stacks

TEST(BranchStack, BecomesEvent3OldestFirstWithItsPrediction) {
  Machine m;
  m.ring.sample(kStackType, {.identifier = kStack,
                             .time = 8,
                             .branches = {branch(0x30, 0x40, true, false), branch(0x10, 0x20, false, true)}});
  m.walk();
  ASSERT_EQ(m.taken.size(), 2u);
  EXPECT_TRUE(m.records.empty());
  EXPECT_EQ(m.taken[0], make_branch_record(0x10, 0x20, true, true, 8));
  EXPECT_EQ(m.taken[1], make_branch_record(0x30, 0x40, true, false, 8));
}

TEST(BranchStack, OfZen3SaysNothingAboutPrediction) {
  Machine m({0x19, 0x01, 1});
  m.ring.sample(kStackType, {.identifier = kStack, .branches = {branch(0x30, 0x40, false, false)}});
  m.walk();
  EXPECT_EQ(branch_predicted_right(m.taken.at(0)), std::nullopt);
}

TEST(BranchStack, LeavesOutWhatNeverRetiredAsABranch) {
  Machine m({0x19, 0x11, 1});
  perf_branch_entry wrong_path = branch(1, 2, false, true), abort = branch(3, 4, false, true),
                    right_path = branch(5, 6, false, true);
  wrong_path.spec = PERF_BR_SPEC_WRONG_PATH;  // LBRv2: spec without valid
  abort.abort = 1;                            // TSX
  right_path.spec = PERF_BR_SPEC_CORRECT_PATH;
  m.ring.sample(kStackType, {.identifier = kStack, .branches = {wrong_path, abort, right_path}});
  m.walk();
  ASSERT_EQ(m.taken.size(), 1u);
  EXPECT_EQ(m.taken[0].address, 5u);
  EXPECT_EQ(m.recorder.counts().no_event, 2u);
}

TEST(BranchStack, MayBeEmptyOrAsDeepAsAnyProcessors) {
  for (const size_t depth : {0u, 4u, 8u, 16u, 32u, 64u}) {
    Machine m;
    m.ring.sample(kStackType,
                  {.identifier = kStack, .branches = std::vector(depth, branch(0x10, 0x20, false, true))});
    EXPECT_EQ(m.walk().malformed, 0u);
    EXPECT_EQ(m.taken.size(), depth);
  }
}

TEST(BranchStack, OutsideTheGuestsCodeIsCountedOnly) {
  Machine m({}, {0x1000, 0x2000});
  m.ring.sample(kStackType,
                {.identifier = kStack,
                 .branches = {branch(0x1000, 0x5000, false, true), branch(0x5000, 0x1000, false, true)}});
  m.walk();
  EXPECT_EQ(m.taken.size(), 1u);
  EXPECT_EQ(m.recorder.counts().non_guest, 1u);
}

// ---------------------------------------------------------------- AMD: IBS

constexpr uint64_t kBranchRetired = 1ull << 37, kMispredicted = 1ull << 36, kTaken = 1ull << 35;
constexpr uint64_t kLoadOp = 1, kStoreOp = 2, kDcMiss = 1u << 7, kUncached = 1u << 14, kL2Miss = 1u << 20,
                   kNoMab = 1u << 16, kAddressValid = 1u << 17, kPrefetch = 1u << 21;
constexpr uint64_t latency(uint64_t cycles) {
  return cycles << 32;
}

constexpr uint32_t kFamily10Caps = 0x1F;
constexpr uint32_t kFamily15Caps = 0xFF | 1u << 8;
constexpr uint32_t kZenCaps = 0x3FF;
constexpr uint32_t kZen4Caps = 0xBFF;
constexpr uint32_t kZen5Caps = 0x1BFF;

struct Family {
  const char* name;
  pmu::ProcessorSignature signature;
  uint32_t caps;
};
const Family kFamilies[] = {
    {"K10", {0x10, 0x04, 2}, kFamily10Caps},
    {"Bulldozer", {0x15, 0x01, 2}, kFamily15Caps},
    {"Jaguar", {0x16, 0x00, 1}, kFamily15Caps | kIbsOpData4},
    {"Zen", {0x17, 0x01, 2}, kZenCaps},
    {"Zen 2", {0x17, 0x31, 0}, kZenCaps},
    {"Zen 3", {0x19, 0x21, 0}, kZenCaps},
    {"Zen 4", {0x19, 0x11, 1}, kZen4Caps},
    {"Zen 5", {0x1A, 0x02, 1}, kZen5Caps},
};

TEST(Ibs, LoadsThatMissBecomeEvent4OnEveryFamily) {
  for (const Family& f : kFamilies) {
    Machine m(f.signature);
    const EventRecord r = m.ibs({.caps = f.caps,
                                 .rip = 0x401000,
                                 .op_data2 = 3,
                                 .op_data3 = kLoadOp | kDcMiss | kL2Miss | kAddressValid | latency(412),
                                 .linear_address = 0x7f0010});
    EventRecord expected = make_dcache_miss_record(0x401000, 0x7f0010, 412, MissSource::kDram, 6);
    expected.core_id = 2;
    EXPECT_EQ(r, expected) << f.name;
  }
}

TEST(Ibs, BranchesBecomeEvent3OnEveryFamily) {
  for (const Family& f : kFamilies) {
    Machine m(f.signature);
    const bool has_target = f.caps & kIbsBranchTarget;
    const EventRecord taken = m.ibs({.caps = f.caps,
                                     .rip = 0x10,
                                     .op_data = kBranchRetired | kTaken | kMispredicted,
                                     .branch_target = 0x99});
    EXPECT_EQ(taken.id(), EventId::kBranches) << f.name;
    EXPECT_TRUE(branch_taken(taken)) << f.name;
    EXPECT_EQ(branch_predicted_right(taken), false) << f.name;
    EXPECT_EQ(taken.data2, has_target ? 0x99u : 0u) << f.name;
    const EventRecord fallen =
        m.ibs({.caps = f.caps, .rip = 0x10, .op_data = kBranchRetired, .branch_target = 0x99});
    EXPECT_FALSE(branch_taken(fallen)) << f.name;
    EXPECT_EQ(branch_predicted_right(fallen), true) << f.name;
    EXPECT_EQ(fallen.data2, 0u) << f.name;  // nobody says where it went on
  }
}

TEST(Ibs, AnythingElseBecomesEvent2) {
  for (const uint64_t op_data3 :
       {uint64_t{0}, kStoreOp | kDcMiss, kLoadOp | kAddressValid, kLoadOp | kPrefetch | kDcMiss}) {
    Machine m({0x19, 0x11, 1});
    const EventRecord r = m.ibs({.caps = kZen4Caps, .rip = 0x10, .op_data3 = op_data3});
    EXPECT_EQ(r.id(), EventId::kInstructions) << op_data3;
    EXPECT_EQ(r.address, 0x10u);
  }
}

TEST(Ibs, SaysWhereDataCameFromInTheWordsOfEachGeneration) {
  const auto source = [](pmu::ProcessorSignature s, uint32_t caps, uint64_t op_data2) {
    Machine m(s);
    return miss_source(m.ibs({.caps = caps, .op_data2 = op_data2, .op_data3 = kLoadOp | kDcMiss | kL2Miss}));
  };
  // Three bits. 2 was another core's cache before Zen, and is the core complex's since.
  const MissSource k10[8] = {MissSource::kNone, MissSource::kLocalL3, MissSource::kRemote,
                             MissSource::kDram, MissSource::kNone,    MissSource::kNone,
                             MissSource::kNone, MissSource::kOther};
  const MissSource zen[8] = {MissSource::kNone, MissSource::kLocalL3, MissSource::kLocalL3,
                             MissSource::kDram, MissSource::kRemote,  MissSource::kNone,
                             MissSource::kNone, MissSource::kOther};
  for (uint64_t v = 0; v < 8; ++v) {
    EXPECT_EQ(source({0x10, 4, 2}, kFamily10Caps, v), k10[v]) << v;
    EXPECT_EQ(source({0x17, 1, 2}, kZenCaps, v), zen[v]) << v;
    EXPECT_EQ(source({0x17, 1, 2}, kZenCaps, v | 3 << 6), zen[v]) << v;  // no high bits there
  }
  // Five bits: 2:0 and 7:6.
  const auto extended = [&](unsigned v) {
    return source({0x19, 0x11, 1}, kZen4Caps, (v & 7) | (v >> 3) << 6);
  };
  for (unsigned v = 0; v < 32; ++v) {
    const MissSource expected = v == 1                                  ? MissSource::kLocalL3
                                : v == 2 || v == 5                      ? MissSource::kRemote
                                : v == 3                                ? MissSource::kDram
                                : v == 6 || v == 7 || v == 8 || v == 12 ? MissSource::kOther
                                                                        : MissSource::kNone;
    EXPECT_EQ(extended(v), expected) << v;
  }
}

TEST(Ibs, CallsTheCoresOwnSecondLevelOther) {
  const IbsRegisters hit{.caps = kZenCaps, .op_data2 = 0, .op_data3 = kLoadOp | kDcMiss};
  Machine zen({0x17, 0x31, 0}), bulldozer({0x15, 0x01, 2});
  EXPECT_EQ(miss_source(zen.ibs(hit)), MissSource::kOther);
  EXPECT_EQ(miss_source(bulldozer.ibs(hit)), MissSource::kNone);  // has no such bit
}

TEST(Ibs, HasNoAddressWhereTheProcessorHasNone) {
  Machine m({0x19, 0x11, 1});
  const EventRecord r = m.ibs({.caps = kZen4Caps, .op_data3 = kLoadOp | kDcMiss, .linear_address = 0x1234});
  EXPECT_EQ(miss_address(r), std::nullopt);
  EXPECT_EQ(r.data2, 0u);
}

TEST(Ibs, OfUncachedMemoryHasNeitherLatencyNorCacheSource) {
  Machine m({0x19, 0x11, 1});
  const EventRecord r = m.ibs(
      {.caps = kZen4Caps, .op_data2 = 3, .op_data3 = kLoadOp | kUncached | kAddressValid | latency(999)});
  EXPECT_EQ(miss_source(r), MissSource::kOther);
  EXPECT_EQ(r.data1, 0u);
}

TEST(Ibs, DistrustsTheSourceWhereErratum1293Applies) {
  const IbsRegisters on_its_way{
      .caps = kZenCaps, .op_data2 = 3, .op_data3 = kLoadOp | kDcMiss | kL2Miss | kNoMab | latency(50)};
  Machine affected({0x19, 0x01, 1}), later({0x19, 0x21, 0});
  EXPECT_EQ(miss_source(affected.ibs(on_its_way)), MissSource::kNone);
  EXPECT_EQ(miss_source(later.ibs(on_its_way)), MissSource::kDram);
}

TEST(Ibs, DropsAndCountsSamplesThatDoNotKnowTheirInstruction) {
  Machine m({0x19, 0x11, 1});
  EXPECT_EQ(m.ibs({.caps = kZen4Caps, .rip = 0x10, .op_data = 1ull << 38}), EventRecord{});
  EXPECT_EQ(m.recorder.counts().inexact, 1u);
  // The bit means nothing where the capability is not announced.
  EXPECT_EQ(m.ibs({.caps = kFamily10Caps, .rip = 0x10, .op_data = 1ull << 38}).address, 0x10u);
}

TEST(Ibs, RefusesRawDataOfAnotherSizeThanItsCapabilitiesSay) {
  const std::vector<std::byte> whole = IbsRegisters{.caps = kZenCaps | kIbsOpData4}.raw();
  EXPECT_TRUE(decode_ibs_raw(whole, {0x17, 1, 2}));
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(decode_ibs_raw(std::span(whole).first(n), {0x17, 1, 2})) << n;
  }
  std::vector<std::byte> longer = whole;
  longer.resize(whole.size() + 8);
  EXPECT_FALSE(decode_ibs_raw(longer, {0x17, 1, 2}));
  Machine m({0x17, 1, 2});
  m.ring.sample(kIbsType, {.identifier = kIbs, .raw = longer});
  const StreamCounts counts = m.walk();
  EXPECT_EQ(counts.malformed, 1u);
  EXPECT_EQ(counts.samples, 0u);
}

TEST(HardwareRecords, OfAnEventThatNobodyOpenedAreMalformed) {
  Machine m;
  m.ring.sample(kBase, {.identifier = 4711});
  m.ring.record(PERF_RECORD_SAMPLE, {});
  m.ring.sample(kBase, {.identifier = kInstructions, .ip = 1});
  EXPECT_EQ(m.walk().malformed, 2u);
  EXPECT_EQ(m.records.size(), 1u);
}

// ---------------------------------------------------------------- damage

// A stream as every kind of event writes it, then bytes overwritten, its end cut off, its start moved.
// Nothing is read outside the ring (guard pages), every byte is accounted for, and no sample makes more
// records than its size has room for.
TEST(HardwareRecords, SurviveDamagedStreamsOfEveryFamily) {
  std::mt19937_64 random(20240607);
#ifdef HINDSIGHT_SANITIZED
  constexpr int kRounds = 3'000;
#else
  constexpr int kRounds = 20'000;
#endif
  const uint64_t types[] = {kLoadType, kOldLoadType, kIbsType, kStackType, kBase};
  const uint64_t identifiers[] = {kLoads, kOldLoads, kIbs, kStack, kInstructions};
  GuardedRing ring(8192);
  std::vector<std::byte> scratch;
  std::vector<EventRecord> records, taken;
  uint64_t whole = 0, broken = 0;
  for (int round = 0; round < kRounds; ++round) {
    ring.tail = ring.head = random() & ~uint64_t{7};
    const Family& family = kFamilies[random() % std::size(kFamilies)];
    const auto count = 1 + random() % 24;
    for (uint64_t i = 0; i < count && ring.head - ring.tail < 7000; ++i) {
      const size_t kind = random() % std::size(types);
      SampleFields f{.identifier = identifiers[kind],
                     .ip = random(),
                     .address = random(),
                     .weight = random(),
                     .data_source = random()};
      IbsRegisters regs{.caps = family.caps,
                        .rip = random(),
                        .op_data = random(),
                        .op_data2 = random(),
                        .op_data3 = random(),
                        .linear_address = random()};
      f.raw = regs.raw();
      f.branches.assign(random() % 33, branch(random(), random(), random() & 1, random() & 1));
      ring.sample(types[kind], f);
      if (random() % 8 == 0) ring.lost(random() % 100);
    }
    for (auto damage = random() % 12; damage > 0; --damage) {
      ring.at(ring.tail + random() % (ring.head - ring.tail)) = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) ring.head -= random() % std::min<uint64_t>(ring.head - ring.tail, 200);
    if (random() % 8 == 0) ring.tail += random() % (ring.head - ring.tail + 1);

    Machine m(family.signature);
    m.recorder.write_to(records, taken);
    const StreamCounts counts = walk_perf_stream(ring.data(), ring.tail, ring.head, scratch, m.recorder);
    ASSERT_EQ(counts.record_bytes + counts.malformed_bytes, ring.head - ring.tail);
    ASSERT_EQ(counts.consumed, ring.head - ring.tail);
    ASSERT_EQ(m.recorder.counts().records, records.size() + taken.size());
    ASSERT_LE(records.size(), counts.samples);
    ASSERT_LE(taken.size() * sizeof(BranchEntry), counts.consumed);
    (counts.malformed == 0 ? whole : broken) += 1;
    records.clear();
    taken.clear();
  }
  EXPECT_GT(whole, kRounds / 20u);  // the test means something only if both happen
  EXPECT_GT(broken, kRounds / 20u);
}

TEST(HardwareRecords, SurviveNoise) {
  std::mt19937_64 random(1);
  GuardedRing ring(8192);
  std::vector<std::byte> scratch;
  for (int round = 0; round < 2'000; ++round) {
    for (size_t i = 0; i < ring.size(); i += 8) {
      // Small sizes, real types and identifiers, or nearly every stream would end at its first header.
      const uint64_t word = i % 3 == 0 ? kLoads + random() % 5 : (random() % 16) | (random() % 256) << 48;
      std::memcpy(&ring.at(i), &word, 8);
    }
    Machine m(kFamilies[random() % std::size(kFamilies)].signature);
    m.recorder.write_to(m.records, m.taken);
    const uint64_t tail = random();
    const uint64_t head = tail + random() % (ring.size() + 1);
    const StreamCounts counts = walk_perf_stream(ring.data(), tail, head, scratch, m.recorder);
    ASSERT_EQ(counts.record_bytes + counts.malformed_bytes, head - tail);
  }
}

}  // namespace
}  // namespace hindsight::lwp
