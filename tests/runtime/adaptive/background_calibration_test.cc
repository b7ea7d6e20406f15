#include "runtime/adaptive/background_calibration.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>

#include "base/system_failures.h"
#include "tests/no_threads.h"

namespace hindsight::rt {
namespace {

uint64_t measurements_refused() {
  for (const SystemFailureCount& failure : system_failures())
    if (failure.what == SystemFailure::kCalibration) return failure.count;
  return 0;
}

TEST(BackgroundCalibration, GoesWithoutFiguresWhereThereIsNoThreadAndLetsTheNextEngineTry) {
  const auto nothing = [](bool, const std::string&) {};
  BackgroundCalibration first(nothing), second(nothing);
  if (first.get()) GTEST_SKIP() << "the process knows the machine already";
  const uint64_t before = measurements_refused();
  const NoThreads none;
  first.measure();
  EXPECT_EQ(measurements_refused(), before + 1);
  first.measure();
  EXPECT_EQ(measurements_refused(), before + 1) << "an engine tries once";
  second.measure();
  EXPECT_EQ(measurements_refused(), before + 2) << "nobody is taken to be measuring";
  EXPECT_FALSE(second.get());
  sigset_t mask;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

}  // namespace
}  // namespace hindsight::rt
