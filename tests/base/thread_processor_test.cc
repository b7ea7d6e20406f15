#include "base/thread_processor.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <thread>
#include <vector>

namespace hindsight {
namespace {

cpu_set_t usable() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

std::vector<int> members(const cpu_set_t& set) {
  std::vector<int> found;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) found.push_back(i);
  return found;
}

void use_only(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
}

// What a test does to its thread's affinity ends with the thread.
void on_a_thread(const auto& test) {
  std::thread(test).join();
}

TEST(ThreadProcessor, IsReadByOtherThreadsToo) {
  on_a_thread([] {
    const ThreadProcessor processor = ThreadProcessor::of_this_thread();
    if (processor.get() == kUnknownProcessor)
      GTEST_SKIP() << "the C library registers no restartable sequences";
    for (const int each : members(usable())) {
      use_only(each);
      EXPECT_EQ(processor.get(), each);
      on_a_thread([&] { EXPECT_EQ(processor.get(), each); });
    }
  });
}

TEST(LeaveProcessors, GoesToAnotherAndMayUseWhatItMightBefore) {
  on_a_thread([] {
    const cpu_set_t before = usable();
    if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one processor";
    // The kernel may bring it back at once, though hardly each time.
    bool left = false;
    for (int i = 0; i < 1000 && !left; ++i) {
      const std::array here = {::sched_getcpu()};
      EXPECT_TRUE(leave_processors(here));
      left = ::sched_getcpu() != here[0];
    }
    EXPECT_TRUE(left);
    EXPECT_EQ(members(usable()), members(before));
  });
}

TEST(LeaveProcessors, StaysWhereThereIsNoOther) {
  on_a_thread([] {
    EXPECT_FALSE(leave_processors(members(usable())));
    const int here = ::sched_getcpu();
    use_only(here);
    EXPECT_FALSE(leave_processors(std::array{here, kUnknownProcessor}));
    EXPECT_EQ(members(usable()), std::vector{here});
    EXPECT_EQ(usable_processors(), 1u);
  });
}

}  // namespace
}  // namespace hindsight
