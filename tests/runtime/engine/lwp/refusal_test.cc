// Where nothing can watch, the guest runs on and the reason is reported once. Each refusal is made real, in a
// process of its own: limits and filters cannot be taken back.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/forbidding.h"
#include "tests/log_lines.h"
#include "tests/runtime/engine/guest.h"
#include "tests/sanitizers.h"

namespace hindsight {
namespace {

using testing::HasSubstr;

constexpr const char* kRefusedGuest = R"((module
  (import "hindsight_lwp" "enabled" (func $enabled (result i32)))
  (func (export "twice") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
  (func (export "watched") (result i32) (call $enabled))))";

struct Refused {
  LogLines log;
  std::shared_ptr<Engine> engine;
  std::shared_ptr<const Module> module;
  explicit Refused(std::string unit = "auto") {
    EngineConfig config;
    config.tier = TierMode::kAuto;
    config.unit = std::move(unit);
    config.guest_lwp = true;
    config.log = log.sink();
    auto made = Engine::create(config);
    if (!made) return;
    engine = *made;
    module = load(*engine, kRefusedGuest);
  }
  // The guest on threads of its own: does it run, and is it watched?
  bool runs_unwatched(int threads = 3) {
    int right = 0;
    for (int i = 0; i < threads; ++i) {
      std::thread([&] {
        Linker linker(*engine);
        auto instance = linker.instantiate(module).value();
        const std::array args{Value::i32(21)};
        right += instance->call("twice", args).value()[0].as_i32() == 42 &&
                 instance->call("watched", {}).value()[0].as_i32() == 0;
      }).join();
    }
    return right == threads;
  }
};

// Runs `body` in a forked process; it returns a text, empty for success.
std::string told_by_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const std::string text = body();
    (void)!write(ends[1], text.data(), text.size());
    _exit(text.empty() ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status)) + " " + text;
  return text;
}

// What the unit had to say. A compile thread that starts late may miss memory of its own, which is another reason.
std::string told_once(const LogLines& log, const std::string& reason) {
  const auto lines = log.warnings("lwp: ");
  std::string all;
  for (const auto& line : lines) all += "[" + line + "]";
  if (lines.size() != 1) return "told " + std::to_string(lines.size()) + " times: " + all;
  if (lines[0].find(reason) == std::string::npos) return "no word of " + reason + ": " + all;
  return {};
}

#define SKIP_UNDER_THREAD_SANITIZER() \
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked child"

TEST(Refusals, WithNeitherPerfNorTimersTheGuestRunsOnAndTheReasonIsToldOnce) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(told_by_child([]() -> std::string {
              if (!forbid_perf(EPERM) || !forbid_timers()) return "cannot forbid";
              Refused refused;
              if (!refused.engine) return "no engine";
              if (!refused.runs_unwatched()) return "the guest did not run, or is watched";
              return told_once(refused.log, "EAGAIN");
            }),
            "");
}

TEST(Refusals, WhenTimersRunOutLaterTheThreadsRunOnAndTheReasonIsToldOnce) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(told_by_child([]() -> std::string {
              if (!forbid_perf(EPERM)) return "cannot forbid";
              Refused refused;  // chose the timer
              if (!refused.engine) return "no engine";
              if (!forbid_timers()) return "cannot forbid";
              if (!refused.runs_unwatched()) return "the guest did not run, or is watched";
              return told_once(refused.log, "EAGAIN");
            }),
            "");
}

TEST(Refusals, WhenSomebodyElseHandlesTheSignalTheReasonIsToldOnce) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(told_by_child([]() -> std::string {
              if (!forbid_perf(EPERM)) return "cannot forbid";
              signal(SIGPROF, [](int) {});
              Refused refused;
              if (!refused.engine) return "no engine";
              if (!refused.runs_unwatched()) return "the guest did not run, or is watched";
              return told_once(refused.log, "SIGPROF");
            }),
            "");
}

TEST(Refusals, WithoutMemoryForTheRingTheGuestRunsOnAndTheReasonIsToldOnce) {
  if (kAddressSanitizer || kThreadSanitizer)
    GTEST_SKIP() << "the sanitizer's allocator ends the process instead of refusing";
  EXPECT_EQ(told_by_child([]() -> std::string {
              Refused refused;
              if (!refused.engine) return "no engine";
              Linker linker(*refused.engine);
              auto instance = linker.instantiate(refused.module).value();  // enters nothing
              const std::array args{Value::i32(21)};
              std::thread([&] {  // compiles everything, watched
                Linker other(*refused.engine);
                auto first = other.instantiate(refused.module).value();
                first->call("twice", args).value();
                first->call("watched", {}).value();
              })
                  .join();
              // No more address space, and no block of a ring's size in what there is.
              const rlimit none{4096, RLIM_INFINITY};
              if (setrlimit(RLIMIT_AS, &none) != 0) return "cannot limit";
              void* (*volatile take)(size_t) = std::malloc;  // the compiler may leave a plain malloc out
              void* small[128];
              for (void*& p : small) p = take(4096);
              while (take(16 * 1024) != nullptr) {
              }
              for (size_t i = 0; i < std::size(small); i += 2) std::free(small[i]);  // room for what is small
              if (instance->call("twice", args).value()[0].as_i32() != 42) return "a wrong answer";
              if (instance->call("watched", {}).value()[0].as_i32() != 0) return "watched";
              const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
              setrlimit(RLIMIT_AS, &all);
              return told_once(refused.log, "no memory");
            }),
            "");
}

TEST(Refusals, AUnitThatWasAskedForByNameAndIsNotHereIsAnError) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(told_by_child([]() -> std::string {
              if (!forbid_perf(EPERM) || !forbid_timers()) return "cannot forbid";
              EngineConfig config;
              config.unit = "clock";
              auto engine = Engine::create(config);
              if (engine) return "an engine";
              return engine.error().kind == ErrorKind::kUnsupported ? "" : engine.error().describe();
            }),
            "");
}

}  // namespace
}  // namespace hindsight
