// Where address space is limited (ulimit -v), a function that is large to compile is compiled, or stays in baseline code
// with the reason told. Or the program is refused in words. Nothing ends by a signal.
#include <gmock/gmock.h>

#include "tests/runtime/cli/command.h"
#include "tests/sanitizers.h"

namespace {

class MemoryLimit : public Command {};

TEST_F(MemoryLimit, EndsNoProgramByACompile) {
  if (hindsight::kAddressSanitizer || hindsight::kThreadSanitizer)
    GTEST_SKIP() << "shadow memory is larger than any limit";
  std::string text = "(module (func (export \"mix\") (param i64 i64) (result i64)\n";
  for (int i = 1; i <= 6000; ++i)
    text += "(if (i64.lt_s (local.get 0) (i64.const " + std::to_string(i * 7919) +
            ")) (then (local.set 0 (i64.xor (i64.mul "
            "(local.get 0) (i64.const " +
            std::to_string(2 * i + 1) + ")) (local.get 1)))))\n";
  const std::string module = file("large.wat", text + "(local.get 0)))");
  const std::string answer =
      hindsight({"run", "--tier", "baseline", "--invoke", "mix", module, "3", "4"}).out;
  ASSERT_NE(answer, "");
  bool compiled = false;
  for (const int kibibytes : {200'000, 400'000, 600'000, 900'000, 1'300'000, 2'000'000, 4'000'000}) {
    const Outcome outcome =
        program({HINDSIGHT_LIMITED, "address-space=" + std::to_string(kibibytes), "--", HINDSIGHT_COMMAND,
                 "run", "--tier", "optimized", "--invoke", "mix", module, "3", "4"});
    EXPECT_LT(outcome.status, 1000) << kibibytes << ": ended by a signal: " << outcome.err;
    if (outcome.status == 0) {
      EXPECT_EQ(outcome.out, answer) << kibibytes;
    } else {
      EXPECT_NE(outcome.err, "") << kibibytes;
    }
    compiled |= outcome.status == 0;
  }
  EXPECT_TRUE(compiled);
}

}  // namespace
