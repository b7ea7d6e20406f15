// What a fork() may expect (runtime/code/owner_process.h): parent and child go on, each with its own code.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/engine/hindsight.h"

namespace hindsight {
namespace {

constexpr unsigned kPatienceSeconds = 60;

// Processes take turns by these: whose turn it is is a byte in the one pipe or in the other.
class Turns {
 public:
  Turns() {
    EXPECT_EQ(pipe(to_child_), 0);
    EXPECT_EQ(pipe(to_parent_), 0);
  }
  ~Turns() {
    for (const int fd : {to_child_[0], to_child_[1], to_parent_[0], to_parent_[1]}) close(fd);
  }
  void let_child() { give(to_child_[1]); }
  void let_parent() { give(to_parent_[1]); }
  bool await_in_child() { return take(to_child_[0]); }
  bool await_in_parent() { return take(to_parent_[0]); }

 private:
  static void give(int fd) { EXPECT_EQ(write(fd, "x", 1), 1); }
  static bool take(int fd) {
    char byte = 0;
    return read(fd, &byte, 1) == 1;
  }
  int to_child_[2], to_parent_[2];
};

// Runs `body` in a child, whose status is 0 where it returns true. An alarm ends a child that hangs.
pid_t fork_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);
    _exit(body() ? 0 : 1);
  }
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

constexpr std::string_view kOneTwoOk = R"((module (memory 1)
  (func (export "one") (result i32) (i32.const 111))
  (func (export "two") (result i32) (i32.const 222))
  (func (export "ok") (result i32) (i32.const 5))))";

std::shared_ptr<Engine> engine_of(TierMode tier) {
  EngineConfig config;
  config.tier = tier;
  config.profiling = tier == TierMode::kAuto;
  return Engine::create(std::move(config)).value();
}

std::shared_ptr<Instance> instance_of(Engine& engine, std::string_view text) {
  Linker linker(engine);
  return linker.instantiate(engine.load(std::as_bytes(std::span(text)), "fork.wat").value()).value();
}

int call(Instance& instance, const char* name, std::span<const Value> args = {}) {
  const auto results = instance.call(name, args);
  return results && results->size() == 1 ? (*results)[0].as_i32() : -1;
}

class Fork : public testing::TestWithParam<TierMode> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer does not support threads after a fork of a process with threads";
#endif
  }
};
INSTANTIATE_TEST_SUITE_P(EveryTier, Fork,
                         testing::Values(TierMode::kAuto, TierMode::kBaseline, TierMode::kOptimized),
                         [](const auto& t) {
                           return t.param == TierMode::kAuto       ? "Auto"
                                  : t.param == TierMode::kBaseline ? "Baseline"
                                                                   : "Optimized";
                         });

TEST_P(Fork, WhatTheParentCallsFirstIsNotInTheChildsCode) {
  const auto engine = engine_of(GetParam());
  const auto instance = instance_of(*engine, kOneTwoOk);
  ASSERT_EQ(call(*instance, "ok"), 5);
  Turns turns;
  const pid_t child = fork_child([&] {
    const bool first = call(*instance, "one") == 111;
    turns.let_parent();
    return first && turns.await_in_child() && call(*instance, "one") == 111 && call(*instance, "ok") == 5;
  });
  EXPECT_TRUE(turns.await_in_parent());
  EXPECT_EQ(call(*instance, "two"), 222);
  turns.let_child();
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(call(*instance, "one"), 111);
}

TEST_P(Fork, WhatTheChildCallsFirstIsNotInTheParentsCode) {
  const auto engine = engine_of(GetParam());
  const auto instance = instance_of(*engine, kOneTwoOk);
  Turns turns;
  const pid_t child = fork_child([&] {
    const bool right = turns.await_in_child() && call(*instance, "one") == 111;
    turns.let_parent();
    return right;
  });
  EXPECT_EQ(call(*instance, "two"), 222);
  turns.let_child();
  EXPECT_TRUE(turns.await_in_parent());
  EXPECT_EQ(call(*instance, "two"), 222);
  EXPECT_EQ(status_of(child), 0);
}

TEST_P(Fork, AChildKeepsItsCodeWhenTheParentLetsGoOfTheModuleAndLoadsAnother) {
  const auto engine = engine_of(GetParam());
  auto instance = instance_of(*engine, kOneTwoOk);
  ASSERT_EQ(call(*instance, "ok"), 5);
  Turns turns;
  const pid_t child = fork_child([&] { return turns.await_in_child() && call(*instance, "ok") == 5; });
  instance.reset();
  const auto other = instance_of(*engine, R"((module (memory 1)
    (func (export "a") (result i32) (i32.const 9001))
    (func (export "b") (result i32) (i32.const 9002))
    (func (export "c") (result i32) (i32.const 9003))))");
  EXPECT_EQ(call(*other, "a"), 9001);
  EXPECT_EQ(call(*other, "b"), 9002);
  EXPECT_EQ(call(*other, "c"), 9003);
  turns.let_child();
  EXPECT_EQ(status_of(child), 0);
}

TEST_P(Fork, AChildLoadsModulesOfItsOwn) {
  const auto engine = engine_of(GetParam());
  const auto instance = instance_of(*engine, kOneTwoOk);
  ASSERT_EQ(call(*instance, "ok"), 5);
  const pid_t child = fork_child([&] {
    const auto other = instance_of(*engine, kOneTwoOk);
    return call(*other, "one") == 111 && call(*instance, "two") == 222 && call(*other, "ok") == 5;
  });
  EXPECT_EQ(status_of(child), 0);
}

TEST_P(Fork, AGuestThatIsCallingItsHostGoesOnInBothProcesses) {
  const auto engine = engine_of(GetParam());
  Linker linker(*engine);
  pid_t child = -1;
  Turns turns;
  linker.define_function("host", "fork", [&]() -> int32_t {
    child = fork();
    if (child == 0) alarm(kPatienceSeconds);
    return child == 0;
  });
  // The parent has compiled `parent` before the child compiles anything more, and goes on after it.
  linker.define_function("host", "turn", [&] {
    if (child != 0)
      turns.let_child();
    else
      turns.await_in_child();
  });
  constexpr std::string_view kText = R"((module
    (import "host" "fork" (func $fork (result i32)))
    (import "host" "turn" (func $turn))
    (func $parent (param i32) (result i32) (i32.add (local.get 0) (i32.const 1000)))
    (func $child (param i32) (result i32) (i32.add (local.get 0) (i32.const 2000)))
    (func (export "run") (param $n i32) (result i32) (local $sum i32) (local $in_child i32)
      (local.set $in_child (call $fork))
      (loop $again
        (local.set $sum (i32.add (local.get $sum)
          (if (result i32) (local.get $in_child)
            (then (call $child (local.get $n))) (else (call $parent (local.get $n))))))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (call $turn)
      (i32.add (local.get $sum)
        (if (result i32) (local.get $in_child)
          (then (call $child (i32.const 1))) (else (call $parent (i32.const 1))))))))";
  const auto instance =
      linker.instantiate(engine->load(std::as_bytes(std::span(kText)), "fork.wat").value()).value();
  const auto expected = [](int n, int base) { return n * base + n * (n + 1) / 2 + base + 1; };
  const int result = call(*instance, "run", std::array{Value::i32(10)});
  if (child == 0) _exit(result == expected(10, 2000) ? 0 : 1);
  EXPECT_EQ(result, expected(10, 1000));
  EXPECT_EQ(status_of(child), 0);
}

TEST_P(Fork, ChildrenOfChildrenAndManyForksLeaveEverybodyWithItsOwnCode) {
  const auto engine = engine_of(GetParam());
  const auto instance = instance_of(*engine, kOneTwoOk);
  ASSERT_EQ(call(*instance, "ok"), 5);
  for (int i = 0; i < 20; i++) {
    const pid_t child = fork_child([&] {
      const auto mine = instance_of(*engine, kOneTwoOk);
      const pid_t grandchild =
          fork_child([&] { return call(*mine, "one") == 111 && call(*instance, "two") == 222; });
      return call(*mine, "two") == 222 && call(*instance, "ok") == 5 && status_of(grandchild) == 0 &&
             call(*mine, "two") == 222;
    });
    const auto mine = instance_of(*engine, kOneTwoOk);
    EXPECT_EQ(call(*mine, "one"), 111);
    EXPECT_EQ(status_of(child), 0);
    EXPECT_EQ(call(*mine, "one"), 111);
  }
}

// Other threads compile, publish and let go all the time; a child finds no lock of theirs taken, and nothing half done.
TEST_P(Fork, FallsBetweenWhatOtherThreadsDo) {
  const auto engine = engine_of(GetParam());
  const auto instance = instance_of(*engine, kOneTwoOk);
  ASSERT_EQ(call(*instance, "ok"), 5);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; t++)
    threads.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        const auto mine = instance_of(*engine, kOneTwoOk);
        EXPECT_EQ(call(*mine, "one"), 111);
        EXPECT_EQ(call(*mine, "two"), 222);
      }
    });
  // (func (export "n") (result i32) (i32.const 7))
  static constexpr char kBytes[] =
      "\0asm\1\0\0\0"
      "\1\5\1\x60\0\1\x7f"
      "\3\2\1\0"
      "\7\5\1\1n\0\0"
      "\12\6\1\4\0\x41\7\x0b";
  constexpr std::string_view kBinary(kBytes, sizeof kBytes - 1);
  for (int i = 0; i < 20; i++) {
    const auto before = instance_of(*engine, kBinary);
    const pid_t child = fork_child([&] { return call(*instance, "ok") == 5 && call(*before, "n") == 7; });
    EXPECT_EQ(status_of(child), 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hindsight
