#include "base/fork_gate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/sanitizers.h"

namespace hindsight {
namespace {

constexpr unsigned kPatienceSeconds = 60;

int status_of_child(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class TheForkGate : public testing::Test {
 protected:
  void SetUp() override {
    if (kThreadSanitizer)
      GTEST_SKIP() << "ThreadSanitizer does not support threads after a fork of a process with threads";
    ASSERT_TRUE(gate_.watches());
    alarm(kPatienceSeconds);  // for a fork that never gets its turn
  }
  void TearDown() override { alarm(0); }
  ForkGate& gate_ = ForkGate::of_process();
};

// More threads than processors, so that some are inside whenever one looks.
TEST_F(TheForkGate, LetsAForkInAmongThreadsThatComeOneAfterTheOther) {
  constexpr int kThreads = 16, kForks = 5;
  std::atomic<int> whole{0};  // odd numbers are half done
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++)
    threads.emplace_back([&] {
      while (!stop) {
        const InsideForkGate outer(gate_);
        whole++;
        for (int i = 0; i < 1000; i++) const InsideForkGate inner(gate_);
        whole--;
      }
    });
  while (whole == 0) std::this_thread::yield();
  const uint64_t before = gate_.forks();
  for (int i = 0; i < kForks; i++) {
    const pid_t child = fork();
    if (child == 0) {
      const InsideForkGate again(gate_);
      _exit(whole == 0 ? 0 : 1);
    }
    EXPECT_EQ(status_of_child(child), 0);
  }
  EXPECT_EQ(gate_.forks(), before + kForks);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TheForkGate, LeavesAThreadThatForksWhileItIsInsideThereInBothProcesses) {
  const InsideForkGate outer(gate_);
  const InsideForkGate inner(gate_);
  for (int i = 0; i < 3; i++) {
    const pid_t child = fork();
    if (child == 0) {
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(0);
      std::atomic<bool> entered{false};
      std::thread([&] {
        const InsideForkGate other(gate_);
        entered = true;
      }).join();
      _exit(status_of_child(grandchild) == 0 && entered ? 0 : 1);
    }
    EXPECT_EQ(status_of_child(child), 0);
  }
}

// A thread inside that waits for one which enters holds a fork up, but neither waits for ever.
TEST_F(TheForkGate, LetsWhoAThreadInsideWaitsForInEvenThoughAForkWaits) {
  std::atomic<bool> inside{false}, entered{false};
  std::thread waits([&] {
    const InsideForkGate gate(gate_);
    inside = true;
    inside.notify_all();
    entered.wait(false);
  });
  inside.wait(false);
  std::thread enters([&] {
    for (int i = 0; i < 3; i++) const InsideForkGate gate(gate_);
    entered = true;
    entered.notify_all();
  });
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(status_of_child(child), 0);
  EXPECT_TRUE(entered);
  waits.join();
  enters.join();
}

}  // namespace
}  // namespace hindsight
