#include <gmock/gmock.h>

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "runtime/engine/handles.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kInterruptGuest = R"((module
  (import "host" "wait" (func $wait))
  (memory 1)
  (func $spin (export "spin") (loop br 0))
  (func (export "spin_in_call") call $spin)
  (func $recurse (export "calls") (loop (call $leaf (i32.const 1)) drop br 0))
  (func $leaf (param i32) (result i32) local.get 0)
  (func (export "wait") (loop call $wait br 0))
  (func (export "fill") (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) br 0))
  (func (export "stores") (loop (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (i32.const 1))) br 0))
  (func (export "beyond") (result i32) (i32.load (i32.const 65536)))
  (func (export "fine") (result i32) i32.const 42)))";

// For tests that are not about how the thread is reached: where signals are delayed, a loop that sees the
// mark.
constexpr const char* kEndless = kThreadSanitizer ? "wait" : "spin";

class Interruption : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    engine_ = make_engine(GetParam());
    Linker linker(*engine_);
    linker.define_function("host", "wait", [this] {
      waiting_ = true;
      waiting_.notify_all();
    });
    guest_ = instantiate(linker, *engine_, kInterruptGuest);
    ASSERT_NE(guest_, nullptr);
    (void)guest_->call("fine", {});
  }
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Instance> guest_;
  std::atomic<bool> waiting_{false};
};
INSTANTIATE_TEST_SUITE_P(EveryMode, Interruption, kEveryMode, mode_name);

TEST_P(Interruption, EndsATightLoop) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  guest_->set_timeout(30ms);
  EXPECT_EQ(trap_of(*guest_, "spin"), "timed out");
  guest_->set_timeout(20ms);
  EXPECT_EQ(trap_of(*guest_, "spin_in_call"), "timed out");
  guest_->set_timeout(0ms);
  ASSERT_NE(guest_->last_trap(), nullptr);
  EXPECT_EQ(functions_of(guest_->last_trap()).back(), "spin_in_call");
  EXPECT_TRUE(guest_->call("fine", {}));
}

TEST_P(Interruption, EndsLoopsThatAreMostlyInCallsBuiltinsAndHostFunctions) {
  for (const char* function : {"calls", "fill", "wait"}) {
    // Only a signal ends the others, where calls are inlined.
    if (kThreadSanitizer && function != std::string_view("wait")) continue;
    guest_->set_timeout(20ms);
    EXPECT_EQ(trap_of(*guest_, function), "timed out") << function;
    guest_->set_timeout(0ms);
    EXPECT_TRUE(guest_->call("fine", {}));
  }
}

// With all signals blocked, so that nothing but the runtime's own functions can notice. Loops like these are hardly ever
// in generated code, where a signal would meet them.
TEST_P(Interruption, NeedsNoSignalInALoopOfWhatTheRuntimeDoes) {
  sigset_t all, before;
  sigfillset(&all);
  Linker linker(*engine_);
  linker.define_function("host", "ready", [&] { pthread_sigmask(SIG_BLOCK, &all, nullptr); });
  const auto guest = instantiate(linker, *engine_, R"((module
    (import "host" "ready" (func $ready))
    (memory (export "memory") 1 2)
    (table $t 4 funcref)
    (tag $none)
    (data $d "0123456789")
    (elem $e func $leaf)
    (func $leaf)
    (func $go (i32.atomic.store8 (i32.const 65000) (i32.const 1)))
    (func (export "memory.fill") (call $ready) (call $go) (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 60000)) br 0))
    (func (export "memory.copy") (call $ready) (call $go) (loop (memory.copy (i32.const 0) (i32.const 8) (i32.const 32768)) br 0))
    (func (export "memory.init") (call $ready) (call $go) (loop (memory.init $d (i32.const 0) (i32.const 0) (i32.const 9)) br 0))
    (func (export "memory.grow") (call $ready) (call $go) (loop (drop (memory.grow (i32.const 0))) br 0))
    (func (export "table.grow") (call $ready) (call $go) (loop (drop (table.grow $t (ref.null func) (i32.const 0))) br 0))
    (func (export "table.fill") (call $ready) (call $go) (loop (table.fill $t (i32.const 0) (ref.null func) (i32.const 4)) br 0))
    (func (export "table.copy") (call $ready) (call $go) (loop (table.copy (i32.const 0) (i32.const 1) (i32.const 2)) br 0))
    (func (export "table.init") (call $ready) (call $go) (loop (table.init $e (i32.const 0) (i32.const 0) (i32.const 1)) br 0))
    (func (export "notify") (call $ready) (call $go) (loop (drop (memory.atomic.notify (i32.const 0) (i32.const 0))) br 0))
    (func (export "throw") (call $ready) (call $go) (loop (try (do (throw $none)) (catch_all)) br 0))))");
  ASSERT_NE(guest, nullptr);
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  for (const char* function : {"memory.fill", "memory.copy", "memory.init", "memory.grow", "table.grow",
                               "table.fill", "table.copy", "table.init", "notify", "throw"}) {
    auto& in_loop = reinterpret_cast<uint8_t&>(guest->memory().value()[65000]);
    in_loop = 0;
    std::thread other([&] {
      while (std::atomic_ref(in_loop).load() == 0) std::this_thread::yield();
      guest->interrupt();
    });
    EXPECT_EQ(trap_of(*guest, function), "interrupted") << function;
    ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
    other.join();
    EXPECT_EQ(functions_of(guest->last_trap()), std::vector<std::string>{function});
  }
}

TEST_P(Interruption, FromAnotherThreadEndsTheEntryThatRuns) {
  std::thread other([&] {
    waiting_.wait(false);
    guest_->interrupt();
  });
  EXPECT_EQ(trap_of(*guest_, "wait"), "interrupted");
  other.join();
}

TEST_P(Interruption, OfNobodyEndsTheNextCallBeforeItBegins) {
  guest_->interrupt();
  guest_->interrupt();  // the same one still
  EXPECT_EQ(trap_of(*guest_, "fine"), "interrupted");
  ASSERT_NE(guest_->last_trap(), nullptr);
  EXPECT_EQ(guest_->last_trap()->detail, "before it began");
  EXPECT_TRUE(guest_->call("fine", {}));
}

TEST_P(Interruption, CanBeTakenBack) {
  guest_->interrupt();
  guest_->clear_interrupt();
  EXPECT_TRUE(guest_->call("fine", {}));
}

// However it meets the calls, which are short and come one after the other.
TEST_P(Interruption, EndsExactlyOneCallEachTime) {
  constexpr int kInterruptions = 100;  // each takes as long as it takes to wake a thread
  std::atomic<int> asked{0}, ended{0};
  std::thread other([&] {
    for (int i = 1; i <= kInterruptions; i++) {
      guest_->interrupt();
      asked.store(i);
      // The next one is another one only once this one has ended a call.
      for (int seen = ended; seen < i; seen = ended) ended.wait(seen);
    }
  });
  while (ended < kInterruptions) {
    auto result = guest_->call("fine", {});
    if (result) continue;
    ASSERT_EQ(result.error().message, "interrupted");
    ended++;
    ended.notify_one();
  }
  other.join();
  EXPECT_EQ(asked, kInterruptions);
  for (int i = 0; i < 100; i++) ASSERT_TRUE(guest_->call("fine", {})) << i;
}

TEST_P(Interruption, OfACallInsideAnotherOneEndsBothAndNoThird) {
  std::string inner;
  Linker linker(*engine_);
  std::shared_ptr<Instance> guest;
  linker.define_function("host", "wait", [&] {
    guest->interrupt();
    inner = trap_of(*guest, "fine");
  });
  guest = instantiate(linker, *engine_, kInterruptGuest);
  EXPECT_EQ(trap_of(*guest, "wait"), "interrupted");
  EXPECT_TRUE(guest->call("fine", {}));
}

TEST_P(Interruption, OfATimeLimitNeverHitsALaterCall) {
  for (int i = 0; i < 10; i++) {
    guest_->set_timeout(1ms);
    ASSERT_EQ(trap_of(*guest_, kEndless), "timed out");
    guest_->set_timeout(0ms);
    // Repeated signals may still be on their way.
    for (int k = 0; k < 200; k++) ASSERT_TRUE(guest_->call("fine", {})) << i << " " << k;
  }
}

TEST_P(Interruption, ByATimeLimitCountsFromTheCallsBeginning) {
  guest_->set_timeout(std::chrono::hours(1));
  EXPECT_TRUE(guest_->call("fine", {}));
  // A limit that has been there for longer than it is long.
  guest_->set_timeout(200ms);
  const auto end = std::chrono::steady_clock::now() + 250ms;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  guest_->set_timeout(std::chrono::hours(1));
  EXPECT_TRUE(guest_->call("fine", {}));
  guest_->set_timeout(1ms);
  EXPECT_EQ(trap_of(*guest_, kEndless), "timed out");
  EXPECT_EQ(trap_of(*guest_, kEndless), "timed out") << "each call has it";
}

TEST_P(Interruption, ByATimeLimitThatIsTakenBackDoesNotHappen) {
  guest_->set_timeout(1ms);
  guest_->set_timeout(0ms);
  const auto end = std::chrono::steady_clock::now() + 10ms;
  while (std::chrono::steady_clock::now() < end) ASSERT_TRUE(guest_->call("fine", {}));
}

TEST_P(Interruption, ByATimeLimitReachesAThreadThatBlockedAllSignalsBetweenCalls) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  sigset_t all, before;
  sigfillset(&all);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &all, &before), 0);
  for (const char* function : {"spin", "fill", "stores"}) {
    guest_->set_timeout(20ms);
    EXPECT_EQ(trap_of(*guest_, function), "timed out") << function;
    guest_->set_timeout(0ms);
    EXPECT_EQ(trap_of(*guest_, "beyond"), "out of bounds memory access") << "with the signals of faults";
  }
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

TEST(SignalsOfInterruption, LeaveTheHostItsOwnOfTheSameKind) {
  // In a process that has not run a guest yet.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static std::atomic<int> seen{0};
  EXPECT_EXIT(
      {
        struct sigaction action {};
        action.sa_handler = [](int) { seen++; };
        sigaction(SIGURG, &action, nullptr);
        auto engine = make_engine();
        Linker linker(*engine);
        auto guest = instantiate(linker, *engine,
                                 "(module (func (export \"spin\") (loop br 0)) (func (export \"fine\")))");
        (void)guest->call("fine", {});
        raise(SIGURG);
        if (seen != 1) _exit(1);
        guest->set_timeout(20ms);
        if (!kThreadSanitizer && trap_of(*guest, "spin") != "timed out") _exit(2);
        _exit(seen == 1 ? 0 : 3);
      },
      testing::ExitedWithCode(0), "");
}

// A guest whose host function blocks signals, in the middle of a call.
class BlockedInside : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &before_), 0); }
  void TearDown() override { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Interrupts it when it is in its loop, which it leaves by itself if it is told of what cannot be reached.
  std::string interrupted(const sigset_t& blocked) {
    EngineConfig config;
    config.tier = TierMode::kBaseline;
    config.profiling = false;
    std::atomic<uint8_t*> memory{nullptr};
    config.log = [&](LogLevel, std::string_view, std::string_view message) {
      if (message.find("SIGURG") == std::string_view::npos) return;
      warnings_.emplace_back(message);
      // To where the mark is seen.
      if (message.find("cannot end") != std::string_view::npos) std::atomic_ref(*memory.load()).store(1);
    };
    auto engine = Engine::create(config).value();
    Linker linker(*engine);
    std::shared_ptr<Instance> guest;
    linker.define_function("host", "block", [&] {
      pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
      memory = reinterpret_cast<uint8_t*>(guest->memory().value().data());
      memory.notify_all();
    });
    guest = instantiate(linker, *engine,
                        R"((module (import "host" "block" (func $block)) (memory (export "memory") 1)
      (func $nothing)
      (func (export "go") (call $block)
        (i32.atomic.store8 (i32.const 4) (i32.const 1))
        (loop (br_if 0 (i32.eqz (i32.atomic.load8_u (i32.const 0)))))
        (loop (call $nothing) (br 0)))))");
    std::thread other([&] {
      memory.wait(nullptr);
      while (std::atomic_ref(memory.load()[4]).load() == 0) std::this_thread::yield();
      guest->interrupt();
    });
    const std::string trap = trap_of(*guest, "go");
    other.join();
    return trap;
  }
  static sigset_t set_of(std::initializer_list<int> signals) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : signals) sigaddset(&set, signal);
    return set;
  }
  sigset_t before_{};
  std::vector<std::string> warnings_;
};

TEST_F(BlockedInside, TheUsualSignalIsReplacedByOneOfFaults) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  EXPECT_EQ(interrupted(set_of({SIGURG})), "interrupted");
  EXPECT_THAT(warnings_, testing::ElementsAre(testing::HasSubstr("SIGSEGV goes to thread")));
}

TEST_F(BlockedInside, TheUsualSignalAndOneOfFaultsAreReplacedByTheOther) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  EXPECT_EQ(interrupted(set_of({SIGURG, SIGSEGV})), "interrupted");
  EXPECT_THAT(warnings_, testing::ElementsAre(testing::HasSubstr("SIGBUS goes to thread")));
}

TEST_F(BlockedInside, AllSignalsAreSaidToBeOutOfReach) {
  sigset_t all;
  sigfillset(&all);
  EXPECT_EQ(interrupted(all), "interrupted");
  EXPECT_THAT(warnings_,
              testing::ElementsAre(testing::HasSubstr("neither SIGSEGV nor SIGBUS can take its place")));
}

TEST_F(BlockedInside, AllSignalsAreLetThroughAgainUnderATimeLimit) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  auto engine = make_engine();
  Linker linker(*engine);
  linker.define_function("host", "block", [] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  });
  std::shared_ptr<Instance> guest;
  linker.define_function("host", "block_and_spin", [&]() -> Status {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    const auto result = guest->call("spin", {});
    return result ? Status{} : std::unexpected(result.error());
  });
  guest = instantiate(linker, *engine, R"((module
    (import "host" "block" (func $block)) (import "host" "block_and_spin" (func $block_and_spin)) (memory 1)
    (func (export "spin") (loop br 0))
    (func (export "block_and_spin") (call $block) (loop br 0))
    (func (export "block_and_spin_inside") (call $block_and_spin))
    (func (export "block_and_leave") (call $block) (drop (i32.load (i32.const 65536))))))");
  ASSERT_NE(guest, nullptr);
  guest->set_timeout(20ms);
  EXPECT_EQ(trap_of(*guest, "block_and_spin"), "timed out");
  EXPECT_EQ(trap_of(*guest, "block_and_spin_inside"), "timed out");
  guest->set_timeout(std::chrono::hours(1));
  EXPECT_EQ(trap_of(*guest, "block_and_leave"), "out of bounds memory access");
}

// What ends a process is tried in one of its own.
class InAProcessOfItsOwn : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(InAProcessOfItsOwn, SignalsMayBeBlockedBetweenCallsFromTheFirstOneOn) {
  EXPECT_EXIT(
      {
        auto engine = make_engine();
        Linker linker(*engine);
        auto guest = instantiate(linker, *engine, R"((module (memory 1)
          (func (export "beyond") (drop (i32.load (i32.const 65536)))) (func (export "fine"))))");
        sigset_t all;
        sigset_t none;
        sigfillset(&all);
        sigemptyset(&none);
        // Those of the thread's first calls are looked at one by one, so that the habit is known by then.
        for (int i = 0; i < 1000; i++) {
          if (!guest->call("fine", {})) _exit(1);
          pthread_sigmask(SIG_SETMASK, &all, nullptr);
          if (trap_of(*guest, "beyond") != "out of bounds memory access") _exit(2);
          pthread_sigmask(SIG_SETMASK, &none, nullptr);
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(InAProcessOfItsOwn, AHandlerThatTakesThePlaceOfTheUsualSignalsIsNamedAndGoneAround) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  EXPECT_EXIT(
      {
        EngineConfig config;
        config.tier = TierMode::kBaseline;
        config.profiling = false;
        static std::atomic<int> said{0};
        config.log = [](LogLevel, std::string_view, std::string_view message) {
          if (message.find("another handler of signal") != std::string_view::npos) said++;
        };
        auto engine = Engine::create(config).value();
        Linker linker(*engine);
        auto guest = instantiate(linker, *engine,
                                 "(module (func (export \"spin\") (loop br 0)) (func (export \"fine\")))");
        (void)guest->call("fine", {});
        struct sigaction action {};
        action.sa_handler = [](int) {};
        sigaction(SIGURG, &action, nullptr);
        guest->set_timeout(20ms);
        if (trap_of(*guest, "spin") != "timed out") _exit(1);
        _exit(said == 1 ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
}

TEST(TheTimer, KeepsNoStoreWhoseCallItEnds) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  auto engine = make_engine();
  Linker linker(*engine);
  auto guest = instantiate(linker, *engine, "(module (func (export \"spin\") (loop br 0)))");
  ASSERT_NE(guest, nullptr);
  const std::shared_ptr<rt::Store>& store = static_cast<rt::InstanceHandle&>(*guest).state()->store;
  const long kept = store.use_count();
  std::atomic<long> kept_by_then{0};
  // By the timer's thread, which ends the call.
  store->entry_state().add_listener([&](bool interrupted) {
    if (interrupted) kept_by_then = store.use_count();
  });
  guest->set_timeout(1ms);
  EXPECT_EQ(trap_of(*guest, "spin"), "timed out");
  EXPECT_EQ(kept_by_then, kept);
}

TEST(InterruptedHostCalls, WakeABlockedWasiCall) {
  auto engine = make_engine();
  Linker linker(*engine);
  ASSERT_TRUE(linker.define_wasi(WasiConfig{}));
  // poll_oneoff on a clock, one hour from now.
  auto guest = instantiate(linker, *engine, R"((module
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (func (export "sleep") (i32.store (i32.const 16) (i32.const 1)) (i64.store (i32.const 24) (i64.const 3600000000000))
      (drop (call $poll (i32.const 0) (i32.const 100) (i32.const 1) (i32.const 200))))))");
  guest->set_timeout(30ms);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(trap_of(*guest, "sleep"), "timed out");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
}

}  // namespace
}  // namespace hindsight
