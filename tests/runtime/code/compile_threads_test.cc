#include "runtime/code/compile_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <vector>

#include "base/thread_priority.h"
#include "tests/sanitizers.h"

namespace hindsight::rt {
namespace {

constexpr auto nothing = [] {};

TEST(CompileThreads, AreNotThereBeforeTheFirstTask) {
  CompileThreads threads(4);
  EXPECT_EQ(threads.count(), 0u);
  ASSERT_TRUE(threads.run(nothing, nothing));
  EXPECT_EQ(threads.count(), 1u);
}

TEST(CompileThreads, LeaveSignalsToTheHostsThreads) {
  CompileThreads threads(1);
  sigset_t mask;
  ASSERT_TRUE(threads.run([&] { (void)::pthread_sigmask(SIG_SETMASK, nullptr, &mask); }, nothing));
  EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);
}

TEST(CompileThreads, AreBelowGuestsBySoManySteps) {
  const int own = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  for (const int below : {0, 3}) {
    CompileThreads threads(1, below);
    int its = 0;
    ASSERT_TRUE(
        threads.run([&] { its = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }, nothing));
    EXPECT_EQ(its, std::min(own + below, kMostNice));
  }
}

TEST(CompileThreads, RunTasksInTheOrderInWhichTheyCame) {
  std::vector<int> order;  // of one thread's
  {
    CompileThreads threads(1);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(threads.enqueue([&order, i] { order.push_back(i); }));
    ASSERT_TRUE(threads.run([&order] { order.push_back(100); }, nothing));
    EXPECT_EQ(order.size(), 101u);
  }
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(CompileThreads, AreAsManyAsTheirTasksWantAndNotMoreThanAllowed) {
  CompileThreads threads(3);
  std::latch all(3);  // each task waits for the other two
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(threads.enqueue([&all] { all.arrive_and_wait(); }));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(threads.enqueue(nothing));
  all.wait();
  EXPECT_EQ(threads.count(), 3u);
}

TEST(CompileThreads, HaveOneMoreForWhatIsUrgent) {
  CompileThreads threads(1);
  std::latch begun(1), urgent(1), over(1);
  ASSERT_TRUE(threads.enqueue([&] {
    begun.count_down();
    urgent.wait();  // for ever, if what is urgent waited for it
    over.count_down();
  }));
  begun.wait();
  ASSERT_TRUE(threads.enqueue_urgent([&] { urgent.count_down(); }));
  over.wait();
  EXPECT_EQ(threads.count(), 2u);
}

TEST(CompileThreads, RunOneUrgentTaskAtATimeAndNoOtherInItsPlace) {
  CompileThreads threads(1);
  std::latch begun(1), may_end(1), all_urgent(20);
  std::atomic<int> urgent_at_once{0}, others_at_once{0}, done{0};
  const auto alone = [](std::atomic<int>& at_once) {
    EXPECT_EQ(++at_once, 1);
    --at_once;
  };
  ASSERT_TRUE(threads.enqueue([&] {
    ++others_at_once;
    begun.count_down();
    may_end.wait();
    --others_at_once;
  }));
  begun.wait();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(threads.enqueue([&] {
      alone(others_at_once);
      ++done;
    }));
    ASSERT_TRUE(threads.enqueue_urgent([&] {
      alone(urgent_at_once);
      all_urgent.count_down();
    }));
  }
  all_urgent.wait();
  EXPECT_EQ(done, 0) << "a thread that is there for urgent tasks took another one";
  may_end.count_down();
  ASSERT_TRUE(threads.run(nothing, nothing));
  EXPECT_EQ(done, 20);
  EXPECT_LE(threads.count(), 2u);
}

TEST(CompileThreads, RunEverythingBeforeTheyEnd) {
  std::atomic<int> done{0};
  {
    CompileThreads threads(2);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(threads.enqueue([&done] { ++done; }));
      ASSERT_TRUE(threads.enqueue_urgent([&done] { ++done; }));
    }
  }
  EXPECT_EQ(done, 100);
}

[[gnu::noinline]] size_t recurse(size_t bytes) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(bytes);
  return bytes <= sizeof frame ? 1 : recurse(bytes - sizeof frame) + static_cast<size_t>(frame[0] == 0);
}

TEST(CompileThreads, HaveStacksForDeepRecursion) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "frames are those of the sanitizer";
  CompileThreads threads(1);
  size_t depth = 0;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(threads.run([&depth] { depth = recurse(size_t{200} << 20); }, nothing));
  EXPECT_GT(depth, 0u);
}

TEST(CompileThreads, ThatCannotBeMadeAreAnErrorAndCounted) {
  CompileThreads threads(2);
  threads.set_least_stack(size_t{1} << 60);
  bool ran = false;
  const Status refused = threads.enqueue([&ran] { ran = true; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kResource);
  EXPECT_FALSE(threads.run([&ran] { ran = true; }, nothing));
  EXPECT_EQ(threads.refused(), 2u);
  EXPECT_EQ(threads.refused_tasks(), 2u);
  threads.set_least_stack(0);
  EXPECT_TRUE(threads.run(nothing, nothing));
  EXPECT_FALSE(ran);
}

TEST(CompileThreads, OfTheProcessThatWasForkedAreNotWaitedFor) {
  CompileThreads threads(1);
  ASSERT_TRUE(threads.run(nothing, nothing));
  const pid_t child = fork();
  if (child == 0) _exit(threads.run(nothing, nothing) ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace hindsight::rt
