#include "runtime/exec/quiescence.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;

bool is_live(std::span<const std::byte> code, std::chrono::milliseconds patience) {
  std::vector<bool> live(1, false);
  const jit::CodeRange range{code.data(), code.data() + code.size()};
  rt::scan_guest_threads({&range, 1}, live, patience);
  return live[0];
}

// The second scan would wait for an hour.
TEST(QuiescenceScans, WaitForAThreadThatBlocksTheSignalOnceAndNotAgainUntilItAnswers) {
  std::atomic<int> turn{0};
  const auto pass = [&](int next) {
    turn = next;
    turn.notify_all();
  };
  const auto await = [&](int wanted) {
    for (int now = turn; now < wanted; now = turn) turn.wait(now);
  };
  const auto engine = make_engine();
  Linker linker(*engine);
  linker.define_function("host", "stay", [&] {
    sigset_t urgent;
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    pthread_sigmask(SIG_BLOCK, &urgent, nullptr);
    pass(1);
    await(2);
    pthread_sigmask(SIG_UNBLOCK, &urgent, nullptr);  // what has waited comes here
    pass(3);
    await(4);
  });
  const auto guest = instantiate(linker, *engine, R"((module (import "host" "stay" (func $stay))
    (func (export "go") (call $stay))))");
  ASSERT_NE(guest, nullptr);
  std::thread inside([&] { EXPECT_TRUE(guest->call("go", {})); });
  await(1);
  const std::vector<std::byte> code(64);
  EXPECT_TRUE(is_live(code, 1ms));
  EXPECT_TRUE(is_live(code, 1h));
  pass(2);
  await(3);
  EXPECT_FALSE(is_live(code, 1h));
  pass(4);
  inside.join();
}

}  // namespace
}  // namespace hindsight
