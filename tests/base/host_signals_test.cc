#include "base/host_signals.h"

#include <gtest/gtest.h>

#include <thread>

namespace hindsight {
namespace {

sigset_t mask_here() {
  sigset_t mask;
  EXPECT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
  return mask;
}

TEST(HostSignals, AreKeptFromAThreadThatIsMadeMeanwhile) {
  sigset_t inside;
  {
    const HostSignalsBlocked blocked;
    std::thread([&] { inside = mask_here(); }).join();
  }
  for (const int hosts : {SIGTERM, SIGINT, SIGCHLD, SIGALRM, SIGURG, SIGPROF})
    EXPECT_EQ(sigismember(&inside, hosts), 1) << hosts;
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    EXPECT_EQ(sigismember(&inside, fault), 0) << fault;
}

TEST(HostSignals, AreLetThroughAfterwardsAsBefore) {
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &one, &before), 0);
  { const HostSignalsBlocked blocked; }
  const sigset_t after = mask_here();
  EXPECT_EQ(sigismember(&after, SIGUSR2), 1);
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

}  // namespace
}  // namespace hindsight
