// What attaching costs a guest thread: under 50 us for attach and detach together, with either clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "feedback/lwp/unit.h"

namespace hindsight::lwp {
namespace {

class AttachSpeed : public testing::TestWithParam<const char*> {};

TEST_P(AttachSpeed, IsUnderFiftyMicroseconds) {
#ifdef HINDSIGHT_SANITIZED
  GTEST_SKIP() << "speed is not measured under sanitizers";
#endif
  auto selection = select_unit(GetParam());
  if (!selection) GTEST_SKIP() << selection.error().message;
  auto unit = selection->factory->create({});
  ASSERT_TRUE(unit);
  using Clock = std::chrono::steady_clock;
  // The best of many: another process may take the processor at any time, but speed cannot be had by chance.
  auto best = Clock::duration::max();
  for (int i = 0; i < 500; ++i) {
    const auto start = Clock::now();
    const Status attached = (*unit)->attach();
    (*unit)->detach();
    best = std::min(best, Clock::now() - start);
    ASSERT_TRUE(attached) << attached.error().describe();
  }
  const double microseconds = std::chrono::duration<double, std::micro>(best).count();
  RecordProperty("microseconds", std::to_string(microseconds));
  EXPECT_LT(microseconds, 50);
}

INSTANTIATE_TEST_SUITE_P(Clocks, AttachSpeed, testing::Values("clock/perf", "clock/timer"),
                         [](const auto& info) { return std::string(info.param).substr(6); });

}  // namespace
}  // namespace hindsight::lwp
