// The sample consumer built with the instructions themselves: it must not notice that they are emulated.
#include <gtest/gtest.h>

#include "feedback/lwp/emulation/trace_emulation.h"

namespace hindsight::lwp {
namespace {

TEST(NativeConsumer, AccountsForEveryRecordOfEmulatedInstructions) {
#ifdef HINDSIGHT_SANITIZED
  GTEST_SKIP() << "the traced program would have to be sanitized too";
#endif
  const auto report = run_emulated({.command = {HINDSIGHT_LWP_CONSUMER}, .started = {}});
  if (!report && report.error().kind == ErrorKind::kResource) GTEST_SKIP() << report.error().message;
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_EQ(report->signal, 0);
  EXPECT_EQ(report->exit_status, 0);  // 1 if sums or contents are wrong
}

}  // namespace
}  // namespace hindsight::lwp
