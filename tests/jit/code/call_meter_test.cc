#include "jit/code/call_meter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace hindsight::jit {
namespace {

int sum(int a, int b, int c, int d, int e, int f, double g) {
  return a + b + c + d + e + f + static_cast<int>(g);
}
int other(int, int, int, int, int, int, double) {
  return -1;
}
using Function = int (*)(int, int, int, int, int, int, double);

Function entry_of(const CallMeter& meter) {
  return reinterpret_cast<Function>(reinterpret_cast<uintptr_t>(meter.entry()));
}

TEST(CallMeter, CountsCallsAndLeavesArgumentsAndResultAlone) {
  auto arena = *CodeArena::create(1 << 20);
  auto meter = *CallMeter::create(*arena, reinterpret_cast<const void*>(sum));
  EXPECT_EQ(meter->calls(), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(entry_of(*meter)(1, 2, 3, 4, 5, 6, 21.0), 42);
  EXPECT_EQ(meter->calls(), 1000u);
}

TEST(CallMeter, LeadsElsewhereFromOneCallToTheNextAndGoesOnCounting) {
  auto arena = *CodeArena::create(1 << 20);
  auto meter = *CallMeter::create(*arena, reinterpret_cast<const void*>(sum));
  EXPECT_EQ(entry_of(*meter)(1, 1, 1, 1, 1, 1, 1), 7);
  meter->lead_to(reinterpret_cast<const void*>(other));
  EXPECT_EQ(entry_of(*meter)(1, 1, 1, 1, 1, 1, 1), -1);
  EXPECT_EQ(meter->calls(), 2u);
}

TEST(CallMeter, MayBeLedElsewhereWhileOthersCall) {
  auto arena = *CodeArena::create(1 << 20);
  auto meter = *CallMeter::create(*arena, reinterpret_cast<const void*>(sum));
  std::atomic<bool> done{false};
  std::atomic<uint64_t> calls{0};
  std::thread caller([&] {
    while (!done || calls < 1000) {
      const int result = entry_of(*meter)(1, 1, 1, 1, 1, 1, 1);
      ASSERT_TRUE(result == 7 || result == -1);
      ++calls;
    }
  });
  for (int i = 0; i < 1000; ++i)
    meter->lead_to(i % 2 == 0 ? reinterpret_cast<const void*>(other) : reinterpret_cast<const void*>(sum));
  done = true;
  caller.join();
  EXPECT_EQ(meter->calls(), calls);
}

}  // namespace
}  // namespace hindsight::jit
