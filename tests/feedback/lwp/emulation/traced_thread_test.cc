#include "feedback/lwp/emulation/traced_thread.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace hindsight::lwp {
namespace {

// A child that computes for ever, stopped in the middle of it.
class TracedThread : public testing::Test {
 protected:
  void SetUp() override {
    auto* const running = static_cast<std::atomic<bool>*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(running, MAP_FAILED);
    pid_ = fork();
    if (pid_ == 0) {
      running->store(true);
      for (;;) asm volatile("" : : : "memory");
    }
    while (!running->load()) sched_yield();
    munmap(running, 4096);
    ASSERT_EQ(ptrace(PTRACE_SEIZE, pid_, nullptr, PTRACE_O_EXITKILL), 0);
    ASSERT_EQ(ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr), 0);
    ASSERT_EQ(waitpid(pid_, &status_, __WALL), pid_);
    ASSERT_TRUE(WIFSTOPPED(status_));
  }
  void TearDown() override {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status_, __WALL);
  }
  pid_t pid_ = -1;
  int status_ = 0;
};

TEST_F(TracedThread, ExecutesASystemCallAndIsAsItWas) {
  const auto before = traced::read_registers(pid_);
  ASSERT_TRUE(before);
  uint64_t code_before = 0, code_after = 0;
  ProcessMemory memory(pid_);
  ASSERT_TRUE(memory.read(before->ip, std::as_writable_bytes(std::span(&code_before, 1))));
  EXPECT_EQ(traced::run_system_call(pid_, SYS_getpid, {}).result, pid_);
  EXPECT_EQ(traced::run_system_call(pid_, SYS_close, {12345, 0, 0}).result, -EBADF);
  const auto after = traced::read_registers(pid_);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->ip, before->ip);
  EXPECT_EQ(after->general, before->general);
  EXPECT_EQ(after->flags, before->flags);
  ASSERT_TRUE(memory.read(before->ip, std::as_writable_bytes(std::span(&code_after, 1))));
  EXPECT_EQ(code_after, code_before);
}

TEST_F(TracedThread, GetsSignalsAfterTheSystemCallThatCameDuringIt) {
  ASSERT_EQ(syscall(SYS_tgkill, pid_, pid_, SIGUSR1), 0);
  EXPECT_EQ(traced::run_system_call(pid_, SYS_getpid, {}).result, pid_);
  ASSERT_EQ(ptrace(PTRACE_CONT, pid_, nullptr, 0), 0);
  ASSERT_EQ(waitpid(pid_, &status_, __WALL), pid_);
  ASSERT_TRUE(WIFSTOPPED(status_));
  EXPECT_EQ(WSTOPSIG(status_), SIGUSR1);
}

TEST_F(TracedThread, MayDieOfTheSystemCallWhichIsReported) {
  const auto outcome = traced::run_system_call(pid_, SYS_exit_group, {3, 0, 0});
  EXPECT_FALSE(outcome.result);
  ASSERT_TRUE(outcome.death);
  EXPECT_TRUE(WIFEXITED(*outcome.death));
  EXPECT_EQ(WEXITSTATUS(*outcome.death), 3);
}

TEST_F(TracedThread, IsKnownByItsGroupParentAndMemory) {
  EXPECT_EQ(traced::group_of(pid_), pid_);
  EXPECT_EQ(traced::parent_of(pid_), getpid());
  EXPECT_TRUE(traced::share_memory(pid_, pid_, true));
  EXPECT_FALSE(traced::share_memory(pid_, getpid(), false));
  EXPECT_EQ(traced::group_of(-1), 0);
}

}  // namespace
}  // namespace hindsight::lwp
