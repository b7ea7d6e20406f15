#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kGuest = R"((module
  (import "host" "wait" (func $wait))
  (memory 1)
  (func $spin (export "spin") (loop br 0))
  (func (export "spin_in_call") call $spin)
  (func $recurse (export "calls") (loop (call $leaf (i32.const 1)) drop br 0))
  (func $leaf (param i32) (result i32) local.get 0)
  (func (export "wait") (loop call $wait br 0))
  (func (export "fill") (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) br 0))
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
    guest_ = instantiate(linker, *engine_, kGuest);
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
  EXPECT_EQ(trap_of(*guest_, "spin"), "interrupted");
  guest_->set_timeout(20ms);
  EXPECT_EQ(trap_of(*guest_, "spin_in_call"), "interrupted");
  ASSERT_NE(guest_->last_trap(), nullptr);
  EXPECT_EQ(functions_of(guest_->last_trap()).back(), "spin_in_call");
  EXPECT_TRUE(guest_->call("fine", {}));
}

TEST_P(Interruption, EndsLoopsThatAreMostlyInCallsBuiltinsAndHostFunctions) {
  for (const char* function : {"calls", "fill", "wait"}) {
    // Only a signal ends the others, where calls are inlined.
    if (kThreadSanitizer && function != std::string_view("wait")) continue;
    guest_->set_timeout(20ms);
    EXPECT_EQ(trap_of(*guest_, function), "interrupted") << function;
    EXPECT_TRUE(guest_->call("fine", {}));
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

TEST_P(Interruption, NeverHitsALaterEntry) {
  // Interrupts fly all the time; a short call may be ended by one that was made during it, but one that was
  // made when nobody was inside, or that belonged to an earlier call, must not be seen.
  for (int i = 0; i < 300; i++) {
    guest_->interrupt();  // nobody inside: no effect
    auto fine = guest_->call("fine", {});
    ASSERT_TRUE(fine) << i;
    if (i % 30 == 0) {
      guest_->set_timeout(1ms);
      ASSERT_EQ(trap_of(*guest_, kEndless), "interrupted");
      // The repeated signals of that interruption may still be on their way.
      for (int k = 0; k < 200; k++) ASSERT_TRUE(guest_->call("fine", {})) << i << " " << k;
    }
  }
}

TEST_P(Interruption, ACancelledTimeoutDoesNotHappen) {
  guest_->set_timeout(1ms);
  guest_->set_timeout(0ms);
  const auto end = std::chrono::steady_clock::now() + 10ms;
  while (std::chrono::steady_clock::now() < end) ASSERT_TRUE(guest_->call("fine", {}));
}

TEST_P(Interruption, ATimeoutThatPassesBetweenEntriesEndsTheNextOneOnly) {
  guest_->set_timeout(1ms);
  const auto end = std::chrono::steady_clock::now() + 5ms;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(trap_of(*guest_, kEndless), "interrupted");
  EXPECT_TRUE(guest_->call("fine", {}));
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
  EXPECT_EQ(trap_of(*guest, "sleep"), "interrupted");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
}

}  // namespace
}  // namespace hindsight
