#include "runtime/instance/wait_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

namespace hindsight::rt {
namespace {

using End = WaitQueue::End;

TEST(WaitQueue, AnswersAtOnceWhereNobodyShallSleep) {
  WaitQueue queue;
  Parker parker;
  uint32_t word = 5;
  uint64_t wide = 6;
  EXPECT_EQ(queue.wait(parker, &word, 4, -1), End::kOther);
  EXPECT_EQ(queue.wait(parker, &wide, 5, -1), End::kOther);
  EXPECT_EQ(queue.wait(parker, &word, 5, 0), End::kTimedOut);
  EXPECT_EQ(queue.wait(parker, &wide, 6, 1), End::kTimedOut);
  EXPECT_EQ(queue.notify(&word, 9), 0u);
  parker.set_interrupted(true);
  EXPECT_EQ(queue.wait(parker, &word, 5, -1), End::kInterrupted);
  parker.set_interrupted(false);
  EXPECT_EQ(queue.wait(parker, &word, 5, 0), End::kTimedOut);
  EXPECT_EQ(queue.wait(parker, &word, 4, std::numeric_limits<int64_t>::max()), End::kOther);
}

TEST(WaitQueue, WakesWhoWaitsThereAndNobodyElse) {
  WaitQueue queue;
  std::array<uint32_t, 2> words{};
  std::array<End, 2> ends{};
  std::array<Parker, 2> parkers;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; i++)
    threads.emplace_back([&, i] { ends[i] = queue.wait(parkers[i], &words[i], 0, -1); });
  while (queue.notify(&words[1], 1) == 0) std::this_thread::yield();
  threads[1].join();
  EXPECT_EQ(ends[1], End::kWoken);
  parkers[0].set_interrupted(true);
  threads[0].join();
  EXPECT_EQ(ends[0], End::kInterrupted);
}

// Two threads take turns: a lost notification would hang.
TEST(WaitQueue, LosesNoNotification) {
  constexpr uint32_t kRounds = 20'000;
  WaitQueue queue;
  uint32_t turn = 0;
  const std::atomic_ref<uint32_t> shared(turn);
  const auto play = [&](uint32_t me) {
    Parker parker;
    for (uint32_t i = 0; i < kRounds; i++) {
      for (uint32_t seen; (seen = shared.load()) % 2 != me;) queue.wait(parker, &turn, seen, -1);
      shared.fetch_add(1);
      queue.notify(&turn, 1);
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn, 2 * kRounds);
}

}  // namespace
}  // namespace hindsight::rt
