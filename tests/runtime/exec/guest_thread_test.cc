#include "runtime/exec/guest_thread.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/sanitizers.h"

namespace hindsight::rt {
namespace {

constexpr unsigned kPatienceSeconds = 60;

int threads_in_list() {
  int threads = 0;
  for_each_guest_thread([&](GuestThread&) { threads++; });
  return threads;
}

// As while a scan waits for the answers of threads that do not get to run.
TEST(ListOfThreads, IsTheChildsOwnThoughAnotherThreadWasGoingThroughItAtTheFork) {
  if (kThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer does not support threads after a fork of a process with threads";
  GuestThread& mine = this_guest_thread();
  std::atomic<bool> visits{false}, forked{false};
  std::thread visitor([&] {
    for_each_guest_thread([&](GuestThread&) {
      visits = true;
      visits.notify_all();
      forked.wait(false);
    });
  });
  visits.wait(false);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);  // for one that hangs
    bool right = threads_in_list() == 1 && mine.tid == gettid();
    std::thread([&] {
      (void)this_guest_thread();
      right = right && threads_in_list() == 2;
    }).join();
    _exit(right && threads_in_list() == 1 ? 0 : 1);
  }
  forked = true;
  forked.notify_all();
  visitor.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ListOfThreads, HasEachThreadFromItsFirstEntryToItsEnd) {
  (void)this_guest_thread();
  const int before = threads_in_list();
  std::atomic<int> in_list{0};
  std::atomic<bool> end_first{false};
  const auto enter = [&] {
    (void)this_guest_thread();
    in_list++;
    in_list.notify_all();
  };
  std::thread first([&] {
    enter();
    end_first.wait(false);
  });
  in_list.wait(0);
  std::thread(enter).join();
  std::thread(enter).join();
  EXPECT_EQ(in_list, 3);
  EXPECT_EQ(threads_in_list(), before + 1);
  end_first = true;
  end_first.notify_all();
  first.join();
  EXPECT_EQ(threads_in_list(), before);
}

}  // namespace
}  // namespace hindsight::rt
