#include "feedback/lwp/units/unit.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "feedback/lwp/units/x86_64.h"
#include "tests/feedback/lwp/units/busy_loop.h"
#include "tests/patience.h"

namespace hindsight::lwp {
namespace {

using Clock = std::chrono::steady_clock;

using Loop = std::function<void()>;

void busy_loop() {
  hindsight_test_busy_loop(50'000);
}

CodeRange busy_range() {
  return {reinterpret_cast<uint64_t>(hindsight_test_busy_loop_begin),
          reinterpret_cast<uint64_t>(hindsight_test_busy_loop_end)};
}

// Runs body(unit) on a thread of its own that attaches before and detaches after.
class Guest {
 public:
  explicit Guest(Unit& unit, bool detach = true, Loop loop = busy_loop) : unit_(unit) {
    thread_ = std::thread([this, detach, loop = std::move(loop)] {
      status_ = unit_.attach();
      attached_.store(true, std::memory_order_release);
      while (!stopped()) {
        loop();
        rounds_.fetch_add(1, std::memory_order_relaxed);
      }
      if (detach) unit_.detach();
    });
    while (!attached_.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~Guest() { stop(); }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    if (thread_.joinable()) thread_.join();
  }
  const Status& status() const { return status_; }
  // Waits until the guest has done that much more work.
  void let_work(uint64_t rounds) {
    const uint64_t until = rounds_.load(std::memory_order_relaxed) + rounds;
    while (rounds_.load(std::memory_order_relaxed) < until) std::this_thread::yield();
  }

 private:
  // A mutex, not an atomic: under the thread sanitizer, signals are delivered only at calls that it
  // intercepts.
  bool stopped() {
    const std::lock_guard lock(mutex_);
    return stop_;
  }
  Unit& unit_;
  std::thread thread_;
  std::mutex mutex_;
  bool stop_ = false;
  Status status_;
  std::atomic<bool> attached_{false};
  std::atomic<uint64_t> rounds_{0};
};

// Drains until `enough`, or gives up after a time that no healthy machine needs.
bool drain_until(Unit& unit, Batch& batch, const std::function<bool()>& enough) {
  for (const Patience patience; patience.lasts();) {
    unit.drain(batch);
    if (enough()) return true;
    std::this_thread::yield();
  }
  return false;
}

size_t open_descriptors() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

// Timers of this process, or -1 where the kernel does not list them.
int open_timers() {
  std::ifstream file("/proc/self/timers");
  if (!file) return -1;
  int n = 0;
  for (std::string line; std::getline(file, line);) n += line.starts_with("ID:");
  return n;
}

std::unique_ptr<Unit> make(std::string_view name, UnitConfig config = {}) {
  auto selection = select_unit(name);
  if (!selection) return nullptr;
  auto unit = selection->factory->create(config);
  EXPECT_TRUE(unit) << unit.error().describe();
  return std::move(*unit);
}

// Both sources of the clock unit answer to the same expectations.
class ClockUnit : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto selection = select_unit(GetParam());
    if (!selection) GTEST_SKIP() << selection.error().message;
  }
  std::unique_ptr<Unit> make_unit(uint32_t hz, CodeRange range = busy_range()) {
    return make(GetParam(), {.frequency_hz = hz, .guest_code = range});
  }
};

TEST_P(ClockUnit, SamplesABusyLoopWhereItIsWithItsRegisters) {
  auto unit = make_unit(2000);
  Guest guest(*unit);
  ASSERT_TRUE(guest.status()) << guest.status().error().describe();
  EXPECT_EQ(unit->name(), GetParam());
  Batch batch;
  ASSERT_TRUE(drain_until(*unit, batch, [&] { return batch.samples.size() >= 60; }));
  guest.stop();
  uint64_t last = 0;
  for (const RawSample& s : batch.samples) {
    EXPECT_TRUE(busy_range().contains(s.pc));
    for (unsigned r = 0; r < kRegisterCount; ++r) {
      const auto reg = static_cast<Register>(r);
      if (reg != Register::kRsp && reg != Register::kRdi) {
        EXPECT_EQ(s.registers[r], kMarker + r) << r;
      }
    }
    EXPECT_LE(s[Register::kRdi], 50'000u);
    EXPECT_NEAR(static_cast<double>(s.period_ns), 500e3, 500e3 / 8 + 1);
    EXPECT_GT(s.time_ns, last);
    last = s.time_ns;
  }
  const UnitCounters counters = unit->counters();
  EXPECT_GE(counters.samples, batch.samples.size());
  EXPECT_EQ(counters.malformed, 0u);
}

TEST(GatherIndex, IsALaneOfTheIndicesOfTheGatherInFront) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has no gathers";
  const std::array<uint32_t, 16> table = {15, 3, 7, 1, 0, 0, 0, 0, 5, 0, 2, 0, 0, 0, 0, 0};
  const CodeRange range = {reinterpret_cast<uint64_t>(hindsight_test_gather_loop_begin),
                           reinterpret_cast<uint64_t>(hindsight_test_gather_loop_end)};
  const auto unit = make("clock/timer", {.frequency_hz = 4000, .guest_code = range});
  ASSERT_TRUE(unit);
  Guest guest(*unit, true, [&] { hindsight_test_gather_loop(20'000, table.data()); });
  ASSERT_TRUE(guest.status()) << guest.status().error().describe();
  // By the register: lanes that were seen.
  std::map<int, std::set<uint64_t>> seen;
  Batch batch;
  const auto is_seen = [&] { return seen[9].size() == 4 && seen[10].size() == 2; };
  ASSERT_TRUE(drain_until(*unit, batch,
                          [&] {
                            for (const RawSample& sample : batch.samples) {
                              const VectorIndex& index = sample.vector_index;
                              if (index.bits == 0) continue;
                              EXPECT_EQ(index.bits, index.vector == 9 ? 32 : 64);
                              seen[index.vector].insert(index.value);
                            }
                            batch.clear();
                            return is_seen();
                          }))
      << seen[9].size() << " and " << seen[10].size() << " lanes";
  EXPECT_EQ(seen, (std::map<int, std::set<uint64_t>>{{9, {15, 3, 7, 1}}, {10, {5, 2}}}));
}

TEST(GatherIndex, IsFoundInEveryEncodingOfAGatherOrScatter) {
  struct Encoded {
    std::vector<uint8_t> bytes;
    int vector, bits;  // 0: neither
  };
  const std::vector<Encoded> all = {
      {{0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x08}, 1, 32},                                 // dd [rax+ymm1]
      {{0xc4, 0x82, 0x69, 0x91, 0x5c, 0x8f, 0x10}, 9, 64},                           // qd [r15+4*xmm9+16]
      {{0xc4, 0x82, 0x6d, 0x90, 0x9c, 0xbd, 0x78, 0x56, 0x34, 0x12}, 15, 32},        // dd [r13+4*ymm15+...]
      {{0xc4, 0xe2, 0x69, 0x90, 0x1c, 0x8d, 0x10, 0x00, 0x00, 0x00}, 1, 32},         // dd [4*xmm1+16]
      {{0xc4, 0xa2, 0xc5, 0x92, 0x2c, 0xe7}, 12, 32},                                // dpd [rdi+8*xmm12]
      {{0x62, 0xd2, 0xfd, 0x49, 0x91, 0x4c, 0xdd, 0x00}, 3, 64},                     // qq [r13+8*zmm3]
      {{0x62, 0xf2, 0x7d, 0x42, 0x90, 0x4c, 0x88, 0x40}, 17, 32},                    // dd [rax+4*zmm17+256]
      {{0x62, 0xb2, 0x7d, 0x23, 0x93, 0x94, 0x35, 0x78, 0x56, 0x34, 0x12}, 30, 64},  // qps [rbp+ymm30+...]
      {{0x62, 0xb2, 0xfd, 0x4a, 0x92, 0x2c, 0xe7}, 12, 32},                          // dpd [rdi+8*ymm12]
      {{0x62, 0xf2, 0x7d, 0x4a, 0xa0, 0x04, 0x8f}, 1, 32},         // scatter dd [rdi+4*zmm1]
      {{0x62, 0xd2, 0xfd, 0x49, 0xa1, 0x4c, 0xdd, 0x00}, 3, 64},   // scatter qq [r13+8*zmm3]
      {{0x62, 0xf2, 0x7d, 0x42, 0xa2, 0x4c, 0x88, 0x40}, 17, 32},  // scatter dps [rax+4*zmm17+256]
      {{0xc4, 0xe2, 0x6d, 0xa0, 0x04, 0x08}, 0, 0},                // no scatter without EVEX
      {{0xc4, 0xe2, 0x7d, 0x18, 0x04, 0x08}, 0, 0},                // a broadcast
      {{0x90, 0x44, 0x08, 0x01, 0x90, 0x90, 0x90}, 0, 0},
  };
  for (const Encoded& encoded : all) {
    std::vector<uint8_t> code(x86_64::kMostGatherBytes, 0x90);
    code.insert(code.end(), encoded.bytes.begin(), encoded.bytes.end());
    const VectorIndex index = x86_64::gather_before(code.data() + code.size());
    EXPECT_EQ(index.vector, encoded.vector) << testing::PrintToString(encoded.bytes);
    EXPECT_EQ(index.bits, encoded.bits) << testing::PrintToString(encoded.bytes);
  }
}

TEST_P(ClockUnit, JittersThePeriod) {
  auto unit = make_unit(4000);
  Guest guest(*unit);
  Batch batch;
  ASSERT_TRUE(drain_until(*unit, batch, [&] {
    return !batch.samples.empty() && batch.samples.back().period_ns != batch.samples.front().period_ns;
  }));
}

TEST_P(ClockUnit, CountsSamplesOutsideTheGuestsCodeAndHandsOutNone) {
  auto unit = make_unit(2000, {1, 2});
  Guest guest(*unit);
  Batch batch;
  EXPECT_TRUE(drain_until(*unit, batch, [&] { return unit->counters().non_guest >= 10; }));
  EXPECT_TRUE(batch.samples.empty());
  EXPECT_EQ(unit->counters().samples, 0u);
}

TEST_P(ClockUnit, ChangesItsRateAndPausesWhileTheThreadRuns) {
  auto unit = make_unit(0);
  Guest guest(*unit);
  Batch batch;
  guest.let_work(100);
  unit->drain(batch);
  EXPECT_TRUE(batch.samples.empty());

  ASSERT_TRUE(unit->set_frequency(4000));
  EXPECT_TRUE(drain_until(*unit, batch, [&] { return batch.samples.size() >= 5; }));

  ASSERT_TRUE(unit->set_frequency(0));
  guest.let_work(10);  // a signal on its way arrives
  unit->drain(batch);
  const uint64_t before = unit->counters().samples;
  guest.let_work(1000);
  unit->drain(batch);
  EXPECT_EQ(unit->counters().samples, before);

  ASSERT_TRUE(unit->set_frequency(1000));
  batch.clear();
  EXPECT_TRUE(drain_until(*unit, batch, [&] { return !batch.samples.empty(); }));
  EXPECT_NEAR(static_cast<double>(batch.samples.back().period_ns), 1e6, 1e6 / 8 + 1);
  EXPECT_FALSE(unit->set_frequency(kMaxFrequency + 1));
}

TEST_P(ClockUnit, HandsOutAfterDetachWhatWasSampledBefore) {
  auto unit = make_unit(4000);
  {
    Guest guest(*unit);
    // CPU time of the process, of which the guest has nearly all. It is a tenth of a second, where the kernel looks every
    // 10 ms at the latest.
    for (const std::clock_t end = std::clock() + CLOCKS_PER_SEC / 5; std::clock() < end;) guest.let_work(1);
  }
  Batch batch;
  unit->drain(batch);
  EXPECT_FALSE(batch.samples.empty());
  EXPECT_EQ(unit->counters().samples, batch.samples.size());
  unit->drain(batch);
  EXPECT_EQ(unit->counters().samples, batch.samples.size());
}

TEST_P(ClockUnit, HandsOutTheThreadsOwnRecordsBesideItsSamples) {
  auto unit = make_unit(250);
  const EventRecord branch = make_branch_record(0x10, 0x20, true);
  record_event(unit->ring(), branch);
  record_event(unit->ring(), make_value_record(0x30, 1, 2, 3));
  Batch batch;
  unit->drain(batch);
  ASSERT_EQ(batch.records.size(), 2u);
  EXPECT_EQ(batch.records[0], branch);
  EXPECT_EQ(unit->counters().records, 2u);
}

TEST_P(ClockUnit, CountsRecordsThatFoundTheRingFull) {
  auto unit = make(GetParam(), {.ring = {.records = 4}});
  for (int i = 0; i < 10; ++i) record_event(unit->ring(), make_instructions_record(0x10));
  Batch batch;
  unit->drain(batch);
  EXPECT_EQ(batch.records.size() + unit->counters().missed, 10u);
}

TEST_P(ClockUnit, CanBeAttachedOnceAtATimeAndAgainAfterDetach) {
  auto unit = make_unit(250);
  ASSERT_TRUE(unit->attach());
  const Status again = unit->attach();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  unit->detach();
  EXPECT_TRUE(unit->attach());
  unit->detach();
  unit->detach();
}

TEST_P(ClockUnit, LeaksNoDescriptorTimerOrHandlerOverManyCycles) {
#ifdef HINDSIGHT_SANITIZED
  constexpr int kCycles = 1'000;
#else
  constexpr int kCycles = 10'000;
#endif
  auto unit = make_unit(250);
  ASSERT_TRUE(unit->attach());
  unit->detach();
  const size_t descriptors = open_descriptors();
  const int timers = open_timers();
  const auto start = Clock::now();
  for (int i = 0; i < kCycles; ++i) {
    ASSERT_TRUE(unit->attach());
    unit->detach();
  }
  const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
  RecordProperty("microseconds_per_cycle", std::to_string(taken.count() / kCycles));
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(open_timers(), timers);
}

TEST_P(ClockUnit, SurvivesDestructionByAnotherThreadWhileAttached) {
  auto unit = make_unit(4000);
  std::atomic<int> step{0};
  std::thread guest([&] {
    EXPECT_TRUE(unit->attach());
    step.store(1, std::memory_order_release);
    while (step.load(std::memory_order_acquire) != 2) hindsight_test_busy_loop(50'000);
    for (int i = 0; i < 100; ++i) hindsight_test_busy_loop(50'000);
    auto next = make_unit(4000);
    const Status status = next->attach();
    EXPECT_TRUE(status) << status.error().describe();
    next->detach();
  });
  while (step.load(std::memory_order_acquire) != 1) std::this_thread::yield();
  unit.reset();
  step.store(2, std::memory_order_release);
  guest.join();
}

INSTANTIATE_TEST_SUITE_P(Sources, ClockUnit, testing::Values("clock/perf", "clock/timer"),
                         [](const auto& info) { return std::string(info.param).substr(6); });

class TimerSource : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto selection = select_unit("clock-timer"); !selection)
      GTEST_SKIP() << selection.error().message;
    unit_ = make("clock/timer", {.frequency_hz = 1000});
  }
  std::unique_ptr<Unit> unit_;
};

TEST_F(TimerSource, SaysWhenTimersAreUsedUp) {
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_SIGPENDING, &old), 0);
  const rlimit none{0, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
  const Status status = unit_->attach();
  const auto selection = select_unit("clock/timer");
  ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &old), 0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kResource);
  EXPECT_NE(status.error().message.find("EAGAIN"), std::string::npos);
  EXPECT_FALSE(selection);
  EXPECT_TRUE(unit_->attach());
  unit_->detach();
}

TEST_F(TimerSource, RefusesToTakeTheSignalFromSomebodyElse) {
  struct sigaction theirs {
  }, old{};
  theirs.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGPROF, &theirs, &old), 0);
  const Status status = unit_->attach();
  struct sigaction now {};
  sigaction(SIGPROF, &old, &now);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(now.sa_handler, theirs.sa_handler);
}

TEST_F(TimerSource, RefusesAThreadThatBlocksTheSignal) {
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  pthread_sigmask(SIG_BLOCK, &set, &old);
  const Status status = unit_->attach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("blocked"), std::string::npos);
}

TEST_F(TimerSource, SamplesAThreadForOneUnitOnly) {
  auto second = make("clock/timer");
  ASSERT_TRUE(unit_->attach());
  EXPECT_FALSE(second->attach());
  unit_->detach();
  EXPECT_TRUE(second->attach());
  second->detach();
}

TEST_F(TimerSource, IgnoresTheSignalWhenItIsNotItsTimers) {
  ASSERT_TRUE(unit_->attach());
  ASSERT_TRUE(unit_->set_frequency(0));
  raise(SIGPROF);
  Batch batch;
  unit_->drain(batch);
  unit_->detach();
  EXPECT_EQ(unit_->counters().non_guest + unit_->counters().samples, 0u);
  raise(SIGPROF);  // still handled: the default action would end the process
}

TEST(SampleQueue, DropsAndCountsTheNewestWhenFullAndRecovers) {
  SampleQueue queue;
  const auto push = [&](uint64_t pc) {
    RawSample* slot = queue.claim();
    if (!slot) return false;
    slot->pc = pc;
    queue.publish();
    return true;
  };
  for (uint64_t i = 0; i < SampleQueue::kCapacity; ++i) EXPECT_TRUE(push(i));
  EXPECT_FALSE(push(999));
  EXPECT_EQ(queue.dropped(), 1u);
  RawSample sample;
  ASSERT_TRUE(queue.pop(sample));
  EXPECT_EQ(sample.pc, 0u);
  EXPECT_TRUE(push(1000));
  uint64_t n = 0;
  while (queue.pop(sample)) ++n;
  EXPECT_EQ(n, SampleQueue::kCapacity);
  EXPECT_EQ(sample.pc, 1000u);
}

TEST(SampleQueue, LosesNothingUncountedBetweenTwoThreads) {
  constexpr uint64_t kSamples = 300'000;
  SampleQueue queue;
  std::atomic<bool> done{false};
  std::thread producer([&] {
    for (uint64_t i = 0; i < kSamples; ++i) {
      if (RawSample* slot = queue.claim()) {
        slot->pc = i;
        slot->period_ns = ~i;
        queue.publish();
      }
      if (i % 1024 == 0) std::this_thread::yield();
    }
    done.store(true, std::memory_order_release);
  });
  uint64_t taken = 0, broken = 0;
  RawSample sample;
  for (bool last = false;;) {
    if (queue.pop(sample)) {
      ++taken;
      broken += sample.period_ns != ~sample.pc;
      continue;
    }
    if (last) break;
    last = done.load(std::memory_order_acquire);
    if (!last) std::this_thread::yield();
  }
  producer.join();
  EXPECT_EQ(broken, 0u);
  EXPECT_EQ(taken + queue.dropped(), kSamples);
}

TEST(NullUnit, CountsRecordsAndHandsOutNothing) {
  auto unit = make("null");
  ASSERT_TRUE(unit);
  EXPECT_TRUE(unit->attach());
  EXPECT_TRUE(unit->events().empty());
  for (int i = 0; i < 100; ++i) record_event(unit->ring(), make_instructions_record(0x10));
  Batch batch;
  unit->drain(batch);
  unit->detach();
  EXPECT_TRUE(batch.records.empty() && batch.samples.empty());
  EXPECT_EQ(unit->counters().discarded + unit->counters().missed, 100u);
}

}  // namespace
}  // namespace hindsight::lwp
