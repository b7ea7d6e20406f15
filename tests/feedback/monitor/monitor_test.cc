#include "feedback/monitor/monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/thread_processor.h"
#include "feedback/lwp/format/record.h"
#include "jit/abi/builtins.h"
#include "tests/feedback/monitor/nop_module.h"
#include "tests/feedback/silent_unit.h"
#include "tests/log_lines.h"
#include "tests/no_threads.h"
#include "tests/patience.h"

namespace hindsight::feedback {
namespace {

// A unit that hands out what the test put into it.
class ScriptedUnit final : public SilentUnit {
 public:
  std::string_view name() const override { return "scripted"; }
  Status set_frequency(uint32_t hz) override {
    frequency = hz;
    return {};
  }
  void drain(lwp::Batch& batch) override {
    drain_ring(batch.records);
    for (const auto& s : samples) batch.samples.push_back(s);
    samples.clear();
    for (const auto& r : hardware) batch.hardware.push_back(r);
    for (const auto& r : taken) batch.taken_branches.push_back(r);
    hardware.clear();
    taken.clear();
  }
  std::vector<lwp::RawSample> samples;
  std::vector<lwp::EventRecord> hardware, taken;
  uint32_t frequency = 0;
};

class MonitorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    module = testing::module_with(0x28);  // i32.load

    const uint8_t bytes[] = {0x41, 0x8b, 0x04, 0x17,  // mov eax, [r15+rdx]   wasm 20
                             0x01, 0xc1,              // add ecx, eax         wasm 24
                             0x90};                   // padding
    arena = std::move(*jit::CodeArena::create(1 << 20));
    version = std::make_shared<jit::CodeVersion>();
    version->function = FuncIndex(0);
    version->memory = std::move(*arena->allocate(sizeof bytes));
    std::memcpy(version->memory.writable().data(), bytes, sizeof bytes);
    version->code_size = CodeOffset(sizeof bytes);
    jit::PcMapBuilder rows;
    rows.add_row({CodeOffset(0), WasmOffset(20), jit::kNoInlineSite});
    rows.add_row({CodeOffset(4), WasmOffset(24), jit::kNoInlineSite});
    rows.add_row({CodeOffset(6), jit::kNoWasmOffset, jit::kNoInlineSite});
    version->pc_map = rows.finish();
    registry.add(module, version);
    unit = std::make_shared<ScriptedUnit>();
    monitor = std::make_unique<Monitor>(registry, Monitor::Config{});
    monitor->attach(unit, std::nullopt);
  }
  uint64_t pc(uint32_t offset) const { return reinterpret_cast<uint64_t>(version->begin()) + offset; }
  lwp::RawSample sample(uint64_t at) const {
    lwp::RawSample s{};
    s.pc = at;
    s.period_ns = 1'000'000;
    s.registers[15] = 0x10000;
    s.registers[2] = 0x40;
    return s;
  }

  std::shared_ptr<const wasm::Module> module;
  std::unique_ptr<jit::CodeArena> arena;
  std::shared_ptr<jit::CodeVersion> version;
  jit::CodeRegistry registry;
  std::shared_ptr<ScriptedUnit> unit;
  std::unique_ptr<Monitor> monitor;
};

TEST_F(MonitorTest, ASampleBehindALoadBecomesAClockAndAMissRecord) {
  unit->samples.push_back(sample(pc(4)));
  monitor->round();
  MonitorCounts counts = monitor->counts();
  EXPECT_EQ(counts.clock_records, 1u);
  EXPECT_EQ(counts.clock_attributed, 1u);
  EXPECT_EQ(counts.stall_records, 1u);
  EXPECT_EQ(counts.stall_addresses, 1u);
  monitor->with_profiles([&](Monitor::Profiles& profiles) {
    ASSERT_EQ(profiles.size(), 1u);
    FunctionEvidence e = profiles[module.get()]->evidence(FuncIndex(0));
    EXPECT_DOUBLE_EQ(e.samples_baseline, 1);
    EXPECT_NEAR(e.seconds_baseline, 1e-3, 1e-12);
    ASSERT_EQ(e.loads.size(), 1u);
    EXPECT_EQ(e.loads[0].load, WasmOffset(20)) << "charged to the load, not to the instruction behind it";
    EXPECT_EQ(e.loads[0].addresses, 1u);
  });
}

TEST_F(MonitorTest, ASampleBehindAStoreStallsOnItAndIsNoMissRecord) {
  const auto stored = testing::module_with(0x36);          // i32.store
  const uint8_t bytes[] = {0x41, 0x89, 0x04, 0x17, 0x90};  // mov [r15+rdx], eax
  auto code = std::make_shared<jit::CodeVersion>();
  code->function = FuncIndex(0);
  code->memory = std::move(*arena->allocate(sizeof bytes));
  std::memcpy(code->memory.writable().data(), bytes, sizeof bytes);
  code->code_size = CodeOffset(sizeof bytes);
  jit::PcMapBuilder rows;
  rows.add_row({CodeOffset(0), WasmOffset(20), jit::kNoInlineSite});
  code->pc_map = rows.finish();
  registry.add(stored, code);
  unit->samples.push_back(sample(reinterpret_cast<uint64_t>(code->begin()) + 4));
  monitor->round();
  EXPECT_EQ(monitor->counts().store_stalls, 1u);
  EXPECT_EQ(monitor->counts().stall_records, 0u);
  monitor->with_profiles([&](Monitor::Profiles& profiles) {
    const FunctionEvidence e = profiles[stored.get()]->evidence(FuncIndex(0));
    ASSERT_EQ(e.loads.size(), 1u);
    EXPECT_TRUE(e.loads[0].is_store);
    EXPECT_EQ(e.loads[0].load, WasmOffset(20));
  });
}

TEST_F(MonitorTest, ALoadOfTheRuntimesOwnDataIsNoStall) {
  Monitor::Config config;
  config.is_guest_memory = [](uint64_t address) { return address < 0x1000; };
  monitor = std::make_unique<Monitor>(registry, config);
  monitor->attach(unit, std::nullopt);
  unit->samples.push_back(sample(pc(4)));  // at 0x10040
  monitor->round();
  EXPECT_EQ(monitor->counts().clock_attributed, 1u);
  EXPECT_EQ(monitor->counts().stall_records, 0u);
  EXPECT_EQ(monitor->counts().runtime_loads, 1u);
}

TEST_F(MonitorTest, ALoadThatOverwroteItsAddressIsTheRuntimesWhereTheGuestLoadsNothing) {
  const auto branching = testing::module_with(0x0e);  // br_table
  const uint8_t bytes[] = {0x48, 0x63, 0x04, 0x82,    // movsxd rax, [rdx+4*rax]: the jump table
                           0x48, 0x01, 0xd0};         // add rax, rdx
  auto jump = std::make_shared<jit::CodeVersion>();
  jump->function = FuncIndex(0);
  jump->memory = std::move(*arena->allocate(sizeof bytes));
  std::memcpy(jump->memory.writable().data(), bytes, sizeof bytes);
  jump->code_size = CodeOffset(sizeof bytes);
  jit::PcMapBuilder rows;
  rows.add_row({CodeOffset(0), WasmOffset(20), jit::kNoInlineSite});
  jump->pc_map = rows.finish();
  registry.add(branching, jump);
  unit->samples.push_back(sample(reinterpret_cast<uint64_t>(jump->begin()) + 4));
  monitor->round();
  EXPECT_EQ(monitor->counts().clock_attributed, 1u);
  EXPECT_EQ(monitor->counts().stall_records, 0u);
  EXPECT_EQ(monitor->counts().runtime_loads, 1u);
}

TEST_F(MonitorTest, EverySampleIsAttributedOrCountedWhyNot) {
  unit->samples.push_back(sample(pc(0)));
  unit->samples.push_back(sample(pc(4)));
  unit->samples.push_back(sample(pc(6)));
  unit->samples.push_back(sample(0x1234));
  monitor->round();
  MonitorCounts c = monitor->counts();
  EXPECT_EQ(c.clock_records, 4u);
  EXPECT_EQ(c.clock_attributed, 2u);
  EXPECT_EQ(c.clock_no_offset, 1u);
  EXPECT_EQ(c.clock_unknown_code, 1u);
  EXPECT_EQ(c.clock_records, c.clock_attributed + c.clock_no_offset + c.clock_unknown_code);
}

TEST_F(MonitorTest, WhatTheHardwareSampledIsShownAtItsOwnAddressAndWeighsNothing) {
  std::vector<std::pair<lwp::EventId, uint32_t>> seen;
  Monitor::Config config;
  config.on_record = [&](const LocatedRecord& r) {
    seen.emplace_back(r.record.id(), r.offset ? r.offset->value : 0);
    EXPECT_FALSE(r.from_guest);
  };
  monitor = std::make_unique<Monitor>(registry, config);
  monitor->attach(unit, std::nullopt);
  unit->hardware = {
      lwp::make_dcache_miss_record(pc(0), 0x20040, 300, lwp::MissSource::kDram, 5),  // no stall known yet
      lwp::make_instructions_record(pc(4), 6), lwp::make_instructions_record(1, 7),  // nobody's code
  };
  unit->taken = {lwp::make_branch_record(pc(4), pc(0), true, false, 8)};
  monitor->round();
  EXPECT_EQ(seen, (std::vector<std::pair<lwp::EventId, uint32_t>>{{lwp::EventId::kDcacheMiss, 20},
                                                                  {lwp::EventId::kInstructions, 24},
                                                                  {lwp::EventId::kInstructions, 0},
                                                                  {lwp::EventId::kBranches, 24}}));
  MonitorCounts counts = monitor->counts();
  EXPECT_EQ(counts.hardware_records, 4u);
  EXPECT_EQ(counts.hardware_unattributed, 1u);
  EXPECT_EQ(counts.hardware_addresses, 0u);
  EXPECT_EQ(counts.stall_records + counts.branch_records + counts.instruction_records, 0u);
  // A load that the clock found to stall gets the hardware's addresses, and no more weight.
  unit->samples.push_back(sample(pc(4)));
  monitor->round();
  unit->hardware = {lwp::make_dcache_miss_record(pc(0), 0x20040, 300, lwp::MissSource::kDram, 9)};
  monitor->round();
  EXPECT_EQ(monitor->counts().hardware_addresses, 1u);
  monitor->with_profiles([&](Monitor::Profiles& profiles) {
    FunctionEvidence e = profiles[module.get()]->evidence(FuncIndex(0));
    ASSERT_EQ(e.loads.size(), 1u);
    EXPECT_EQ(e.loads[0].addresses, 2u);
    EXPECT_DOUBLE_EQ(e.loads[0].stall_samples, 1);
    EXPECT_TRUE(e.branches.empty());
  });
}

TEST_F(MonitorTest, BranchRecordsOfTheRingReachTheProfile) {
  // A record's address is a return address: the call stands before it.
  lwp::record_event(unit->ring(), lwp::make_branch_record(pc(6), pc(0), true));
  lwp::record_event(unit->ring(), lwp::make_branch_record(pc(6), pc(0), false));
  lwp::record_event(unit->ring(), lwp::make_branch_record(0x99, 0x99, false));
  monitor->round();
  EXPECT_EQ(monitor->counts().branch_records, 3u);
  EXPECT_EQ(monitor->counts().branch_unattributed, 1u);
  monitor->with_profiles([&](Monitor::Profiles& profiles) {
    const auto& branches = profiles[module.get()]->counts(FuncIndex(0)).branches;
    ASSERT_EQ(branches.count(24), 1u);
    EXPECT_EQ(branches.at(24).total, 2u);
    EXPECT_EQ(branches.at(24).taken, 1u);
  });
}

TEST_F(MonitorTest, ValuesOfGeneratedCodeReachTheProfileAndTheGuestsOwnDoNot) {
  // Generated code names its own place: the kind of site and its wasm offset.
  lwp::record_event(unit->ring(), lwp::make_value_record(pc(6), 17, 24, jit::kValueSiteDivisor));
  lwp::record_event(unit->ring(), lwp::make_value_record(pc(6), 17, 24, jit::kValueSiteDivisor));
  lwp::record_event(unit->ring(), lwp::make_value_record(0x99, 17, 24, jit::kValueSiteDivisor));
  lwp::record_event(unit->ring(), lwp::make_value_record(pc(6), 17, 99, jit::kValueSiteDivisor, 1234));
  lwp::record_event(unit->ring(), lwp::make_value_record(pc(6), 17, 24, 9, 1234));
  lwp::record_event(unit->ring(), lwp::make_programmed_record(pc(6), 1, 2, 3, 1234));
  lwp::record_event(unit->ring(), lwp::make_programmed_record(0x99, 1, 2, 3, 1234));
  monitor->round();
  const MonitorCounts c = monitor->counts();
  EXPECT_EQ(c.value_records, 3u);
  EXPECT_EQ(c.value_unattributed, 1u);
  EXPECT_EQ(c.guest_values, 2u);
  EXPECT_EQ(c.guest_events, 2u);
  EXPECT_EQ(c.guest_unattributed, 1u);
  EXPECT_EQ(c.other_records, 0u);
  EXPECT_EQ(monitor->emitted(), 7u);
  monitor->with_profiles([&](Monitor::Profiles& profiles) {
    const auto& values = profiles[module.get()]->counts(FuncIndex(0)).values;
    ASSERT_EQ(values.size(), 1u);
    EXPECT_EQ(values.at(24).total, 2u);
    ASSERT_EQ(values.at(24).candidates.size(), 1u);
    EXPECT_EQ(values.at(24).candidates[0].value, 17u);
    EXPECT_EQ(values.at(24).candidates[0].count, 2u);
  });
}

TEST_F(MonitorTest, ShowsEveryRecordWithItsPlaceToWhoAsks) {
  struct Seen {
    uint8_t id;
    std::optional<WasmOffset> offset;
    uint64_t time_ns, cpu_ns;
    bool exact_time, from_guest, has_module;
  };
  std::vector<Seen> seen;
  for (const bool only_guest : {false, true}) {
    seen.clear();
    Monitor::Config config;
    config.only_guest_records = only_guest;
    config.on_record = [&](const LocatedRecord& r) {
      EXPECT_NE(r.thread, 0);
      seen.push_back({r.record.event_id, r.offset, r.time_ns, r.cpu_ns, r.exact_time, r.from_guest,
                      r.module != nullptr});
    };
    unit = std::make_shared<ScriptedUnit>();
    monitor = std::make_unique<Monitor>(registry, config);
    monitor->attach(unit, std::nullopt);
    lwp::record_event(unit->ring(), lwp::make_branch_record(pc(6), pc(0), true));
    lwp::record_event(unit->ring(), lwp::make_programmed_record(pc(6), 1, 2, 3, 5555));
    unit->samples.push_back(sample(pc(4)));
    unit->samples.back().time_ns = 7777;
    monitor->round();
    if (only_guest) {
      ASSERT_EQ(seen.size(), 1u);
      EXPECT_EQ(seen[0].id, 255);
      continue;
    }
    ASSERT_EQ(seen.size(), 4u);
    EXPECT_EQ(seen[0].id, 3);
    EXPECT_FALSE(seen[0].exact_time);
    EXPECT_EQ(seen[0].offset, WasmOffset(24));
    EXPECT_EQ(seen[1].id, 255);
    EXPECT_TRUE(seen[1].exact_time && seen[1].from_guest && seen[1].has_module);
    EXPECT_EQ(seen[1].time_ns, 5555u);
    EXPECT_EQ(seen[2].id, 5);
    EXPECT_EQ(seen[2].time_ns, 7777u);
    EXPECT_EQ(seen[2].cpu_ns, 1'000'000u);
    EXPECT_EQ(seen[3].id, 4);
    EXPECT_EQ(seen[3].cpu_ns, 0u) << "the sample's time is counted once";
    EXPECT_EQ(seen[3].offset, WasmOffset(20));
  }
}

TEST_F(MonitorTest, AMissAtALoadThatWasTimedSaysLatencyAndSource) {
  std::vector<lwp::EventRecord> misses;
  Monitor::Config config;
  config.on_record = [&](const LocatedRecord& r) {
    if (r.record.id() == lwp::EventId::kDcacheMiss) misses.push_back(r.record);
  };
  monitor = std::make_unique<Monitor>(registry, config);
  monitor->attach(unit, std::nullopt);
  const auto miss_when = [&](MemoryLevel level) {
    monitor->with_profiles([&](Monitor::Profiles& profiles) {
      auto& profile = profiles[module.get()];
      if (!profile) profile = std::make_unique<Profile>(module);
      if (level != MemoryLevel::kUnknown)
        profile->set_latency(FuncIndex(0), WasmOffset(20), {level, 64, 420, 0.9, 110, 396});
    });
    unit->samples.push_back(sample(pc(4)));
    monitor->round();
    return misses.back();
  };
  EXPECT_EQ(miss_when(MemoryLevel::kUnknown).data1, 0u) << "nobody timed it yet";
  EXPECT_EQ(lwp::miss_source(misses.back()), lwp::MissSource::kNone);
  EXPECT_EQ(miss_when(MemoryLevel::kMemory).data1, 396u);
  EXPECT_EQ(lwp::miss_source(misses.back()), lwp::MissSource::kDram);
  EXPECT_EQ(lwp::miss_source(miss_when(MemoryLevel::kL3)), lwp::MissSource::kLocalL3);
  EXPECT_EQ(lwp::miss_source(miss_when(MemoryLevel::kL2)), lwp::MissSource::kOther);
  EXPECT_EQ(misses.back().data1, 396u);
}

// Threads take over the priority of those that start them, and a round starts compiles of what is hot.
TEST_F(MonitorTest, HasRoundsOfItsOwnAtThePriorityOfWhoStartedIt) {
  const auto own = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  std::promise<int> its;
  Monitor::Config config;
  config.on_round = [&, told = false]() mutable {
    if (!std::exchange(told, true)) its.set_value(own());
  };
  monitor = std::make_unique<Monitor>(registry, std::move(config));
  ASSERT_TRUE(monitor->start());
  EXPECT_EQ(its.get_future().get(), own());
  monitor->stop();
}

TEST_F(MonitorTest, HasRoundsOfItsOwnOnAProcessorThatNoGuestIsOn) {
  if (usable_processors() < 2) GTEST_SKIP() << "one processor";
  // Until the thread runs where the guest is, which is the one that waits here.
  const ThreadProcessor guests = ThreadProcessor::of_this_thread();
  if (guests.get() == kUnknownProcessor) GTEST_SKIP() << "the C library registers no restartable sequences";
  Monitor::Config config;
  config.on_round = [guests] {
    cpu_set_t before, there;
    CPU_ZERO(&there);
    CPU_SET(guests.get(), &there);
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    ASSERT_EQ(::sched_setaffinity(0, sizeof there, &there), 0);
    ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  };
  Monitor of_its_own(registry, std::move(config));
  const auto here = std::make_shared<SilentUnit>();
  of_its_own.attach(here, std::nullopt);
  ASSERT_TRUE(of_its_own.start());
  for (const Patience patience; patience.lasts() && of_its_own.guest_processors().moves() == 0;)
    std::this_thread::yield();
  of_its_own.stop();
  EXPECT_GE(of_its_own.guest_processors().moves(), 1u);
  of_its_own.detach(here.get());
}

TEST_F(MonitorTest, WhatAThreadSampledBeforeItEndedIsNotLost) {
  unit->samples.push_back(sample(pc(4)));
  monitor->detach(unit.get());
  EXPECT_EQ(monitor->counts().clock_records, 1u);
}

TEST_F(MonitorTest, TheRateReachesUnitsAttachedBeforeAndAfter) {
  monitor->set_frequency(4000);
  EXPECT_EQ(unit->frequency, 4000u);
  auto later = std::make_shared<ScriptedUnit>();
  monitor->attach(later, std::nullopt);
  EXPECT_EQ(later->frequency, 4000u);
}

TEST_F(MonitorTest, TheThreadLeavesSignalsToTheHostsThreads) {
  std::promise<sigset_t> seen;
  Monitor::Config config;
  config.on_round = [&, told = false]() mutable {
    sigset_t mask;
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
    if (!std::exchange(told, true)) seen.set_value(mask);
  };
  Monitor of_its_own(registry, config);
  ASSERT_TRUE(of_its_own.start());
  const sigset_t mask = seen.get_future().get();
  of_its_own.stop();
  EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
  EXPECT_EQ(sigismember(&mask, SIGCHLD), 1);
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 0) << "a fault of its own is told";
}

TEST_F(MonitorTest, ARoundThatIsBrokenOffIsCountedAndSaidOnceAndTheNextOnesAreMade) {
  std::promise<void> went_on;
  LogLines said("monitor");
  Monitor::Config config;
  config.log = said.sink();
  config.on_round = [&, rounds = 0]() mutable {
    if (++rounds <= 2) throw std::runtime_error("none to be had");
    if (rounds == 3) went_on.set_value();
  };
  Monitor of_its_own(registry, config);
  ASSERT_TRUE(of_its_own.start());
  went_on.get_future().get();
  of_its_own.stop();
  EXPECT_EQ(of_its_own.counts().rounds_broken_off, 2u);
  EXPECT_THAT(said.warnings(), ::testing::ElementsAre(::testing::HasSubstr("none to be had")));
}

TEST_F(MonitorTest, WhereThereIsNoThreadIsAnErrorThatSaysWhatToDo) {
  {
    const NoThreads none;
    const Status started = monitor->start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().kind, ErrorKind::kResource);
    EXPECT_THAT(started.error().message, ::testing::HasSubstr("allow more threads"));
    sigset_t mask;
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
    EXPECT_EQ(sigismember(&mask, SIGTERM), 0) << "the host's thread has its signals back";
  }
  ASSERT_TRUE(monitor->start());
  monitor->stop();
}

TEST_F(MonitorTest, TheThreadDrainsUntilItIsStoppedAndOnceMore) {
  ASSERT_TRUE(monitor->start());
  monitor->stop();
  EXPECT_GE(monitor->counts().rounds, 1u);
}

}  // namespace
}  // namespace hindsight::feedback
