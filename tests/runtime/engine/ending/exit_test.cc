// Hosts that end by exit() while Hindsight works, each a process of its own (programs/exiting_host.cc).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

namespace {

class Exit : public testing::Test {
 protected:
  void SetUp() override {
#ifdef HINDSIGHT_SANITIZED
    GTEST_SKIP() << "sanitizers have handlers of exit() of their own, and object to what a host leaves";
#endif
  }
};
using QuickExit = Exit;

// Its exit status; 1000 and the signal that ended it. One that hangs is ended by an alarm.
int status_of_host_that_exits(const char* situation) {
  std::string program = HINDSIGHT_EXITING_HOST, word = situation;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // stays over exec
    const std::array<char*, 3> words{program.data(), word.data(), nullptr};
    execv(program.c_str(), words.data());
    _exit(126);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_F(Exit, WaitsForTheOptimizingTierToBeOpened) {
  EXPECT_EQ(status_of_host_that_exits("as-it-opens"), 7);
}
TEST_F(Exit, DestroysNothingOfTheOptimizingTierWhileTheRestOfItIsMade) {
  EXPECT_EQ(status_of_host_that_exits("amid-constructors"), 7);
}
TEST_F(Exit, EndsACompileBeforeItDestroysWhatThatUses) {
  EXPECT_EQ(status_of_host_that_exits("as-it-compiles"), 7);
}
TEST_F(Exit, EndsCompilesOfSeveralEngines) {
  EXPECT_EQ(status_of_host_that_exits("with-several-engines"), 7);
}
TEST_F(Exit, DestroysAGlobalEngineThatCompiles) {
  EXPECT_EQ(status_of_host_that_exits("with-a-global-engine"), 7);
}
TEST_F(Exit, OfAnotherThreadEndsACompile) {
  EXPECT_EQ(status_of_host_that_exits("on-another-thread"), 7);
}
TEST_F(Exit, InAHandlerOfExitEndsACompile) {
  EXPECT_EQ(status_of_host_that_exits("in-a-handler"), 7);
}
TEST_F(Exit, InAHostFunctionEndsACompileForAnotherGuest) {
  EXPECT_EQ(status_of_host_that_exits("in-a-host-function"), 7);
}
TEST_F(Exit, OfAChildDoesNotWaitForTheParentsCompile) {
  EXPECT_EQ(status_of_host_that_exits("in-a-child"), 7);
}
TEST_F(Exit, CallsNoCallbackOnAnotherThreadOnceItHasBegun) {
  EXPECT_EQ(status_of_host_that_exits("as-it-logs"), 7);
}
TEST_F(QuickExit, LeavesACompileAlone) {
  EXPECT_EQ(status_of_host_that_exits("quickly"), 7);
}

}  // namespace
