#include "runtime/exec/signal_handlers.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>

#include "runtime/exec/guest_thread.h"
#include "tests/sanitizers.h"

namespace hindsight::rt {
namespace {

// Both wait when they are let through, so that the handler of the one has begun when that of the other takes its own.
TEST(SignalsInTheKicksPlace, AreEachTakenForOursAndTheNextOneForTheHosts) {
  HINDSIGHT_SKIP_WITHOUT_PROMPT_SIGNALS();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        for (const int fault : {SIGSEGV, SIGBUS}) std::signal(fault, SIG_DFL);  // sanitizers have handlers
        GuestThread& thread = this_guest_thread();
        sigset_t faults;
        sigemptyset(&faults);
        for (const int fault : {SIGSEGV, SIGBUS}) sigaddset(&faults, fault);
        pthread_sigmask(SIG_BLOCK, &faults, nullptr);
        for (const int fault : {SIGSEGV, SIGBUS})
          if (!kick_otherwise(thread, fault)) _exit(1);
        if (thread.kicks_otherwise != 2) _exit(2);
        pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
        if (thread.kicks_otherwise != 0) _exit(3);
        raise(SIGSEGV);
        _exit(4);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(SignalsInTheKicksPlace, AreNotExpectedWhereTheyCouldNotBeSent) {
  GuestThread nobody;
  nobody.tid = -1;
  EXPECT_FALSE(kick_otherwise(nobody, SIGSEGV));
  EXPECT_EQ(nobody.kicks_otherwise, 0u);
}

}  // namespace
}  // namespace hindsight::rt
