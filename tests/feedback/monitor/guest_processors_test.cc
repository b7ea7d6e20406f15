#include "feedback/monitor/guest_processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <latch>
#include <list>
#include <thread>

namespace hindsight::feedback {
namespace {

class GuestProcessorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (usable_processors() < 2) GTEST_SKIP() << "one processor";
    if (ThreadProcessor::of_this_thread().get() == kUnknownProcessor)
      GTEST_SKIP() << "the C library registers no restartable sequences";
  }
  static void go_to(int processor) {
    cpu_set_t before, one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(processor), &one);
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  }
  // Of a thread that comes to where this one is; the kernel may part them before it asks, though hardly each time.
  uint64_t moves_of_one_that_comes_here() {
    std::thread([&] {
      for (int i = 0; i < 1000 && guests.moves() == 0; ++i) {
        go_to(here.get());
        guests.make_way();
      }
    }).join();
    return guests.moves();
  }

  GuestProcessors guests;
  const ThreadProcessor here = ThreadProcessor::of_this_thread();
};

TEST_F(GuestProcessorsTest, AreLeftByWhoeverMakesWay) {
  const GuestProcessors::Member guest(guests);
  EXPECT_EQ(moves_of_one_that_comes_here(), 1u);
}

TEST_F(GuestProcessorsTest, AreNoneOfAGuestsThatIsGone) {
  { const GuestProcessors::Member guest(guests); }
  EXPECT_EQ(moves_of_one_that_comes_here(), 0u);
}

TEST_F(GuestProcessorsTest, AreStayedOnWhereGuestsRunOnAll) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  std::list<std::jthread> threads;
  std::latch there(CPU_COUNT(&all)), over(1);
  for (size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &all)) continue;
    threads.emplace_back([&, i] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(i, &one);
      EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
      const GuestProcessors::Member guest(guests);
      there.count_down();
      over.wait();
    });
  }
  there.wait();
  EXPECT_EQ(moves_of_one_that_comes_here(), 0u);
  over.count_down();
}

}  // namespace
}  // namespace hindsight::feedback
