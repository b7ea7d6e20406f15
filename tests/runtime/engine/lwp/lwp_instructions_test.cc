// LWP instructions in the host's own code, while a guest runs. SIGILL belongs to the process, so each test
// does what it does in a child.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "feedback/lwp/emulation/instructions.h"
#include "feedback/lwp/emulation/sigill_emulation.h"
#include "feedback/lwp/format/control_block.h"
#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

constexpr const char* kInstructionsGuest = R"((module
  (import "host" "record" (func $record (param i32) (result i32)))
  (func (export "loop") (param $n i32) (result i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (call $record (local.get $n))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))))";

struct Host {
  std::vector<std::string> warnings;
  std::array<lwp::EventRecord, 64> buffer;
  lwp::ControlBlock block;

  // Runs the guest, whose calls of the host execute `record`.
  template <typename Record>
  int run(bool lwp_instructions, Record record) {
    EngineConfig config;
    config.tier = TierMode::kBaseline;
    config.profiling = false;
    config.lwp_instructions = lwp_instructions;
    config.log_level = LogLevel::kWarning;
    config.log = [this](LogLevel level, std::string_view, std::string_view line) {
      if (level == LogLevel::kWarning) warnings.emplace_back(line);
    };
    auto engine = Engine::create(config);
    if (!engine) return -1;
    Linker linker(**engine);
    linker.define_function("host", "record", record);
    auto instance = linker.instantiate(load(**engine, kInstructionsGuest));
    if (!instance) return -2;
    auto loop = (*instance)->typed_function<int32_t(int32_t)>("loop");
    if (!loop) return -3;
    const Result<int32_t> sum = (*loop)(10);
    return sum ? *sum : -4;
  }
};

#define REQUIRE(condition)             \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (0)

// The line of the requirement that the child found not met; 0: none; 1000 + the signal that ended it.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(LwpInstructions, WorkInFunctionsThatAGuestCalls) {
  EXPECT_EQ(in_child([] {
              Host host;
              host.block.set_size_and_random(sizeof host.buffer, 0);
              host.block.buffer_base = reinterpret_cast<uint64_t>(host.buffer.data());
              bool armed = false;
              const int sum = host.run(true, [&](int32_t n) -> int32_t {
                if (!armed) lwp::instruction::llwpcb(&host.block);
                armed = true;
                lwp::instruction::lwpins<7>(static_cast<uint64_t>(n), 1);
                return n;
              });
              REQUIRE(sum == 55);
              REQUIRE(host.warnings.empty());
              REQUIRE(lwp::instruction::slwpcb() == &host.block);
              REQUIRE(host.block.head == 10 * lwp::kRecordSize);
              REQUIRE(host.buffer[9].data2 == 1 && host.buffer[0].data2 == 10);
              return 0;
            }),
            0);
}

TEST(LwpInstructions, OfAHostThatHandlesSigillItselfStayUndefinedAndTheGuestRunsOn) {
  EXPECT_EQ(in_child([] {
              struct sigaction action {
              }, now{};
              action.sa_handler = [](int) { _exit(99); };
              sigaction(SIGILL, &action, nullptr);
              Host host;
              REQUIRE(host.run(true, [](int32_t n) -> int32_t { return n; }) == 55);
              REQUIRE(host.warnings.size() == 1);
              REQUIRE(host.warnings[0].find("SIGILL") != std::string::npos);
              sigaction(SIGILL, nullptr, &now);
              REQUIRE(now.sa_handler == action.sa_handler);
              return 0;
            }),
            0);
}

TEST(LwpInstructions, AreNotEmulatedUnasked) {
  EXPECT_EQ(in_child([] {
              Host host;
              REQUIRE(host.run(false, [](int32_t n) -> int32_t { return n; }) == 55);
              REQUIRE(!lwp::lwp_emulation_installed());
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace hindsight
