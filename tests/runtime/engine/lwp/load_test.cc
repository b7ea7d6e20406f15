// Lightweight Profiling under load: many threads, short threads, slow readers, signals, fork and exec. Every
// record that a guest inserts is drained or counted as missed, and none is torn: each carries its own
// checksum.
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <fstream>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/patience.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

// Inserts n events: data2 counts up from 1, data1 is the caller's number, and the flags are a checksum of
// both. Returns how many found the ring full.
constexpr const char* kEmitter = R"((module
  (import "hindsight_lwp" "insert_event" (func $insert (param i64 i32 i32) (result i32)))
  (memory 1)
  (func $check (param $i i64) (param $who i32) (result i32)
    (i32.xor (i32.xor (i32.wrap_i64 (local.get $i)) (i32.wrap_i64 (i64.shr_u (local.get $i) (i64.const 16))))
             (i32.mul (local.get $who) (i32.const 40503))))
  (func (export "emit") (param $n i32) (param $who i32) (result i32) (local $i i64) (local $full i32)
    (block $done (loop $again
      (br_if $done (i32.eqz (local.get $n)))
      (local.set $i (i64.add (local.get $i) (i64.const 1)))
      (local.set $full (i32.add (local.get $full)
        (call $insert (local.get $i) (local.get $who) (call $check (local.get $i) (local.get $who)))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $again)))
    (local.get $full))
  (func (export "nothing"))
  (func (export "work") (param $n i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.and (local.get $n) (i32.const 0xfffc)))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n)))
    (local.get $sum))))";

uint16_t checksum(uint64_t i, uint32_t who) {
  return static_cast<uint16_t>(static_cast<uint32_t>(i) ^ static_cast<uint32_t>(i >> 16) ^ who * 40503u);
}

// Looks at every event: is it whole, and newer than the last one of its thread?
struct Ledger {
  std::array<std::atomic<uint64_t>, 64> drained{};  // by `who`
  std::array<uint64_t, 64> last{};                  // one callback at a time
  std::atomic<uint64_t> torn{0}, out_of_order{0};

  void look(const LwpRecord& r) {
    if (r.event_id != 255) return;
    if (r.data1 >= 64 || r.flags != checksum(r.data2, r.data1) || r.core_id != 0) {
      ++torn;
      return;
    }
    if (r.data2 <= last[r.data1]) ++out_of_order;
    last[r.data1] = r.data2;
    ++drained[r.data1];
  }
};

std::shared_ptr<Engine> watched_engine(TierMode tier, std::function<void(const LwpRecord&)> on_record = {}) {
  EngineConfig config;
  config.tier = tier;
  config.guest_lwp = true;
  config.on_record = std::move(on_record);
  auto engine = Engine::create(std::move(config));
  EXPECT_TRUE(engine) << engine.error().describe();
  return engine ? *engine : nullptr;
}

std::shared_ptr<Instance> emitter(Engine& engine, const std::shared_ptr<const Module>& module) {
  Linker linker(engine);
  return linker.instantiate(module).value();
}

uint64_t emit(Instance& instance, uint32_t n, uint32_t who) {
  const std::array args{Value::i32(static_cast<int32_t>(n)), Value::i32(static_cast<int32_t>(who))};
  auto full = instance.call("emit", args);
  EXPECT_TRUE(full) << full.error().describe();
  return full ? static_cast<uint64_t>((*full)[0].as_i32()) : 0;
}

size_t open_descriptors() {
  size_t count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// In pages, of which code and data that the kernel may drop are no part.
size_t resident_private_pages() {
  std::ifstream statm("/proc/self/statm");
  size_t size = 0, resident = 0, shared = 0;
  statm >> size >> resident >> shared;
  return resident - shared;
}

class Load : public testing::TestWithParam<TierMode> {};
INSTANTIATE_TEST_SUITE_P(Tiers, Load, testing::Values(TierMode::kBaseline, TierMode::kAuto),
                         [](const auto& info) {
                           return info.param == TierMode::kBaseline ? "baseline" : "automatic";
                         });

TEST_P(Load, SixtyFourThreadsAtOnceStoreOrMissEveryRecord) {
  constexpr uint32_t kThreads = 64;
  const uint32_t events = kThreadSanitizer ? 2'000 : 20'000;
  Ledger ledger;
  auto engine = watched_engine(GetParam(), [&](const LwpRecord& r) { ledger.look(r); });
  auto module = load(*engine, kEmitter);
  std::array<uint64_t, kThreads> full{};
  std::barrier together(kThreads);
  {
    std::vector<std::jthread> threads;
    for (uint32_t who = 0; who < kThreads; ++who) {
      threads.emplace_back([&, who] {
        auto instance = emitter(*engine, module);
        instance->call("nothing", {}).value();  // attached
        together.arrive_and_wait();             // all of them, at once
        full[who] = emit(*instance, events, who);
        together.arrive_and_wait();  // none is detached before all are done
      });
    }
  }
  const FeedbackReport report = engine->feedback_report();
  EXPECT_EQ(ledger.torn, 0u);
  EXPECT_EQ(ledger.out_of_order, 0u);
  uint64_t missed = 0, drained = 0;
  for (uint32_t who = 0; who < kThreads; ++who) {
    EXPECT_EQ(ledger.drained[who] + full[who], events) << "thread " << who;
    missed += full[who];
    drained += ledger.drained[who];
  }
  EXPECT_EQ(report.guest.inserted, uint64_t{kThreads} * events);
  EXPECT_EQ(report.guest.inserted_full, missed);
  EXPECT_EQ(report.counts.guest_records, drained);
  // And of all records, the counted ones of baseline code included: nothing is left in a ring now.
  const ProfilingCounts& c = report.counts;
  EXPECT_EQ(c.emitted,
            c.guest_records + c.branch_records + c.instruction_records + c.value_records + c.missed);
}

TEST_P(Load, ASlowMonitorMissesAndCounts) {
  std::latch release(1);
  Ledger ledger;
  auto engine = watched_engine(GetParam(), [&](const LwpRecord& r) {
    release.wait();  // as if it had got no processor
    ledger.look(r);
  });
  auto module = load(*engine, kEmitter);
  auto instance = emitter(*engine, module);
  const uint64_t full = emit(*instance, 50'000, 1);
  release.count_down();
  const FeedbackReport report = engine->feedback_report();
  EXPECT_GT(full, 0u);
  EXPECT_EQ(ledger.torn, 0u);
  EXPECT_EQ(ledger.out_of_order, 0u) << "what was overwritten was never handed out";
  EXPECT_EQ(ledger.drained[1] + full, 50'000u);
  EXPECT_GE(report.counts.missed, full);
}

TEST_P(Load, ThreadsThatStartAndEndQuicklyLoseNothingAndLeakNothing) {
  const uint32_t cycles = kSanitized ? 200 : 2'000;
  constexpr uint32_t kEvents = 50;
  Ledger ledger;
  auto engine = watched_engine(GetParam(), [&](const LwpRecord& r) { ledger.look(r); });
  auto module = load(*engine, kEmitter);
  std::atomic<uint64_t> full{0};
  const auto cycle = [&](uint32_t who) {
    std::thread([&, who] {
      auto instance = emitter(*engine, module);
      full += emit(*instance, kEvents, who);
    }).join();
    // The next thread of this number counts from one again.
    engine->feedback_report();
    ledger.last[who] = 0;
  };
  for (uint32_t i = 0; i < 50; ++i) cycle(0);  // warm: caches of threads' stacks, first compiles
  engine->wait_for_compiles();
  const size_t descriptors = open_descriptors(), maps = mappings(), pages = resident_private_pages();
  for (uint32_t i = 0; i < cycles; ++i) cycle(1);
  // The monitor may be opening or closing a counter at this very moment.
  for (const Patience patience; patience.lasts() && open_descriptors() > descriptors;)
    std::this_thread::yield();
  EXPECT_LE(open_descriptors(), descriptors);
  // ThreadSanitizer has mappings of its own meanwhile.
  EXPECT_LE(mappings(), maps + (kThreadSanitizer ? cycles / 4 : 8));
  if (!kAddressSanitizer && !kThreadSanitizer) {
    EXPECT_LE(resident_private_pages(), pages + cycles / 4)
        << "less than 1 KiB a cycle: no ring, queue or stack is kept";
  }
  EXPECT_EQ(ledger.torn, 0u);
  EXPECT_EQ(ledger.drained[0] + ledger.drained[1] + full, uint64_t{kEvents} * (50 + cycles));
  const FeedbackReport report = engine->feedback_report();
  EXPECT_EQ(report.guest.inserted, uint64_t{kEvents} * (50 + cycles));
}

TEST_P(Load, ThreadsOfManyEnginesComeAndGoTogether) {
  constexpr uint32_t kThreads = 8;
  const uint32_t rounds = kSanitized ? 8 : 40;
  for (uint32_t round = 0; round < rounds; ++round) {
    Ledger ledger;
    std::array<uint64_t, kThreads> full{};
    {
      auto engine = watched_engine(GetParam(), [&](const LwpRecord& r) { ledger.look(r); });
      auto module = load(*engine, kEmitter);
      std::vector<std::jthread> threads;
      for (uint32_t who = 0; who < kThreads; ++who)
        threads.emplace_back(
            [&full, who, engine, module] { full[who] = emit(*emitter(*engine, module), 300, who); });
      // The last thread to end takes the engine with it, detached or not.
      engine.reset();
      module.reset();
    }
    for (uint32_t who = 0; who < kThreads; ++who) EXPECT_EQ(ledger.drained[who] + full[who], 300u);
    EXPECT_EQ(ledger.torn, 0u);
  }
}

// ---------------------------------------------------------------- signals

std::atomic<uint64_t> g_signals{0};
void on_signal(int) {
  g_signals.fetch_add(1, std::memory_order_relaxed);
}

TEST_P(Load, SignalsDuringAttachAndDetachDisturbNothing) {
  struct sigaction action {
  }, before{};
  action.sa_handler = on_signal;  // without SA_RESTART: every system call of attaching may be interrupted
  sigaction(SIGUSR2, &action, &before);
  const uint32_t cycles = kSanitized ? 50 : 400;
  Ledger ledger;
  auto engine = watched_engine(GetParam(), [&](const LwpRecord& r) { ledger.look(r); });
  auto module = load(*engine, kEmitter);
  uint64_t full = 0;
  for (uint32_t i = 0; i < cycles; ++i) {
    std::atomic<bool> ended{false};
    std::barrier started(2), over(2);
    std::thread guest([&] {
      started.arrive_and_wait();
      auto instance = emitter(*engine, module);
      full += emit(*instance, 20, 2);
      ended.store(true, std::memory_order_release);
      over.arrive_and_wait();  // signalled up to here; detaching follows
    });
    const pthread_t target = guest.native_handle();
    started.arrive_and_wait();
    // Once at least: with one core the guest may be through before anybody else runs.
    do pthread_kill(target, SIGUSR2);
    while (!ended.load(std::memory_order_acquire));
    over.arrive_and_wait();
    guest.join();
    engine->feedback_report();
    ledger.last[2] = 0;
  }
  sigaction(SIGUSR2, &before, nullptr);
  EXPECT_GT(g_signals.load(), 0u);
  EXPECT_EQ(ledger.torn, 0u);
  EXPECT_EQ(ledger.drained[2] + full, uint64_t{cycles} * 20);
  EXPECT_FALSE(engine->feedback_report().unit.empty());
}

// ---------------------------------------------------------------- fork, exec

// Exit status of a child that must end by itself; -1: it hung and was killed, 1000 + n: signal n ended it.
int wait_for(pid_t child) {
  int status = 0;
  // The child arms an alarm of its own, which ends it where it hangs.
  if (waitpid(child, &status, 0) != child) return -2;
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? -1 : 1000 + WTERMSIG(status);
  return WEXITSTATUS(status);
}
constexpr unsigned kPatienceSeconds = 60;

TEST_P(Load, AForkedChildGoesOnWithoutItsMonitorAndTheParentNoticesNothing) {
  if (kThreadSanitizer)
    GTEST_SKIP()
        << "ThreadSanitizer does not support threads or exit handlers after a fork of a process with threads";
  Ledger ledger;
  auto engine = watched_engine(GetParam(), [&](const LwpRecord& r) { ledger.look(r); });
  auto module = load(*engine, kEmitter);
  auto instance = emitter(*engine, module);
  uint64_t full = emit(*instance, 1000, 3);
  constexpr int kForks = 20;
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kPatienceSeconds);
      // What ran before runs on; nobody drains its records, so the ring fills.
      const uint64_t child_full = emit(*instance, 5000, 3);
      const bool filled = child_full > 0 && child_full <= 5000;
      engine->wait_for_compiles();
      const bool says_so = engine->feedback_report().unit.starts_with("none");
      // Letting go of everything neither waits nor touches what the parent uses.
      instance.reset();
      module.reset();
      engine.reset();
      _exit(filled && says_so ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    EXPECT_EQ(wait_for(child), 0);
    ledger.last[3] = 0;
    full += emit(*instance, 100, 3);
    engine->feedback_report();
  }
  const FeedbackReport report = engine->feedback_report();
  EXPECT_EQ(ledger.torn, 0u);
  EXPECT_EQ(ledger.drained[3] + full, 1000u + 100 * kForks);
  EXPECT_EQ(report.guest.inserted, 1000u + 100 * kForks) << "the children's are not the parent's";
}

TEST_P(Load, AForkedChildMayLeaveThroughExit) {
  if (kThreadSanitizer)
    GTEST_SKIP()
        << "ThreadSanitizer does not support threads or exit handlers after a fork of a process with threads";
  if (kAddressSanitizer)
    GTEST_SKIP() << "LeakSanitizer, at the child's exit, waits for threads that only the parent has, and "
                    "reports what the child leaves to the end of its process";
  auto engine = watched_engine(GetParam());
  auto module = load(*engine, kEmitter);
  auto instance = emitter(*engine, module);
  emit(*instance, 10, 4);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);
    // Thread-local and static destructors run, with a unit attached.
    std::exit(7);
  }
  EXPECT_EQ(wait_for(child), 7);
  EXPECT_TRUE(instance->call("nothing", {}));
}

TEST_P(Load, AProgramStartedByAWatchedThreadIsNotDisturbed) {
  auto engine = watched_engine(GetParam());
  auto module = load(*engine, kEmitter);
  auto instance = emitter(*engine, module);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(instance->call("work", std::array{Value::i32(100'000)}));
    const pid_t child = fork();
    if (child == 0) {
      alarm(kPatienceSeconds);
      // Neither a timer nor a pending SIGPROF, which would end it, nor a descriptor of ours reaches the new
      // program.
      execl("/bin/sh", "sh", "-c",
            "for fd in /proc/self/fd/*; do case $(readlink $fd) in *perf_event*) exit 3;; esac; done; exit 0",
            static_cast<char*>(nullptr));
      _exit(2);
    }
    EXPECT_EQ(wait_for(child), 0);
  }
  // The parent is watched as before.
  const uint64_t samples = engine->feedback_report().counts.samples;
  for (const Patience patience; patience.lasts() && engine->feedback_report().counts.samples <= samples + 3;)
    ASSERT_TRUE(instance->call("work", std::array{Value::i32(20'000'000)}));
  EXPECT_GT(engine->feedback_report().counts.samples, samples + 3);
}

}  // namespace
}  // namespace hindsight
