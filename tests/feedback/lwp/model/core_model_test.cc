// Traces written by hand: no compiler is needed to know what a core would do.
#include "feedback/lwp/model/core_model.h"

#include <gtest/gtest.h>

#include <memory>

namespace hindsight::lwp {
namespace {

constexpr uint64_t kMemory = uint64_t{1} << 40;
constexpr uint64_t kFrame = uint64_t{1} << 46;

class Trace : private CoreModel::Records {
 public:
  Trace() { function_->slots = 8; }

  // A run of `operations` operations with these loads; returns its id.
  struct Load {
    std::vector<TraceTerm> address;
  };
  uint32_t run(TraceEnd end, const std::vector<Load>& loads, std::vector<TraceWrite> writes = {},
               std::vector<TraceTerm> condition = {}, uint32_t operations = 1) {
    TraceRun run;
    run.end = end;
    run.instructions = static_cast<uint32_t>(loads.size()) + operations;
    run.operations = operations;
    run.offset = WasmOffset(1000 + next_);
    for (const Load& load : loads) {
      TraceAccess access;
      access.bytes = 4;
      access.operations = 1;
      access.offset = WasmOffset(100 + next_offset_++);
      access.address = {static_cast<uint32_t>(run.terms.size()), static_cast<uint32_t>(load.address.size())};
      run.terms.insert(run.terms.end(), load.address.begin(), load.address.end());
      run.accesses.push_back(access);
      ++run.words;
    }
    for (TraceWrite& write : writes) {  // of one access each, by its number
      const auto access = static_cast<uint16_t>(kTraceAccess + write.value.begin);
      write.value = {static_cast<uint32_t>(run.terms.size()), 1};
      run.terms.push_back({access, 0});
    }
    run.writes = std::move(writes);
    run.condition = {static_cast<uint32_t>(run.terms.size()), static_cast<uint32_t>(condition.size())};
    run.terms.insert(run.terms.end(), condition.begin(), condition.end());
    const uint32_t id = directory_.next_id();
    function_->runs.emplace_back(id, std::move(run));
    ++next_;
    return id;
  }
  void start(ModelConfig config) {
    enter_ = run(TraceEnd::kEnter, {}, {}, {}, 0);
    directory_.publish(std::move(function_));
    block_.flags =
        flag_of(EventId::kDcacheMiss) | flag_of(EventId::kInstructions) | flag_of(EventId::kBranches);
    block_.slot(EventId::kDcacheMiss).interval = encode_counter(miss_interval);
    block_.slot(EventId::kInstructions).interval = encode_counter(instruction_interval);
    block_.slot(EventId::kInstructions).counter = encode_counter(instruction_interval);
    block_.slot(EventId::kBranches).interval = encode_counter(0);
    core_ = std::make_unique<CoreModel>(config, directory_, block_, static_cast<CoreModel::Records&>(*this));
    words = {run_word(enter_), kFrame, kMemory};
  }
  static uint64_t run_word(uint32_t id) { return ~uint64_t{id}; }
  void report(uint32_t id, std::vector<uint64_t> addresses = {}, std::optional<uint64_t> outcome = {}) {
    for (const uint64_t a : addresses) words.push_back(kMemory + a);
    words.push_back(run_word(id));
    if (outcome) words.push_back(*outcome);
  }
  CoreModel& core() { return *core_; }
  ModelTotals finish() {
    EXPECT_EQ(core_->consume(words), words.size());
    words.clear();
    return core_->totals();
  }

  std::vector<uint64_t> words;
  std::vector<EventRecord> records;
  int32_t miss_interval = 0;
  int32_t instruction_interval = kCounterMax;

 private:
  void record(const EventRecord& r) override { records.push_back(r); }
  TraceDirectory directory_;
  std::unique_ptr<TraceFunction> function_ = std::make_unique<TraceFunction>();
  uint32_t enter_ = 0, next_ = 0, next_offset_ = 0;
  ControlBlock block_;
  std::unique_ptr<CoreModel> core_;
};

ModelConfig plain() {
  ModelConfig config = default_model();
  config.cache.tlbs.clear();
  config.cache.prefetch_distance = 0;
  config.cache.memory_latency = 300;
  config.cache.memory_interval = 1;
  config.forward = 0;
  return config;
}

const ModelAccess& access(const ModelTotals& totals, size_t i) {
  EXPECT_LT(i, totals.accesses.size());
  return totals.accesses[i];
}

TEST(CoreModels, IndependentMissesOverlapAndDependentOnesDoNot) {
  const auto cycles = [](bool dependent) {
    Trace trace;
    // The address waits for slot 0, which the load writes: a pointer chase. Or for nothing: a gather.
    const uint32_t id =
        trace.run(TraceEnd::kJump, {{dependent ? std::vector<TraceTerm>{{0, 0}} : std::vector<TraceTerm>{}}},
                  {{0, {0, 1}}});
    trace.start(plain());
    for (uint64_t i = 0; i < 100; ++i) trace.report(id, {i * 4096});
    return trace.finish().cycles;
  };
  const uint64_t chase = cycles(true), gather = cycles(false);
  EXPECT_NEAR(static_cast<double>(chase), 100 * 300, 1000);
  EXPECT_LT(gather, chase / 20);
}

TEST(CoreModels, WhatHidesBehindAnOlderMissStallsNobody) {
  Trace trace;
  const uint32_t id = trace.run(TraceEnd::kJump, {{}, {}});
  trace.start(plain());
  trace.report(id, {0, 1 << 20});  // both miss, the second starts with the first
  const ModelTotals totals = trace.finish();
  EXPECT_GE(access(totals, 0).stall_cycles, 295u);
  EXPECT_LE(access(totals, 1).stall_cycles, 2u);
  EXPECT_GE(access(totals, 1).latency_cycles, 295u);
}

TEST(CoreModels, TheWindowLimitsWhatOverlaps) {
  const auto cycles = [](uint32_t work) {
    Trace trace;
    const uint32_t id = trace.run(TraceEnd::kJump, {{}}, {}, {}, work);
    trace.start(plain());
    for (uint64_t i = 0; i < 100; ++i) trace.report(id, {i * 4096});
    return trace.finish().cycles;
  };
  // 300 operations between two loads are more than the window of 256 holds: no two misses overlap.
  EXPECT_GT(cycles(300), 100 * 290u);
  EXPECT_LT(cycles(20), 100 * 40u);
}

TEST(CoreModels, AMispredictedBranchOnAMissEndsTheOverlap) {
  const auto cycles = [](bool random) {
    Trace trace;
    const uint32_t id = trace.run(TraceEnd::kBranch, {{}}, {}, {{kTraceAccess, 1}});
    trace.start(plain());
    uint64_t x = 88172645463325252;
    for (uint64_t i = 0; i < 1000; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      trace.report(id, {i * 4096}, random ? x >> 63 : 1);
    }
    return trace.finish().cycles;
  };
  EXPECT_GT(cycles(true), 8 * cycles(false));
}

TEST(CoreModels, CountEveryInstructionOnce) {
  Trace trace;
  trace.instruction_interval = 99;  // every hundredth
  const uint32_t id = trace.run(TraceEnd::kJump, {}, {}, {}, 7);
  trace.start(plain());
  for (int i = 0; i < 1000; ++i) trace.report(id);
  const ModelTotals totals = trace.finish();
  EXPECT_EQ(totals.instructions, 7000u);
  size_t records = 0;
  for (const EventRecord& r : trace.records) records += r.id() == EventId::kInstructions ? 1 : 0;
  EXPECT_EQ(records, 70u);
}

TEST(CoreModels, RecordMissesWithAddressLatencyAndSource) {
  Trace trace;
  const uint32_t id = trace.run(TraceEnd::kJump, {{}});
  trace.start(plain());
  trace.report(id, {640});
  trace.report(id, {644});  // the same line: on its way
  trace.finish();
  std::vector<EventRecord> misses;
  for (const EventRecord& r : trace.records)
    if (r.id() == EventId::kDcacheMiss) misses.push_back(r);
  ASSERT_EQ(misses.size(), 2u);
  EXPECT_EQ(misses[0].data2, kMemory + 640);
  EXPECT_EQ(misses[0].data1, 300u);
  EXPECT_TRUE(misses[0].flags & kMissAddressValid);
  EXPECT_EQ(misses[0].flags >> kMissSourceShift, static_cast<unsigned>(MissSource::kDram));
  EXPECT_LE(misses[1].data1, 300u);
}

TEST(CoreModels, SayForEveryBranchWhetherItWasPredicted) {
  Trace trace;
  const uint32_t id = trace.run(TraceEnd::kBranch, {});
  trace.start(plain());
  for (int i = 0; i < 100; ++i) trace.report(id, {}, 1);
  const ModelTotals totals = trace.finish();
  ASSERT_EQ(totals.branches.size(), 1u);
  EXPECT_EQ(totals.branches[0].executions, 100u);
  EXPECT_EQ(totals.branches[0].taken, 100u);
  EXPECT_LT(totals.branches[0].mispredicted, 5u);
  ASSERT_EQ(trace.records.size(), 100u);
  EXPECT_TRUE(trace.records.back().flags & kBranchPredictionValid);
  EXPECT_TRUE(trace.records.back().flags & kBranchPredicted);
  EXPECT_TRUE(trace.records.back().flags & kBranchTaken);
}

TEST(CoreModels, TakeAStreamInPieces) {
  Trace whole, pieces;
  std::vector<uint64_t> words;
  for (Trace* trace : {&whole, &pieces}) {
    const uint32_t branch = trace->run(TraceEnd::kBranch, {{}, {}}, {}, {{kTraceAccess, 1}});
    trace->start(plain());
    for (uint64_t i = 0; i < 500; ++i) trace->report(branch, {i * 128, i * 64}, i % 3 == 0);
  }
  const ModelTotals expected = whole.finish();
  std::vector<uint64_t> buffer;
  for (size_t i = 0; i < pieces.words.size(); ++i) {
    buffer.push_back(pieces.words[i]);
    if (i % 7 == 0)
      buffer.erase(buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(pieces.core().consume(buffer)));
  }
  EXPECT_EQ(pieces.core().consume(buffer), buffer.size());
  const ModelTotals totals = pieces.core().totals();
  EXPECT_EQ(totals.cycles, expected.cycles);
  EXPECT_EQ(totals.instructions, expected.instructions);
  EXPECT_EQ(pieces.records, whole.records);
  EXPECT_EQ(totals.unknown, 0u);
}

TEST(CoreModels, DropTheWordsOfARunThatTrapped) {
  Trace trace;
  const uint32_t id = trace.run(TraceEnd::kJump, {{}});
  trace.start(plain());
  trace.words.push_back(kMemory + 5);  // an access whose run never ended
  trace.report(id, {64});
  const ModelTotals totals = trace.finish();
  EXPECT_EQ(totals.unfinished, 1u);
  EXPECT_EQ(access(totals, 0).executions, 1u);
}

TEST(CoreModels, RememberTheAddressesOfALoad) {
  ModelConfig config = plain();
  config.remember_addresses = true;
  Trace trace;
  const uint32_t id = trace.run(TraceEnd::kJump, {{}});
  trace.start(config);
  trace.report(id, {4096});
  trace.report(id, {70000});
  const ModelTotals totals = trace.finish();
  const AddressSet* set = access(totals, 0).addresses;
  ASSERT_NE(set, nullptr);
  EXPECT_TRUE(set->contains(4096));
  EXPECT_TRUE(set->contains(70000));
  EXPECT_FALSE(set->contains(4100));
  EXPECT_FALSE(set->contains(uint64_t{1} << 40));
}

TEST(ModelConfigs, AreReadFromWords) {
  const auto config =
      parse_model("l1=48K/12/5,l3=off,memory=200/4,predictor=gshare,prefetch=0,page=2M,tlb2=off");
  ASSERT_TRUE(config) << config.error().describe();
  EXPECT_EQ(config->cache.levels.size(), 2u);
  EXPECT_EQ(config->cache.levels[0].ways, 12u);
  EXPECT_EQ(config->cache.memory_latency, 200u);
  EXPECT_EQ(config->cache.memory_interval, 4u);
  EXPECT_EQ(config->cache.page_bytes, 2u << 20);
  EXPECT_EQ(config->cache.tlbs.size(), 1u);
  EXPECT_EQ(config->predictor, "gshare");
  for (const char* wrong :
       {"l1=off", "l9=1K/1/1", "l1=3K/1/1", "memory", "predictor=oracle", "x=1", "window=0", ""}) {
    if (*wrong == 0) continue;
    EXPECT_FALSE(parse_model(wrong)) << wrong;
  }
  EXPECT_TRUE(check(default_model().cache));
}

}  // namespace
}  // namespace hindsight::lwp
